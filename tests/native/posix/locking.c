/* fcntl locks of processes and of open files, flock, lockf: who excludes whom, and when they go. */
#define SUBJECT "lock"
#include "posix.h"
#include <sys/file.h>

static int lock(int fd, int command, int type, int whence, long start, long length)
{
    struct flock range = {.l_type = (short)type, .l_whence = (short)whence, .l_start = start, .l_len = length};
    return fcntl(fd, command, &range);
}

struct asked {
    int type;
    long start, length;
};

/* In a child, with a descriptor of its own. */
static void try_lock(void *argument)
{
    struct asked *asked = argument;
    ret(lock(open_file("f", O_RDWR), F_SETLK, asked->type, SEEK_SET, asked->start, asked->length));
}
static void try_read_range(void *unused) { (void)unused, try_lock(&(struct asked){F_RDLCK, 0, 10}); }
static void try_range(void *unused) { (void)unused, try_lock(&(struct asked){F_WRLCK, 0, 10}); }
static void try_beside(void *unused) { (void)unused, try_lock(&(struct asked){F_WRLCK, 10, 10}); }
static void try_flock_shared(void *unused) { (void)unused, ret(flock(open_file("f", O_RDWR), LOCK_SH | LOCK_NB)); }
static void try_flock(void *unused) { (void)unused, ret(flock(open_file("f", O_RDWR), LOCK_EX | LOCK_NB)); }
static void ask_lock(void *unused)
{
    (void)unused;
    struct flock range = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 0};
    ret(fcntl(open_file("f", O_RDWR), F_GETLK, &range));
    say("%d from %ld for %ld by parent %d", range.l_type, (long)range.l_start, (long)range.l_len, range.l_pid == getppid());
}

CASE(a_write_lock_excludes_others)
{
    int fd = ten(O_RDWR);
    ret(lock(fd, F_SETLK, F_WRLCK, SEEK_SET, 0, 10));
    in_child(try_range, NULL);
    in_child(try_read_range, NULL);
    in_child(try_beside, NULL);
}
CASE(read_locks_go_together)
{
    int fd = ten(O_RDWR);
    ret(lock(fd, F_SETLK, F_RDLCK, SEEK_SET, 0, 10));
    in_child(try_read_range, NULL);
    in_child(try_range, NULL);
}
CASE(a_lock_is_told_to_who_asks)
{
    int fd = ten(O_RDWR);
    ret(lock(fd, F_SETLK, F_WRLCK, SEEK_SET, 3, 4));
    in_child(ask_lock, NULL);
}
CASE(a_lock_to_the_end_has_length_zero)
{
    int fd = ten(O_RDWR);
    ret(lock(fd, F_SETLK, F_RDLCK, SEEK_SET, 5, 0));
    in_child(ask_lock, NULL);
}
CASE(a_lock_from_the_end_counts_from_it)
{
    int fd = ten(O_RDWR);
    ret(lock(fd, F_SETLK, F_WRLCK, SEEK_END, -4, 2));
    in_child(ask_lock, NULL);
}
CASE(a_lock_from_here_counts_from_the_offset)
{
    int fd = ten(O_RDWR);
    ret(lseek(fd, 7, SEEK_SET));
    ret(lock(fd, F_SETLK, F_WRLCK, SEEK_CUR, -2, 4));
    in_child(ask_lock, NULL);
}
CASE(a_negative_length_goes_backwards)
{
    int fd = ten(O_RDWR);
    ret(lock(fd, F_SETLK, F_WRLCK, SEEK_SET, 8, -3));
    in_child(ask_lock, NULL);
}
CASE(nobody_is_told_of_no_lock)
{
    ten(O_RDWR);
    struct flock range = {.l_type = F_WRLCK, .l_whence = SEEK_CUR, .l_start = 1, .l_len = 2, .l_pid = 5};
    ret(fcntl(open_file("f", O_RDWR), F_GETLK, &range));
    say("%d %d %ld %ld", range.l_type, range.l_whence, (long)range.l_start, (long)range.l_len);
}
CASE(unlocking_a_middle_splits)
{
    int fd = ten(O_RDWR);
    ret(lock(fd, F_SETLK, F_WRLCK, SEEK_SET, 0, 30));
    ret(lock(fd, F_SETLK, F_UNLCK, SEEK_SET, 10, 10));
    in_child(try_beside, NULL);
    in_child(try_range, NULL);
}
CASE(closing_any_descriptor_drops_the_locks_of_the_process)
{
    int fd = ten(O_RDWR);
    ret(lock(fd, F_SETLK, F_WRLCK, SEEK_SET, 0, 10));
    int other = open_file("f", O_RDONLY);
    in_child(try_range, NULL);
    need(close(other));
    in_child(try_range, NULL);
}
CASE(closing_a_duplicate_drops_them_too)
{
    int fd = ten(O_RDWR), copy = need(dup(fd));
    ret(lock(fd, F_SETLK, F_WRLCK, SEEK_SET, 0, 10));
    need(close(copy));
    in_child(try_range, NULL);
}
CASE(stat_and_truncate_by_name_do_not_drop_them)
{
    struct stat st;
    int fd = ten(O_RDWR);
    ret(lock(fd, F_SETLK, F_WRLCK, SEEK_SET, 0, 10));
    stat_file("f", &st);
    ret(truncate("f", 20));
    ret(write(fd, "x", 1));
    ret(fsync(fd));
    in_child(try_range, NULL);
}
CASE(a_child_has_none_of_the_locks)
{
    int fd = ten(O_RDWR);
    ret(lock(fd, F_SETLK, F_WRLCK, SEEK_SET, 0, 10));
    pid_t pid = need(fork());
    if (pid == 0) {
        ret(lock(fd, F_SETLK, F_WRLCK, SEEK_SET, 0, 10));
        _exit(0);
    }
    finish(pid);
    in_child(try_range, NULL);
}
CASE(a_lock_of_ones_own_does_not_exclude)
{
    int fd = ten(O_RDWR);
    ret(lock(fd, F_SETLK, F_WRLCK, SEEK_SET, 0, 10));
    ret(lock(open_file("f", O_RDWR), F_SETLK, F_RDLCK, SEEK_SET, 0, 10));
    in_child(try_read_range, NULL);
}
CASE(a_write_lock_needs_write_access)
{
    int fd = ten(O_RDONLY);
    ret(lock(fd, F_SETLK, F_WRLCK, SEEK_SET, 0, 10));
    ret(lock(fd, F_SETLK, F_RDLCK, SEEK_SET, 0, 10));
    ret(lock(open_file("f", O_WRONLY), F_SETLK, F_RDLCK, SEEK_SET, 0, 10));
}
CASE(a_bad_lock_is_invalid)
{
    int fd = ten(O_RDWR);
    ret(lock(fd, F_SETLK, 77, SEEK_SET, 0, 10));
    ret(lock(fd, F_SETLK, F_WRLCK, 77, 0, 10));
    ret(lock(fd, F_SETLK, F_WRLCK, SEEK_SET, -1, 10));
    ret(lock(fd, F_SETLK, F_WRLCK, SEEK_SET, 2, -5));
    ret(lock(fd, F_GETLK, F_UNLCK, SEEK_SET, 0, 10));
    ret(fcntl(fd, F_SETLK, NULL));
    ret(fcntl(fd, F_SETLK, 16));
    ret(lock(999, F_SETLK, F_WRLCK, SEEK_SET, 0, 10));
}
static void hold_a_moment(void *argument)
{
    int *ready = argument;
    int fd = open_file("f", O_RDWR);
    need(lock(fd, F_SETLKW, F_WRLCK, SEEK_SET, 0, 10));
    need(write(ready[1], "x", 1));
    settle(), settle(), settle();
    need(pwrite(fd, "held", 4, 0));
}
CASE(a_waiting_lock_is_granted_when_the_holder_ends)
{
    int ready[2];
    char c;
    int fd = ten(O_RDWR);
    need(pipe(ready));
    pid_t pid = child(hold_a_moment, ready);
    need(read(ready[0], &c, 1));
    ret(lock(fd, F_SETLKW, F_WRLCK, SEEK_SET, 0, 10));
    say_content("f");
    finish(pid);
}
static void ignore(int number) { (void)number; }
CASE(a_signal_ends_the_wait_for_a_lock)
{
    int fd = ten(O_RDWR), ready[2];
    char c;
    need(pipe(ready));
    pid_t pid = need(fork());
    if (pid == 0) {
        need(lock(open_file("f", O_RDWR), F_SETLK, F_WRLCK, SEEK_SET, 0, 10));
        need(write(ready[1], "x", 1));
        pause();
        _exit(0);
    }
    need(read(ready[0], &c, 1));
    struct sigaction action = {.sa_handler = ignore};
    sigaction(SIGALRM, &action, NULL);
    alarm(1);
    ret(lock(fd, F_SETLKW, F_WRLCK, SEEK_SET, 0, 10));
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}
CASE(locks_of_open_files_exclude_within_a_process)
{
    int fd = ten(O_RDWR), other = open_file("f", O_RDWR);
    ret(lock(fd, F_OFD_SETLK, F_WRLCK, SEEK_SET, 0, 10));
    ret(lock(other, F_OFD_SETLK, F_WRLCK, SEEK_SET, 0, 10));
    ret(lock(other, F_OFD_SETLK, F_WRLCK, SEEK_SET, 10, 10));
    ret(lock(need(dup(fd)), F_OFD_SETLK, F_WRLCK, SEEK_SET, 0, 5));
}
CASE(locks_of_open_files_stay_when_another_descriptor_closes)
{
    int fd = ten(O_RDWR), other = open_file("f", O_RDWR);
    ret(lock(fd, F_OFD_SETLK, F_WRLCK, SEEK_SET, 0, 10));
    need(close(other));
    in_child(try_range, NULL);
    need(close(fd));
    in_child(try_range, NULL);
}
CASE(locks_of_open_files_have_no_owner)
{
    int fd = ten(O_RDWR);
    ret(lock(fd, F_OFD_SETLK, F_WRLCK, SEEK_SET, 2, 3));
    struct flock range = {.l_type = F_RDLCK, .l_whence = SEEK_SET};
    ret(fcntl(open_file("f", O_RDWR), F_OFD_GETLK, &range));
    say("%d from %ld for %ld by %d", range.l_type, (long)range.l_start, (long)range.l_len, (int)range.l_pid);
}
CASE(locks_of_open_files_want_no_pid)
{
    int fd = ten(O_RDWR);
    struct flock range = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 5, .l_pid = 7};
    ret(fcntl(fd, F_OFD_SETLK, &range));
}
CASE(flock_excludes)
{
    int fd = ten(O_RDONLY);
    ret(flock(fd, LOCK_EX));
    in_child(try_flock, NULL);
    in_child(try_flock_shared, NULL);
    ret(flock(fd, LOCK_SH));
    in_child(try_flock_shared, NULL);
    ret(flock(fd, LOCK_UN));
    in_child(try_flock, NULL);
}
CASE(flock_excludes_within_a_process)
{
    int fd = ten(O_RDONLY), other = open_file("f", O_RDONLY);
    ret(flock(fd, LOCK_EX));
    ret(flock(other, LOCK_EX | LOCK_NB));
    ret(flock(need(dup(fd)), LOCK_EX | LOCK_NB));
}
CASE(flock_stays_until_the_last_duplicate_closes)
{
    int fd = ten(O_RDONLY), copy = need(dup(fd));
    ret(flock(fd, LOCK_EX));
    need(close(fd));
    in_child(try_flock, NULL);
    need(close(copy));
    in_child(try_flock, NULL);
}
CASE(flock_and_byte_ranges_do_not_meet)
{
    int fd = ten(O_RDWR);
    ret(flock(fd, LOCK_EX));
    in_child(try_range, NULL);
}
CASE(flock_takes_only_its_own_words)
{
    int fd = ten(O_RDWR);
    ret(flock(fd, 77));
    ret(flock(fd, 0));
    ret(flock(999, LOCK_EX));
    ret(flock(open_file("f", O_PATH), LOCK_SH));
}
CASE(lockf_locks_from_here)
{
    int fd = ten(O_RDWR);
    ret(lseek(fd, 4, SEEK_SET));
    ret(lockf(fd, F_LOCK, 3));
    in_child(ask_lock, NULL);
    ret(lockf(fd, F_ULOCK, 0));
    in_child(try_range, NULL);
}
CASE(lockf_tries_and_tests)
{
    int fd = ten(O_RDWR);
    ret(lockf(fd, F_TLOCK, 0));
    ret(lockf(fd, F_TEST, 0));
    pid_t pid = need(fork());
    if (pid == 0) {
        int own = open_file("f", O_RDWR);
        ret(lockf(own, F_TEST, 0));
        ret(lockf(own, F_TLOCK, 0));
        _exit(0);
    }
    finish(pid);
    ret(lockf(open_file("f", O_RDONLY), F_TLOCK, 0));
    ret(lockf(fd, 77, 0));
}
CASE(a_lock_stays_over_exec)
{
    int fd = ten(O_RDWR);
    need(lock(fd, F_SETLK, F_WRLCK, SEEK_SET, 0, 10));
    in_new_image("trylock", "999", NULL);
    in_child(try_range, NULL);
}
CASE(a_lease_follows_the_rules_for_leases)
{
    int fd = ten(O_RDONLY);
    ret(fcntl(fd, F_GETLEASE));
    ret(fcntl(fd, F_SETLEASE, F_RDLCK));
    ret(fcntl(fd, F_GETLEASE));
    ret(fcntl(fd, F_SETLEASE, F_UNLCK));
}
