/* io_uring and libaio: the symbols by which a program sets up a ring, or a context, through which the kernel would then be asked past every hook.
 * Where files may be managed they answer "not here", and programs take threads or plain calls; elsewhere they are the libraries' own. Both libraries
 * return the error, negative. The names are preloaded without a version, which satisfies the versioned ones that programs are linked with. */
#include "hook.h"

DECLARE_REAL(int, io_uring_queue_init, unsigned, void *, unsigned);
DECLARE_REAL(int, io_uring_queue_init_params, unsigned, void *, void *);
DECLARE_REAL(int, io_uring_queue_init_mem, unsigned, void *, void *, void *, size_t);
DECLARE_REAL(int, io_uring_setup, unsigned, void *);
DECLARE_REAL(void *, io_uring_get_probe, void);
DECLARE_REAL(int, io_setup, int, void *);
DECLARE_REAL(int, io_queue_init, int, void *);

#define UNLESS_REFUSED(name, ...) (sw_rings_refused(#name) || !REAL(name) ? -ENOSYS : REAL(name)(__VA_ARGS__))

EXPORT int io_uring_queue_init(unsigned entries, void *ring, unsigned flags) { return UNLESS_REFUSED(io_uring_queue_init, entries, ring, flags); }
EXPORT int io_uring_queue_init_params(unsigned entries, void *ring, void *params) { return UNLESS_REFUSED(io_uring_queue_init_params, entries, ring, params); }
EXPORT int io_uring_queue_init_mem(unsigned entries, void *ring, void *params, void *memory, size_t size)
{
    return UNLESS_REFUSED(io_uring_queue_init_mem, entries, ring, params, memory, size);
}
EXPORT int io_uring_setup(unsigned entries, void *params) { return UNLESS_REFUSED(io_uring_setup, entries, params); }
/* What a kernel can do, asked of a ring that the library makes for itself. */
EXPORT void *io_uring_get_probe(void) { return sw_rings_refused(0) || !REAL(io_uring_get_probe) ? 0 : REAL(io_uring_get_probe)(); }
EXPORT int io_setup(int events, void *context) { return UNLESS_REFUSED(io_setup, events, context); }
EXPORT int io_queue_init(int events, void *context) { return UNLESS_REFUSED(io_queue_init, events, context); }
