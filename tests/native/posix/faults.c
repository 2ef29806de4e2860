/* Addresses that are no good, in every call that takes one: an error, and never a signal. */
#define SUBJECT "fault"
#include "posix.h"
#include <limits.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/statfs.h>
#include <sys/uio.h>
#include <sys/xattr.h>

/* A string of one page that nothing ends: what follows it is not mapped. */
static char *endless(void)
{
    char *at = mmap(NULL, 2 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED || munmap(at + 4096, 4096)) exit(1);
    memset(at, 'x', 4096);
    return at + 4096 - 9;
}
static struct stat *read_only(void) { return mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); }

static void in_names(char *bad)
{
    struct stat st;
    struct statx sx;
    struct statfs fs;
    char text[PATH_MAX];
    ret(open(bad, O_RDONLY));
    ret(open(bad, O_RDWR | O_CREAT, 0644));
    ret(access(bad, R_OK));
    ret(faccessat(AT_FDCWD, bad, R_OK, AT_SYMLINK_NOFOLLOW));
    ret(stat(bad, &st));
    ret(lstat(bad, &st));
    ret(statx(AT_FDCWD, bad, AT_EMPTY_PATH, STATX_ALL, &sx));
    ret(statfs(bad, &fs));
    ret(truncate(bad, 1));
    ret(readlink(bad, text, sizeof text));
    ret(unlink(bad));
    ret(remove(bad));
    ret(mkdir(bad, 0755));
    ret(rmdir(bad));
    ret(chdir(bad));
}
CASE(a_bad_name_is_an_error) { in_names(BAD); }
CASE(a_name_without_an_end_is_an_error) { in_names(endless()); }

static void in_changes(char *bad)
{
    char text[16];
    ret(rename("f", bad));
    ret(rename(bad, "g"));
    /* The first name ends these before the second is looked at. */
    ret(rename("none", bad));
    ret(rename("none/f", bad));
    ret(rename("", bad));
    ret(renameat(-1, "f", -1, bad));
    ret(renameat2(AT_FDCWD, bad, AT_FDCWD, bad, 0xff00));
    ret(link("none", bad));
    ret(link("none/f", bad));
    ret(linkat(-1, "f", -1, bad, 0));
    ret(linkat(AT_FDCWD, "", AT_FDCWD, bad, 0));
    ret(linkat(AT_FDCWD, bad, AT_FDCWD, bad, 0xff));
    ret(link("f", bad));
    ret(link(bad, "g"));
    ret(symlink("f", bad));
    ret(chmod(bad, 0600));
    ret(chown(bad, -1, -1));
    ret(lchown(bad, -1, -1));
    ret(utimensat(AT_FDCWD, bad, NULL, 0));
    ret(getxattr(bad, "user.x", text, sizeof text));
    ret(setxattr(bad, "user.x", "y", 1, 0));
    ret(listxattr(bad, text, sizeof text));
    ret(removexattr(bad, "user.x"));
    say_content("f");
}
CASE(a_bad_name_to_change_is_an_error)
{
    make_file("f", "still here");
    in_changes(BAD);
}
CASE(a_name_without_an_end_to_change_is_an_error)
{
    make_file("f", "still here");
    in_changes(endless());
}
CASE(a_bad_name_of_a_stream_is_an_error) { ret(fopen(endless(), "r") ? 0 : -1); }
CASE(a_status_needs_memory_that_can_be_written)
{
    make_file("f", "x");
    ret(stat("f", read_only()));
    ret(lstat("f", read_only()));
    ret(fstat(open_file("f", O_RDONLY), read_only()));
    ret(statx(AT_FDCWD, "f", 0, STATX_ALL, (void *)read_only()));
    ret(statfs("f", (void *)read_only()));
}
CASE(a_bad_link_buffer_is_a_fault)
{
    make_file("f", "x");
    ret(symlink("f", "l"));
    ret(readlink("l", BAD, 10));
}
CASE(bad_times_are_a_fault)
{
    make_file("f", "x");
    ret(utimensat(AT_FDCWD, "f", BAD, 0));
    ret(futimens(open_file("f", O_RDWR), BAD));
}
CASE(a_bad_lock_is_a_fault)
{
    make_file("f", "x");
    int fd = open_file("f", O_RDWR);
    ret(fcntl(fd, F_SETLK, BAD));
    ret(fcntl(fd, F_GETLK, BAD));
    ret(fcntl(fd, F_OFD_SETLK, BAD));
}
CASE(bad_vectors_are_a_fault)
{
    make_file("f", "x");
    int fd = open_file("f", O_RDWR);
    ret(readv(fd, BAD, 2));
    ret(writev(fd, BAD, 2));
    ret(preadv(fd, BAD, 2, 0));
    ret(pwritev(fd, BAD, 2, 0));
    ret(preadv2(fd, BAD, 2, 0, 0));
    ret(pwritev2(fd, BAD, 2, 0, 0));
    ret(readv(fd, (struct iovec *)endless(), 1));
    say_fd_content(fd);
}
CASE(bad_offsets_of_a_copy_are_a_fault)
{
    make_file("f", "0123456789");
    int from = open_file("f", O_RDONLY), to = new_file("g", O_RDWR, "");
    ret(copy_file_range(from, BAD, to, NULL, 4, 0));
    ret(copy_file_range(from, NULL, to, BAD, 4, 0));
    ret(sendfile(to, from, BAD, 4));
    say_fd_size(to);
}
