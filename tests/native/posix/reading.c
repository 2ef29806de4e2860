/* read, pread, readv, preadv2: up to, over and beyond the end, and with bad arguments. */
#define SUBJECT "read"
#include "posix.h"
#include <limits.h>
#include <sys/mman.h>
#include <sys/uio.h>

static char buf[1 << 20];

CASE(reads_follow_each_other)
{
    int fd = ten(O_RDONLY);
    bytes(buf, read(fd, buf, 4));
    bytes(buf, read(fd, buf, 4));
    bytes(buf, read(fd, buf, 4));
    bytes(buf, read(fd, buf, 4));
    say_offset(fd);
}
CASE(a_read_over_the_end_is_short) { bytes(buf, pread(ten(O_RDONLY), buf, 100, 7)); }
CASE(a_read_at_the_end_is_empty) { ret(pread(ten(O_RDONLY), buf, 100, 10)); }
CASE(a_read_beyond_the_end_is_empty)
{
    int fd = ten(O_RDONLY);
    ret(pread(fd, buf, 100, 1000000));
    ret(lseek(fd, 5000, SEEK_SET));
    ret(read(fd, buf, 10));
    say_offset(fd);
}
CASE(a_read_of_nothing_is_empty)
{
    int fd = ten(O_RDONLY);
    ret(read(fd, buf, 0));
    ret(pread(fd, buf, 0, 3));
    ret(pread(fd, NULL, 0, 3));
}
CASE(a_write_only_descriptor_cannot_read)
{
    int fd = ten(O_WRONLY);
    ret(read(fd, buf, 1));
    ret(pread(fd, buf, 1, 0));
    ret(read(fd, buf, 0));
    struct iovec v = {buf, 4};
    ret(readv(fd, &v, 1));
    ret(preadv(fd, &v, 1, 0));
}
CASE(a_closed_descriptor_cannot_read)
{
    int fd = ten(O_RDONLY);
    need(close(fd));
    ret(read(fd, buf, 1));
    ret(pread(fd, buf, 1, 0));
    ret(read(-1, buf, 1));
    ret(read(INT_MAX, buf, 1));
}
CASE(a_bad_buffer_is_a_fault)
{
    int fd = ten(O_RDONLY);
    ret(read(fd, BAD, 4));
    ret(pread(fd, BAD, 4, 2));
    say_offset(fd);
}
CASE(a_bad_buffer_at_the_end_is_not_looked_at)
{
    int fd = ten(O_RDONLY);
    ret(pread(fd, BAD, 4, 10));
}
CASE(a_bad_vector_is_a_fault)
{
    int fd = ten(O_RDONLY);
    ret(readv(fd, BAD, 1));
    ret(preadv(fd, NONE, 1, 0));
}
CASE(a_read_into_a_guarded_page_is_short_or_a_fault)
{
    make_large("f", 20000);
    int fd = open_file("f", O_RDONLY);
    char *map = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    need(mprotect(map + 4096, 4096, PROT_NONE));
    ret(pread(fd, map, 8192, 0));
    bytes(map, 4096);
}
CASE(a_read_only_buffer_is_a_fault)
{
    int fd = ten(O_RDONLY);
    char *map = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ret(read(fd, map, 4));
}
CASE(a_hole_reads_into_a_guarded_page_as_a_fault)
{
    int fd = new_file("f", O_RDWR, "");
    ret(ftruncate(fd, 1 << 20));
    ret(pread(fd, BAD, 4096, 8192));
    ret(pread(fd, BAD, 400000, 8192));
}
CASE(a_negative_offset_is_invalid)
{
    int fd = ten(O_RDONLY);
    struct iovec v = {buf, 4};
    ret(pread(fd, buf, 4, -1));
    ret(pread(fd, buf, 4, LONG_MIN));
    ret(preadv(fd, &v, 1, -1));
    ret(preadv(fd, &v, 1, -2));
}
CASE(a_huge_offset_is_beyond_the_end)
{
    int fd = ten(O_RDONLY);
    ret(pread(fd, buf, 4, LONG_MAX - 4));
    ret(pread(fd, buf, 4, 1L << 62));
    ret(pread(fd, buf, 4, 1L << 50));
}
CASE(an_offset_that_overflows_is_an_error) { ret(pread(ten(O_RDONLY), buf, 4096, LONG_MAX)); }
CASE(a_huge_length_is_cut)
{
    int fd = ten(O_RDONLY);
    ret(pread(fd, buf, (size_t)hidden(1L << 40), 0));
    ret(pread(fd, buf, (size_t)hidden(LONG_MAX), 0));
}
CASE(a_negative_length_is_an_error) { ret(pread(ten(O_RDONLY), buf, (size_t)hidden(-1), 0)); }
CASE(a_vector_is_filled_in_order)
{
    int fd = ten(O_RDONLY);
    char a[3], b[20];
    struct iovec v[] = {{a, 3}, {NULL, 0}, {b, 20}};
    ret(readv(fd, v, 3));
    bytes(a, 3);
    bytes(b, 7);
    say_offset(fd);
}
CASE(a_vector_at_an_offset_leaves_the_offset)
{
    int fd = ten(O_RDONLY);
    char a[3], b[3];
    struct iovec v[] = {{a, 3}, {b, 3}};
    ret(preadv(fd, v, 2, 2));
    bytes(a, 3);
    bytes(b, 3);
    say_offset(fd);
}
CASE(a_vector_may_be_empty)
{
    int fd = ten(O_RDONLY);
    struct iovec v = {buf, 1};
    ret(readv(fd, &v, 0));
    ret(readv(fd, NULL, 0));
}
CASE(a_vector_has_between_0_and_1024_parts)
{
    int fd = ten(O_RDONLY);
    static struct iovec v[1025];
    for (int i = 0; i < 1025; i++)
        v[i] = (struct iovec){buf + i, 1};
    ret(readv(fd, v, 1024));
    ret(preadv(fd, v, 1025, 0));
    ret(preadv(fd, v, (int)hidden(-1), 0));
}
CASE(a_vector_that_overflows_is_invalid)
{
    int fd = ten(O_RDONLY);
    struct iovec v[] = {{buf, SSIZE_MAX}, {buf, SSIZE_MAX}};
    ret(readv(fd, v, 2));
    struct iovec w[] = {{buf, (size_t)-1}};
    ret(readv(fd, w, 1));
}
CASE(a_fault_in_the_second_part_keeps_the_first)
{
    int fd = ten(O_RDONLY);
    struct iovec v[] = {{buf, 4}, {BAD, 4}};
    ret(readv(fd, v, 2));
    bytes(buf, 4);
    say_offset(fd);
}
CASE(an_offset_of_minus_one_means_the_current_one)
{
    int fd = ten(O_RDONLY);
    struct iovec v = {buf, 4};
    ret(preadv2(fd, &v, 1, -1, 0));
    bytes(buf, 4);
    say_offset(fd);
    ret(preadv2(fd, &v, 1, 8, 0));
    say_offset(fd);
}
CASE(unknown_flags_are_refused)
{
    int fd = ten(O_RDONLY);
    struct iovec v = {buf, 4};
    ret(preadv2(fd, &v, 1, 0, 1 << 30));
    ret(preadv2(fd, &v, 1, 100, 1 << 30));
}
CASE(high_priority_is_accepted)
{
    int fd = ten(O_RDONLY);
    struct iovec v = {buf, 4};
    ret(preadv2(fd, &v, 1, 0, RWF_HIPRI));
}
CASE(a_cached_read_need_not_wait)
{
    int fd = ten(O_RDONLY);
    struct iovec v = {buf, 4};
    ret(preadv2(fd, &v, 1, 2, RWF_NOWAIT));
    ret(preadv2(fd, &v, 1, 10, RWF_NOWAIT));
}
CASE(holes_read_as_zeros)
{
    int fd = new_file("f", O_RDWR, "");
    ret(pwrite(fd, "end", 3, 500000));
    memset(buf, 'x', 1000);
    ret(pread(fd, buf, 1000, 499500));
    bytes(buf, 503);
    say_content("f");
}
CASE(large_reads_return_all)
{
    make_large("f", 900000);
    int fd = open_file("f", O_RDONLY);
    bytes(buf, pread(fd, buf, sizeof buf, 0));
    bytes(buf, pread(fd, buf, 65536, 65535));
    bytes(buf, pread(fd, buf, 65536 * 3 + 1, 65537));
    bytes(buf, pread(fd, buf, 1, 899999));
}
CASE(large_vectors_cross_every_border)
{
    make_large("f", 900000);
    int fd = open_file("f", O_RDONLY);
    static char parts[700][997];
    struct iovec v[700];
    for (int i = 0; i < 700; i++)
        v[i] = (struct iovec){parts[i], sizeof parts[i]};
    ret(preadv(fd, v, 700, 12345));
    bytes(parts, sizeof parts);
}
CASE(a_directory_cannot_be_read)
{
    int fd = open_file(".", O_RDONLY);
    ret(read(fd, buf, 10));
    ret(pread(fd, buf, 10, 0));
}
CASE(errno_survives_success)
{
    int fd = ten(O_RDONLY);
    errno = EXDEV;
    need(read(fd, buf, 4));
    need(pread(fd, buf, 4, 2));
    need(pread(fd, buf, 4, 20));
    say("%s", error_name(errno));
}
CASE(what_another_descriptor_wrote_is_read_at_once)
{
    int fd = ten(O_RDONLY), other = open_file("f", O_WRONLY);
    ret(pwrite(other, "NEW", 3, 4));
    say_fd_content(fd);
}
