/* The symbols of the preloaded library for calls that move bytes from one descriptor to another. Between plain files they are the C library's own,
 * recorded when the run is traced; with a managed file on either side the runtime moves the bytes. */
#include "hook.h"
#include <sys/sendfile.h>

#define HERE UINT64_MAX
DECLARE_REAL(ssize_t, copy_file_range, int, off64_t *, int, off64_t *, size_t, unsigned);
DECLARE_REAL(ssize_t, sendfile64, int, int, off64_t *, size_t);
DECLARE_REAL(ssize_t, splice, int, off64_t *, int, off64_t *, size_t, unsigned);
DECLARE_REAL(ssize_t, tee, int, int, size_t, unsigned);

/* A copy is a read of one file and a write of another. */
#define RECORDED(in, in_at, out, out_at, asked, call)                                                     \
    do {                                                                                                  \
        uint64_t from_ = (in_at) ? (uint64_t) * (in_at) : HERE, to_ = (out_at) ? (uint64_t) * (out_at) : HERE; \
        uint64_t t_ = sw_ticks();                                                                         \
        ssize_t r_ = call;                                                                                \
        if (entry(in)) sw_traced(in, OP_READ, from_, asked, r_, t_);                                      \
        if (entry(out)) sw_traced(out, OP_WRITE, to_, asked, r_, t_);                                     \
        return r_;                                                                                        \
    } while (0)

EXPORT ssize_t copy_file_range(int in, off64_t *in_at, int out, off64_t *out_at, size_t n, unsigned flags)
{
    if (LIKELY((entry(in) | entry(out)) == 0)) return REAL(copy_file_range)(in, in_at, out, out_at, n, flags);
    if (is_plain(in) && is_plain(out)) RECORDED(in, in_at, out, out_at, n, REAL(copy_file_range)(in, in_at, out, out_at, n, flags));
    return ret(sw_copy_file_range(in, in_at, out, out_at, n, flags));
}
EXPORT ssize_t sendfile64(int out, int in, off64_t *at, size_t n)
{
    off64_t *here = NULL;
    if (LIKELY((entry(in) | entry(out)) == 0)) return REAL(sendfile64)(out, in, at, n);
    if (is_plain(in) && is_plain(out)) RECORDED(in, at, out, here, n, REAL(sendfile64)(out, in, at, n));
    return ret(sw_sendfile(out, in, at, n));
}
ALIAS(ssize_t, sendfile, sendfile64, int, int, off_t *, size_t);
EXPORT ssize_t splice(int in, off64_t *in_at, int out, off64_t *out_at, size_t n, unsigned flags)
{
    if (LIKELY((entry(in) | entry(out)) == 0)) return REAL(splice)(in, in_at, out, out_at, n, flags);
    if (is_plain(in) && is_plain(out)) RECORDED(in, in_at, out, out_at, n, REAL(splice)(in, in_at, out, out_at, n, flags));
    return ret(sw_splice(in, in_at, out, out_at, n, flags));
}
EXPORT ssize_t tee(int in, int out, size_t n, unsigned flags)
{
    if (is_plain(in) && is_plain(out)) return REAL(tee)(in, out, n, flags);
    return ret(sw_tee(in, out, n, flags));
}
