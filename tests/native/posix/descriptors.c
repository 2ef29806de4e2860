/* dup and its kin, fcntl on flags, close and close_range, limits on descriptors. */
#define SUBJECT "fd"
#include "posix.h"
#include <sys/resource.h>

CASE(open_takes_the_lowest_number)
{
    make_file("f", "x");
    int a = open_file("f", O_RDONLY), b = open_file("f", O_RDONLY), c = open_file("f", O_RDONLY);
    say("%d %d", b - a, c - b);
    need(close(b));
    say("%d", open_file("f", O_RDWR) - a);
}
CASE(dup_takes_the_lowest_number)
{
    int fd = ten(O_RDONLY), gap = need(dup(fd));
    ret(need(dup(fd)) - gap);
    need(close(gap));
    ret(need(dup(fd)) - gap);
}
CASE(dup_shares_the_offset)
{
    int fd = ten(O_RDWR), copy = need(dup(fd));
    ret(write(fd, "abc", 3));
    say_offset(copy);
    ret(write(copy, "def", 3));
    say_offset(fd);
    say_content("f");
}
CASE(dup_outlives_the_first)
{
    int fd = ten(O_RDWR), copy = need(dup(fd));
    need(close(fd));
    ret(write(copy, "abc", 3));
    say_content("f");
    ret(close(copy));
    ret(close(copy));
}
CASE(dup_of_a_closed_descriptor_is_an_error)
{
    ret(dup(999));
    ret(dup(-1));
    ret(dup2(999, 5));
    ret(dup3(999, 5, 0));
}
CASE(dup2_onto_itself_does_nothing)
{
    int fd = ten(O_RDWR | O_CLOEXEC);
    say("%d", dup2(fd, fd) == fd);
    say("%d", fcntl(fd, F_GETFD));
    ret(write(fd, "x", 1));
}
CASE(dup2_of_a_closed_one_onto_itself_is_an_error) { ret(dup2(999, 999)); }
CASE(dup3_onto_itself_is_invalid)
{
    int fd = ten(O_RDWR);
    ret(dup3(fd, fd, 0));
}
CASE(dup2_closes_what_was_there)
{
    make_file("g", "other");
    int fd = ten(O_RDWR), other = open_file("g", O_RDWR);
    say("%d", dup2(fd, other) == other);
    ret(write(other, "to f", 4));
    say_content("f");
    say_content("g");
}
CASE(dup2_to_a_given_number)
{
    int fd = ten(O_RDWR);
    ret(dup2(fd, 77));
    say_fd_content(77);
    ret(close(77));
    say_fd_content(fd);
}
CASE(dup2_of_a_plain_file_over_this_one)
{
    int fd = ten(O_RDWR), zero = open_file("/dev/zero", O_RDONLY);
    say("%d", dup2(zero, fd) == fd);
    char c = 'x';
    ret(read(fd, &c, 1));
    say("%d", c);
    say_content("f");
}
CASE(dup2_to_an_impossible_number_is_an_error)
{
    int fd = ten(O_RDWR);
    ret(dup2(fd, -1));
    ret(dup2(fd, 1 << 30));
    ret(dup3(fd, -1, 0));
    say_fd_content(fd);
}
CASE(a_failed_dup2_leaves_the_second_open)
{
    int fd = ten(O_RDWR);
    ret(dup2(999, fd));
    say_fd_content(fd);
}
CASE(dup3_sets_close_on_exec)
{
    int fd = ten(O_RDWR);
    ret(dup3(fd, 60, O_CLOEXEC));
    say("%d %d", fcntl(60, F_GETFD), fcntl(fd, F_GETFD));
    ret(dup3(fd, 61, 0));
    say("%d", fcntl(61, F_GETFD));
}
CASE(dup3_refuses_unknown_flags) { ret(dup3(ten(O_RDWR), 60, O_APPEND)); }
CASE(dup_clears_close_on_exec)
{
    int fd = ten(O_RDWR | O_CLOEXEC);
    say("%d %d", fcntl(fd, F_GETFD), fcntl(need(dup(fd)), F_GETFD));
}
CASE(fcntl_duplicates_at_or_above_a_number)
{
    int fd = ten(O_RDWR);
    ret(fcntl(fd, F_DUPFD, 50));
    ret(fcntl(fd, F_DUPFD, 50));
    ret(fcntl(fd, F_DUPFD_CLOEXEC, 50));
    say("%d %d", fcntl(51, F_GETFD), fcntl(52, F_GETFD));
    say_fd_content(52);
}
CASE(fcntl_duplicates_to_no_negative_number)
{
    int fd = ten(O_RDWR);
    ret(fcntl(fd, F_DUPFD, -1));
    ret(fcntl(fd, F_DUPFD, 1 << 30));
}
CASE(flags_show_the_access_mode)
{
    make_file("f", "x");
    say("%d", fcntl(open_file("f", O_RDONLY), F_GETFL) & O_ACCMODE);
    say("%d", fcntl(open_file("f", O_WRONLY), F_GETFL) & O_ACCMODE);
    say("%d", fcntl(open_file("f", O_RDWR), F_GETFL) & O_ACCMODE);
}
CASE(flags_show_what_open_was_given)
{
    make_file("f", "x");
    int mask = O_APPEND | O_NONBLOCK | O_SYNC | O_DSYNC | O_CREAT | O_EXCL | O_TRUNC | O_NOFOLLOW | O_DIRECTORY | O_CLOEXEC;
    say("%o", fcntl(open_file("f", O_RDWR | O_APPEND), F_GETFL) & mask);
    say("%o", fcntl(open_file("f", O_RDWR | O_NONBLOCK), F_GETFL) & mask);
    say("%o", fcntl(need(open("f", O_RDWR | O_CREAT | O_TRUNC, 0644)), F_GETFL) & mask);
    say("%o", fcntl(open_file("f", O_RDWR | O_CLOEXEC), F_GETFL) & mask);
}
CASE(flags_show_nofollow_and_large_file)
{
    make_file("f", "x");
    say("%o", fcntl(open_file("f", O_RDWR | O_NOFOLLOW), F_GETFL));
    say("%o", fcntl(open_file("f", O_RDWR), F_GETFL));
}
CASE(flags_show_noatime)
{
    make_file("f", "x");
    say("%d", (fcntl(open_file("f", O_RDONLY | O_NOATIME), F_GETFL) & O_NOATIME) != 0);
}
CASE(append_may_be_set_and_cleared)
{
    int fd = ten(O_RDWR);
    ret(fcntl(fd, F_SETFL, O_APPEND));
    say("%d", (fcntl(fd, F_GETFL) & O_APPEND) != 0);
    ret(write(fd, "end", 3));
    ret(fcntl(fd, F_SETFL, 0));
    say("%d", (fcntl(fd, F_GETFL) & O_APPEND) != 0);
    ret(pwrite(fd, "start", 5, 0));
    say_content("f");
}
CASE(append_set_on_one_duplicate_counts_for_all)
{
    int fd = ten(O_RDWR), copy = need(dup(fd));
    ret(fcntl(copy, F_SETFL, O_APPEND));
    ret(pwrite(fd, "end", 3, 0));
    say_content("f");
}
CASE(the_access_mode_cannot_be_changed)
{
    int fd = ten(O_RDONLY);
    ret(fcntl(fd, F_SETFL, O_RDWR));
    say("%d", fcntl(fd, F_GETFL) & O_ACCMODE);
    ret(write(fd, "x", 1));
}
CASE(nonblocking_changes_nothing_for_files)
{
    int fd = ten(O_RDWR);
    ret(fcntl(fd, F_SETFL, O_NONBLOCK));
    say("%d", (fcntl(fd, F_GETFL) & O_NONBLOCK) != 0);
    say_fd_content(fd);
}
CASE(sync_cannot_be_set_later)
{
    int fd = ten(O_RDWR);
    ret(fcntl(fd, F_SETFL, O_SYNC));
    say("%d", (fcntl(fd, F_GETFL) & O_SYNC) != 0);
}
CASE(direct_may_be_set_later)
{
    int fd = ten(O_RDWR);
    ret(fcntl(fd, F_SETFL, O_DIRECT));
    say("%d", (fcntl(fd, F_GETFL) & O_DIRECT) != 0);
}
CASE(close_on_exec_may_be_set_and_cleared)
{
    int fd = ten(O_RDWR), copy = need(dup(fd));
    ret(fcntl(fd, F_SETFD, FD_CLOEXEC));
    say("%d %d", fcntl(fd, F_GETFD), fcntl(copy, F_GETFD));
    ret(fcntl(fd, F_SETFD, 0));
    say("%d", fcntl(fd, F_GETFD));
}
CASE(fcntl_on_a_closed_descriptor_is_an_error)
{
    ret(fcntl(999, F_GETFD));
    ret(fcntl(999, F_GETFL));
    ret(fcntl(999, F_SETFD, 0));
    ret(fcntl(999, F_DUPFD, 0));
}
CASE(an_unknown_command_is_invalid)
{
    int fd = ten(O_RDWR);
    ret(fcntl(fd, 12345, 0));
}
CASE(ownership_of_signals_is_kept)
{
    int fd = ten(O_RDWR);
    ret(fcntl(fd, F_GETOWN));
    ret(fcntl(fd, F_GETSIG));
    ret(fcntl(fd, F_SETSIG, SIGUSR1));
    say("%d", fcntl(fd, F_GETSIG) == SIGUSR1);
    ret(fcntl(fd, F_SETSIG, 65));
    say("%d", fcntl(dup(fd), F_GETSIG) == SIGUSR1);
}
CASE(a_file_has_no_pipe_size) { ret(fcntl(ten(O_RDWR), F_GETPIPE_SZ)); }
CASE(a_file_has_no_seals) { ret(fcntl(ten(O_RDWR), F_GET_SEALS)); }
CASE(closing_twice_is_an_error)
{
    int fd = ten(O_RDWR);
    ret(close(fd));
    ret(close(fd));
    ret(close(-1));
}
CASE(every_call_on_a_closed_descriptor_is_an_error)
{
    int fd = ten(O_RDWR);
    struct stat st;
    need(close(fd));
    ret(fstat(fd, &st));
    ret(fsync(fd));
    ret(fdatasync(fd));
    ret(fchmod(fd, 0600));
    ret(fchown(fd, 0, 0));
    ret(dup(fd));
}
CASE(a_range_of_descriptors_closes)
{
    int fd = ten(O_RDWR);
    need(dup2(fd, 40));
    need(dup2(fd, 41));
    need(dup2(fd, 43));
    ret(close_range(40, 42, 0));
    ret(fcntl(40, F_GETFD));
    ret(fcntl(41, F_GETFD));
    ret(fcntl(43, F_GETFD));
    say_fd_content(43);
}
CASE(a_range_is_marked_for_exec)
{
    int fd = ten(O_RDWR);
    need(dup2(fd, 40));
    need(dup2(fd, 41));
    ret(close_range(40, 41, CLOSE_RANGE_CLOEXEC));
    say("%d %d %d", fcntl(fd, F_GETFD), fcntl(40, F_GETFD), fcntl(41, F_GETFD));
}
CASE(a_range_that_ends_before_it_begins_is_invalid) { ret(close_range(10, 9, 0)); }
CASE(everything_closes_and_files_open_again)
{
    ten(O_RDWR);
    ret(close_range(3, ~0U, 0));
    int fd = open_file("f", O_RDWR);
    say("%d", fd);
    say_fd_content(fd);
}
CASE(closing_all_numbers_one_by_one_is_harmless)
{
    int closed = 0;
    closefrom(3); /* what this program was started with */
    ten(O_RDWR);
    for (int i = 3; i < 1024; i++)
        closed += close(i) == 0;
    say("%d", closed);
    say_content("f");
}
CASE(closefrom_closes_all_above)
{
    int fd = ten(O_RDWR);
    need(dup2(fd, 50));
    closefrom(40);
    ret(fcntl(50, F_GETFD));
    say_fd_content(fd);
}
CASE(too_many_descriptors_are_refused)
{
    int fd = ten(O_RDWR), opened = 0;
    struct rlimit limit = {64, 64};
    need(setrlimit(RLIMIT_NOFILE, &limit));
    while (opened < 100 && dup(fd) >= 0)
        opened++;
    say("%s", error_name(errno));
    fd_ret(open("f", O_RDONLY));
    need(close(fd));
    fd_ret(dup(fd + 1));
}
CASE(a_limit_on_descriptors_bounds_their_numbers)
{
    int fd = ten(O_RDWR);
    struct rlimit limit = {64, 64};
    need(setrlimit(RLIMIT_NOFILE, &limit));
    ret(dup2(fd, 64));
    ret(dup2(fd, 63));
    ret(fcntl(fd, F_DUPFD, 64));
    ret(fcntl(fd, F_DUPFD, 63));
}
CASE(a_hundred_files_are_open_at_once)
{
    int fds[100];
    char name[16];
    for (int i = 0; i < 100; i++) {
        snprintf(name, sizeof name, "f%d", i);
        fds[i] = new_file(name, O_RDWR, name);
    }
    long sum = 0;
    for (int i = 0; i < 100; i++)
        sum += lseek(fds[i], 0, SEEK_END) * i;
    say("%ld", sum);
    say_fd_content(fds[42]);
}
