/* The symbols of the preloaded library for names: stat, access, unlink, rename and their kin. */
#include "hook.h"
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <unistd.h>

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
EXPORT int rename(const char *from, const char *to) { ON_NAMES(AT_FDCWD, from, AT_FDCWD, to, OP_RENAME, sw_renameat2(AT_FDCWD, from, AT_FDCWD, to, 0)); }
EXPORT int renameat(int fd, const char *from, int td, const char *to) { ON_NAMES(fd, from, td, to, OP_RENAME, sw_renameat2(fd, from, td, to, 0)); }
EXPORT int renameat2(int fd, const char *from, int td, const char *to, unsigned f) { ON_NAMES(fd, from, td, to, OP_RENAME, sw_renameat2(fd, from, td, to, f)); }
EXPORT int link(const char *from, const char *to) { ON_NAMES(AT_FDCWD, from, AT_FDCWD, to, OP_LINK, sw_linkat(AT_FDCWD, from, AT_FDCWD, to, 0)); }
EXPORT int linkat(int fd, const char *from, int td, const char *to, int flags) { ON_NAMES(fd, from, td, to, OP_LINK, sw_linkat(fd, from, td, to, flags)); }

/* --- the text of names ------------------------------------------------------------------------------------------------------ */
DECLARE_REAL(ssize_t, readlinkat, int, const char *, char *, size_t);
DECLARE_REAL_OF("GLIBC_2.3", char *, realpath, const char *, char *);

EXPORT ssize_t readlinkat(int fd, const char *path, char *to, size_t n)
{
    ON_NAME(path, OP_READLINK, sw_readlinkat(fd, path, to, n), REAL(readlinkat)(fd, path, to, n));
}
EXPORT ssize_t readlink(const char *path, char *to, size_t n) { return readlinkat(AT_FDCWD, path, to, n); }
EXPORT ssize_t __readlink_chk(const char *path, char *to, size_t n, size_t room) { must_fit(n, room); return readlink(path, to, n); }
EXPORT ssize_t __readlinkat_chk(int fd, const char *path, char *to, size_t n, size_t room) { must_fit(n, room); return readlinkat(fd, path, to, n); }

EXPORT char *realpath(const char *path, char *resolved)
{
    char name[PATH_MAX];
    long r = sw_realpath(path, name);
    if (r == SW_PASS) return REAL(realpath)(path, resolved);
    if (ret(r) < 0) return NULL;
    return resolved ? strcpy(resolved, name) : strdup(name);
}
EXPORT char *__realpath_chk(const char *path, char *resolved, size_t room) { must_fit(PATH_MAX, room); return realpath(path, resolved); }
EXPORT char *canonicalize_file_name(const char *path) { return realpath(path, NULL); }
