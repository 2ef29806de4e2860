/* The symbols of the preloaded library for descriptors: every call is one array look-up, then either the C library's own function or the
 * runtime's. No logic lives here; what a managed file does is in crates/runtime. errno is set only when a call fails. */
#include "hook.h"
#include <pthread.h>
#include <stdio.h>
#include <sys/file.h>
#include <unistd.h>

static __thread struct sw_thread tls __attribute__((tls_model("initial-exec")));
struct sw_thread *sw_thread(void) { return &tls; }

static size_t iov_bytes(const struct iovec *iov, int count)
{
    size_t sum = 0;
    for (int i = 0; i < count; i++) sum += iov[i].iov_len;
    return sum;
}

/* --- open, close ------------------------------------------------------------------------------------------------------------ */
DECLARE_REAL(int, openat, int, const char *, int, ...);
DECLARE_REAL(int, close, int);
DECLARE_REAL(int, fcntl, int, int, ...);

long sw_real_openat(int dirfd, const char *path, int flags, unsigned mode)
{
    int saved = errno, fd = REAL(openat)(dirfd, path, flags, mode);
    if (fd >= 0) return fd;
    long r = -errno;
    errno = saved;
    return r;
}
long sw_real_close(int fd)
{
    int saved = errno;
    if (REAL(close)(fd) == 0) return 0;
    long r = -errno;
    errno = saved;
    return r;
}
long sw_real_fcntl(int fd, int op, unsigned long arg)
{
    int saved = errno, v = REAL(fcntl)(fd, op, arg);
    if (v != -1) return v;
    long r = -errno;
    errno = saved;
    return r;
}

/* O_TMPFILE has a mode too. */
#define OPEN_MODE(flags)                                     \
    unsigned mode = 0;                                       \
    if (((flags) & O_CREAT) || ((flags) & O_TMPFILE) == O_TMPFILE) { \
        va_list ap;                                          \
        va_start(ap, flags);                                 \
        mode = va_arg(ap, unsigned);                         \
        va_end(ap);                                          \
    }

EXPORT int open(const char *path, int flags, ...) { OPEN_MODE(flags) return (int)ret(sw_openat(AT_FDCWD, path, flags, mode)); }
EXPORT int open64(const char *path, int flags, ...) { OPEN_MODE(flags) return (int)ret(sw_openat(AT_FDCWD, path, flags | O_LARGEFILE, mode)); }
EXPORT int openat(int dirfd, const char *path, int flags, ...) { OPEN_MODE(flags) return (int)ret(sw_openat(dirfd, path, flags, mode)); }
EXPORT int openat64(int dirfd, const char *path, int flags, ...) { OPEN_MODE(flags) return (int)ret(sw_openat(dirfd, path, flags | O_LARGEFILE, mode)); }
EXPORT int creat(const char *path, mode_t mode) { return (int)ret(sw_openat(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode)); }
EXPORT int creat64(const char *path, mode_t mode) { return (int)ret(sw_openat(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC | O_LARGEFILE, mode)); }
EXPORT int __open_2(const char *path, int flags) { return (int)ret(sw_openat(AT_FDCWD, path, flags, 0)); }
EXPORT int __open64_2(const char *path, int flags) { return (int)ret(sw_openat(AT_FDCWD, path, flags | O_LARGEFILE, 0)); }
EXPORT int __openat_2(int dirfd, const char *path, int flags) { return (int)ret(sw_openat(dirfd, path, flags, 0)); }
EXPORT int __openat64_2(int dirfd, const char *path, int flags) { return (int)ret(sw_openat(dirfd, path, flags | O_LARGEFILE, 0)); }

EXPORT int close(int fd)
{
    if (LIKELY(entry(fd) == 0)) return REAL(close)(fd);
    return (int)ret(sw_close(fd));
}
EXPORT int close_range(unsigned first, unsigned last, int flags) { return (int)ret(sw_close_range(first, last, (unsigned)flags)); }
EXPORT void closefrom(int first) { sw_close_range(first < 0 ? 0 : (unsigned)first, ~0u, 0); }

/* --- read, write ------------------------------------------------------------------------------------------------------------ */
DECLARE_REAL(ssize_t, read, int, void *, size_t);
DECLARE_REAL(ssize_t, write, int, const void *, size_t);
DECLARE_REAL(ssize_t, pread64, int, void *, size_t, off64_t);
DECLARE_REAL(ssize_t, pwrite64, int, const void *, size_t, off64_t);
DECLARE_REAL(ssize_t, readv, int, const struct iovec *, int);
DECLARE_REAL(ssize_t, writev, int, const struct iovec *, int);
DECLARE_REAL(ssize_t, preadv64, int, const struct iovec *, int, off64_t);
DECLARE_REAL(ssize_t, pwritev64, int, const struct iovec *, int, off64_t);
DECLARE_REAL(ssize_t, preadv64v2, int, const struct iovec *, int, off64_t, int);
DECLARE_REAL(ssize_t, pwritev64v2, int, const struct iovec *, int, off64_t, int);
#define HERE UINT64_MAX

EXPORT ssize_t read(int fd, void *to, size_t n) { ON_READ(fd, HERE, n, REAL(read)(fd, to, n), sw_copied_read(fd, to, n), sw_read(fd, to, n)); }
EXPORT ssize_t write(int fd, const void *from, size_t n) { ON_FD(fd, OP_WRITE, HERE, n, REAL(write)(fd, from, n), sw_write(fd, from, n)); }
EXPORT ssize_t pread64(int fd, void *to, size_t n, off64_t at) { ON_READ(fd, at, n, REAL(pread64)(fd, to, n, at), sw_copied_pread(fd, to, n, at), sw_pread(fd, to, n, at)); }
EXPORT ssize_t pwrite64(int fd, const void *from, size_t n, off64_t at) { ON_FD(fd, OP_WRITE, at, n, REAL(pwrite64)(fd, from, n, at), sw_pwrite(fd, from, n, at)); }
EXPORT ssize_t readv(int fd, const struct iovec *iov, int c) { ON_READ(fd, HERE, iov_bytes(iov, c), REAL(readv)(fd, iov, c), sw_copied_readv(fd, iov, c), sw_readv(fd, iov, c)); }
EXPORT ssize_t writev(int fd, const struct iovec *iov, int c) { ON_FD(fd, OP_WRITE, HERE, iov_bytes(iov, c), REAL(writev)(fd, iov, c), sw_writev(fd, iov, c)); }
EXPORT ssize_t preadv64(int fd, const struct iovec *iov, int c, off64_t at) { ON_READ(fd, at, iov_bytes(iov, c), REAL(preadv64)(fd, iov, c, at), sw_copied_preadv(fd, iov, c, at), sw_preadv(fd, iov, c, at)); }
EXPORT ssize_t pwritev64(int fd, const struct iovec *iov, int c, off64_t at) { ON_FD(fd, OP_WRITE, at, iov_bytes(iov, c), REAL(pwritev64)(fd, iov, c, at), sw_pwritev(fd, iov, c, at)); }
EXPORT ssize_t preadv64v2(int fd, const struct iovec *iov, int c, off64_t at, int f)
{
    ON_READ(fd, at, iov_bytes(iov, c), REAL(preadv64v2)(fd, iov, c, at, f), f || at < 0 ? SW_PASS : sw_copied_preadv(fd, iov, c, at), sw_preadv2(fd, iov, c, at, f));
}
EXPORT ssize_t pwritev64v2(int fd, const struct iovec *iov, int c, off64_t at, int f)
{
    ON_FD(fd, OP_WRITE, at, iov_bytes(iov, c), REAL(pwritev64v2)(fd, iov, c, at, f), sw_pwritev2(fd, iov, c, at, f));
}
ALIAS(ssize_t, pread, pread64, int, void *, size_t, off_t);
ALIAS(ssize_t, pwrite, pwrite64, int, const void *, size_t, off_t);
ALIAS(ssize_t, preadv, preadv64, int, const struct iovec *, int, off_t);
ALIAS(ssize_t, pwritev, pwritev64, int, const struct iovec *, int, off_t);
ALIAS(ssize_t, preadv2, preadv64v2, int, const struct iovec *, int, off_t, int);
ALIAS(ssize_t, pwritev2, pwritev64v2, int, const struct iovec *, int, off_t, int);

EXPORT ssize_t __read_chk(int fd, void *to, size_t n, size_t room) { must_fit(n, room); return read(fd, to, n); }
EXPORT ssize_t __pread64_chk(int fd, void *to, size_t n, off64_t at, size_t room) { must_fit(n, room); return pread64(fd, to, n, at); }
EXPORT ssize_t __pread_chk(int fd, void *to, size_t n, off_t at, size_t room) { must_fit(n, room); return pread64(fd, to, n, at); }

/* --- size, place, durability ------------------------------------------------------------------------------------------------ */
DECLARE_REAL(off64_t, lseek64, int, off64_t, int);
DECLARE_REAL(int, ftruncate64, int, off64_t);
DECLARE_REAL(int, truncate64, const char *, off64_t);
DECLARE_REAL(int, fallocate64, int, int, off64_t, off64_t);
DECLARE_REAL(int, posix_fallocate64, int, off64_t, off64_t);
DECLARE_REAL(int, fsync, int);
DECLARE_REAL(int, fdatasync, int);

EXPORT off64_t lseek64(int fd, off64_t at, int whence) { ON_FD(fd, OP_SEEK, at, whence, REAL(lseek64)(fd, at, whence), sw_lseek(fd, at, whence)); }
ALIAS(off_t, lseek, lseek64, int, off_t, int);
EXPORT int ftruncate64(int fd, off64_t len) { ON_FD(fd, OP_TRUNCATE, len, 0, REAL(ftruncate64)(fd, len), (int)sw_ftruncate(fd, len)); }
ALIAS(int, ftruncate, ftruncate64, int, off_t);
EXPORT int truncate64(const char *path, off64_t len)
{
    uint64_t t = sw_tracing ? sw_ticks() : 0;
    long r = sw_truncate(path, len);
    int done = r == SW_PASS ? REAL(truncate64)(path, len) : (int)ret(r);
    if (t) sw_traced_path(path, OP_TRUNCATE, done, t);
    return done;
}
ALIAS(int, truncate, truncate64, const char *, off_t);
EXPORT int fallocate64(int fd, int mode, off64_t at, off64_t len) { ON_FD(fd, OP_FALLOCATE, at, len, REAL(fallocate64)(fd, mode, at, len), (int)sw_fallocate(fd, mode, at, len)); }
ALIAS(int, fallocate, fallocate64, int, int, off_t, off_t);
/* Returns the error, and leaves errno alone. */
EXPORT int posix_fallocate64(int fd, off64_t at, off64_t len)
{
    if (is_plain(fd)) return REAL(posix_fallocate64)(fd, at, len);
    return (int)-sw_fallocate(fd, 0, at, len);
}
ALIAS(int, posix_fallocate, posix_fallocate64, int, off_t, off_t);
EXPORT int fsync(int fd) { ON_FD(fd, OP_SYNC, 0, 0, REAL(fsync)(fd), (int)sw_fsync(fd, 0)); }
EXPORT int fdatasync(int fd) { ON_FD(fd, OP_SYNC, 0, 1, REAL(fdatasync)(fd), (int)sw_fsync(fd, 1)); }

/* --- descriptors and locks -------------------------------------------------------------------------------------------------- */
DECLARE_REAL(int, dup, int);
DECLARE_REAL(int, dup2, int, int);
DECLARE_REAL(int, dup3, int, int, int);
DECLARE_REAL(int, fcntl64, int, int, ...);
DECLARE_REAL(int, flock, int, int);

EXPORT int dup(int fd) { return LIKELY(entry(fd) == 0) ? REAL(dup)(fd) : (int)ret(sw_dup(fd)); }
EXPORT int dup2(int fd, int to)
{
    if (LIKELY((entry(fd) | entry(to)) == 0)) return REAL(dup2)(fd, to);
    return (int)ret(sw_dup3(fd, to, -1));
}
EXPORT int dup3(int fd, int to, int flags)
{
    if (LIKELY((entry(fd) | entry(to)) == 0)) return REAL(dup3)(fd, to, flags);
    return (int)ret(sw_dup3(fd, to, flags));
}
#define FCNTL_ARG                        \
    va_list ap;                          \
    va_start(ap, op);                    \
    unsigned long arg = va_arg(ap, unsigned long); \
    va_end(ap);
EXPORT int fcntl(int fd, int op, ...)
{
    FCNTL_ARG
    if (LIKELY(entry(fd) == 0)) return REAL(fcntl)(fd, op, arg);
    return (int)ret(sw_fcntl(fd, op, arg));
}
EXPORT int fcntl64(int fd, int op, ...)
{
    FCNTL_ARG
    if (LIKELY(entry(fd) == 0)) return REAL(fcntl64)(fd, op, arg);
    return (int)ret(sw_fcntl(fd, op, arg));
}
EXPORT int flock(int fd, int op)
{
    return is_plain(fd) ? REAL(flock)(fd, op) : (int)ret(sw_flock(fd, op));
}

/* --- spellings that the C library exports for its own parts; old programs use them --------------------------------------------- */
EXPORT int __open(const char *path, int flags, ...) { OPEN_MODE(flags) return open(path, flags, mode); }
EXPORT int __open64(const char *path, int flags, ...) { OPEN_MODE(flags) return open64(path, flags, mode); }
EXPORT int __fcntl(int fd, int op, ...) { FCNTL_ARG return fcntl64(fd, op, arg); }
EXPORT int __close(int fd) { return close(fd); }
EXPORT int __dup2(int fd, int to) { return dup2(fd, to); }
EXPORT ssize_t __read(int fd, void *to, size_t n) { return read(fd, to, n); }
EXPORT ssize_t __write(int fd, const void *from, size_t n) { return write(fd, from, n); }
EXPORT ssize_t __pread64(int fd, void *to, size_t n, off64_t at) { return pread64(fd, to, n, at); }
EXPORT ssize_t __pwrite64(int fd, const void *from, size_t n, off64_t at) { return pwrite64(fd, from, n, at); }
EXPORT off64_t __lseek(int fd, off64_t at, int whence) { return lseek64(fd, at, whence); }
EXPORT off64_t llseek(int fd, off64_t at, int whence) { return lseek64(fd, at, whence); }

/* --- life ------------------------------------------------------------------------------------------------------------------- */
static pthread_key_t exit_key;
static void thread_gone(void *unused) { (void)unused; sw_thread_exit(); }
void sw_watch_thread(void) { pthread_setspecific(exit_key, &tls); }

/* Runs before every other constructor (the library is linked with -z initfirst): libstdc++'s streams take what stdin and stdout point to when
 * they are made. The C library has not set environ yet then; the loader passes it. */
__attribute__((constructor)) static void start(int argc, char **argv, char **envp)
{
    int saved = errno;
    (void)argc, (void)argv;
    pthread_key_create(&exit_key, thread_gone);
    pthread_atfork(sw_fork_prepare, sw_fork_parent, sw_fork_child);
    sw_start(envp);
    for (int fd = 0; fd <= 2; fd++)
        if (entry(fd) != 0) sw_standard(fd);
    errno = saved;
}
