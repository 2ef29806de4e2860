/* lseek: every whence, and the map of data and holes. */
#define SUBJECT "seek"
#include "posix.h"
#include <limits.h>

CASE(from_the_start) { ret(lseek(ten(O_RDONLY), 7, SEEK_SET)); }
CASE(from_here)
{
    int fd = ten(O_RDONLY);
    ret(lseek(fd, 7, SEEK_CUR));
    ret(lseek(fd, -3, SEEK_CUR));
    ret(lseek(fd, 0, SEEK_CUR));
}
CASE(from_the_end)
{
    int fd = ten(O_RDONLY);
    ret(lseek(fd, 0, SEEK_END));
    ret(lseek(fd, -4, SEEK_END));
    ret(lseek(fd, 4, SEEK_END));
}
CASE(beyond_the_end_is_allowed)
{
    int fd = ten(O_RDONLY);
    ret(lseek(fd, 1L << 40, SEEK_SET));
    say_fd_size(fd);
}
CASE(before_the_start_is_invalid_and_does_not_move)
{
    int fd = ten(O_RDONLY);
    ret(lseek(fd, 5, SEEK_SET));
    ret(lseek(fd, -1, SEEK_SET));
    ret(lseek(fd, -6, SEEK_CUR));
    ret(lseek(fd, -11, SEEK_END));
    say_offset(fd);
}
CASE(beyond_what_a_file_can_have_is_invalid)
{
    int fd = ten(O_RDONLY);
    ret(lseek(fd, LONG_MAX, SEEK_SET));
    ret(lseek(fd, LONG_MAX, SEEK_END));
    ret(lseek(fd, 1, SEEK_SET));
    ret(lseek(fd, LONG_MAX, SEEK_CUR));
    say_offset(fd);
}
CASE(an_unknown_whence_is_invalid)
{
    int fd = ten(O_RDONLY);
    ret(lseek(fd, 0, 99));
    ret(lseek(fd, 0, -1));
}
CASE(a_closed_descriptor_cannot_seek)
{
    int fd = ten(O_RDONLY);
    need(close(fd));
    ret(lseek(fd, 0, SEEK_SET));
}
CASE(a_pipe_cannot_seek)
{
    int ends[2];
    need(pipe(ends));
    ret(lseek(ends[0], 0, SEEK_SET));
}
CASE(the_end_moves_when_another_writes)
{
    int fd = ten(O_RDONLY), other = open_file("f", O_WRONLY);
    ret(lseek(fd, 0, SEEK_END));
    ret(pwrite(other, "x", 1, 30));
    ret(lseek(fd, 0, SEEK_END));
}
CASE(data_of_a_full_file_is_where_one_asks)
{
    int fd = ten(O_RDONLY);
    ret(lseek(fd, 0, SEEK_DATA));
    ret(lseek(fd, 9, SEEK_DATA));
    say_offset(fd);
}
CASE(the_hole_of_a_full_file_is_its_end)
{
    int fd = ten(O_RDONLY);
    ret(lseek(fd, 0, SEEK_HOLE));
    ret(lseek(fd, 9, SEEK_HOLE));
    say_offset(fd);
}
CASE(data_at_or_beyond_the_end_is_none)
{
    int fd = ten(O_RDONLY);
    ret(lseek(fd, 10, SEEK_DATA));
    ret(lseek(fd, 100, SEEK_DATA));
    ret(lseek(fd, 10, SEEK_HOLE));
    ret(lseek(fd, 100, SEEK_HOLE));
}
CASE(data_before_the_start_is_none)
{
    int fd = ten(O_RDONLY);
    ret(lseek(fd, -1, SEEK_DATA));
    ret(lseek(fd, -1, SEEK_HOLE));
}
CASE(an_empty_file_has_neither)
{
    int fd = new_file("f", O_RDWR, "");
    ret(lseek(fd, 0, SEEK_DATA));
    ret(lseek(fd, 0, SEEK_HOLE));
}
CASE(a_file_of_one_hole_has_no_data)
{
    int fd = new_file("f", O_RDWR, "");
    ret(ftruncate(fd, 1 << 20));
    ret(lseek(fd, 0, SEEK_DATA));
    ret(lseek(fd, 0, SEEK_HOLE));
    ret(lseek(fd, 5000, SEEK_HOLE));
}
CASE(data_behind_a_hole_is_found)
{
    int fd = new_file("f", O_RDWR, "");
    ret(pwrite(fd, "data", 4, 1 << 20));
    ret(fsync(fd));
    ret(lseek(fd, 0, SEEK_DATA));
    ret(lseek(fd, 0, SEEK_HOLE));
    ret(lseek(fd, 1 << 20, SEEK_HOLE));
}
CASE(a_hole_between_data_is_found)
{
    char block[65536];
    memset(block, 'b', sizeof block);
    int fd = new_file("f", O_RDWR, "");
    ret(pwrite(fd, block, sizeof block, 0));
    ret(pwrite(fd, block, sizeof block, 10 * sizeof block));
    ret(fsync(fd));
    ret(lseek(fd, 0, SEEK_HOLE));
    ret(lseek(fd, 65536, SEEK_DATA));
    ret(lseek(fd, 655361, SEEK_HOLE));
    ret(lseek(fd, 300000, SEEK_HOLE));
    ret(lseek(fd, 300000, SEEK_DATA));
}
CASE(a_path_only_descriptor_cannot_seek)
{
    make_file("f", "x");
    ret(lseek(open_file("f", O_PATH), 0, SEEK_END));
}
CASE(a_directory_seeks_to_its_start) { ret(lseek(open_file(".", O_RDONLY), 0, SEEK_SET)); }
CASE(the_offset_is_one_for_all_duplicates)
{
    int fd = ten(O_RDONLY), copy = need(dup(fd));
    ret(lseek(copy, 6, SEEK_SET));
    say_offset(fd);
}
