/*
 * Descriptors that are closed under a call that is still at their file, by another thread, or by the thread itself that has left the call by siglongjmp.
 */
#include "rivals.h"
#include <setjmp.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/time.h>
#include <time.h>

enum { OTHERS = 3, LONG = 24 << 20, SHORT = 1 << 20, OPENS = 60, JUMPS = 400, LETTERS = 20, SHARED = 32, RACERS = 12, RACE_S = 2, PATIENCE_S = 20, VICTIM = 200, TRIES = 50, LEAVERS = 3, LEFT_S = 3 };

static const char *name(char *room, const char *base, int number)
{
    snprintf(room, 4096, "%s/%s%d", dir, base, number);
    return room;
}

static int fresh(const char *base, int number, int flags)
{
    char path[4096];
    /* Not cut: that waits for calls that are under way. */
    unlink(name(path, base, number));
    return must(open(path, O_RDWR | O_CREAT | O_EXCL | flags, 0644), path);
}

/* The same under a number that nobody gets when it is closed: a call that has not begun by then fails. */
static int fresh_victim(const char *base, int flags)
{
    int fd = fresh(base, 0, flags);
    must(dup2(fd, VICTIM), "dup2");
    close(fd);
    return VICTIM;
}

/* Whether the file holds `length` times `letter`, and nothing else. */
static int holds_only(const char *base, int number, char letter, size_t length)
{
    static char bytes[1 << 16];
    char path[4096];
    int fd = must(open(name(path, base, number), O_RDONLY), path), good = 1;
    size_t all = 0;
    for (ssize_t n; (n = read(fd, bytes, sizeof bytes)) > 0; all += (size_t)n)
        for (ssize_t i = 0; i < n; i++) good &= bytes[i] == letter;
    close(fd);
    return good && all == length;
}

/* --- another thread closes it -------------------------------------------------------------------------------------------------------- */
static int victim, go[2];
static volatile sig_atomic_t is_inside, has_ended;
static char *letters;

static void stay(int unused)
{
    char byte;
    (void)unused;
    is_inside = 1;
    while (read(go[0], &byte, 1) < 0 && errno == EINTR) continue;
}

static void *write_long(void *wrote)
{
    *(ssize_t *)wrote = pwrite(victim, letters, LONG, 0);
    has_ended = 1;
    return NULL;
}

/* Returns what the write returned that the descriptor was closed under; -1 where it came to its end, or had not begun, before that. */
static ssize_t write_and_close(int *whole)
{
    ssize_t wrote = 0;
    int opened[OTHERS];
    char *others = memset(malloc(SHORT), 'c', SHORT);
    pthread_t writer;
    must(pipe(go), "pipe");
    is_inside = has_ended = 0;
    signal(SIGUSR1, stay);
    victim = fresh_victim("A", 0);
    pthread_create(&writer, NULL, write_long, &wrote);
    while (!is_inside && !has_ended) {
        usleep(2000);
        pthread_kill(writer, SIGUSR1);
    }
    close(victim);
    for (int i = 0; i < OTHERS; i++) {
        opened[i] = fresh("C", i, 0);
        *whole &= pwrite(opened[i], others, SHORT, 0) == SHORT;
    }
    alarm(PATIENCE_S);
    for (int i = 0; i < OPENS; i++) close(fresh("D", 0, 0));
    alarm(0);
    /* Every signal that was sent stays until it is told to go on. */
    signal(SIGUSR1, SIG_IGN);
    close(go[1]);
    pthread_join(writer, NULL);
    for (int i = 0; i < OTHERS; i++) {
        close(opened[i]);
        *whole &= holds_only("C", i, 'c', SHORT);
    }
    close(go[0]);
    free(others);
    return is_inside ? wrote : -1;
}

static void under_a_write(void)
{
    int whole = 1, tries = 0;
    ssize_t wrote;
    letters = memset(malloc(LONG), 'A', LONG);
    do {
        wrote = write_and_close(&whole);
    } while (wrote < 0 && ++tries < TRIES);
    law(wrote == LONG && holds_only("A", 0, 'A', LONG), "a write whose descriptor another thread closes goes on to its end, and lets others open and close files meanwhile");
    law(whole, "and leaves alone what is opened meanwhile");
    free(letters);
}

/* A managed file's directory in its store, locked by another process, as by one that truncates it. */
static pid_t lock_elsewhere(const char *path, int *held, int *end)
{
    char text[4096], place[4200] = "", *slash;
    int say[2], told[2];
    ssize_t n = syscall(SYS_readlink, path, text, sizeof text - 1);
    text[n > 0 ? n : 0] = 0;
    if (n > 0 && !strncmp(text, "/stripewise:", 12) && (slash = strrchr(text, '/'))) snprintf(place, sizeof place, "%.*s/files%s", (int)(slash - text) - 12, text + 12, slash);
    must(pipe(say), "pipe");
    must(pipe(told), "pipe");
    pid_t child = must(fork(), "fork");
    if (child == 0) {
        char byte = 0;
        if (place[0]) must(flock(must(open(place, O_RDONLY | O_DIRECTORY), place), LOCK_EX), "flock");
        must((int)write(say[1], &byte, 1), "write");
        close(told[1]);
        _exit(read(told[0], &byte, 1) != 0);
    }
    close(say[1]);
    close(told[0]);
    *held = say[0];
    *end = told[1];
    return child;
}

static volatile int is_appending;

static void *append_once(void *wrote)
{
    is_appending = 1;
    *(ssize_t *)wrote = write(victim, "aaaaa", 5);
    return NULL;
}

static void under_an_append(void)
{
    char path[4096], byte;
    int held, end, other;
    ssize_t wrote = 0;
    pthread_t appender;
    victim = fresh_victim("B", O_APPEND);
    must((int)write(victim, "aaaaa", 5), "write");
    pid_t child = lock_elsewhere(name(path, "B", 0), &held, &end);
    must((int)read(held, &byte, 1), "read");
    pthread_create(&appender, NULL, append_once, &wrote);
    while (!is_appending) usleep(1000);
    usleep(100000);
    close(victim);
    other = fresh("C", 0, 0);
    must((int)write(other, "ccccc", 5), "write");
    close(end);
    pthread_join(appender, NULL);
    must(waitpid(child, NULL, 0), "waitpid");
    close(held);
    /* How far the thread had come when the descriptor went nobody knows. */
    law((wrote == 5 && holds_only("B", 0, 'a', 10)) || (wrote == -1 && holds_only("B", 0, 'a', 5)), "an append that waits while its descriptor is closed is whole, or nothing");
    law(lseek(other, 0, SEEK_CUR) == 5 && holds_only("C", 0, 'c', 5), "and touches neither bytes nor offset of what is opened in its place");
    close(other);
}

static volatile int shared[SHARED];

static void *race(void *number)
{
    unsigned seed = 7919u * (unsigned)(long)number;
    time_t end = time(NULL) + RACE_S;
    char path[4096], bytes[4096];
    struct stat st;
    while (time(NULL) < end) {
        /* Slot and file go together: a descriptor is written only with the letter of its file, whoever opened it. */
        int slot = rand_r(&seed) % SHARED, file = slot % LETTERS, fd = shared[slot] - 1;
        name(path, "r", file);
        switch (rand_r(&seed) % 9) {
        case 0:
            fd = __atomic_exchange_n(&shared[slot], open(path, O_CREAT | O_RDWR, 0644) + 1, __ATOMIC_SEQ_CST);
            if (fd > 0) close(fd - 1);
            break;
        case 1: (void)!pread(fd, bytes, sizeof bytes, rand_r(&seed) % 9000); break;
        case 2: (void)!read(fd, bytes, 100); break;
        case 3: (void)!ftruncate(fd, rand_r(&seed) % 9000); break;
        case 4: fsync(fd); break;
        case 5: fstat(fd, &st); break;
        case 6:
            fd = __atomic_exchange_n(&shared[slot], 0, __ATOMIC_SEQ_CST);
            if (fd > 0) close(fd - 1);
            break;
        case 7: stat(path, &st); break;
        default:
            memset(bytes, 'a', 100);
            (void)!pwrite(fd, bytes, 100, rand_r(&seed) % 9000);
        }
    }
    return NULL;
}

static void racing(void)
{
    pthread_t racers[RACERS];
    char path[4096];
    for (long i = 0; i < RACERS; i++) pthread_create(&racers[i], NULL, race, (void *)(i + 1));
    for (int i = 0; i < RACERS; i++) pthread_join(racers[i], NULL);
    for (int i = 0; i < SHARED; i++)
        if (shared[i] > 0) close(shared[i] - 1);
    int works = 1;
    for (int i = 0; i < LETTERS; i++) {
        int fd = fresh("r", i, 0);
        works &= pwrite(fd, "again", 5, 0) == 5;
        close(fd);
        unlink(name(path, "r", i));
    }
    law(works, "threads that close, open, read, write, cut and flush the same descriptors harm nobody");
}

/* --- the thread has left the call ---------------------------------------------------------------------------------------------------- */
static sigjmp_buf back;
static volatile sig_atomic_t may_jump;

static void jump(int unused)
{
    (void)unused;
    if (may_jump) {
        may_jump = 0;
        siglongjmp(back, 1);
    }
}

static int change_elsewhere(const char *path)
{
    pid_t child = must(fork(), "fork");
    if (child == 0) {
        /* Another process, which opens it for itself. */
        signal(SIGALRM, SIG_DFL);
        alarm(PATIENCE_S);
        execl("/proc/self/exe", "rivals", "--change", path, NULL);
        _exit(3);
    }
    int status = -1;
    must(waitpid(child, &status, 0), "waitpid");
    if (status) printf("# what changes %s elsewhere ended with status %#x\n", path, status);
    return status;
}

static void left_behind(int appends, const char *text)
{
    char path[4096];
    volatile int jumps = 0, fd = -1;
    unsigned seed = 5;
    signal(SIGALRM, jump);
    while (jumps < JUMPS) {
        if (sigsetjmp(back, 1)) {
            jumps++;
        } else {
            struct itimerval soon = {{0, 0}, {0, 1 + rand_r(&seed) % 60}};
            fd = must(open(name(path, "J", 0), O_CREAT | O_RDWR | O_APPEND, 0644), path);
            may_jump = 1;
            setitimer(ITIMER_REAL, &soon, NULL);
            for (off_t length = 0; may_jump; length = (length + 3000) % 15000) {
                if (appends) (void)!write(fd, "abcdefgh", 8);
                else (void)!ftruncate(fd, length);
            }
        }
        close(fd);
    }
    signal(SIGALRM, SIG_IGN);
    law(change_elsewhere(path) == 0, text);
    unlink(path);
}

/* Threads leave calls of all kinds while others fork. */
static __thread sigjmp_buf own_back;
static __thread volatile sig_atomic_t may_leave;
static volatile int leavers_end;

static void leave(int unused)
{
    (void)unused;
    if (may_leave) {
        may_leave = 0;
        siglongjmp(own_back, 1);
    }
}

static void *leave_calls(void *number)
{
    unsigned seed = 104729u * (unsigned)(long)number;
    char path[4096], bytes[512];
    /* What a call that is left has opened stays open, as on plain files: only so many are tried. */
    volatile int fd = -1, more = -1;
    while (!leavers_end) {
        may_leave = 0;
        (void)sigsetjmp(own_back, 1);
        close(fd);
        close(more);
        fd = open(name(path, "l", rand_r(&seed) % 2), O_CREAT | O_RDWR | (rand_r(&seed) % 2 ? O_APPEND : 0), 0644);
        more = dup(fd);
        may_leave = 1;
        for (int i = 0; i < 20; i++) {
            switch (rand_r(&seed) % 5) {
            case 0: (void)!write(fd, memset(bytes, 'l', sizeof bytes), sizeof bytes); break;
            case 1: (void)!pread(more, bytes, sizeof bytes, rand_r(&seed) % 9000); break;
            case 2: (void)!ftruncate(fd, rand_r(&seed) % 9000); break;
            case 3: close(i % 2 ? fd : more); break;
            default: (void)!pwrite(more, memset(bytes, 'l', sizeof bytes), sizeof bytes, rand_r(&seed) % 9000);
            }
        }
    }
    may_leave = 0;
    close(fd);
    close(more);
    return NULL;
}

static void left_behind_by_many(void)
{
    pthread_t leavers[LEAVERS];
    char path[4096];
    int bad = 0;
    unsigned seed = 17;
    time_t end = time(NULL) + LEFT_S;
    signal(SIGUSR2, leave);
    for (int i = 0; i < 2; i++) close(fresh("l", i, 0));
    for (long i = 0; i < LEAVERS; i++) pthread_create(&leavers[i], NULL, leave_calls, (void *)(i + 1));
    while (time(NULL) < end) {
        for (int i = 0; i < 20; i++) {
            usleep(rand_r(&seed) % 300);
            pthread_kill(leavers[rand_r(&seed) % LEAVERS], SIGUSR2);
        }
        bad |= change_elsewhere(name(path, "l", rand_r(&seed) % 2));
    }
    leavers_end = 1;
    alarm(PATIENCE_S);
    for (int i = 0; i < LEAVERS; i++) pthread_join(leavers[i], NULL);
    alarm(0);
    for (int i = 0; i < 2; i++) {
        bad |= change_elsewhere(name(path, "l", i));
        unlink(path);
    }
    law(!bad, "neither do threads that leave calls of all kinds while another forks");
}

void closers(void)
{
    char path[4096];
    under_a_write();
    under_an_append();
    racing();
    left_behind(0, "a cut that was left by siglongjmp keeps nobody from the file once it is closed");
    left_behind(1, "neither does an append");
    left_behind_by_many();
    for (int i = 0; i < OTHERS; i++) unlink(name(path, "C", i));
    unlink(name(path, "A", 0));
    unlink(name(path, "B", 0));
    unlink(name(path, "D", 0));
}
