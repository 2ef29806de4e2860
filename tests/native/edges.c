/*
 * edges: what a program may do to FILE between one call and the next, or in the middle of one: errors half way, two threads or a signal handler at
 * once, descriptors that run out or change behind the program's back. A law holds on plain files, and must hold on managed ones. Prints TAP; exits 1
 * when a law is broken.
 *
 * usage: edges FILE (created, and removed at the end; FILE.other, too)
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PART = 65536, ROUNDS = 4000, FORKS = 150, JUMPS = 300 };

static const char *path;
static char other[4096];
static int test_number, broken;

static void law(int holds, const char *text)
{
    printf("%s %d - %s\n", holds ? "ok" : "not ok", ++test_number, text);
    fflush(stdout);
    broken |= !holds;
}

static int must(int r, const char *what)
{
    if (r < 0) {
        perror(what);
        exit(2);
    }
    return r;
}

static int fresh(const char *name)
{
    unlink(name);
    return must(open(name, O_RDWR | O_CREAT | O_EXCL, 0644), name);
}

static off_t size_of(int fd)
{
    struct stat st;
    must(fstat(fd, &st), "fstat");
    return st.st_size;
}

/* By the C library's own look at /proc, which needs a descriptor itself. */
static int count_descriptors(void)
{
    int n = 0;
    DIR *dir = opendir("/proc/self/fd");
    while (dir && readdir(dir)) n++;
    closedir(dir);
    return n;
}

/* --- errors half way -------------------------------------------------------------------------------------------------------- */
static void half_written(void)
{
    int fd = fresh(path), clean = 1;
    char *memory = mmap(NULL, 3 * PART, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    static char back[3 * PART];
    memset(memory, 'x', 3 * PART);
    must(mprotect(memory + PART, PART, PROT_NONE), "mprotect");
    ssize_t wrote = pwrite(fd, memory, 3 * PART, 0);
    off_t size = size_of(fd);
    law(wrote == PART && size == PART, "a write from memory that is bad half way counts what lies before");
    must(ftruncate(fd, 3 * PART), "ftruncate");
    ssize_t got = pread(fd, back, sizeof back, 0);
    for (int i = PART; i < 3 * PART; i++) clean &= back[i] == 0;
    law(got == 3 * PART && clean, "what a write did not count is zeros when the file grows");
    munmap(memory, 3 * PART);
    close(fd);
}

static void no_descriptor_left(void)
{
    int fd = fresh(path), taken[256], n = 0;
    struct rlimit limit, few;
    char back[4] = "";
    must((int)write(fd, "keep", 4), "write");
    must((int)pread(fd, back, 4, 0), "pread");
    getrlimit(RLIMIT_NOFILE, &limit);
    few = limit, few.rlim_cur = 128;
    setrlimit(RLIMIT_NOFILE, &few);
    while (n < 256 && (taken[n] = dup(0)) >= 0) n++;
    /* With so many left, from none to enough for whatever an open needs. */
    int kept = 1, opened = -1;
    for (int left = 0; left < 6 && n > left && opened < 0; left++) {
        for (int i = 0; i < left; i++) close(taken[n - 1 - i]);
        opened = open(path, O_WRONLY | O_TRUNC);
        if (opened < 0) kept &= errno == EMFILE && size_of(fd) == 4;
        for (int i = 0; i < left; i++) taken[n - 1 - i] = dup(0);
    }
    while (n > 0) close(taken[--n]);
    setrlimit(RLIMIT_NOFILE, &limit);
    law(kept, "an open with O_TRUNC that finds no descriptor leaves the file as it is");
    law(opened >= 0 && size_of(fd) == 0, "the same open truncates when there is one");
    close(opened);
    close(fd);
}

/* --- two at once ------------------------------------------------------------------------------------------------------------ */
static int second, arrived;

/* Both threads go on at the same moment, as closely as spinning does it. */
static void meet(int round)
{
    __atomic_add_fetch(&arrived, 1, __ATOMIC_SEQ_CST);
    for (int spins = 1; __atomic_load_n(&arrived, __ATOMIC_SEQ_CST) < 2 * round; spins++)
        if (spins % 4096 == 0) sched_yield();
}

static void *close_second(void *unused)
{
    for (int i = 1; i <= ROUNDS; i++) {
        meet(2 * i - 1);
        close(second);
        meet(2 * i);
    }
    return unused;
}

static void last_two_close_at_once(void)
{
    pthread_t thread;
    int free_again = 1;
    close(fresh(path));
    int before = count_descriptors();
    pthread_create(&thread, NULL, close_second, NULL);
    for (int i = 1; i <= ROUNDS; i++) {
        int fd = must(open(path, O_RDWR), path);
        free_again &= flock(fd, LOCK_EX | LOCK_NB) == 0;
        second = must(dup(fd), "dup");
        meet(2 * i - 1);
        close(fd);
        meet(2 * i);
    }
    pthread_join(thread, NULL);
    law(free_again, "the lock of an open file ends with its last descriptor, whoever closes it");
    law(count_descriptors() <= before + 8, "two threads that close the last two descriptors of an open file leave nothing open");
}

/* A write that is held up in the middle: its second half comes from memory that has to be filled by hand. */
struct slow {
    int fd;
    char *memory;
    ssize_t wrote;
};
static void *write_slowly(void *given)
{
    struct slow *slow = given;
    slow->wrote = pwrite(slow->fd, slow->memory, 2 * PART, 0);
    return NULL;
}
static void *truncate_all(void *given)
{
    return ftruncate(((struct slow *)given)->fd, 0) ? given : NULL;
}

static void truncate_meets_a_slow_write(void)
{
    static const char text[] = "a write that lasts and a truncate that comes meanwhile follow one another";
    static char filling[PART], back[2 * PART];
    struct slow slow = {.fd = fresh(path)};
    int faults = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
    struct uffdio_api api = {.api = UFFD_API};
    if (faults < 0 || ioctl(faults, UFFDIO_API, &api) < 0) {
        printf("ok %d - %s # SKIP no right to userfaultfd\n", ++test_number, text);
        close(slow.fd);
        return;
    }
    slow.memory = mmap(NULL, 2 * PART, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(slow.memory, 'x', PART);
    memset(filling, 'x', PART);
    must((int)pwrite(slow.fd, filling, PART, PART), "pwrite");
    struct uffdio_register second_half = {.range = {(uintptr_t)slow.memory + PART, PART}, .mode = UFFDIO_REGISTER_MODE_MISSING};
    must(ioctl(faults, UFFDIO_REGISTER, &second_half), "UFFDIO_REGISTER");
    pthread_t writer, cutter;
    struct uffd_msg fault;
    void *failed;
    pthread_create(&writer, NULL, write_slowly, &slow);
    must((int)read(faults, &fault, sizeof fault), "userfaultfd");
    pthread_create(&cutter, NULL, truncate_all, &slow);
    usleep(300000);
    struct uffdio_copy fill = {.dst = (uintptr_t)slow.memory + PART, .src = (uintptr_t)filling, .len = PART};
    must(ioctl(faults, UFFDIO_COPY, &fill), "UFFDIO_COPY");
    pthread_join(writer, NULL);
    pthread_join(cutter, &failed);
    close(faults);
    off_t size = size_of(slow.fd);
    int whole = size == 0 || size == 2 * PART;
    ssize_t got = pread(slow.fd, back, sizeof back, 0);
    for (ssize_t i = 0; i < got; i++) whole &= back[i] == 'x';
    law(slow.wrote == 2 * PART && !failed && whole, text);
    munmap(slow.memory, 2 * PART);
    close(slow.fd);
}

static volatile int stop;
static void *open_and_close(void *unused)
{
    while (!stop) {
        int fd = open(path, O_RDWR);
        char byte;
        if (fd >= 0 && pread(fd, &byte, 1, 0) < 0) abort();
        close(fd);
    }
    return unused;
}

static int others_bytes(void)
{
    char back[PART];
    int fd = open(other, O_RDONLY);
    ssize_t n = fd < 0 ? -1 : pread(fd, back, sizeof back, 0);
    for (ssize_t i = 0; i < n; i++)
        if (back[i] != 'o') return 0;
    return n == PART;
}

static void fork_while_another_thread_opens(void)
{
    pthread_t thread;
    int right = 1, status;
    static char text[PART];
    int fd = fresh(path);
    must((int)write(fd, memset(text, 'p', PART), PART), "write");
    close(fd);
    fd = fresh(other);
    must((int)write(fd, memset(text, 'o', PART), PART), "write");
    close(fd);
    pthread_create(&thread, NULL, open_and_close, NULL);
    for (int i = 0; i < FORKS; i++) {
        pid_t child = must(fork(), "fork");
        if (child == 0) _exit(others_bytes() ? 0 : 1);
        waitpid(child, &status, 0);
        right &= status == 0;
    }
    stop = 1;
    pthread_join(thread, NULL);
    law(right, "a child that was forked while another thread opened and closed files reads its own file's bytes");
}

/* --- a signal in the middle ------------------------------------------------------------------------------------------------- */
static int log_fd;
static volatile sig_atomic_t by_handler;
static void write_too(int unused)
{
    int saved = errno;
    (void)unused;
    if (write(log_fd, "handler\n", 8) == 8) by_handler++;
    errno = saved;
}

static void handler_writes(int flags, const char *text)
{
    struct sigaction act = {.sa_handler = write_too, .sa_flags = SA_RESTART};
    struct itimerval often = {{0, 150}, {0, 150}}, never = {{0, 0}, {0, 0}};
    int by_main = 0, whole = 1, lines = 0;
    char line[9] = "";
    close(fresh(path));
    log_fd = must(open(path, O_RDWR | flags), path);
    by_handler = 0;
    sigaction(SIGALRM, &act, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
    for (int i = 0; i < ROUNDS; i++) by_main += write(log_fd, "program\n", 8) == 8;
    setitimer(ITIMER_REAL, &never, NULL);
    signal(SIGALRM, SIG_IGN);
    for (off_t at = 0; pread(log_fd, line, 8, at) == 8; at += 8, lines++) whole &= !strcmp(line, "program\n") || !strcmp(line, "handler\n");
    law(whole && by_main == ROUNDS && lines == by_main + by_handler, text);
    close(log_fd);
}

static sigjmp_buf back_out;
static void jump(int unused)
{
    (void)unused;
    siglongjmp(back_out, 1);
}

static void *write_once(void *done)
{
    *(int *)done = write(log_fd, "thread", 6) == 6 && ftruncate(log_fd, 6) == 0;
    return NULL;
}

static void left_by_a_jump(void)
{
    struct itimerval soon = {{0, 0}, {0, 200}}, never = {{0, 0}, {0, 0}};
    volatile int wrote = 1, jumps = 0;
    int by_thread = 0;
    pthread_t thread;
    log_fd = fresh(path);
    signal(SIGALRM, jump);
    while (jumps < JUMPS) {
        if (sigsetjmp(back_out, 1)) {
            jumps++;
            continue;
        }
        setitimer(ITIMER_REAL, &soon, NULL);
        for (;;) wrote &= write(log_fd, "program\n", 8) == 8;
    }
    setitimer(ITIMER_REAL, &never, NULL);
    signal(SIGALRM, SIG_IGN);
    wrote &= write(log_fd, "program\n", 8) == 8;
    pthread_create(&thread, NULL, write_once, &by_thread);
    pthread_join(thread, NULL);
    law(wrote && by_thread && size_of(log_fd) == 6, "a program that leaves its writes by siglongjmp goes on writing, and so do its other threads");
    close(log_fd);
}

/* --- descriptors that change behind the program's back ----------------------------------------------------------------------- */
static void output_of_a_daemon(void)
{
    int fd = fresh(path), ends[2];
    char back[16] = "", byte;
    must(pipe(ends), "pipe");
    pid_t child = must(fork(), "fork");
    if (child == 0) {
        close(ends[0]);
        must(dup2(fd, 1), "dup2");
        must((int)write(1, "said", 4), "write");
        must(daemon(1, 0), "daemon");
        _exit(write(1, "lost", 4) == 4 ? 0 : 1);
    }
    close(ends[1]);
    while (read(ends[0], &byte, 1) > 0) {
    }
    waitpid(child, NULL, 0);
    close(ends[0]);
    law(pread(fd, back, sizeof back, 0) == 4 && !memcmp(back, "said", 4), "what a daemon prints after daemon() goes nowhere");
    close(fd);
}

static void child_of_vfork(void)
{
    static char text[PART], back[4 * PART];
    memset(text, 'v', PART);
    close(fresh(path));
    int fd = must(open(path, O_RDWR), path);
    pid_t child = vfork();
    if (child == 0) _exit(pwrite(fd, text, PART, PART) == PART ? 0 : 1);
    int status = -1, right, wrote = 1;
    waitpid(child, &status, 0);
    for (int i = 0; i < 4; i++) wrote &= pwrite(fd, text, PART, i * PART) == PART;
    right = pread(fd, back, sizeof back, 0) == sizeof back;
    for (size_t i = 0; i < sizeof back; i++) right &= back[i] == 'v';
    law(status == 0, "a child of vfork writes to the file that its parent has open");
    law(wrote && right, "its parent goes on with descriptors of its own");
    int *opened = mmap(NULL, sizeof *opened, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    *opened = -1;
    child = vfork();
    if (child == 0) {
        *opened = open(path, O_RDONLY);
        _exit(0);
    }
    waitpid(child, NULL, 0);
    int pipes[2];
    must(pipe(pipes), "pipe");
    right = write(pipes[1], "through", 7) == 7 && read(pipes[0], back, 7) == 7 && !memcmp(back, "through", 7);
    law(right && (*opened < 0 || *opened == pipes[0]), "what a child of vfork opens is not taken for its parent's");
    close(pipes[0]);
    close(pipes[1]);
    close(fd);
}

static void limit_lowered(void)
{
    pid_t child = must(fork(), "fork");
    if (child == 0) {
        struct rlimit limit;
        char back[8] = "";
        int fd = fresh(path);
        if (write(fd, "before", 6) != 6) _exit(1);
        getrlimit(RLIMIT_NOFILE, &limit);
        limit.rlim_cur = 64;
        setrlimit(RLIMIT_NOFILE, &limit);
        close_range((unsigned)fd + 1, ~0u, 0);
        _exit(pread(fd, back, 6, 0) == 6 && !memcmp(back, "before", 6) && pwrite(fd, "behind", 6, 0) == 6 ? 0 : 1);
    }
    int status = -1;
    waitpid(child, &status, 0);
    law(status == 0, "descriptors above a lowered limit are not closed by a close_range that leaves the file open");
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fputs("usage: edges FILE\n", stderr);
        return 2;
    }
    path = argv[1];
    snprintf(other, sizeof other, "%s.other", path);
    half_written();
    no_descriptor_left();
    last_two_close_at_once();
    truncate_meets_a_slow_write();
    fork_while_another_thread_opens();
    handler_writes(0, "a signal handler's write and the one that it interrupts do not overwrite one another");
    handler_writes(O_APPEND, "the same with O_APPEND");
    left_by_a_jump();
    output_of_a_daemon();
    child_of_vfork();
    limit_lowered();
    unlink(path);
    unlink(other);
    printf("1..%d\n", test_number);
    return broken;
}
