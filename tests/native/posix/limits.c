/* Limits, waiting for files, and what the file system says of itself: RLIMIT_FSIZE, poll, select, epoll, statfs, pathconf, ioctl. */
#define SUBJECT "limit"
#include "posix.h"
#include <linux/fs.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>

static void at_most(long size, int ignored)
{
    struct rlimit limit = {(rlim_t)size, (rlim_t)size};
    need(setrlimit(RLIMIT_FSIZE, &limit));
    if (ignored)
        signal(SIGXFSZ, SIG_IGN);
}

CASE(a_write_beyond_the_limit_is_too_big)
{
    int fd = ten(O_RDWR);
    at_most(100, 1);
    ret(pwrite(fd, "x", 1, 100));
    ret(pwrite(fd, "x", 1, 5000));
    say_fd_size(fd);
}
CASE(a_write_over_the_limit_is_short)
{
    int fd = ten(O_RDWR);
    at_most(12, 1);
    ret(pwrite(fd, "abcdef", 6, 9));
    say_fd_size(fd);
}
CASE(a_write_beyond_the_limit_sends_a_signal)
{
    int fd = ten(O_RDWR);
    at_most(100, 0);
    ret(pwrite(fd, "x", 1, 100));
}
CASE(a_write_below_the_limit_works)
{
    int fd = ten(O_RDWR);
    at_most(100, 1);
    ret(pwrite(fd, "x", 1, 99));
    say_fd_size(fd);
}
CASE(growing_beyond_the_limit_is_too_big)
{
    int fd = ten(O_RDWR);
    at_most(100, 1);
    ret(ftruncate(fd, 101));
    ret(ftruncate(fd, 100));
    ret(fallocate(fd, 0, 0, 200));
    say_fd_size(fd);
}
CASE(appending_beyond_the_limit_is_too_big)
{
    int fd = ten(O_RDWR | O_APPEND);
    at_most(10, 1);
    ret(write(fd, "x", 1));
    say_fd_size(fd);
}
CASE(a_limit_counts_over_several_targets)
{
    make_large("f", 300000);
    int fd = open_file("f", O_RDWR);
    at_most(250000, 1);
    ret(pwrite(fd, "x", 1, 260000));
    ret(pwrite(fd, "x", 1, 240000));
    say_fd_size(fd);
}
CASE(a_file_above_the_limit_may_shrink)
{
    make_large("f", 300000);
    int fd = open_file("f", O_RDWR);
    at_most(1000, 0);
    ret(ftruncate(fd, 200000));
    ret(pwrite(fd, "x", 1, 10));
    ret(close(fd));
    ret(truncate("f", 100000));
    say_size("f");
}
CASE(the_limit_goes_with_a_new_image)
{
    make_large("f", 300000);
    int fd = open_file("f", O_RDWR | O_APPEND);
    char number[16];
    snprintf(number, sizeof number, "%d", fd);
    at_most(200000, 1);
    in_new_image("write", number, "more", NULL);
    say_size("f");
}
CASE(poll_finds_a_file_ready)
{
    struct pollfd p = {ten(O_RDWR), POLLIN | POLLOUT | POLLPRI, 0};
    ret(poll(&p, 1, 0));
    say("%d", p.revents);
}
CASE(poll_finds_a_closed_descriptor)
{
    struct pollfd p = {999, POLLIN, 0};
    ret(poll(&p, 1, 0));
    say("%d", p.revents == POLLNVAL);
}
CASE(select_finds_a_file_ready)
{
    int fd = ten(O_RDWR);
    fd_set in, out, other;
    struct timeval none = {0, 0};
    FD_ZERO(&in);
    FD_ZERO(&out);
    FD_ZERO(&other);
    FD_SET(fd, &in);
    FD_SET(fd, &out);
    FD_SET(fd, &other);
    ret(select(fd + 1, &in, &out, &other, &none));
    say("%d %d %d", FD_ISSET(fd, &in) != 0, FD_ISSET(fd, &out) != 0, FD_ISSET(fd, &other) != 0);
}
CASE(epoll_takes_no_files)
{
    struct epoll_event event = {.events = EPOLLIN};
    ret(epoll_ctl(need(epoll_create1(0)), EPOLL_CTL_ADD, ten(O_RDWR), &event));
}
CASE(the_file_system_is_the_directorys)
{
    struct statfs a, b, c;
    int fd = ten(O_RDWR);
    ret(statfs("f", &a));
    ret(statfs(".", &b));
    ret(fstatfs(fd, &c));
    say("%d %d", a.f_type == b.f_type && a.f_type == c.f_type, a.f_bsize == b.f_bsize && a.f_bsize == c.f_bsize);
}
CASE(the_portable_call_says_the_same)
{
    struct statvfs a, b;
    int fd = ten(O_RDWR);
    ret(statvfs("f", &a));
    ret(fstatvfs(fd, &b));
    say("%d %ld", a.f_namemax == b.f_namemax && a.f_bsize == b.f_bsize, (long)a.f_namemax);
}
CASE(the_file_system_of_a_missing_name_is_an_error)
{
    struct statfs s;
    struct statvfs v;
    make_file("f", "x");
    ret(statfs("none", &s));
    ret(statfs("f/x", &s));
    ret(statvfs("none", &v));
    ret(fstatfs(999, &s));
}
CASE(path_limits_of_a_file)
{
    int fd = ten(O_RDWR);
    ret(pathconf("f", _PC_LINK_MAX) > 1 ? 0 : -1);
    ret(pathconf("f", _PC_NAME_MAX));
    ret(fpathconf(fd, _PC_NAME_MAX));
    ret(fpathconf(fd, _PC_PATH_MAX));
    ret(pathconf("f", _PC_CHOWN_RESTRICTED));
    ret(fpathconf(fd, _PC_FILESIZEBITS));
}
CASE(the_bytes_left_to_read_are_told)
{
    int fd = ten(O_RDWR), left = -1;
    need(lseek(fd, 4, SEEK_SET));
    ret(ioctl(fd, FIONREAD, &left));
    say("%d", left);
}
CASE(a_file_is_no_terminal)
{
    int fd = ten(O_RDWR);
    ret(isatty(fd));
    say("%s", error_name(errno));
    say("%d", ttyname(fd) == NULL);
    struct winsize window;
    ret(ioctl(fd, TIOCGWINSZ, &window));
}
CASE(close_on_exec_by_ioctl)
{
    int fd = ten(O_RDWR);
    ret(ioctl(fd, FIOCLEX));
    say("%d", fcntl(fd, F_GETFD));
    ret(ioctl(fd, FIONCLEX));
    say("%d", fcntl(fd, F_GETFD));
}
CASE(nonblocking_by_ioctl)
{
    int fd = ten(O_RDWR), on = 1;
    ret(ioctl(fd, FIONBIO, &on));
    say("%d", (fcntl(fd, F_GETFL) & O_NONBLOCK) != 0);
    say_fd_content(fd);
}
CASE(an_unknown_request_is_no_terminals)
{
    ret(ioctl(ten(O_RDWR), 0x12345678, 0));
}
