/* The symbols of the preloaded library: every call is one array look-up, then either the C library's own function or the runtime's.
 * No logic lives here; what a managed file does is in crates/runtime. errno is set only when a call fails. */
#define _GNU_SOURCE
#undef _FORTIFY_SOURCE
#include "stripewise.h"
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
#define HIDDEN __attribute__((visibility("hidden")))
#define LIKELY(x) __builtin_expect(!!(x), 1)

/* Operation numbers of the trace, as in crates/trace. */
enum { OP_READ = 3, OP_WRITE = 4, OP_SEEK = 5, OP_TRUNCATE = 6, OP_FALLOCATE = 7, OP_SYNC = 8, OP_STAT = 9, OP_STATFS = 10, OP_ACCESS = 11, OP_UNLINK = 12,
       OP_RENAME = 13 };

static __thread struct sw_thread tls __attribute__((tls_model("initial-exec")));
HIDDEN struct sw_thread *sw_thread(void) { return &tls; }

/* dlsym on success takes no memory, so this works before constructors and inside allocators. */
#define REAL(name) next_##name()
#define DECLARE_REAL(type, name, ...)                                                           \
    static type (*real_##name)(__VA_ARGS__);                                                    \
    static inline __typeof__(real_##name) next_##name(void)                                     \
    {                                                                                           \
        if (!LIKELY(real_##name)) real_##name = (__typeof__(real_##name))dlsym(RTLD_NEXT, #name); \
        return real_##name;                                                                     \
    }

static inline uint32_t entry(int fd) { return (unsigned)fd < SW_FDS ? __atomic_load_n(&sw_fds[(unsigned)fd], __ATOMIC_ACQUIRE) : 0; }
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

HIDDEN long sw_real_openat(int dirfd, const char *path, int flags, unsigned mode)
{
    int saved = errno, fd = REAL(openat)(dirfd, path, flags, mode);
    if (fd >= 0) return fd;
    long r = -errno;
    errno = saved;
    return r;
}
HIDDEN long sw_real_close(int fd)
{
    int saved = errno;
    if (REAL(close)(fd) == 0) return 0;
    long r = -errno;
    errno = saved;
    return r;
}
HIDDEN long sw_real_fcntl(int fd, int op, unsigned long arg)
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

EXPORT ssize_t read(int fd, void *to, size_t n) { ON_FD(fd, OP_READ, HERE, n, REAL(read)(fd, to, n), sw_read(fd, to, n)); }
EXPORT ssize_t write(int fd, const void *from, size_t n) { ON_FD(fd, OP_WRITE, HERE, n, REAL(write)(fd, from, n), sw_write(fd, from, n)); }
EXPORT ssize_t pread64(int fd, void *to, size_t n, off64_t at) { ON_FD(fd, OP_READ, at, n, REAL(pread64)(fd, to, n, at), sw_pread(fd, to, n, at)); }
EXPORT ssize_t pwrite64(int fd, const void *from, size_t n, off64_t at) { ON_FD(fd, OP_WRITE, at, n, REAL(pwrite64)(fd, from, n, at), sw_pwrite(fd, from, n, at)); }
EXPORT ssize_t readv(int fd, const struct iovec *iov, int c) { ON_FD(fd, OP_READ, HERE, iov_bytes(iov, c), REAL(readv)(fd, iov, c), sw_readv(fd, iov, c)); }
EXPORT ssize_t writev(int fd, const struct iovec *iov, int c) { ON_FD(fd, OP_WRITE, HERE, iov_bytes(iov, c), REAL(writev)(fd, iov, c), sw_writev(fd, iov, c)); }
EXPORT ssize_t preadv64(int fd, const struct iovec *iov, int c, off64_t at) { ON_FD(fd, OP_READ, at, iov_bytes(iov, c), REAL(preadv64)(fd, iov, c, at), sw_preadv(fd, iov, c, at, 0)); }
EXPORT ssize_t pwritev64(int fd, const struct iovec *iov, int c, off64_t at) { ON_FD(fd, OP_WRITE, at, iov_bytes(iov, c), REAL(pwritev64)(fd, iov, c, at), sw_pwritev(fd, iov, c, at, 0)); }
EXPORT ssize_t preadv64v2(int fd, const struct iovec *iov, int c, off64_t at, int f)
{
    ON_FD(fd, OP_READ, at, iov_bytes(iov, c), REAL(preadv64v2)(fd, iov, c, at, f), at == -1 ? sw_readv(fd, iov, c) : sw_preadv(fd, iov, c, at, f));
}
EXPORT ssize_t pwritev64v2(int fd, const struct iovec *iov, int c, off64_t at, int f)
{
    ON_FD(fd, OP_WRITE, at, iov_bytes(iov, c), REAL(pwritev64v2)(fd, iov, c, at, f), at == -1 ? sw_writev(fd, iov, c) : sw_pwritev(fd, iov, c, at, f));
}
/* On LP64 off_t is off64_t: the plain spellings are the same functions. */
#define ALIAS(ret, name, of, ...) EXPORT ret name(__VA_ARGS__) __attribute__((alias(#of)))
ALIAS(ssize_t, pread, pread64, int, void *, size_t, off_t);
ALIAS(ssize_t, pwrite, pwrite64, int, const void *, size_t, off_t);
ALIAS(ssize_t, preadv, preadv64, int, const struct iovec *, int, off_t);
ALIAS(ssize_t, pwritev, pwritev64, int, const struct iovec *, int, off_t);
ALIAS(ssize_t, preadv2, preadv64v2, int, const struct iovec *, int, off_t, int);
ALIAS(ssize_t, pwritev2, pwritev64v2, int, const struct iovec *, int, off_t, int);

static void check(size_t n, size_t room)
{
    if (n > room) {
        static void (*fail)(void);
        if (!fail) fail = (void (*)(void))dlsym(RTLD_NEXT, "__chk_fail");
        fail();
    }
}
EXPORT ssize_t __read_chk(int fd, void *to, size_t n, size_t room) { check(n, room); return read(fd, to, n); }
EXPORT ssize_t __pread64_chk(int fd, void *to, size_t n, off64_t at, size_t room) { check(n, room); return pread64(fd, to, n, at); }
EXPORT ssize_t __pread_chk(int fd, void *to, size_t n, off_t at, size_t room) { check(n, room); return pread64(fd, to, n, at); }

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
    uint32_t e = entry(fd);
    if (LIKELY(e == 0 || (e & SW_TRACED))) return REAL(posix_fallocate64)(fd, at, len);
    return (int)-sw_fallocate(fd, 0, at, len);
}
ALIAS(int, posix_fallocate, posix_fallocate64, int, off_t, off_t);
EXPORT int fsync(int fd) { ON_FD(fd, OP_SYNC, 0, 0, REAL(fsync)(fd), (int)sw_fsync(fd, 0)); }
EXPORT int fdatasync(int fd) { ON_FD(fd, OP_SYNC, 0, 1, REAL(fdatasync)(fd), (int)sw_fsync(fd, 1)); }

/* --- names ------------------------------------------------------------------------------------------------------------------ */
#define ON_PATH(path, op, call)                              \
    do {                                                     \
        uint64_t t_ = sw_tracing ? sw_ticks() : 0;           \
        int r_ = (int)ret(call);                             \
        if (t_) sw_traced_path(path, op, r_, t_);            \
        return r_;                                           \
    } while (0)

EXPORT int fstatat64(int dirfd, const char *path, struct stat64 *st, int flags) { ON_PATH(path, OP_STAT, sw_fstatat(dirfd, path, st, flags)); }
ALIAS(int, fstatat, fstatat64, int, const char *, struct stat *, int);
EXPORT int stat64(const char *path, struct stat64 *st) { ON_PATH(path, OP_STAT, sw_fstatat(AT_FDCWD, path, st, 0)); }
ALIAS(int, stat, stat64, const char *, struct stat *);
EXPORT int lstat64(const char *path, struct stat64 *st) { ON_PATH(path, OP_STAT, sw_fstatat(AT_FDCWD, path, st, AT_SYMLINK_NOFOLLOW)); }
ALIAS(int, lstat, lstat64, const char *, struct stat *);
EXPORT int fstat64(int fd, struct stat64 *st) { return (int)ret(sw_fstatat(fd, "", st, AT_EMPTY_PATH)); }
ALIAS(int, fstat, fstat64, int, struct stat *);
EXPORT int __xstat64(int v, const char *path, struct stat64 *st) { (void)v; return stat64(path, st); }
EXPORT int __lxstat64(int v, const char *path, struct stat64 *st) { (void)v; return lstat64(path, st); }
EXPORT int __fxstat64(int v, int fd, struct stat64 *st) { (void)v; return fstat64(fd, st); }
EXPORT int __fxstatat64(int v, int dirfd, const char *path, struct stat64 *st, int flags) { (void)v; return fstatat64(dirfd, path, st, flags); }
ALIAS(int, __xstat, __xstat64, int, const char *, struct stat *);
ALIAS(int, __lxstat, __lxstat64, int, const char *, struct stat *);
ALIAS(int, __fxstat, __fxstat64, int, int, struct stat *);
ALIAS(int, __fxstatat, __fxstatat64, int, int, const char *, struct stat *, int);
EXPORT int statx(int dirfd, const char *path, int flags, unsigned mask, struct statx *st) { ON_PATH(path, OP_STAT, sw_statx(dirfd, path, flags, mask, st)); }
EXPORT int statfs64(const char *path, struct statfs64 *st) { ON_PATH(path, OP_STATFS, sw_statfs(path, st)); }
ALIAS(int, statfs, statfs64, const char *, struct statfs *);

static int statvfs_of(const struct statfs64 *f, struct statvfs64 *v)
{
    __builtin_memset(v, 0, sizeof *v);
    v->f_bsize = (unsigned long)f->f_bsize;
    v->f_frsize = f->f_frsize ? (unsigned long)f->f_frsize : (unsigned long)f->f_bsize;
    v->f_blocks = f->f_blocks, v->f_bfree = f->f_bfree, v->f_bavail = f->f_bavail;
    v->f_files = f->f_files, v->f_ffree = f->f_ffree, v->f_favail = f->f_ffree;
    v->f_fsid = (unsigned)f->f_fsid.__val[0] | (unsigned long)(unsigned)f->f_fsid.__val[1] << 32;
    v->f_namemax = (unsigned long)f->f_namelen, v->f_flag = (unsigned long)f->f_flags & ~0x20UL; /* without ST_VALID */
    return 0;
}
EXPORT int statvfs64(const char *path, struct statvfs64 *st)
{
    struct statfs64 f;
    return statfs64(path, &f) ? -1 : statvfs_of(&f, st);
}
ALIAS(int, statvfs, statvfs64, const char *, struct statvfs *);
EXPORT int access(const char *path, int mode) { ON_PATH(path, OP_ACCESS, sw_faccessat(AT_FDCWD, path, mode, 0)); }
EXPORT int faccessat(int dirfd, const char *path, int mode, int flags) { ON_PATH(path, OP_ACCESS, sw_faccessat(dirfd, path, mode, flags)); }
EXPORT int euidaccess(const char *path, int mode) { ON_PATH(path, OP_ACCESS, sw_faccessat(AT_FDCWD, path, mode, AT_EACCESS)); }
EXPORT int eaccess(const char *path, int mode) { return euidaccess(path, mode); }
EXPORT int unlink(const char *path) { ON_PATH(path, OP_UNLINK, sw_unlinkat(AT_FDCWD, path, 0)); }
EXPORT int unlinkat(int dirfd, const char *path, int flags) { ON_PATH(path, OP_UNLINK, sw_unlinkat(dirfd, path, flags)); }
EXPORT int remove(const char *path)
{
    int saved = errno;
    long r = sw_unlinkat(AT_FDCWD, path, 0);
    if (r == -EISDIR) r = sw_unlinkat(AT_FDCWD, path, AT_REMOVEDIR);
    errno = saved;
    return (int)ret(r);
}
EXPORT int rename(const char *from, const char *to) { ON_PATH(from, OP_RENAME, sw_renameat2(AT_FDCWD, from, AT_FDCWD, to, 0)); }
EXPORT int renameat(int fd, const char *from, int td, const char *to) { ON_PATH(from, OP_RENAME, sw_renameat2(fd, from, td, to, 0)); }
EXPORT int renameat2(int fd, const char *from, int td, const char *to, unsigned f) { ON_PATH(from, OP_RENAME, sw_renameat2(fd, from, td, to, f)); }

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
    uint32_t e = entry(fd);
    return LIKELY(e == 0 || (e & SW_TRACED)) ? REAL(flock)(fd, op) : (int)ret(sw_flock(fd, op));
}

/* --- life ------------------------------------------------------------------------------------------------------------------- */
static pthread_key_t exit_key;
static void thread_gone(void *unused) { (void)unused; sw_thread_exit(); }
HIDDEN void sw_watch_thread(void) { pthread_setspecific(exit_key, &tls); }

__attribute__((constructor)) static void start(void)
{
    int saved = errno;
    pthread_key_create(&exit_key, thread_gone);
    pthread_atfork(sw_fork_prepare, sw_fork_parent, sw_fork_child);
    sw_start();
    errno = saved;
}
