/* The symbols of the preloaded library for what a program says about its data without moving any: advice, early write-back, and lockf, which the
 * C library would turn into an fcntl of its own. */
#include "hook.h"

DECLARE_REAL(int, posix_fadvise64, int, off64_t, off64_t, int);
DECLARE_REAL(ssize_t, readahead, int, off64_t, size_t);
DECLARE_REAL(int, sync_file_range, int, off64_t, off64_t, unsigned);
DECLARE_REAL(int, syncfs, int);
DECLARE_REAL(int, lockf64, int, int, off64_t);

/* Returns the error, and leaves errno alone. */
EXPORT int posix_fadvise64(int fd, off64_t at, off64_t len, int advice)
{
    return is_plain(fd) ? REAL(posix_fadvise64)(fd, at, len, advice) : (int)-sw_fadvise(fd, at, len, advice);
}
ALIAS(int, posix_fadvise, posix_fadvise64, int, off_t, off_t, int);
EXPORT ssize_t readahead(int fd, off64_t at, size_t n) { return is_plain(fd) ? REAL(readahead)(fd, at, n) : ret(sw_readahead(fd, at, n)); }
EXPORT int sync_file_range(int fd, off64_t at, off64_t n, unsigned flags)
{
    ON_FD(fd, OP_SYNC, at, n, REAL(sync_file_range)(fd, at, n, flags), (int)sw_sync_file_range(fd, at, n, flags));
}
EXPORT int syncfs(int fd) { ON_FD(fd, OP_SYNC, 0, 0, REAL(syncfs)(fd), (int)sw_syncfs(fd)); }
EXPORT int lockf64(int fd, int cmd, off64_t len) { return is_plain(fd) ? REAL(lockf64)(fd, cmd, len) : (int)ret(sw_lockf(fd, cmd, len)); }
ALIAS(int, lockf, lockf64, int, int, off_t);
