/* fsync, fdatasync, sync_file_range, posix_fadvise, readahead: on descriptors of every kind. */
#define SUBJECT "sync"
#include "posix.h"

CASE(a_written_file_syncs)
{
    int fd = ten(O_RDWR);
    ret(write(fd, "x", 1));
    ret(fsync(fd));
    ret(fdatasync(fd));
}
CASE(a_read_only_descriptor_syncs)
{
    int fd = ten(O_RDONLY);
    ret(fsync(fd));
    ret(fdatasync(fd));
}
CASE(a_closed_descriptor_does_not_sync)
{
    ret(fsync(999));
    ret(fdatasync(-1));
    ret(syncfs(999));
}
CASE(a_pipe_does_not_sync)
{
    int ends[2];
    need(pipe(ends));
    ret(fsync(ends[0]));
    ret(fdatasync(ends[1]));
}
CASE(a_directory_syncs)
{
    ten(O_RDWR);
    ret(fsync(open_file(".", O_RDONLY | O_DIRECTORY)));
}
CASE(an_unlinked_file_syncs)
{
    int fd = ten(O_RDWR);
    need(unlink("f"));
    ret(write(fd, "x", 1));
    ret(fsync(fd));
}
CASE(the_file_system_syncs) { ret(syncfs(ten(O_RDONLY))); }
CASE(a_range_syncs)
{
    int fd = ten(O_RDWR);
    ret(write(fd, "x", 1));
    ret(sync_file_range(fd, 0, 0, SYNC_FILE_RANGE_WRITE));
    ret(sync_file_range(fd, 0, 5, SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER));
    ret(sync_file_range(open_file("f", O_RDONLY), 0, 5, SYNC_FILE_RANGE_WRITE));
}
CASE(a_bad_range_does_not_sync)
{
    int fd = ten(O_RDWR);
    ret(sync_file_range(fd, -1, 5, SYNC_FILE_RANGE_WRITE));
    ret(sync_file_range(fd, 0, -5, SYNC_FILE_RANGE_WRITE));
    ret(sync_file_range(fd, 0, 5, 1 << 20));
    ret(sync_file_range(999, 0, 5, SYNC_FILE_RANGE_WRITE));
}
CASE(advice_is_taken)
{
    int fd = ten(O_RDWR);
    static const int advices[] = {POSIX_FADV_NORMAL, POSIX_FADV_SEQUENTIAL, POSIX_FADV_RANDOM, POSIX_FADV_WILLNEED, POSIX_FADV_DONTNEED, POSIX_FADV_NOREUSE};
    for (int i = 0; i < 6; i++)
        err(posix_fadvise(fd, 0, 0, advices[i]));
    err(posix_fadvise(fd, 100, 1000, POSIX_FADV_WILLNEED));
    say_fd_content(fd);
}
CASE(bad_advice_is_an_error)
{
    int fd = ten(O_RDWR), ends[2];
    err(posix_fadvise(fd, 0, 0, 99));
    err(posix_fadvise(fd, 0, -1, POSIX_FADV_NORMAL));
    err(posix_fadvise(999, 0, 0, POSIX_FADV_NORMAL));
    need(pipe(ends));
    err(posix_fadvise(ends[0], 0, 0, POSIX_FADV_NORMAL));
}
CASE(advice_leaves_errno)
{
    int fd = ten(O_RDWR);
    errno = EXDEV;
    err(posix_fadvise(999, 0, 0, POSIX_FADV_NORMAL));
    err(posix_fadvise(fd, 0, 0, POSIX_FADV_NORMAL));
    say("%s", error_name(errno));
}
CASE(reading_ahead_is_taken)
{
    int fd = ten(O_RDONLY);
    ret(readahead(fd, 0, 100));
    say_offset(fd);
    ret(readahead(open_file("f", O_WRONLY), 0, 100));
    ret(readahead(999, 0, 100));
}
CASE(a_synced_file_is_read_back)
{
    make_large("f", 500000);
    int fd = open_file("f", O_RDWR);
    ret(fsync(fd));
    err(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED));
    say_fd_content(fd);
}
