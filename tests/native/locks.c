/*
 * locks: the laws of byte-range locks and flock on FILE, across processes, as POSIX and Linux have them. Prints TAP; exits 1 when a law is broken.
 *
 * usage: locks FILE (created, and removed at the end)
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { COUNTERS = 4, COUNT_EACH = 300 };

static const char *path, *program;
static int test_number, broken;

static void law(int holds, const char *text)
{
    printf("%s %d - %s\n", holds ? "ok" : "not ok", ++test_number, text);
    fflush(stdout);
    broken |= !holds;
}

static int open_file(int flags)
{
    int fd = open(path, flags, 0644);
    if (fd < 0) {
        perror(path);
        exit(2);
    }
    return fd;
}

static int range_lock(int fd, int command, short type, short whence, off_t start, off_t length)
{
    struct flock range = {.l_type = type, .l_whence = whence, .l_start = start, .l_len = length};
    return fcntl(fd, command, &range);
}

static int lock(int fd, short type, off_t start, off_t length)
{
    return range_lock(fd, F_SETLK, type, SEEK_SET, start, length);
}

static int ofd(int fd, short type, off_t start, off_t length)
{
    return range_lock(fd, F_OFD_SETLK, type, SEEK_SET, start, length);
}

/* Whether another process could take the lock now. */
static int free_for_other(short type, off_t start, off_t length)
{
    pid_t child = fork();
    int status;
    if (child == 0) {
        int fd = open_file(O_RDWR);
        int got = lock(fd, type, start, length);
        _exit(got == 0 ? 0 : errno == EAGAIN || errno == EACCES ? 1 : 2);
    }
    waitpid(child, &status, 0);
    if (!WIFEXITED(status) || WEXITSTATUS(status) > 1) {
        law(0, "another process's attempt ends with EAGAIN and nothing else");
        return -1;
    }
    return WEXITSTATUS(status) == 0;
}

static int flock_free_for_other(int operation)
{
    pid_t child = fork();
    int status;
    if (child == 0) {
        int fd = open_file(O_RDWR);
        _exit(flock(fd, operation | LOCK_NB) == 0 ? 0 : errno == EWOULDBLOCK ? 1 : 2);
    }
    waitpid(child, &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) <= 1 ? WEXITSTATUS(status) == 0 : -1;
}

static void excluding(void)
{
    int fd = open_file(O_RDWR);
    law(lock(fd, F_WRLCK, 100, 50) == 0, "a write lock is granted on a free range");
    law(free_for_other(F_WRLCK, 120, 1) == 0, "a write lock excludes a write lock of another process");
    law(free_for_other(F_RDLCK, 149, 10) == 0, "a write lock excludes a read lock of another process");
    law(free_for_other(F_WRLCK, 0, 100) == 1 && free_for_other(F_WRLCK, 150, 1000) == 1, "ranges beside it stay free");
    law(lock(fd, F_WRLCK, 120, 5) == 0, "a process's own locks do not exclude it");
    law(lock(fd, F_UNLCK, 110, 10) == 0 && free_for_other(F_WRLCK, 110, 10) == 1 && free_for_other(F_WRLCK, 109, 1) == 0, "unlocking the middle splits the range");
    law(lock(fd, F_RDLCK, 100, 50) == 0 && free_for_other(F_RDLCK, 100, 50) == 1 && free_for_other(F_WRLCK, 100, 1) == 0, "read locks are shared, and exclude writers");
    law(lock(fd, F_UNLCK, 0, 0) == 0 && free_for_other(F_WRLCK, 0, 0) == 1, "unlocking to the end of the file frees all");
    close(fd);
}

static void reported(void)
{
    int fd = open_file(O_RDWR), status;
    law(ftruncate(fd, 1000) == 0 && range_lock(fd, F_SETLK, F_WRLCK, SEEK_END, -100, 50) == 0, "a range may be given from the end of the file");
    pid_t parent = getpid(), child = fork();
    if (child == 0) {
        struct flock range = {.l_type = F_RDLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 0};
        int other = open_file(O_RDWR);
        _exit(!(fcntl(other, F_GETLK, &range) == 0 && range.l_type == F_WRLCK && range.l_pid == parent && range.l_start == 900 && range.l_len == 50 && range.l_whence == SEEK_SET));
    }
    waitpid(child, &status, 0);
    law(status == 0, "F_GETLK tells the holder, its kind and the logical range");
    lseek(fd, 500, SEEK_SET);
    law(lock(fd, F_UNLCK, 0, 0) == 0 && range_lock(fd, F_SETLK, F_WRLCK, SEEK_CUR, 10, 5) == 0 && free_for_other(F_WRLCK, 512, 1) == 0 && free_for_other(F_WRLCK, 515, 1) == 1,
        "a range may be given from the file offset");
    close(fd);
    int reader = open_file(O_RDONLY), writer = open_file(O_WRONLY);
    law(lock(reader, F_WRLCK, 0, 1) == -1 && errno == EBADF, "a write lock needs a writable descriptor");
    law(lock(writer, F_RDLCK, 0, 1) == -1 && errno == EBADF, "a read lock needs a readable descriptor");
    law(range_lock(reader, F_SETLK, F_RDLCK, SEEK_SET, -1, 1) == -1 && errno == EINVAL, "a range before the file is refused");
    close(reader);
    close(writer);
}

static void waiting(void)
{
    int fd = open_file(O_RDWR), ready[2], status;
    char byte;
    lock(fd, F_WRLCK, 0, 10);
    if (pipe(ready) != 0)
        exit(2);
    pid_t child = fork();
    if (child == 0) {
        int other = open_file(O_RDWR);
        if (write(ready[1], "r", 1) != 1 || range_lock(other, F_SETLKW, F_WRLCK, SEEK_SET, 5, 1) != 0)
            _exit(1);
        char seen = 0;
        _exit(pread(other, &seen, 1, 0) == 1 && seen == 'u' ? 0 : 2);
    }
    if (read(ready[0], &byte, 1) != 1)
        exit(2);
    usleep(50000);
    law(waitpid(child, &status, WNOHANG) == 0, "F_SETLKW waits");
    law(pwrite(fd, "u", 1, 0) == 1 && lock(fd, F_UNLCK, 0, 10) == 0, "what is written under a lock");
    waitpid(child, &status, 0);
    law(status == 0, "is read by the one that waited for it");
    close(ready[0]);
    close(ready[1]);
    close(fd);
}

static void on_alarm(int signal)
{
    (void)signal;
}

static void interrupted(void)
{
    int fd = open_file(O_RDWR), status;
    lock(fd, F_WRLCK, 0, 1);
    pid_t child = fork();
    if (child == 0) {
        struct sigaction action = {.sa_handler = on_alarm};
        int other = open_file(O_RDWR);
        sigaction(SIGALRM, &action, NULL);
        alarm(1);
        _exit(!(range_lock(other, F_SETLKW, F_WRLCK, SEEK_SET, 0, 1) == -1 && errno == EINTR));
    }
    waitpid(child, &status, 0);
    law(status == 0, "a signal ends F_SETLKW with EINTR");
    close(fd);
}

static void dropped(void)
{
    int fd = open_file(O_RDWR), other = open_file(O_RDONLY), copy = dup(fd), status;
    struct stat found;
    lock(fd, F_WRLCK, 0, 10);
    law(stat(path, &found) == 0 && access(path, R_OK) == 0 && fsync(fd) == 0 && truncate(path, 1000) == 0 && free_for_other(F_WRLCK, 0, 1) == 0,
        "stat, access, fsync and truncate keep a process's locks");
    close(other);
    law(free_for_other(F_WRLCK, 0, 1) == 1, "closing any descriptor of the file drops the process's locks (POSIX)");
    lock(fd, F_WRLCK, 0, 10);
    close(copy);
    law(free_for_other(F_WRLCK, 0, 1) == 1, "closing a duplicate drops them too");
    pid_t child = fork();
    if (child == 0) {
        int mine = open_file(O_RDWR);
        _exit(lock(mine, F_WRLCK, 0, 10) != 0);
    }
    waitpid(child, &status, 0);
    law(status == 0 && free_for_other(F_WRLCK, 0, 1) == 1, "the end of a process drops its locks");
    lock(fd, F_WRLCK, 0, 10);
    child = fork();
    if (child == 0)
        _exit(lock(fd, F_WRLCK, 0, 1) == 0);
    waitpid(child, &status, 0);
    law(status == 0, "a forked child does not have its parent's locks, on the inherited descriptor neither");
    close(fd);
}

static void across_exec(void)
{
    int up[2], down[2], status;
    char byte, number[16], up_text[16], down_text[16];
    if (pipe(up) != 0 || pipe(down) != 0)
        exit(2);
    pid_t child = fork();
    if (child == 0) {
        int fd = open_file(O_RDWR);
        if (lock(fd, F_WRLCK, 7, 1) != 0)
            _exit(1);
        snprintf(number, sizeof number, "%d", fd);
        snprintf(up_text, sizeof up_text, "%d", up[1]);
        snprintf(down_text, sizeof down_text, "%d", down[0]);
        execl(program, program, "--hold", number, up_text, down_text, (char *)NULL);
        _exit(1);
    }
    law(read(up[0], &byte, 1) == 1 && byte == 'h' && free_for_other(F_WRLCK, 7, 1) == 0, "locks are kept across exec");
    if (write(down[1], "e", 1) != 1)
        exit(2);
    waitpid(child, &status, 0);
    law(status == 0 && free_for_other(F_WRLCK, 7, 1) == 1, "and dropped when the executed program closes the file");
    close(up[0]), close(up[1]), close(down[0]), close(down[1]);
}

static int hold(char **argv)
{
    int fd = atoi(argv[0]), up = atoi(argv[1]), down = atoi(argv[2]);
    char byte;
    if (write(up, "h", 1) != 1 || read(down, &byte, 1) != 1)
        return 1;
    return close(fd) != 0;
}

static void open_file_description(void)
{
    int a = open_file(O_RDWR), b = open_file(O_RDWR), copy, status;
    law(ofd(a, F_WRLCK, 0, 10) == 0 && ofd(b, F_WRLCK, 5, 1) == -1 && errno == EAGAIN, "OFD locks exclude two opens in one process");
    law(lock(b, F_WRLCK, 5, 1) == -1 && free_for_other(F_RDLCK, 5, 1) == 0, "OFD locks exclude POSIX locks");
    copy = dup(a);
    law(ofd(copy, F_WRLCK, 0, 5) == 0, "a duplicate holds the same OFD locks");
    pid_t child = fork();
    if (child == 0)
        _exit(ofd(a, F_WRLCK, 0, 10) != 0 || close(a) != 0);
    waitpid(child, &status, 0);
    law(status == 0 && ofd(b, F_RDLCK, 0, 1) == -1, "a forked child shares them, and its close does not drop them");
    close(a);
    law(ofd(b, F_RDLCK, 0, 1) == -1, "closing one of two duplicates keeps them");
    close(copy);
    law(ofd(b, F_WRLCK, 0, 10) == 0, "closing the last one drops them");
    close(b);
}

static void whole_file(void)
{
    int a = open_file(O_RDWR), b = open_file(O_RDONLY), copy = dup(a), status;
    law(flock(a, LOCK_EX) == 0 && flock(b, LOCK_SH | LOCK_NB) == -1 && errno == EWOULDBLOCK, "flock excludes two opens in one process");
    law(flock_free_for_other(LOCK_SH) == 0, "flock excludes another process");
    law(flock(a, LOCK_SH) == 0 && flock(b, LOCK_SH | LOCK_NB) == 0 && flock_free_for_other(LOCK_EX) == 0 && flock_free_for_other(LOCK_SH) == 1, "shared flocks are shared");
    law(flock(b, LOCK_UN) == 0 && flock(copy, LOCK_UN) == 0 && flock_free_for_other(LOCK_EX) == 1, "a duplicate unlocks for all");
    flock(a, LOCK_EX);
    pid_t child = fork();
    if (child == 0)
        _exit(flock(a, LOCK_EX | LOCK_NB) != 0 || close(a) != 0);
    waitpid(child, &status, 0);
    law(status == 0 && flock_free_for_other(LOCK_SH) == 0, "a forked child shares a flock, and its close does not drop it");
    close(a);
    law(flock_free_for_other(LOCK_SH) == 0, "closing one of two duplicates keeps it");
    close(copy);
    law(flock_free_for_other(LOCK_EX) == 1, "closing the last one drops it");
    close(b);
}

static void deadlock(void)
{
    int fd = open_file(O_RDWR), ready[2], status;
    char byte;
    if (pipe(ready) != 0)
        exit(2);
    lock(fd, F_WRLCK, 0, 1);
    pid_t child = fork();
    if (child == 0) {
        int other = open_file(O_RDWR);
        if (lock(other, F_WRLCK, 1, 1) != 0 || write(ready[1], "r", 1) != 1)
            _exit(1);
        _exit(range_lock(other, F_SETLKW, F_WRLCK, SEEK_SET, 0, 1) != 0);
    }
    if (read(ready[0], &byte, 1) != 1)
        exit(2);
    usleep(100000);
    law(range_lock(fd, F_SETLKW, F_WRLCK, SEEK_SET, 1, 1) == -1 && errno == EDEADLK, "a deadlock is found");
    close(fd);
    waitpid(child, &status, 0);
    law(status == 0, "and the other process goes on");
    close(ready[0]), close(ready[1]);
}

/* Read, add one, write, under a lock: as ROMIO sieves. A lock that does not exclude loses counts. */
static void counted(void)
{
    int fd = open_file(O_RDWR | O_TRUNC), status;
    long counts[COUNTERS] = {0}, value;
    int right = pwrite(fd, counts, sizeof counts, 0) == sizeof counts;
    for (int child = 0; child < COUNTERS; child++) {
        if (fork() != 0)
            continue;
        int mine = open_file(O_RDWR);
        for (int i = 0; i < COUNT_EACH * COUNTERS; i++) {
            off_t at = (off_t)sizeof value * ((i + child) % COUNTERS);
            if (range_lock(mine, F_SETLKW, F_WRLCK, SEEK_SET, at, sizeof value) != 0 || pread(mine, &value, sizeof value, at) != sizeof value)
                _exit(1);
            value++;
            if (pwrite(mine, &value, sizeof value, at) != sizeof value || lock(mine, F_UNLCK, at, sizeof value) != 0)
                _exit(1);
        }
        _exit(0);
    }
    for (int child = 0; child < COUNTERS; child++)
        right &= wait(&status) > 0 && status == 0;
    right &= pread(fd, counts, sizeof counts, 0) == sizeof counts;
    for (int i = 0; i < COUNTERS; i++)
        right &= counts[i] == COUNTERS * COUNT_EACH;
    law(right, "no count is lost between four processes that add under locks");
    close(fd);
}

int main(int argc, char **argv)
{
    program = argv[0];
    if (argc == 5 && strcmp(argv[1], "--hold") == 0)
        return hold(argv + 2);
    if (argc != 2) {
        fputs("usage: locks FILE\n", stderr);
        return 2;
    }
    path = argv[1];
    close(open_file(O_RDWR | O_CREAT));
    excluding();
    reported();
    waiting();
    interrupted();
    dropped();
    across_exec();
    open_file_description();
    whole_file();
    deadlock();
    counted();
    printf("1..%d\n", test_number);
    unlink(path);
    return broken;
}
