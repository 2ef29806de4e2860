/*
 * sizekills: kills a process at every system call of what changes a file's size, and looks whether a byte shows that should not.
 *
 * usage: sizekills FILE OTHER MOST SEED KILLS [steps|random|cuts|peers]
 *
 * Children change FILE, whose size stays below MOST: cut, append, write and allocate over the end and behind it, empty it by open, rename OTHER over it. A
 * child is killed at its n-th entry or return of a system call, n from 1 until it survives (steps), or anywhere (random), or where it enters its n-th
 * ftruncate in a cut of MOST bytes to 10 (cuts); or of several that write in turns behind each other's end, one is killed after the other (peers). After
 * each kill the file has its
 * size of before or of after; all before it is what was written, or the killed write's own; and however it grows then, zeros appear. Exit code 0 and a line
 * of what was done when all was so; else 1 and what was wrong.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { DOWN, DOWN_BY_NAME, UP, APPEND, OVER_END, GAP, ALLOCATE, ALLOCATE_GAP, EMPTY, REPLACE, KINDS };
static const char *const names[] = {"cut", "cut by name", "growth", "append", "write over the end", "write behind the end", "allocation", "allocation behind the end", "open with O_TRUNC", "rename over"};

/* What a child does: [at, at + len) of a file that had `before` bytes and is to have `after`. */
struct change {
    int kind;
    off_t before, after, at;
    size_t len;
    unsigned stamp;
};

static const char *path, *other;
static off_t most;
static uint64_t state;
/* What the file holds, byte by byte. Shared: in the random mode children keep it. */
static unsigned char *model, *found;
static struct change *now;
static volatile int *is_busy;

static uint64_t draw(uint64_t below)
{
    state += 0x9e3779b97f4a7c15u;
    uint64_t x = state;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return (x ^ x >> 31) % below;
}

__attribute__((noreturn)) static void wrong(const char *format, ...)
{
    va_list words;
    va_start(words, format);
    printf("wrong: ");
    vprintf(format, words);
    printf("\n");
    va_end(words);
    exit(1);
}

static void need(int holds, const char *what)
{
    if (!holds)
        wrong("%s: %s", what, strerror(errno));
}

/* Never zero, and another one with each stamp. */
static unsigned char byte_of(off_t at, unsigned stamp)
{
    return (unsigned char)((at * 7 + at / 4096 + stamp * 31) % 251 + 1);
}

static void fill(unsigned char *to, off_t at, size_t len, unsigned stamp)
{
    for (size_t i = 0; i < len; i++)
        to[i] = byte_of(at + (off_t)i, stamp);
}

static void write_all(int fd, off_t at, size_t len, unsigned stamp)
{
    unsigned char *bytes = malloc(len + 1);
    fill(bytes, at, len, stamp);
    need(pwrite(fd, bytes, len, at) == (ssize_t)len, "pwrite");
    free(bytes);
}

static struct change choose(int kind, off_t size, unsigned stamp)
{
    struct change c = {.kind = kind, .before = size, .after = size, .stamp = stamp};
    off_t room = most - size;
    size_t len = 1 + draw(draw(3) ? 9000 : 120000);
    if ((off_t)len > room / 4)
        len = (size_t)(room / 4) + 1;
    switch (kind) {
    case DOWN:
    case DOWN_BY_NAME:
        c.after = (off_t)draw((uint64_t)size + 1);
        break;
    case EMPTY:
    case REPLACE:
        c.after = 0;
        break;
    case UP:
        c.after = size + (off_t)len;
        break;
    case APPEND:
        c.at = size, c.len = len, c.after = size + (off_t)len;
        break;
    case OVER_END:
    case ALLOCATE:
        c.at = size - (off_t)draw((uint64_t)(size < 20000 ? size : 20000) + 1);
        c.len = len + (size_t)(size - c.at), c.after = c.at + (off_t)c.len;
        break;
    default:
        c.at = size + (off_t)draw((uint64_t)room / 4 + 1), c.len = len, c.after = c.at + (off_t)len;
    }
    return c;
}

/* What the child does between the marks; `fd` is open for reading and writing. */
static void act(const struct change *c, int fd, int appending, const unsigned char *bytes)
{
    int again;
    switch (c->kind) {
    case DOWN:
    case UP:
        need(ftruncate(fd, c->after) == 0, "ftruncate");
        break;
    case DOWN_BY_NAME:
        need(truncate(path, c->after) == 0, "truncate");
        break;
    case APPEND:
        need(write(appending, bytes, c->len) == (ssize_t)c->len, "write");
        break;
    case OVER_END:
    case GAP:
        need(pwrite(fd, bytes, c->len, c->at) == (ssize_t)c->len, "pwrite");
        break;
    case ALLOCATE:
    case ALLOCATE_GAP:
        need(fallocate(fd, 0, c->at, (off_t)c->len) == 0, "fallocate");
        break;
    case EMPTY:
        need((again = open(path, O_WRONLY | O_TRUNC)) >= 0, "open with O_TRUNC");
        need(close(again) == 0, "close");
        break;
    case REPLACE:
        need(rename(other, path) == 0, "rename");
    }
}

/* The model of a file that has been changed. */
static void apply(const struct change *c)
{
    if (c->after < c->before)
        memset(model + c->after, 0, (size_t)(c->before - c->after));
    if (c->kind == APPEND || c->kind == OVER_END || c->kind == GAP)
        fill(model + c->at, c->at, c->len, c->stamp);
}

static off_t size_of(int fd)
{
    struct stat st;
    need(fstat(fd, &st) == 0, "fstat");
    return st.st_size;
}

/* The file against the model; what a killed write may have put there is taken over. */
static void compare(int fd, off_t size, const struct change *c, const char *when)
{
    off_t got = 0;
    while (got < size) {
        ssize_t n = pread(fd, found + got, (size_t)(size - got), got);
        if (n <= 0)
            wrong("%s: pread at %ld of %ld: %zd, %s; size is %ld", when, (long)got, (long)size, n, strerror(errno), (long)size_of(fd));
        got += n;
    }
    int writes = c->kind == APPEND || c->kind == OVER_END || c->kind == GAP;
    for (off_t i = 0; i < size; i++) {
        if (found[i] == model[i])
            continue;
        if (writes && i >= c->at && i < c->at + (off_t)c->len && i < c->after && found[i] == byte_of(i, c->stamp) && *is_busy)
            model[i] = found[i];
        else
            wrong("%s: a %s of %ld bytes to %ld, at %ld: byte %ld of %ld is %d, not %d", when, names[c->kind], (long)c->before, (long)c->after, (long)c->at, (long)i, (long)size, found[i], model[i]);
    }
}

/* Lets the file grow in one of the ways there are; what appears must be zeros. */
static off_t grow(int fd, off_t size, unsigned stamp)
{
    off_t to = size + 1 + (off_t)draw((uint64_t)(most - size));
    switch (draw(4)) {
    case 0:
        need(ftruncate(fd, to) == 0, "ftruncate");
        return to;
    case 1:
        need(fallocate(fd, 0, to - 1, 1) == 0, "fallocate");
        return to;
    case 2:
        write_all(fd, to - 1, 1, stamp);
        model[to - 1] = byte_of(to - 1, stamp);
        return to;
    default: {
        /* Byte by byte first, then by a hole. */
        int appending = open(path, O_WRONLY | O_APPEND);
        unsigned char byte = byte_of(size, stamp);
        need(appending >= 0 && write(appending, &byte, 1) == 1, "append");
        need(close(appending) == 0, "close");
        model[size] = byte;
        write_all(fd, to + 1, 1, stamp);
        model[to + 1] = byte_of(to + 1, stamp);
        return to + 2;
    }
    }
}

/* After a kill. Returns the size. */
static off_t check(const struct change *c, unsigned stamp)
{
    int fd = open(path, O_RDWR);
    need(fd >= 0, "open");
    off_t size = size_of(fd);
    if (size != c->before && size != c->after)
        wrong("a %s of %ld bytes to %ld left %ld", names[c->kind], (long)c->before, (long)c->after, (long)size);
    if (size < c->before)
        memset(model + size, 0, (size_t)(c->before - size));
    compare(fd, size, c, "after the kill");
    /* What lies behind the size by now is nobody's. */
    struct change nothing = {.kind = UP, .before = size, .after = size};
    *is_busy = 0;
    size = grow(fd, size, stamp);
    compare(fd, size, &nothing, "grown");
    need(ftruncate(fd, most + 2) == 0, "ftruncate");
    compare(fd, most + 2, &nothing, "grown to the end");
    need(close(fd) == 0, "close");
    return most + 2;
}

/* Before a kill: some bytes everywhere, and a size drawn anew. */
static off_t prepare(off_t size, unsigned stamp)
{
    int fd = open(path, O_RDWR | O_CREAT, 0600);
    need(fd >= 0, "open");
    off_t to = 1 + (off_t)draw((uint64_t)most / 2);
    need(ftruncate(fd, to) == 0, "ftruncate");
    if (to < size)
        memset(model + to, 0, (size_t)(size - to));
    write_all(fd, 0, (size_t)to, stamp);
    fill(model, 0, (size_t)to, stamp);
    need(close(fd) == 0, "close");
    fd = open(other, O_RDWR | O_CREAT | O_TRUNC, 0600);
    need(fd >= 0 && close(fd) == 0, "the other file");
    return to;
}

static unsigned char *bytes_for(const struct change *c)
{
    unsigned char *bytes = malloc(c->len + 1);
    fill(bytes, c->at, c->len, c->stamp);
    return bytes;
}

/* Whether a stop of the child is one that counts: any, or where it enters a system call. */
static int counts(pid_t child, long call)
{
    struct __ptrace_syscall_info info = {0};
    if (call < 0)
        return 1;
    need(ptrace(PTRACE_GET_SYSCALL_INFO, child, sizeof info, &info) > 0, "PTRACE_GET_SYSCALL_INFO");
    return info.op == PTRACE_SYSCALL_INFO_ENTRY && (long)info.entry.nr == call;
}

/* A child that is killed at its step; whether it has got so far. */
static int killed_at(const struct change *c, long step, long call)
{
    pid_t child = fork();
    need(child >= 0, "fork");
    if (child == 0) {
        int fd = open(path, O_RDWR), appending = open(path, O_WRONLY | O_APPEND);
        unsigned char *bytes = bytes_for(c), first;
        need(fd >= 0 && appending >= 0 && pread(fd, &first, 1, 0) >= 0, "open");
        if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0)
            _exit(2);
        raise(SIGSTOP);
        act(c, fd, appending, bytes);
        _exit(0);
    }
    int status;
    need(waitpid(child, &status, 0) == child && WIFSTOPPED(status), "waitpid");
    need(ptrace(PTRACE_SETOPTIONS, child, NULL, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL) == 0, "ptrace");
    for (long deliver = 0, seen = 0;;) {
        need(ptrace(PTRACE_SYSCALL, child, NULL, (void *)deliver) == 0 && waitpid(child, &status, 0) == child, "ptrace");
        if (WIFEXITED(status)) {
            if (WEXITSTATUS(status) != 0)
                wrong("a %s failed", names[c->kind]);
            return 0;
        }
        if (WIFSIGNALED(status))
            wrong("a %s ended by signal %d", names[c->kind], WTERMSIG(status));
        deliver = WSTOPSIG(status) == (SIGTRAP | 0x80) ? 0 : WSTOPSIG(status);
        if (deliver == 0 && counts(child, call) && ++seen == step) {
            need(kill(child, SIGKILL) == 0 && waitpid(child, &status, 0) == child, "kill");
            return 1;
        }
    }
}

static void by_steps(long kills)
{
    off_t size = 0;
    long done[KINDS] = {0};
    unsigned stamp = (unsigned)state;
    for (long killed = 0, round = 0; killed < kills; round++) {
        int kind = (int)(round % KINDS), survived = 0;
        /* Where there are fewer kills than steps, steps are left out. */
        long stride = kills >= 2000 ? 1 : 1 + (long)draw(12);
        for (long step = 1 + (long)draw((uint64_t)stride); !survived && killed < kills; step += stride) {
            size = prepare(size, ++stamp);
            *now = choose(kind, size, ++stamp);
            *is_busy = 1;
            survived = !killed_at(now, step, -1);
            if (survived) {
                apply(now);
                *is_busy = 0;
            } else {
                killed++;
                done[kind]++;
            }
            size = check(now, ++stamp);
        }
    }
    for (int kind = 0; kind < KINDS; kind++)
        printf("%ld kills in a %s\n", done[kind], names[kind]);
}

static void in_cuts(void)
{
    off_t size = 0;
    unsigned stamp = (unsigned)state;
    for (long call = 1;; call++) {
        prepare(size, ++stamp);
        int fd = open(path, O_RDWR);
        need(fd >= 0, "open");
        write_all(fd, 0, (size_t)most, ++stamp);
        fill(model, 0, (size_t)most, stamp);
        need(ftruncate(fd, most) == 0 && close(fd) == 0, "ftruncate");
        memset(model + most, 0, 2);
        *now = (struct change){.kind = DOWN, .before = most, .after = 10};
        if (!killed_at(now, call, SYS_ftruncate)) {
            printf("%ld kills in a cut of %ld bytes\n", call - 1, (long)most);
            return;
        }
        size = check(now, ++stamp);
    }
}

/* Several write every other chunk of a file, and so leave gaps all the time; they are killed one by one. What a write returned for is there. */
static void in_turns(long kills)
{
    enum { PEERS = 3, CHUNK = 3000 };
    unsigned stamp = (unsigned)state;
    volatile unsigned char *told = mmap(NULL, (size_t)most, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    need(told != MAP_FAILED, "mmap");
    long chunks = most / CHUNK / 2, returned = 0;
    for (long killed = 0; killed < kills; killed += PEERS) {
        prepare(0, ++stamp);
        memset((void *)told, 0, (size_t)chunks);
        *now = (struct change){.kind = GAP, .stamp = ++stamp, .after = most, .len = (size_t)most};
        int fd = open(path, O_RDWR), status;
        need(fd >= 0 && ftruncate(fd, 0) == 0, "ftruncate");
        memset(model, 0, (size_t)most);
        pid_t peers[PEERS];
        for (int me = 0; me < PEERS; me++) {
            need((peers[me] = fork()) >= 0, "fork");
            if (peers[me] == 0) {
                int own = open(path, O_RDWR);
                for (long chunk = me; chunk < chunks; chunk += PEERS) {
                    write_all(own, chunk * CHUNK, CHUNK, stamp);
                    told[chunk] = 1;
                }
                for (;;)
                    pause();
            }
        }
        struct timespec wait = {.tv_nsec = (long)draw(3000000)};
        for (int me = 0; me < PEERS; me++) {
            nanosleep(&wait, NULL);
            need(kill(peers[me], SIGKILL) == 0 && waitpid(peers[me], &status, 0) == peers[me], "kill");
        }
        off_t size = size_of(fd);
        for (long chunk = 0; chunk < chunks; chunk++) {
            returned += told[chunk];
            if (told[chunk])
                fill(model + chunk * CHUNK, chunk * CHUNK, CHUNK, stamp);
            if (told[chunk] && size < (chunk + 1) * CHUNK)
                wrong("chunk %ld was written, and the file has %ld bytes", chunk, (long)size);
        }
        now->before = now->after = size, now->len = (size_t)size;
        *is_busy = 1;
        need(close(fd) == 0, "close");
        check(now, ++stamp);
    }
    printf("%ld kills of writers in turns, %ld writes had returned\n", kills, returned);
}

static void at_random(long kills)
{
    unsigned stamp = (unsigned)state;
    off_t size = 0;
    for (long killed = 0; killed < kills; killed++) {
        size = prepare(size, ++stamp);
        uint64_t seed = draw(UINT64_MAX);
        *now = (struct change){.kind = UP, .before = size, .after = size};
        *is_busy = 0;
        pid_t child = fork();
        need(child >= 0, "fork");
        if (child == 0) {
            state = seed;
            int fd = open(path, O_RDWR), appending = open(path, O_WRONLY | O_APPEND);
            need(fd >= 0 && appending >= 0, "open");
            for (;;) {
                /* Rather small than large, or the file is soon at its end. */
                int kind = (int)draw(REPLACE);
                if (size > most / 2)
                    kind = draw(2) ? DOWN : DOWN_BY_NAME;
                struct change c = choose(kind, size, ++stamp);
                unsigned char *bytes = bytes_for(&c);
                *now = c;
                *is_busy = 1;
                act(&c, fd, appending, bytes);
                apply(&c);
                size = c.after;
                *is_busy = 0;
                *now = (struct change){.kind = UP, .before = size, .after = size};
                free(bytes);
            }
        }
        struct timespec wait = {.tv_nsec = (long)draw(4000000)};
        nanosleep(&wait, NULL);
        int status;
        need(kill(child, SIGKILL) == 0 && waitpid(child, &status, 0) == child, "kill");
        if (WIFEXITED(status))
            wrong("a child failed");
        stamp += 100000;
        size = check(now, ++stamp);
    }
    printf("%ld kills at random\n", kills);
}

int main(int argc, char **argv)
{
    if (argc < 6) {
        fputs("usage: sizekills FILE OTHER MOST SEED KILLS [steps|random]\n", stderr);
        return 2;
    }
    path = argv[1], other = argv[2], most = atol(argv[3]), state = (uint64_t)atol(argv[4]);
    size_t room = (size_t)most + 4096;
    model = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    now = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    need(model != MAP_FAILED && now != MAP_FAILED, "mmap");
    is_busy = (volatile int *)(now + 1);
    found = malloc(room);
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (argc > 6 && strcmp(argv[6], "random") == 0)
        at_random(atol(argv[5]));
    else if (argc > 6 && strcmp(argv[6], "cuts") == 0)
        in_cuts();
    else if (argc > 6 && strcmp(argv[6], "peers") == 0)
        in_turns(atol(argv[5]));
    else
        by_steps(atol(argv[5]));
    return 0;
}
