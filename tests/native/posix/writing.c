/* write, pwrite, writev, pwritev2, O_APPEND: where bytes land, and with bad arguments. */
#define SUBJECT "write"
#include "posix.h"
#include <limits.h>
#include <sys/mman.h>
#include <sys/uio.h>

static char buf[1 << 20];

CASE(writes_follow_each_other)
{
    int fd = ten(O_RDWR);
    ret(write(fd, "AB", 2));
    ret(write(fd, "CD", 2));
    say_offset(fd);
    say_content("f");
}
CASE(a_write_over_the_end_extends)
{
    int fd = ten(O_RDWR);
    ret(pwrite(fd, "LONGER", 6, 8));
    say_content("f");
}
CASE(a_write_beyond_the_end_leaves_zeros)
{
    int fd = ten(O_RDWR);
    ret(pwrite(fd, "x", 1, 70000));
    say_fd_size(fd);
    say_content("f");
}
CASE(a_seek_beyond_the_end_does_not_extend_but_a_write_does)
{
    int fd = ten(O_RDWR);
    ret(lseek(fd, 20, SEEK_SET));
    say_fd_size(fd);
    ret(write(fd, "x", 1));
    say_fd_size(fd);
}
CASE(a_write_of_nothing_changes_nothing)
{
    int fd = ten(O_RDWR);
    ret(write(fd, buf, 0));
    ret(pwrite(fd, buf, 0, 100));
    ret(pwrite(fd, NULL, 0, 100));
    say_fd_size(fd);
}
CASE(a_write_of_nothing_needs_write_access)
{
    int fd = ten(O_RDONLY);
    ret(write(fd, buf, 0));
    ret(pwrite(fd, buf, 0, 3));
}
CASE(a_read_only_descriptor_cannot_write)
{
    int fd = ten(O_RDONLY);
    struct iovec v = {buf, 4};
    ret(write(fd, "x", 1));
    ret(pwrite(fd, "x", 1, 0));
    ret(writev(fd, &v, 1));
    ret(pwritev(fd, &v, 1, 0));
    say_content("f");
}
CASE(a_closed_descriptor_cannot_write)
{
    int fd = ten(O_RDWR);
    need(close(fd));
    ret(write(fd, "x", 1));
    ret(pwrite(fd, "x", 1, 0));
}
CASE(a_bad_buffer_is_a_fault)
{
    int fd = ten(O_RDWR);
    ret(write(fd, BAD, 4));
    ret(pwrite(fd, BAD, 4, 2));
    say_offset(fd);
    say_content("f");
}
CASE(a_bad_vector_is_a_fault)
{
    int fd = ten(O_RDWR);
    ret(writev(fd, BAD, 1));
    ret(pwritev(fd, NONE, 1, 0));
}
CASE(a_negative_offset_is_invalid)
{
    int fd = ten(O_RDWR);
    struct iovec v = {buf, 4};
    ret(pwrite(fd, "x", 1, -1));
    ret(pwritev(fd, &v, 1, -1));
    ret(pwritev(fd, &v, 1, -2));
}
CASE(a_huge_offset_is_too_big)
{
    int fd = ten(O_RDWR);
    ret(pwrite(fd, "x", 1, 1L << 62));
    ret(pwrite(fd, "x", 1, LONG_MAX - 1));
    say_fd_size(fd);
}
CASE(a_write_at_the_largest_offset_is_an_error)
{
    int fd = ten(O_RDWR);
    ret(pwrite(fd, "xx", 2, LONG_MAX));
    say_fd_size(fd);
}
CASE(a_write_of_nothing_at_a_huge_offset_is_nothing) { ret(pwrite(ten(O_RDWR), "x", 0, LONG_MAX)); }
CASE(a_large_offset_makes_a_sparse_file)
{
    int fd = ten(O_RDWR);
    ret(pwrite(fd, "far", 3, 1L << 40));
    say_fd_size(fd);
    char c[4] = "";
    ret(pread(fd, c, 4, 1L << 40));
    bytes(c, 3);
    ret(pread(fd, c, 3, (1L << 40) - 100));
}
CASE(a_vector_is_written_in_order)
{
    int fd = ten(O_RDWR);
    struct iovec v[] = {{"ab", 2}, {"", 0}, {"cde", 3}};
    ret(writev(fd, v, 3));
    say_offset(fd);
    ret(pwritev(fd, v, 3, 7));
    say_offset(fd);
    say_content("f");
}
CASE(a_vector_has_between_0_and_1024_parts)
{
    int fd = ten(O_RDWR);
    static struct iovec v[1025];
    for (int i = 0; i < 1025; i++)
        v[i] = (struct iovec){"y", 1};
    ret(writev(fd, v, 0));
    ret(writev(fd, v, 1024));
    ret(pwritev(fd, v, 1025, 0));
    ret(pwritev(fd, v, (int)hidden(-1), 0));
    say_fd_size(fd);
}
CASE(a_vector_that_overflows_is_invalid)
{
    int fd = ten(O_RDWR);
    struct iovec v[] = {{buf, SSIZE_MAX}, {buf, SSIZE_MAX}};
    ret(writev(fd, v, 2));
}
CASE(a_fault_in_the_second_part_keeps_the_first)
{
    int fd = ten(O_RDWR);
    struct iovec v[] = {{"WXYZ", 4}, {BAD, 4}};
    long n = writev(fd, v, 2);
    say("%s", n == 4 || (n < 0 && errno == EFAULT) ? "4 or EFAULT" : "something else");
}
CASE(append_writes_at_the_end)
{
    int fd = ten(O_RDWR | O_APPEND);
    say_offset(fd);
    ret(write(fd, "+1", 2));
    say_offset(fd);
    ret(lseek(fd, 0, SEEK_SET));
    ret(write(fd, "+2", 2));
    say_offset(fd);
    say_content("f");
}
CASE(append_ignores_the_offset_of_pwrite)
{
    int fd = ten(O_RDWR | O_APPEND);
    ret(pwrite(fd, "AT", 2, 3));
    say_offset(fd);
    say_content("f");
}
CASE(append_ignores_the_offset_of_pwritev)
{
    int fd = ten(O_RDWR | O_APPEND);
    struct iovec v[] = {{"A", 1}, {"T", 1}};
    ret(pwritev(fd, v, 2, 0));
    ret(pwritev2(fd, v, 2, 0, 0));
    say_content("f");
}
CASE(append_reads_from_the_start)
{
    int fd = ten(O_RDWR | O_APPEND);
    char c;
    ret(read(fd, &c, 1));
    ret(write(fd, "z", 1));
    say_offset(fd);
    ret(read(fd, &c, 1));
}
CASE(append_still_checks_the_offset)
{
    int fd = ten(O_RDWR | O_APPEND);
    ret(pwrite(fd, "x", 1, -1));
    ret(pwrite(fd, "x", 1, 1L << 62));
    say_fd_size(fd);
}
CASE(append_of_nothing_leaves_the_offset)
{
    int fd = ten(O_RDWR | O_APPEND);
    ret(write(fd, "", 0));
    say_offset(fd);
}
CASE(append_follows_a_truncation_by_another)
{
    int fd = ten(O_WRONLY | O_APPEND);
    ret(truncate("f", 3));
    ret(write(fd, "end", 3));
    say_content("f");
}
CASE(append_by_flag_of_one_write)
{
    int fd = ten(O_RDWR);
    struct iovec v = {"app", 3};
    ret(pwritev2(fd, &v, 1, 0, RWF_APPEND));
    say_offset(fd);
    ret(pwritev2(fd, &v, 1, -1, RWF_APPEND));
    say_offset(fd);
    say_content("f");
}
CASE(a_write_at_minus_one_uses_the_offset)
{
    int fd = ten(O_RDWR);
    struct iovec v = {"cur", 3};
    ret(pwritev2(fd, &v, 1, -1, 0));
    say_offset(fd);
    say_content("f");
}
CASE(a_durable_write_by_flag)
{
    int fd = ten(O_RDWR);
    struct iovec v = {"syn", 3};
    ret(pwritev2(fd, &v, 1, 0, RWF_SYNC));
    ret(pwritev2(fd, &v, 1, 3, RWF_DSYNC));
    say_content("f");
}
CASE(unknown_flags_are_refused)
{
    int fd = ten(O_RDWR);
    struct iovec v = {"bad", 3};
    ret(pwritev2(fd, &v, 1, 0, 1 << 30));
    say_content("f");
}
CASE(large_writes_land_whole)
{
    for (int i = 0; i < (int)sizeof buf; i++)
        buf[i] = (char)(i % 253);
    int fd = new_file("f", O_RDWR, "");
    ret(pwrite(fd, buf, 700001, 65535));
    ret(pwrite(fd, buf + 17, 65536, 131071));
    say_content("f");
}
CASE(large_vectors_cross_every_border)
{
    static char parts[700][997];
    struct iovec v[700];
    for (int i = 0; i < 700; i++) {
        memset(parts[i], i % 200, sizeof parts[i]);
        v[i] = (struct iovec){parts[i], sizeof parts[i]};
    }
    int fd = new_file("f", O_RDWR, "");
    ret(pwritev(fd, v, 700, 4321));
    say_content("f");
}
CASE(a_write_from_a_guarded_page_is_short_or_a_fault)
{
    int fd = new_file("f", O_RDWR, "");
    char *map = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(map, 'g', 4096);
    need(mprotect(map + 4096, 4096, PROT_NONE));
    long n = pwrite(fd, map, 8192, 0);
    say("%s", n == 4096 || (n < 0 && errno == EFAULT) ? "4096 or EFAULT" : "something else");
}
CASE(errno_survives_success)
{
    int fd = ten(O_RDWR);
    errno = EXDEV;
    need(write(fd, "a", 1));
    need(pwrite(fd, "b", 1, 5));
    need(lseek(fd, 0, SEEK_END));
    need(ftruncate(fd, 20));
    need(fsync(fd));
    say("%s", error_name(errno));
}
CASE(a_reader_never_sees_the_old_end)
{
    int fd = ten(O_RDONLY), other = open_file("f", O_WRONLY | O_APPEND);
    ret(lseek(fd, 0, SEEK_END));
    ret(write(other, "more", 4));
    bytes(buf, read(fd, buf, 10));
}
