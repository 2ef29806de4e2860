/* truncate, ftruncate, fallocate, posix_fallocate: sizes up and down, what is read there, and what is refused. */
#define SUBJECT "size"
#include "posix.h"
#include <limits.h>
#include <linux/falloc.h>

CASE(cutting_keeps_the_start)
{
    ten(O_RDWR);
    ret(truncate("f", 4));
    say_content("f");
}
CASE(cutting_by_descriptor_keeps_the_start)
{
    int fd = ten(O_RDWR);
    ret(ftruncate(fd, 4));
    say_content("f");
}
CASE(growing_adds_zeros)
{
    int fd = ten(O_RDWR);
    ret(ftruncate(fd, 200000));
    say_content("f");
}
CASE(growing_by_name_adds_zeros)
{
    ten(O_RDWR);
    ret(truncate("f", 13));
    say_content("f");
}
CASE(cutting_and_growing_leaves_nothing_of_the_old)
{
    make_large("f", 400000);
    ret(truncate("f", 100));
    ret(truncate("f", 400000));
    say_content("f");
}
CASE(the_same_size_changes_nothing)
{
    int fd = ten(O_RDWR);
    ret(ftruncate(fd, 10));
    say_content("f");
}
CASE(cutting_does_not_move_the_offset)
{
    int fd = ten(O_RDWR);
    ret(lseek(fd, 8, SEEK_SET));
    ret(ftruncate(fd, 2));
    say_offset(fd);
    ret(write(fd, "x", 1));
    say_content("f");
}
CASE(a_negative_size_is_invalid)
{
    int fd = ten(O_RDWR);
    ret(ftruncate(fd, -1));
    ret(ftruncate(fd, LONG_MIN));
    ret(truncate("f", -1));
    say_fd_size(fd);
}
CASE(a_huge_size_is_too_big)
{
    int fd = ten(O_RDWR);
    ret(ftruncate(fd, LONG_MAX));
    ret(truncate("f", LONG_MAX));
    ret(ftruncate(fd, 1L << 62));
    say_fd_size(fd);
}
CASE(a_size_of_a_tebibyte_is_possible)
{
    int fd = ten(O_RDWR);
    ret(ftruncate(fd, 1L << 40));
    say_fd_size(fd);
    ret(ftruncate(fd, 5));
    say_content("f");
}
CASE(a_size_of_fifteen_tebibytes_is_possible)
{
    int fd = ten(O_RDWR);
    ret(ftruncate(fd, 15L << 40));
    say_fd_size(fd);
}
CASE(a_read_only_descriptor_cannot_cut)
{
    int fd = ten(O_RDONLY);
    ret(ftruncate(fd, 5));
    ret(ftruncate(fd, -1));
    say_content("f");
}
CASE(a_closed_descriptor_cannot_cut)
{
    int fd = ten(O_RDWR);
    need(close(fd));
    ret(ftruncate(fd, 5));
    ret(ftruncate(fd, -1));
}
CASE(a_pipe_cannot_be_cut)
{
    int ends[2];
    need(pipe(ends));
    ret(ftruncate(ends[1], 5));
}
CASE(a_directory_cannot_be_cut)
{
    make_dir("d");
    ret(truncate("d", 0));
    ret(ftruncate(open_file("d", O_RDONLY), 0));
}
CASE(a_missing_name_cannot_be_cut)
{
    ret(truncate("none", 0));
    ret(truncate("none/f", 0));
    ret(truncate("", 0));
}
CASE(a_name_below_a_file_cannot_be_cut)
{
    ten(O_RDONLY);
    ret(truncate("f/x", 0));
    ret(truncate("f/", 0));
    say_content("f");
}
CASE(a_bad_name_is_a_fault) { ret(truncate(BAD, 0)); }
CASE(cutting_goes_through_a_link)
{
    ten(O_RDONLY);
    need(symlink("f", "l"));
    ret(truncate("l", 3));
    say_content("f");
}
CASE(links_in_a_circle_cannot_be_cut)
{
    need(symlink("a", "a"));
    ret(truncate("a", 3));
}
CASE(cutting_an_unlinked_file_works)
{
    int fd = ten(O_RDWR);
    need(unlink("f"));
    ret(ftruncate(fd, 3));
    say_fd_content(fd);
}
CASE(an_append_descriptor_can_cut)
{
    int fd = ten(O_RDWR | O_APPEND);
    ret(ftruncate(fd, 3));
    ret(write(fd, "x", 1));
    say_content("f");
}
CASE(others_see_the_new_size_at_once)
{
    int fd = ten(O_RDWR), other = open_file("f", O_RDONLY);
    ret(ftruncate(fd, 6));
    say_fd_size(other);
    say_fd_content(other);
}
CASE(allocating_extends_with_zeros)
{
    int fd = ten(O_RDWR);
    ret(fallocate(fd, 0, 0, 100000));
    say_content("f");
}
CASE(allocating_inside_changes_no_bytes)
{
    int fd = ten(O_RDWR);
    ret(fallocate(fd, 0, 2, 5));
    say_content("f");
}
CASE(allocating_makes_blocks)
{
    struct stat st;
    int fd = ten(O_RDWR);
    ret(fallocate(fd, 0, 0, 1 << 20));
    stat_fd(fd, &st);
    say("%d", st.st_blocks >= (1 << 20) / 512);
}
CASE(allocating_with_keep_size_keeps_it)
{
    int fd = ten(O_RDWR);
    ret(fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, 100000));
    say_content("f");
}
CASE(allocating_beyond_the_end_with_keep_size_makes_blocks)
{
    struct stat st;
    int fd = ten(O_RDWR);
    ret(fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, 1 << 20));
    stat_fd(fd, &st);
    say("%d", st.st_blocks >= (1 << 20) / 512);
}
CASE(punching_makes_zeros)
{
    make_large("f", 300000);
    int fd = open_file("f", O_RDWR);
    ret(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 1000, 200000));
    say_content("f");
}
CASE(punching_frees_blocks)
{
    make_large("f", 1 << 20);
    int fd = open_file("f", O_RDWR);
    struct stat st;
    ret(fsync(fd));
    ret(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 1 << 20));
    stat_fd(fd, &st);
    say("size %ld, few blocks %d", (long)st.st_size, st.st_blocks < 128);
}
CASE(punching_without_keep_size_is_refused) { ret(fallocate(ten(O_RDWR), FALLOC_FL_PUNCH_HOLE, 0, 5)); }
CASE(punching_beyond_the_end_changes_nothing)
{
    int fd = ten(O_RDWR);
    ret(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 5, 100000));
    say_content("f");
}
CASE(zeroing_a_range)
{
    make_large("f", 300000);
    int fd = open_file("f", O_RDWR);
    ret(fallocate(fd, FALLOC_FL_ZERO_RANGE, 1000, 200000));
    say_content("f");
}
CASE(zeroing_over_the_end_extends)
{
    int fd = ten(O_RDWR);
    ret(fallocate(fd, FALLOC_FL_ZERO_RANGE, 5, 100));
    say_content("f");
}
CASE(zeroing_over_the_end_with_keep_size_does_not)
{
    int fd = ten(O_RDWR);
    ret(fallocate(fd, FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE, 5, 100));
    say_content("f");
}
CASE(collapsing_a_range)
{
    make_large("f", 65536);
    int fd = open_file("f", O_RDWR);
    ret(fallocate(fd, FALLOC_FL_COLLAPSE_RANGE, 4096, 8192));
    say_content("f");
}
CASE(inserting_a_range)
{
    make_large("f", 65536);
    int fd = open_file("f", O_RDWR);
    ret(fallocate(fd, FALLOC_FL_INSERT_RANGE, 4096, 8192));
    say_content("f");
}
CASE(an_unknown_mode_is_refused)
{
    int fd = ten(O_RDWR);
    ret(fallocate(fd, 1 << 20, 0, 5));
    ret(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_ZERO_RANGE, 0, 5));
}
CASE(a_bad_range_is_invalid)
{
    int fd = ten(O_RDWR);
    ret(fallocate(fd, 0, -1, 5));
    ret(fallocate(fd, 0, 0, 0));
    ret(fallocate(fd, 0, 0, -5));
}
CASE(a_range_beyond_what_a_file_can_have_is_too_big)
{
    int fd = ten(O_RDWR);
    ret(fallocate(fd, 0, LONG_MAX, 5));
    ret(fallocate(fd, 0, 1L << 62, 5));
    say_fd_size(fd);
}
CASE(a_read_only_descriptor_cannot_allocate)
{
    int fd = ten(O_RDONLY);
    ret(fallocate(fd, 0, 0, 5));
    err(posix_fallocate(fd, 0, 5));
    ret(fallocate(999, 0, 0, 5));
}
CASE(a_pipe_cannot_allocate)
{
    int ends[2];
    need(pipe(ends));
    ret(fallocate(ends[1], 0, 0, 5));
    err(posix_fallocate(ends[1], 0, 5));
}
CASE(posix_allocation_extends)
{
    int fd = ten(O_RDWR);
    errno = EXDEV;
    err(posix_fallocate(fd, 5, 100));
    say("%s", error_name(errno));
    say_content("f");
}
CASE(posix_allocation_returns_errors)
{
    int fd = ten(O_RDWR);
    err(posix_fallocate(fd, -1, 5));
    err(posix_fallocate(fd, 0, 0));
    err(posix_fallocate(fd, 0, -5));
    err(posix_fallocate(999, 0, 5));
}
CASE(nobody_cuts_only_what_may_be_written)
{
    make_file("f", "0123456789");
    make_file("w", "0123456789");
    need(chmod("w", 0666));
    if (!be_nobody())
        return;
    ret(truncate("f", 3));
    ret(truncate("w", 3));
    say_content("f");
    say_content("w");
}
