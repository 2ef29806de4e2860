/* The symbols of the preloaded library for attributes: mode, owner, times, extended attributes; and for giving rights up, before which open
 * files are made independent of them. */
#include "hook.h"
#include <grp.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <utime.h>

/* --- mode and owner --------------------------------------------------------------------------------------------------------- */
DECLARE_REAL(int, fchmodat, int, const char *, mode_t, int);
DECLARE_REAL(int, fchmod, int, mode_t);
DECLARE_REAL(int, fchownat, int, const char *, uid_t, gid_t, int);
DECLARE_REAL(int, fchown, int, uid_t, gid_t);

EXPORT int fchmodat(int dirfd, const char *path, mode_t mode, int flags)
{
    ON_FILE(path, flags, OP_SETATTR, sw_fchmodat(dirfd, path, mode, flags), REAL(fchmodat)(dirfd, path, mode, flags));
}
EXPORT int chmod(const char *path, mode_t mode) { return fchmodat(AT_FDCWD, path, mode, 0); }
EXPORT int lchmod(const char *path, mode_t mode) { return fchmodat(AT_FDCWD, path, mode, AT_SYMLINK_NOFOLLOW); }
EXPORT int fchmod(int fd, mode_t mode) { ON_FD(fd, OP_SETATTR, 0, 0, REAL(fchmod)(fd, mode), (int)sw_fchmod(fd, mode)); }
EXPORT int fchownat(int dirfd, const char *path, uid_t uid, gid_t gid, int flags)
{
    ON_FILE(path, flags, OP_SETATTR, sw_fchownat(dirfd, path, uid, gid, flags), REAL(fchownat)(dirfd, path, uid, gid, flags));
}
EXPORT int chown(const char *path, uid_t uid, gid_t gid) { return fchownat(AT_FDCWD, path, uid, gid, 0); }
EXPORT int lchown(const char *path, uid_t uid, gid_t gid) { return fchownat(AT_FDCWD, path, uid, gid, AT_SYMLINK_NOFOLLOW); }
EXPORT int fchown(int fd, uid_t uid, gid_t gid) { ON_FD(fd, OP_SETATTR, 0, 0, REAL(fchown)(fd, uid, gid), (int)sw_fchown(fd, uid, gid)); }

/* --- times: every older spelling is one of the two newest ------------------------------------------------------------------- */
DECLARE_REAL(int, utimensat, int, const char *, const struct timespec *, int);
DECLARE_REAL(int, futimens, int, const struct timespec *);

EXPORT int futimens(int fd, const struct timespec times[2]) { ON_FD(fd, OP_SETATTR, 0, 0, REAL(futimens)(fd, times), (int)sw_futimens(fd, times)); }
EXPORT int utimensat(int dirfd, const char *path, const struct timespec times[2], int flags)
{
    ON_FILE(path, flags, OP_SETATTR, sw_utimensat(dirfd, path, times, flags), REAL(utimensat)(dirfd, path, times, flags));
}
static int in_ns(const struct timeval from[2], struct timespec to[2])
{
    for (int i = 0; i < 2; i++) {
        if (from[i].tv_usec < 0 || from[i].tv_usec > 999999) {
            errno = EINVAL;
            return -1;
        }
        to[i] = (struct timespec){from[i].tv_sec, from[i].tv_usec * 1000};
    }
    return 0;
}
static int utimes_at(int dirfd, const char *path, const struct timeval times[2], int flags)
{
    struct timespec ns[2];
    if (times && in_ns(times, ns)) return -1;
    return utimensat(dirfd, path, times ? ns : NULL, flags);
}
EXPORT int utimes(const char *path, const struct timeval times[2]) { return utimes_at(AT_FDCWD, path, times, 0); }
EXPORT int lutimes(const char *path, const struct timeval times[2]) { return utimes_at(AT_FDCWD, path, times, AT_SYMLINK_NOFOLLOW); }
EXPORT int futimes(int fd, const struct timeval times[2])
{
    struct timespec ns[2];
    if (times && in_ns(times, ns)) return -1;
    return futimens(fd, times ? ns : NULL);
}
EXPORT int futimesat(int dirfd, const char *path, const struct timeval times[2])
{
    return path ? utimes_at(dirfd, path, times, 0) : futimes(dirfd, times);
}
EXPORT int utime(const char *path, const struct utimbuf *times)
{
    struct timespec ns[2] = {{times ? times->actime : 0, 0}, {times ? times->modtime : 0, 0}};
    return utimensat(AT_FDCWD, path, times ? ns : NULL, 0);
}

/* --- extended attributes ---------------------------------------------------------------------------------------------------- */
DECLARE_REAL(int, setxattr, const char *, const char *, const void *, size_t, int);
DECLARE_REAL(int, lsetxattr, const char *, const char *, const void *, size_t, int);
DECLARE_REAL(int, fsetxattr, int, const char *, const void *, size_t, int);
DECLARE_REAL(ssize_t, getxattr, const char *, const char *, void *, size_t);
DECLARE_REAL(ssize_t, lgetxattr, const char *, const char *, void *, size_t);
DECLARE_REAL(ssize_t, fgetxattr, int, const char *, void *, size_t);
DECLARE_REAL(ssize_t, listxattr, const char *, char *, size_t);
DECLARE_REAL(ssize_t, llistxattr, const char *, char *, size_t);
DECLARE_REAL(ssize_t, flistxattr, int, char *, size_t);
DECLARE_REAL(int, removexattr, const char *, const char *);
DECLARE_REAL(int, lremovexattr, const char *, const char *);
DECLARE_REAL(int, fremovexattr, int, const char *);
#define ITSELF AT_SYMLINK_NOFOLLOW

EXPORT int setxattr(const char *p, const char *name, const void *v, size_t n, int how) { ON_FILE(p, 0, OP_SETATTR, sw_setxattr(p, name, v, n, how, 0), REAL(setxattr)(p, name, v, n, how)); }
EXPORT int lsetxattr(const char *p, const char *name, const void *v, size_t n, int how) { ON_FILE(p, ITSELF, OP_SETATTR, sw_setxattr(p, name, v, n, how, ITSELF), REAL(lsetxattr)(p, name, v, n, how)); }
EXPORT int fsetxattr(int fd, const char *name, const void *v, size_t n, int how) { ON_FD(fd, OP_SETATTR, 0, n, REAL(fsetxattr)(fd, name, v, n, how), (int)sw_fsetxattr(fd, name, v, n, how)); }
EXPORT ssize_t getxattr(const char *p, const char *name, void *v, size_t n) { ON_FILE(p, 0, OP_GETATTR, sw_getxattr(p, name, v, n, 0), REAL(getxattr)(p, name, v, n)); }
EXPORT ssize_t lgetxattr(const char *p, const char *name, void *v, size_t n) { ON_FILE(p, ITSELF, OP_GETATTR, sw_getxattr(p, name, v, n, ITSELF), REAL(lgetxattr)(p, name, v, n)); }
EXPORT ssize_t fgetxattr(int fd, const char *name, void *v, size_t n) { ON_FD(fd, OP_GETATTR, 0, n, REAL(fgetxattr)(fd, name, v, n), sw_fgetxattr(fd, name, v, n)); }
EXPORT ssize_t listxattr(const char *p, char *list, size_t n) { ON_FILE(p, 0, OP_GETATTR, sw_listxattr(p, list, n, 0), REAL(listxattr)(p, list, n)); }
EXPORT ssize_t llistxattr(const char *p, char *list, size_t n) { ON_FILE(p, ITSELF, OP_GETATTR, sw_listxattr(p, list, n, ITSELF), REAL(llistxattr)(p, list, n)); }
EXPORT ssize_t flistxattr(int fd, char *list, size_t n) { ON_FD(fd, OP_GETATTR, 0, n, REAL(flistxattr)(fd, list, n), sw_flistxattr(fd, list, n)); }
EXPORT int removexattr(const char *p, const char *name) { ON_FILE(p, 0, OP_SETATTR, sw_removexattr(p, name, 0), REAL(removexattr)(p, name)); }
EXPORT int lremovexattr(const char *p, const char *name) { ON_FILE(p, ITSELF, OP_SETATTR, sw_removexattr(p, name, ITSELF), REAL(lremovexattr)(p, name)); }
EXPORT int fremovexattr(int fd, const char *name) { ON_FD(fd, OP_SETATTR, 0, 0, REAL(fremovexattr)(fd, name), (int)sw_fremovexattr(fd, name)); }

/* --- giving rights up ------------------------------------------------------------------------------------------------------- */
#define GIVING_UP(type, name, declared, given) \
    DECLARE_REAL(type, name, declared);        \
    EXPORT type name(declared) { sw_giving_up_rights(); return REAL(name)(given); }
GIVING_UP(int, setuid, uid_t u, u)
GIVING_UP(int, setgid, gid_t g, g)
GIVING_UP(int, seteuid, uid_t u, u)
GIVING_UP(int, setegid, gid_t g, g)
GIVING_UP(int, setfsuid, uid_t u, u)
GIVING_UP(int, setfsgid, gid_t g, g)
DECLARE_REAL(int, chroot, const char *);
DECLARE_REAL(int, setreuid, uid_t, uid_t);
DECLARE_REAL(int, setregid, gid_t, gid_t);
DECLARE_REAL(int, setresuid, uid_t, uid_t, uid_t);
DECLARE_REAL(int, setresgid, gid_t, gid_t, gid_t);
DECLARE_REAL(int, setgroups, size_t, const gid_t *);
DECLARE_REAL(int, initgroups, const char *, gid_t);
EXPORT int chroot(const char *path)
{
    sw_giving_up_rights();
    int r = REAL(chroot)(path);
    if (r == 0) sw_root_moved();
    return r < 0 && errno == ENOENT ? (int)ret(sw_not_a_directory(AT_FDCWD, path, 1)) : r;
}
EXPORT int setreuid(uid_t r, uid_t e) { sw_giving_up_rights(); return REAL(setreuid)(r, e); }
EXPORT int setregid(gid_t r, gid_t e) { sw_giving_up_rights(); return REAL(setregid)(r, e); }
EXPORT int setresuid(uid_t r, uid_t e, uid_t s) { sw_giving_up_rights(); return REAL(setresuid)(r, e, s); }
EXPORT int setresgid(gid_t r, gid_t e, gid_t s) { sw_giving_up_rights(); return REAL(setresgid)(r, e, s); }
EXPORT int setgroups(size_t n, const gid_t *list) { sw_giving_up_rights(); return REAL(setgroups)(n, list); }
EXPORT int initgroups(const char *user, gid_t g) { sw_giving_up_rights(); return REAL(initgroups)(user, g); }
