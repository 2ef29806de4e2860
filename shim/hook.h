/* What every file of the shim is written with: symbols that programs see, the C library's own functions behind them, and the look-up that tells
 * a plain descriptor (its own call, at once) from a recorded or a managed one. */
#ifndef STRIPEWISE_HOOK_H
#define STRIPEWISE_HOOK_H
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#undef _FORTIFY_SOURCE
#include "stripewise.h"
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>

/* Everything else is hidden: the library is compiled with -fvisibility=hidden, and the runtime's symbols are excluded when it is linked. */
#define EXPORT __attribute__((visibility("default")))
#define LIKELY(x) __builtin_expect(!!(x), 1)

/* Operation numbers of the trace, as in crates/trace. */
enum { OP_READ = 3, OP_WRITE = 4, OP_SEEK = 5, OP_TRUNCATE = 6, OP_FALLOCATE = 7, OP_SYNC = 8, OP_STAT = 9, OP_STATFS = 10, OP_ACCESS = 11, OP_UNLINK = 12,
       OP_RENAME = 13, OP_MKDIR = 21, OP_RMDIR = 22, OP_LINK = 23, OP_SYMLINK = 24, OP_READLINK = 25, OP_OPENDIR = 26, OP_READDIR = 27, OP_SETATTR = 28,
       OP_GETATTR = 32, OP_MKNOD = 33 };

/* dlsym on success takes no memory, so this works before constructors and inside allocators. */
#define REAL(name) next_##name()
#define DECLARE_REAL_BY(lookup, type, name, ...)                                                        \
    static type (*real_##name)(__VA_ARGS__);                                                            \
    static inline __typeof__(real_##name) next_##name(void)                                             \
    {                                                                                                   \
        __typeof__(real_##name) found = __atomic_load_n(&real_##name, __ATOMIC_RELAXED);                \
        if (LIKELY(found)) return found;                                                                \
        found = (__typeof__(real_##name))lookup;                                                        \
        __atomic_store_n(&real_##name, found, __ATOMIC_RELAXED);                                        \
        return found;                                                                                   \
    }
#define DECLARE_REAL(type, name, ...) DECLARE_REAL_BY(dlsym(RTLD_NEXT, #name), type, name, __VA_ARGS__)
/* Functions of several versions: before glibc 2.36 RTLD_NEXT finds the oldest one, not that which programs are linked with. Architectures that are
 * younger than the version have only one. */
#define DECLARE_REAL_OF(version, type, name, ...) DECLARE_REAL_BY(sw_versioned(#name, version), type, name, __VA_ARGS__)
static inline void *sw_versioned(const char *name, const char *version)
{
    void *found = dlvsym(RTLD_NEXT, name, version);
    return found ? found : dlsym(RTLD_NEXT, name);
}

static inline uint32_t entry(int fd) { return (unsigned)fd < SW_FDS ? __atomic_load_n(&sw_fds[(unsigned)fd], __ATOMIC_ACQUIRE) : 0; }
/* Not managed and not the library's own: the C library's call is right, recorded or not. */
static inline int is_plain(int fd)
{
    uint32_t e = entry(fd);
    return LIKELY(e == 0 || (e & SW_TRACED));
}
static inline long ret(long r)
{
    if (r < 0 && r > SW_PASS) {
        errno = (int)-r;
        return -1;
    }
    return r;
}

/* A call on a descriptor: plain, plain but recorded, or managed. */
#define ON_FD(fd, op, at, asked, plain, managed)                          \
    do {                                                                  \
        uint32_t e_ = entry(fd);                                          \
        if (LIKELY(e_ == 0)) return plain;                                \
        if (e_ & SW_TRACED) {                                             \
            uint64_t t_ = sw_ticks();                                     \
            __typeof__(plain) r_ = plain;                                 \
            sw_traced(fd, op, (uint64_t)(at), (uint64_t)(asked), r_, t_); \
            return r_;                                                    \
        }                                                                 \
        return ret(managed);                                              \
    } while (0)

/* The same for a read, which a copy of the file may serve: SW_PASS where none does. */
#define ON_READ(fd, at, asked, plain, copied, managed)                    \
    do {                                                                  \
        uint32_t e_ = entry(fd);                                          \
        if (LIKELY(e_ == 0)) return plain;                                \
        if (e_ & SW_TRACED) {                                             \
            uint64_t t_ = sw_tracing ? sw_ticks() : 0;                    \
            long c_ = (e_ & SW_COPIED) ? copied : SW_PASS;                \
            uint32_t by_ = c_ > 0 ? (uint32_t)(c_ >> SW_COPY_SHIFT) : 0;  \
            c_ -= (long)by_ << SW_COPY_SHIFT;                             \
            __typeof__(plain) r_ = c_ == SW_PASS ? plain : (__typeof__(plain))ret(c_); \
            if (t_) sw_traced(fd, OP_READ | by_ << SW_BY_SHIFT, (uint64_t)(at), (uint64_t)(asked), r_, t_); \
            return r_;                                                    \
        }                                                                 \
        return ret(managed);                                              \
    } while (0)

/* What a fortified spelling checks before its plain one does the work. */
static inline void must_fit(size_t n, size_t room)
{
    if (n > room) ((void (*)(void))dlsym(RTLD_NEXT, "__chk_fail"))();
}

/* On LP64 off_t is off64_t: the plain spellings are the same functions. */
#define ALIAS(ret, name, of, ...) EXPORT ret name(__VA_ARGS__) __attribute__((alias(#of)))

/* A call on a name, recorded when the run is traced. */
#define ON_PATH(path, op, call)                              \
    do {                                                     \
        uint64_t t_ = sw_tracing ? sw_ticks() : 0;           \
        int r_ = (int)ret(call);                             \
        if (t_) sw_traced_path(path, op, r_, t_);            \
        return r_;                                           \
    } while (0)

/* The same for a call that gives a file another name. */
#define ON_NAMES(from_dir, from, to_dir, to, op, call)                          \
    do {                                                                        \
        uint64_t t_ = sw_tracing ? sw_ticks() : 0;                              \
        int r_ = (int)ret(call);                                                \
        if (t_) sw_traced_names(from_dir, from, to_dir, to, op, r_, t_);        \
        return r_;                                                              \
    } while (0)

/* The same, where a name that is not managed gets the C library's own call. */
#define ON_NAME(path, op, managed, plain)                               \
    do {                                                                \
        uint64_t t_ = sw_tracing ? sw_ticks() : 0;                      \
        long m_ = managed;                                              \
        __typeof__(plain) r_ = m_ == SW_PASS ? plain : (__typeof__(plain))ret(m_); \
        if (t_) sw_traced_path(path, op, r_, t_);                       \
        return r_;                                                      \
    } while (0)

/* Headers declare that paths are not null, and the compiler would believe it; programs do pass null. */
static inline int is_null(const char *path)
{
    __asm__("" : "+r"(path));
    return !path;
}

/* The same for calls that follow links: a managed name leads the kernel nowhere, so that a plain one costs no look at it. Through the name of a
 * descriptor the kernel has found head: what it did there is done to the whole file. */
#define ON_FILE(path, flags, op, managed, plain)                         \
    do {                                                                 \
        if (is_null(path) || (flags) & (AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH)) ON_NAME(path, op, managed, plain); \
        uint64_t t_ = sw_tracing ? sw_ticks() : 0;                       \
        int saved_ = errno;                                              \
        __typeof__(plain) r_ = plain;                                    \
        if (r_ >= 0) {                                                   \
            long m_ = sw_is_of_a_descriptor(path) ? managed : SW_PASS;   \
            if (m_ >= 0) r_ = (__typeof__(plain))m_;                     \
        } else if (errno == ENOENT) {                                    \
            long m_ = managed;                                           \
            if (m_ != SW_PASS) errno = saved_, r_ = (__typeof__(plain))ret(m_); \
            else errno = ENOENT;                                         \
        }                                                                \
        if (t_) sw_traced_path(path, op, r_, t_);                        \
        return r_;                                                       \
    } while (0)
#endif
