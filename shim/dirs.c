/* The symbols of the preloaded library for directories and for what walks them: entries of managed files are those of regular files, and a
 * managed file in a directory's place is what a plain one is there: ENOTDIR. */
#include "hook.h"
#include <dirent.h>
#include <fts.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* --- calls that want a directory: the kernel's ENOENT may have to be ENOTDIR ------------------------------------------------- */
#define IN_DIRECTORY(dirfd, path, itself, op, plain)                                           \
    do {                                                                                       \
        uint64_t t_ = sw_tracing ? sw_ticks() : 0;                                             \
        int r_ = plain;                                                                        \
        if (r_ < 0 && errno == ENOENT) r_ = (int)ret(sw_not_a_directory(dirfd, path, itself)); \
        if (t_) sw_traced_path(path, op, r_, t_);                                              \
        return r_;                                                                             \
    } while (0)

DECLARE_REAL(int, mkdirat, int, const char *, mode_t);
DECLARE_REAL(int, rmdir, const char *);
DECLARE_REAL(int, symlinkat, const char *, int, const char *);
DECLARE_REAL(int, mknodat, int, const char *, mode_t, dev_t);
DECLARE_REAL(int, chdir, const char *);
DECLARE_REAL(DIR *, opendir, const char *);

EXPORT int mkdirat(int fd, const char *path, mode_t mode) { IN_DIRECTORY(fd, path, 0, OP_MKDIR, REAL(mkdirat)(fd, path, mode)); }
EXPORT int mkdir(const char *path, mode_t mode) { return mkdirat(AT_FDCWD, path, mode); }
EXPORT int rmdir(const char *path) { IN_DIRECTORY(AT_FDCWD, path, 0, OP_RMDIR, REAL(rmdir)(path)); }
EXPORT int symlinkat(const char *text, int fd, const char *path) { IN_DIRECTORY(fd, path, 0, OP_SYMLINK, REAL(symlinkat)(text, fd, path)); }
EXPORT int symlink(const char *text, const char *path) { return symlinkat(text, AT_FDCWD, path); }
/* Older C libraries have it only inside their headers. */
static int make_node(int fd, const char *path, mode_t mode, dev_t dev)
{
    return REAL(mknodat) ? REAL(mknodat)(fd, path, mode, dev) : (int)syscall(SYS_mknodat, fd, path, mode, dev);
}
EXPORT int mknodat(int fd, const char *path, mode_t mode, dev_t dev) { IN_DIRECTORY(fd, path, 0, OP_MKNOD, make_node(fd, path, mode, dev)); }
EXPORT int mknod(const char *path, mode_t mode, dev_t dev) { return mknodat(AT_FDCWD, path, mode, dev); }
EXPORT int mkfifoat(int fd, const char *path, mode_t mode) { return mknodat(fd, path, mode | S_IFIFO, 0); }
EXPORT int mkfifo(const char *path, mode_t mode) { return mkfifoat(AT_FDCWD, path, mode); }
EXPORT int chdir(const char *path)
{
    int r = REAL(chdir)(path);
    return r < 0 && errno == ENOENT ? (int)ret(sw_not_a_directory(AT_FDCWD, path, 1)) : r;
}
EXPORT DIR *opendir(const char *path)
{
    uint64_t t = sw_tracing ? sw_ticks() : 0;
    DIR *dir = REAL(opendir)(path);
    if (!dir && errno == ENOENT) ret(sw_not_a_directory(AT_FDCWD, path, 1));
    if (t) sw_traced_path(path, OP_OPENDIR, dir ? 0 : -1, t);
    return dir;
}

/* --- entries ---------------------------------------------------------------------------------------------------------------- */
DECLARE_REAL(struct dirent64 *, readdir64, DIR *);
DECLARE_REAL(int, readdir64_r, DIR *, struct dirent64 *, struct dirent64 **);
DECLARE_REAL(ssize_t, getdents64, int, void *, size_t);
DECLARE_REAL(ssize_t, getdirentries64, int, char *, size_t, off64_t *);

static struct dirent64 *shown(DIR *dir, struct dirent64 *e)
{
    if (!e || LIKELY(e->d_type != DT_LNK)) return e;
    uint64_t inode = sw_entry_inode(dirfd(dir), e->d_name);
    if (inode) e->d_type = DT_REG, e->d_ino = inode;
    return e;
}
EXPORT struct dirent64 *readdir64(DIR *dir) { return shown(dir, REAL(readdir64)(dir)); }
EXPORT struct dirent *readdir(DIR *dir) __attribute__((alias("readdir64")));
EXPORT int readdir64_r(DIR *dir, struct dirent64 *e, struct dirent64 **to)
{
    int r = REAL(readdir64_r)(dir, e, to);
    if (r == 0) shown(dir, *to);
    return r;
}
EXPORT int readdir_r(DIR *dir, struct dirent *e, struct dirent **to) __attribute__((alias("readdir64_r")));
static ssize_t entries(int fd, void *to, ssize_t n)
{
    if (n > 0) sw_entries(fd, to, (size_t)n);
    return n;
}
EXPORT ssize_t getdents64(int fd, void *to, size_t n) { return entries(fd, to, REAL(getdents64)(fd, to, n)); }
EXPORT ssize_t getdirentries64(int fd, char *to, size_t n, off64_t *base) { return entries(fd, to, REAL(getdirentries64)(fd, to, n, base)); }
ALIAS(ssize_t, getdirentries, getdirentries64, int, char *, size_t, off_t *);

/* The C library's scandir reads with its own readdir. */
typedef int choose64(const struct dirent64 *);
typedef int order64(const struct dirent64 **, const struct dirent64 **);
static int scan(DIR *dir, struct dirent64 ***list, choose64 *choose, order64 *order)
{
    struct dirent64 **found = NULL, *e;
    size_t n = 0, room = 0;
    int saved = errno;
    if (!dir) return -1;
    errno = 0;
    while ((e = readdir64(dir))) {
        int wanted = !choose || choose(e);
        errno = 0;
        if (!wanted) continue;
        if (n == room) {
            struct dirent64 **more = realloc(found, (room = room ? 2 * room : 16) * sizeof *found);
            if (!more) break;
            found = more;
        }
        if (!(found[n] = malloc(e->d_reclen))) break;
        memcpy(found[n++], e, e->d_reclen);
    }
    int failed = errno;
    closedir(dir);
    if (failed) {
        while (n > 0) free(found[--n]);
        free(found);
        errno = failed;
        return -1;
    }
    if (order && n) qsort(found, n, sizeof *found, (int (*)(const void *, const void *))order);
    *list = found ? found : malloc(1);
    errno = saved;
    return (int)n;
}
EXPORT int scandirat64(int at, const char *path, struct dirent64 ***list, choose64 *choose, order64 *order)
{
    int fd = openat(at, path, O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC);
    return fd < 0 ? -1 : scan(fdopendir(fd), list, choose, order);
}
EXPORT int scandir64(const char *path, struct dirent64 ***list, choose64 *choose, order64 *order) { return scandirat64(AT_FDCWD, path, list, choose, order); }
EXPORT int scandir(const char *, struct dirent ***, int (*)(const struct dirent *), int (*)(const struct dirent **, const struct dirent **)) __attribute__((alias("scandir64")));
EXPORT int scandirat(int, const char *, struct dirent ***, int (*)(const struct dirent *), int (*)(const struct dirent **, const struct dirent **)) __attribute__((alias("scandirat64")));

/* --- walks: the C library's own look at entries past us, so what they report is corrected ------------------------------------ */
static __thread __ftw64_func_t ftw_to __attribute__((tls_model("initial-exec")));
static __thread __nftw64_func_t nftw_to __attribute__((tls_model("initial-exec")));
static __thread int nftw_flags __attribute__((tls_model("initial-exec")));
DECLARE_REAL(int, ftw64, const char *, __ftw64_func_t, int);
DECLARE_REAL_OF("GLIBC_2.3.3", int, nftw64, const char *, __nftw64_func_t, int, int);

static int is_file(const char *path, int follow, struct stat64 *st) { return (follow ? stat64(path, st) : lstat64(path, st)) == 0 && S_ISREG(st->st_mode); }
static int ftw_step(const char *path, const struct stat64 *st, int type)
{
    struct stat64 own;
    if ((type == FTW_NS || type == FTW_SL) && is_file(path, 1, &own)) return ftw_to(path, &own, FTW_F);
    return ftw_to(path, st, type);
}
static int nftw_step(const char *path, const struct stat64 *st, int type, struct FTW *at)
{
    struct stat64 own;
    if ((type == FTW_SL || type == FTW_SLN) && is_file(nftw_flags & FTW_CHDIR ? path + at->base : path, !(nftw_flags & FTW_PHYS), &own)) return nftw_to(path, &own, FTW_F, at);
    return nftw_to(path, st, type, at);
}
EXPORT int ftw64(const char *path, __ftw64_func_t step, int fds)
{
    __ftw64_func_t outer = ftw_to;
    ftw_to = step;
    int r = REAL(ftw64)(path, ftw_step, fds);
    ftw_to = outer;
    return r;
}
EXPORT int nftw64(const char *path, __nftw64_func_t step, int fds, int flags)
{
    __nftw64_func_t outer = nftw_to;
    int outer_flags = nftw_flags;
    nftw_to = step, nftw_flags = flags;
    int r = REAL(nftw64)(path, nftw_step, fds, flags);
    nftw_to = outer, nftw_flags = outer_flags;
    return r;
}
EXPORT int ftw(const char *, __ftw_func_t, int) __attribute__((alias("ftw64")));
EXPORT int nftw(const char *, __nftw_func_t, int, int) __attribute__((alias("nftw64")));

DECLARE_REAL(FTSENT *, fts_read, FTS *);
DECLARE_REAL(FTSENT *, fts_children, FTS *, int);
static FTSENT *walked(FTSENT *e)
{
    struct stat64 own;
    if (e && (e->fts_info == FTS_SL || e->fts_info == FTS_SLNONE || e->fts_info == FTS_NS) && is_file(e->fts_accpath, e->fts_info != FTS_SL, &own)) {
        e->fts_info = FTS_F;
        if (e->fts_statp) memcpy(e->fts_statp, &own, sizeof own);
    }
    return e;
}
EXPORT FTSENT *fts_read(FTS *walk) { return walked(REAL(fts_read)(walk)); }
EXPORT FTSENT *fts_children(FTS *walk, int how)
{
    FTSENT *first = REAL(fts_children)(walk, how);
    for (FTSENT *e = how & FTS_NAMEONLY ? NULL : first; e; e = e->fts_link) walked(e);
    return first;
}
EXPORT FTSENT64 *fts64_read(FTS64 *) __attribute__((alias("fts_read")));
EXPORT FTSENT64 *fts64_children(FTS64 *, int) __attribute__((alias("fts_children")));

/* --- what only head can answer ---------------------------------------------------------------------------------------------- */
DECLARE_REAL(long, pathconf, const char *, int);
DECLARE_REAL(int, inotify_add_watch, int, const char *, uint32_t);
DECLARE_REAL(int, name_to_handle_at, int, const char *, struct file_handle *, int *, int);

EXPORT long pathconf(const char *path, int name)
{
    char head[PATH_MAX];
    return REAL(pathconf)(sw_head_path(AT_FDCWD, path, 1, head) ? head : path, name);
}
/* Writing moves head's times and, at fsync and close, its size: an event of attributes stands for one of contents. */
EXPORT int inotify_add_watch(int fd, const char *path, uint32_t mask)
{
    char head[PATH_MAX];
    if (!sw_head_path(AT_FDCWD, path, !(mask & IN_DONT_FOLLOW), head)) return REAL(inotify_add_watch)(fd, path, mask);
    return REAL(inotify_add_watch)(fd, head, mask & IN_MODIFY ? mask | IN_ATTRIB : mask);
}
/* A handle leads past us to head, whose bytes are nobody's. */
EXPORT int name_to_handle_at(int dirfd, const char *path, struct file_handle *handle, int *mount, int flags)
{
    if (sw_is_managed(dirfd, path, flags)) {
        errno = EOPNOTSUPP;
        return -1;
    }
    return REAL(name_to_handle_at)(dirfd, path, handle, mount, flags);
}
