/* sendfile, copy_file_range, splice, tee: bytes that the kernel moves between descriptors. */
#define SUBJECT "copy"
#include "posix.h"
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/sendfile.h>
#include <sys/uio.h>

static int from, to;

static void two_files(int to_flags)
{
    make_file("a", "0123456789");
    make_file("b", "abcdefghijkl");
    from = open_file("a", O_RDONLY);
    to = open_file("b", to_flags);
}

CASE(sendfile_from_an_offset)
{
    two_files(O_RDWR);
    off_t at = 3;
    ret(sendfile(to, from, &at, 4));
    say("%ld", (long)at);
    say_offset(from);
    say_offset(to);
    say_content("b");
}
CASE(sendfile_from_here)
{
    two_files(O_RDWR);
    need(lseek(from, 2, SEEK_SET));
    ret(sendfile(to, from, NULL, 100));
    say_offset(from);
    say_content("b");
    ret(sendfile(to, from, NULL, 100));
}
CASE(sendfile_into_a_pipe)
{
    int ends[2];
    char text[16];
    two_files(O_RDWR);
    need(pipe(ends));
    ret(sendfile(ends[1], from, NULL, 10));
    bytes(text, read(ends[0], text, sizeof text));
}
CASE(sendfile_of_a_large_file)
{
    two_files(O_RDWR);
    make_large("l", 700000);
    int large = open_file("l", O_RDONLY);
    off_t at = 1000;
    long done = 0, n;
    while ((n = sendfile(to, large, &at, 300000)) > 0)
        done += n;
    say("%ld", done);
    say_content("b");
}
CASE(sendfile_errors)
{
    two_files(O_RDONLY);
    off_t at = 0, negative = -1;
    ret(sendfile(to, from, &at, 4));
    ret(sendfile(999, from, &at, 4));
    ret(sendfile(to, 999, &at, 4));
    int writer = open_file("b", O_WRONLY);
    ret(sendfile(writer, from, &negative, 4));
    ret(sendfile(writer, open_file("a", O_WRONLY), &at, 4));
    ret(sendfile(writer, from, BAD, 4));
    ret(sendfile(writer, from, &at, 0));
}
CASE(sendfile_into_an_appending_descriptor)
{
    two_files(O_RDWR | O_APPEND);
    off_t at = 0;
    ret(sendfile(to, from, &at, 4));
    say_content("b");
}
CASE(a_range_is_copied_at_offsets)
{
    two_files(O_RDWR);
    off_t a = 2, b = 5;
    ret(copy_file_range(from, &a, to, &b, 4, 0));
    say("%ld %ld", (long)a, (long)b);
    say_offset(from);
    say_content("b");
}
CASE(a_range_is_copied_from_here_to_here)
{
    two_files(O_RDWR);
    ret(copy_file_range(from, NULL, to, NULL, 4, 0));
    ret(copy_file_range(from, NULL, to, NULL, 400, 0));
    ret(copy_file_range(from, NULL, to, NULL, 400, 0));
    say_offset(from);
    say_offset(to);
    say_content("b");
}
CASE(a_range_is_copied_within_a_file)
{
    make_file("f", "0123456789");
    int fd = open_file("f", O_RDWR);
    off_t a = 0, b = 20;
    ret(copy_file_range(fd, &a, fd, &b, 5, 0));
    say_content("f");
}
CASE(a_range_that_overlaps_itself_is_invalid)
{
    make_file("f", "0123456789");
    int fd = open_file("f", O_RDWR);
    off_t a = 0, b = 3;
    ret(copy_file_range(fd, &a, fd, &b, 5, 0));
    say_content("f");
}
CASE(copying_errors)
{
    two_files(O_RDWR);
    int ends[2];
    off_t a = 0;
    need(pipe(ends));
    ret(copy_file_range(from, &a, open_file("b", O_RDONLY), NULL, 4, 0));
    ret(copy_file_range(open_file("a", O_WRONLY), &a, to, NULL, 4, 0));
    ret(copy_file_range(from, &a, 999, NULL, 4, 0));
    ret(copy_file_range(999, &a, to, NULL, 4, 0));
    ret(copy_file_range(from, &a, to, NULL, 4, 77));
    ret(copy_file_range(from, &a, open_file("b", O_WRONLY | O_APPEND), NULL, 4, 0));
    ret(copy_file_range(from, NULL, ends[1], NULL, 4, 0));
    ret(copy_file_range(from, NULL, open_file(".", O_RDONLY), NULL, 4, 0));
}
CASE(copying_a_large_range)
{
    two_files(O_RDWR);
    make_large("l", 700000);
    int large = open_file("l", O_RDONLY);
    off_t a = 1234, b = 77777;
    long done = 0, n;
    while ((n = copy_file_range(large, &a, to, &b, 1 << 20, 0)) > 0)
        done += n;
    say("%ld", done);
    say_content("b");
}
CASE(splicing_out_of_a_file)
{
    int ends[2];
    char text[16];
    two_files(O_RDWR);
    need(pipe(ends));
    off_t at = 4;
    ret(splice(from, &at, ends[1], NULL, 3, 0));
    bytes(text, read(ends[0], text, sizeof text));
    ret(splice(from, NULL, ends[1], NULL, 3, 0));
    bytes(text, read(ends[0], text, sizeof text));
    say_offset(from);
}
CASE(splicing_into_a_file)
{
    int ends[2];
    two_files(O_RDWR);
    need(pipe(ends));
    need(write(ends[1], "PIPED", 5));
    off_t at = 2;
    ret(splice(ends[0], NULL, to, &at, 3, 0));
    ret(splice(ends[0], NULL, to, NULL, 3, 0));
    say_offset(to);
    say_content("b");
}
CASE(splicing_between_files_is_invalid)
{
    two_files(O_RDWR);
    ret(splice(from, NULL, to, NULL, 3, 0));
    say_content("b");
}
CASE(pages_of_memory_are_spliced_into_a_file)
{
    int ends[2];
    two_files(O_RDWR);
    need(pipe(ends));
    struct iovec v = {"MEMORY", 6};
    ret(vmsplice(ends[1], &v, 1, 0));
    ret(splice(ends[0], NULL, to, NULL, 6, 0));
    say_content("b");
}
CASE(a_clone_is_made_or_refused_and_then_copied)
{
    two_files(O_RDWR | O_TRUNC);
    int r = ioctl(to, FICLONE, from);
    say("%s", r == 0 || errno == EOPNOTSUPP || errno == EXDEV || errno == EINVAL || errno == ENOTTY ? "cloned or refused" : error_name(errno));
    off_t a = 0, b = 0;
    ret(copy_file_range(from, &a, to, &b, 10, 0));
    say_content("b");
}
CASE(a_program_copies_a_file)
{
    make_large("f", 300000);
    say("%d", WEXITSTATUS(system("cp f g && cat g >h && cmp f h")));
    say_content("h");
}
