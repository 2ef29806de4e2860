/*
 * maps: what mmap promises, as a table of checks. Each works on a file of its own in the directory given and prints what it saw, without addresses,
 * so that the transcript on managed files can be compared with the one on plain files, line by line.
 *
 * usage: maps DIR
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAGE = 4096, SIZE = 700001, PAGES = (SIZE + PAGE - 1) / PAGE * PAGE };
static char path[4096];
static sigjmp_buf back;

static unsigned char expected(size_t at)
{
    return (unsigned char)((at * 2654435761u) >> 13 | 1);
}

static void say(const char *what, long value)
{
    printf("  %s: %ld\n", what, value);
}

static void said(const char *what, const void *result)
{
    printf("  %s: %s\n", what, result == MAP_FAILED ? strerrorname_np(errno) : "mapped");
}

static void caught(int signal)
{
    siglongjmp(back, signal);
}

/* The byte at an address, or minus the signal that reading it raises. */
static int peek(const volatile unsigned char *at)
{
    int signal = sigsetjmp(back, 1);
    return signal ? -signal : *at;
}

static int poke(volatile unsigned char *at, unsigned char value)
{
    int signal = sigsetjmp(back, 1);
    return signal ? -signal : (*at = value, 0);
}

/* How many of the bytes are not as they were written; stops at a signal. */
static long differing(const unsigned char *map, size_t from, size_t len)
{
    int signal = sigsetjmp(back, 1);
    if (signal)
        return -signal;
    long wrong = 0;
    for (size_t i = 0; i < len; i++)
        wrong += map[i] != expected(from + i);
    return wrong;
}

static long nonzero(const unsigned char *map, size_t len)
{
    int signal = sigsetjmp(back, 1);
    if (signal)
        return -signal;
    long found = 0;
    for (size_t i = 0; i < len; i++)
        found += map[i] != 0;
    return found;
}

static int made(size_t size, int flags)
{
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0644);
    unsigned char block[10007];
    for (size_t at = 0; at < size;) {
        size_t n = size - at < sizeof block ? size - at : sizeof block;
        for (size_t i = 0; i < n; i++)
            block[i] = expected(at + i);
        if (pwrite(fd, block, n, (off_t)at) != (ssize_t)n)
            abort();
        at += n;
    }
    if (flags == O_RDWR)
        return fd;
    close(fd);
    return open(path, flags);
}

static long size_of(int fd)
{
    struct stat st;
    return fstat(fd, &st) ? -1 : (long)st.st_size;
}

static void private_read(void)
{
    int fd = made(SIZE, O_RDONLY);
    unsigned char *map = mmap(NULL, SIZE, PROT_READ, MAP_PRIVATE, fd, 0);
    said("map", map);
    close(fd);
    say("differing", differing(map, 0, SIZE));
    say("tail", nonzero(map + SIZE, PAGES - SIZE));
    say("munmap", munmap(map, SIZE));
    say("after", peek(map));
}

static void shared_read(void)
{
    int fd = made(SIZE, O_RDONLY), other = open(path, O_RDWR);
    unsigned char *map = mmap(NULL, SIZE, PROT_READ, MAP_SHARED, fd, 0);
    said("map", map);
    say("differing", differing(map, 0, SIZE));
    for (size_t at = 0; at < SIZE; at += 50021)
        if (pwrite(other, "!", 1, (off_t)at) != 1)
            abort();
    for (size_t at = 0; at < SIZE; at += 50021)
        say("seen", peek(map + at));
    say("writable", mprotect(map, SIZE, PROT_READ | PROT_WRITE) ? errno : 0);
}

static void shared_write(void)
{
    int fd = made(SIZE, O_RDWR);
    unsigned char *map = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), byte;
    said("map", map);
    for (size_t at = 0; at < SIZE; at += 30011)
        map[at] = 0;
    for (size_t at = 0; at < SIZE; at += 30011)
        say("read", pread(fd, &byte, 1, (off_t)at) == 1 ? byte : -1);
    say("msync", msync(map, SIZE, MS_SYNC));
    map[SIZE + 1] = 7;
    say("munmap", munmap(map, SIZE));
    say("size", size_of(fd));
}

static void private_write(void)
{
    int fd = made(SIZE, O_RDONLY);
    unsigned char *map = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0), byte;
    said("map", map);
    for (size_t at = 0; at < SIZE; at += 30011)
        map[at] = 0;
    long kept = 0;
    for (size_t at = 0; at < SIZE; at += 30011)
        kept += pread(fd, &byte, 1, (off_t)at) == 1 && byte == expected(at) && map[at] == 0;
    say("kept", kept);
}

static void offsets(void)
{
    int fd = made(SIZE, O_RDONLY);
    for (long from = 0; from < 40; from += 3) {
        for (long count = 1; count < 40; count += 9) {
            unsigned char *map = mmap(NULL, (size_t)count * PAGE - 5, PROT_READ, MAP_SHARED, fd, from * PAGE);
            if (map == MAP_FAILED || differing(map, (size_t)from * PAGE, (size_t)count * PAGE))
                printf("  %ld pages from %ld are wrong\n", count, from);
            munmap(map, (size_t)count * PAGE);
        }
    }
}

static void end_of_file(void)
{
    int fd = made(SIZE, O_RDWR);
    unsigned char *map = mmap(NULL, PAGES + 50 * PAGE, PROT_READ, MAP_SHARED, fd, 0);
    said("map", map);
    say("last", peek(map + SIZE - 1) == expected(SIZE - 1));
    say("behind in the page", peek(map + SIZE));
    for (int i = 0; i < 50; i += 7)
        say("behind", peek(map + PAGES + i * PAGE));
    int past = made(0, O_RDWR);
    unsigned char *empty = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, past, 0);
    said("empty", empty);
    say("empty", peek(empty));
}

static void growth(void)
{
    int fd = made(1000, O_RDWR);
    unsigned char *map = mmap(NULL, 300 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    said("map", map);
    say("write behind a hole", pwrite(fd, "x", 1, 90 * PAGE + 5));
    say("hole", nonzero(map + 1000, 90 * PAGE - 1000));
    say("written", peek(map + 90 * PAGE + 5));
    say("behind", peek(map + 91 * PAGE));
    say("truncate up", ftruncate(fd, 200 * PAGE + 1));
    say("hole", nonzero(map + 91 * PAGE, 109 * PAGE));
    say("end", peek(map + 200 * PAGE));
    say("behind", peek(map + 201 * PAGE));
    pid_t child = fork();
    if (child == 0) {
        int own = open(path, O_RDWR);
        _exit(pwrite(own, "y", 1, 230 * PAGE) != 1 || ftruncate(own, 240 * PAGE) != 0);
    }
    int status = -1;
    waitpid(child, &status, 0);
    say("growth by another process", status);
    say("hole", nonzero(map + 200 * PAGE, 30 * PAGE));
    say("written", peek(map + 230 * PAGE));
    say("hole", nonzero(map + 230 * PAGE + 1, 10 * PAGE - 1));
    say("fallocate", posix_fallocate(fd, 250 * PAGE, PAGE));
    say("hole", nonzero(map + 240 * PAGE, 11 * PAGE));
    say("poke", poke(map + 220 * PAGE, 'p'));
    char byte = 0;
    say("read", pread(fd, &byte, 1, 220 * PAGE));
    say("byte", byte);
    say("size", size_of(fd));
}

static void truncated(void)
{
    int fd = made(SIZE, O_RDWR);
    unsigned char *map = mmap(NULL, PAGES, PROT_READ, MAP_SHARED, fd, 0);
    said("map", map);
    say("differing", differing(map, 0, SIZE));
    say("truncate", ftruncate(fd, 33 * PAGE + 10));
    say("differing", differing(map, 0, 33 * PAGE + 10));
    say("tail", nonzero(map + 33 * PAGE + 10, PAGE - 10));
    for (size_t at = 34 * PAGE; at < PAGES; at += 13 * PAGE)
        say("behind", peek(map + at));
    say("truncate up", ftruncate(fd, 100 * PAGE));
    say("zeros", nonzero(map + 34 * PAGE, 66 * PAGE));
}

static void sparse(void)
{
    int fd = made(0, O_RDWR);
    say("truncate", ftruncate(fd, 180 * PAGE + 17));
    unsigned char *map = mmap(NULL, 180 * PAGE + 17, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    said("map", map);
    say("zeros", nonzero(map, 181 * PAGE));
    for (int i = 0; i < 181; i += 12)
        say("poke", poke(map + i * PAGE, 'a'));
    long seen = 0;
    for (int i = 0; i < 181; i += 12) {
        char byte = 0;
        seen += pread(fd, &byte, 1, i * PAGE) == 1 && byte == 'a';
    }
    say("seen", seen);
    say("size", size_of(fd));
}

static void processes(void)
{
    int fd = made(SIZE, O_RDWR), to_child[2], to_parent[2];
    char token;
    unsigned char *before = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    unsigned char *mine = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    if (pipe(to_child) || pipe(to_parent))
        abort();
    pid_t child = fork();
    if (child == 0) {
        unsigned char *own = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        for (size_t at = 0; at < SIZE; at += 40009)
            own[at] = 2, before[at + 1] = 4, mine[at + 2] = 6;
        if (write(to_parent[1], "g", 1) != 1 || read(to_child[0], &token, 1) != 1)
            _exit(9);
        long seen = 0;
        for (size_t at = 0; at < SIZE; at += 40009)
            seen += own[at + 3] == 8 && before[at + 3] == 8;
        munmap(own, SIZE);
        munmap(before, SIZE);
        _exit((int)seen);
    }
    if (read(to_parent[0], &token, 1) != 1)
        abort();
    long seen = 0;
    for (size_t at = 0; at < SIZE; at += 40009) {
        seen += before[at] == 2 && before[at + 1] == 4 && mine[at + 2] == expected(at + 2);
        if (pwrite(fd, "\x08", 1, (off_t)at + 3) != 1)
            abort();
    }
    say("parent saw", seen);
    int status = 0;
    if (write(to_child[1], "g", 1) != 1 || waitpid(child, &status, 0) != child)
        abort();
    say("child saw", WEXITSTATUS(status));
    say("still there", before[0]);
}

static void partial_unmap(void)
{
    int fd = made(SIZE, O_RDWR);
    unsigned char *map = mmap(NULL, PAGES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    said("map", map);
    close(fd);
    say("middle", munmap(map + 20 * PAGE, 90 * PAGE));
    say("before", differing(map, 0, 20 * PAGE));
    say("gone", peek(map + 20 * PAGE));
    say("gone", peek(map + 109 * PAGE));
    say("after", differing(map + 110 * PAGE, 110 * PAGE, SIZE - 110 * PAGE));
    say("poke", poke(map + 110 * PAGE, 'q'));
    say("first", munmap(map, PAGE));
    say("rest", munmap(map, PAGES));
    fd = open(path, O_RDONLY);
    char byte = 0;
    say("read", pread(fd, &byte, 1, 110 * PAGE));
    say("byte", byte);
}

static void protection(void)
{
    int fd = made(SIZE, O_RDWR);
    unsigned char *map = mmap(NULL, PAGES, PROT_READ, MAP_SHARED, fd, 0);
    say("write", poke(map, 1));
    say("mprotect", mprotect(map + 10 * PAGE, 100 * PAGE, PROT_READ | PROT_WRITE));
    say("write", poke(map + 50 * PAGE, 1));
    say("write before", poke(map + 9 * PAGE, 1));
    say("none", mprotect(map, PAGES, PROT_NONE));
    say("read", peek(map + 70 * PAGE));
    say("advice", madvise(map, PAGES, MADV_SEQUENTIAL));
}

static void fixed(void)
{
    int fd = made(SIZE, O_RDWR);
    unsigned char *place = mmap(NULL, 2 * PAGES, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    unsigned char *map = mmap(place + PAGE, PAGES, PROT_READ, MAP_SHARED | MAP_FIXED, fd, 0);
    say("in place", map == place + PAGE);
    say("differing", differing(map, 0, SIZE));
    said("occupied", mmap(place, PAGE, PROT_READ, MAP_SHARED | MAP_FIXED_NOREPLACE, fd, 0));
    said("misaligned", mmap(place + 5, PAGE, PROT_READ, MAP_SHARED | MAP_FIXED, fd, 0));
    void *over = mmap(map + 30 * PAGE, 20 * PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    say("over", over == map + 30 * PAGE);
    say("zeros", nonzero(over, 20 * PAGE));
    say("differing", differing(map + 50 * PAGE, 50 * PAGE, 50 * PAGE));
    void *twice = mmap(map + 60 * PAGE, 10 * PAGE, PROT_READ, MAP_PRIVATE | MAP_FIXED, fd, 3 * PAGE);
    say("differing", differing(twice, 3 * PAGE, 10 * PAGE));
    say("munmap", munmap(place, 2 * PAGES));
    void *low = mmap(NULL, PAGES, PROT_READ, MAP_PRIVATE | MAP_32BIT, fd, 0);
    say("low", (size_t)low < 1ul << 32);
    say("differing", differing(low, 0, SIZE));
}

static void remapped(void)
{
    int fd = made(SIZE, O_RDWR);
    unsigned char *map = mmap(NULL, 10 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    map = mremap(map, 10 * PAGE, PAGES, MREMAP_MAYMOVE);
    said("grown", map);
    say("differing", differing(map, 0, SIZE));
    say("poke", poke(map + 100 * PAGE, 'z'));
    char byte = 0;
    say("read", pread(fd, &byte, 1, 100 * PAGE));
    say("byte", byte);
    if (pwrite(fd, (char[]){(char)expected(100 * PAGE)}, 1, 100 * PAGE) != 1)
        abort();
    map = mremap(map, PAGES, 40 * PAGE, 0);
    said("shrunk", map);
    say("differing", differing(map, 0, 40 * PAGE));
    say("gone", peek(map + 40 * PAGE));
    unsigned char *wall = mmap(map + 40 * PAGE, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    said("blocked", mremap(map, 40 * PAGE, 41 * PAGE, 0));
    unsigned char *mine = mmap(NULL, 40 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    for (int i = 0; i < 40; i++)
        mine[i * PAGE] = 'm';
    unsigned char *to = mmap(NULL, PAGES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    unsigned char *moved = mremap(mine, 40 * PAGE, PAGES, MREMAP_MAYMOVE | MREMAP_FIXED, to);
    say("moved", moved == to);
    long kept = 0;
    for (int i = 0; i < 40; i++)
        kept += peek(moved + i * PAGE) == 'm' && !differing(moved + i * PAGE + 1, (size_t)i * PAGE + 1, PAGE - 1);
    say("kept", kept);
    say("new part", differing(moved + 40 * PAGE, 40 * PAGE, SIZE - 40 * PAGE));
    say("old place", peek(mine));
    say("munmap", munmap(moved, PAGES) | munmap(map, 40 * PAGE) | munmap(wall, PAGE));
}

static void refusals(void)
{
    int fd = made(SIZE, O_RDWR), reading = open(path, O_RDONLY), writing = open(path, O_WRONLY), name = open(path, O_PATH);
    said("no bytes", mmap(NULL, 0, PROT_READ, MAP_SHARED, fd, 0));
    said("misaligned offset", mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, 100));
    said("negative offset", mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, -PAGE));
    said("no type", mmap(NULL, PAGE, PROT_READ, 0, fd, 0));
    said("unknown flag", mmap(NULL, PAGE, PROT_READ, MAP_SHARED_VALIDATE | 1 << 29, fd, 0));
    said("endless", mmap(NULL, (size_t)1 << 62, PROT_READ, MAP_SHARED, fd, 0));
    said("write by a reader", mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, reading, 0));
    said("private write by a reader", mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, reading, 0));
    said("read by a writer", mmap(NULL, PAGE, PROT_READ, MAP_SHARED, writing, 0));
    said("private by a writer", mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, writing, 0));
    said("by name only", mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, name, 0));
    said("huge pages", mmap(NULL, 1 << 21, PROT_READ, MAP_PRIVATE | MAP_HUGETLB, fd, 0));
    said("anonymous", mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, fd, 0));
    said("locked", mmap(NULL, 9 * PAGE, PROT_READ, MAP_SHARED | MAP_LOCKED | MAP_POPULATE, fd, 0));
    close(name);
    said("closed", mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, name, 0));
}

static void unlinked(void)
{
    int fd = made(SIZE, O_RDWR);
    say("unlink", unlink(path));
    unsigned char *map = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    said("map", map);
    close(fd);
    say("differing", differing(map, 0, SIZE));
    say("poke", poke(map + 5, 1));
    say("munmap", munmap(map, SIZE));
    say("gone", access(path, F_OK));
}

/* Maps and unmaps parts in turn, in memory that other threads map into, too; returns how many bytes were wrong. */
static void *mapper(void *argument)
{
    int fd = open(path, O_RDONLY);
    unsigned seed = (unsigned)(size_t)argument;
    long wrong = 0;
    for (int round = 0; round < 300; round++) {
        size_t from = (size_t)(rand_r(&seed) % (SIZE / PAGE)) * PAGE, len = SIZE - from < 60000 ? SIZE - from : 60000;
        unsigned char *map = mmap(NULL, len, PROT_READ, round % 2 ? MAP_SHARED : MAP_PRIVATE, fd, (off_t)from);
        for (size_t i = 0; map != MAP_FAILED && i < len; i += 97)
            wrong += map[i] != expected(from + i);
        wrong += munmap(map, PAGE) != 0;
        if (len > PAGE)
            wrong += munmap(map + PAGE, len - PAGE) != 0;
    }
    close(fd);
    return (void *)wrong;
}

static void threads(void)
{
    pthread_t thread[4];
    int fd = made(SIZE, O_RDWR);
    for (size_t i = 0; i < 4; i++)
        pthread_create(&thread[i], NULL, mapper, (void *)(i + 1));
    for (int round = 0; round < 100; round++)
        if (pwrite(fd, "e", 1, SIZE + round * 5000) != 1)
            abort();
    for (size_t i = 0; i < 4; i++) {
        void *wrong;
        pthread_join(thread[i], &wrong);
        say("wrong", (long)wrong);
    }
    unsigned char *map = mmap(NULL, SIZE + 500000, PROT_READ, MAP_SHARED, fd, 0);
    say("written", nonzero(map + SIZE, 99 * 5000 + 1));
}

static int is_newer(struct timespec a, struct timespec b)
{
    return a.tv_sec > b.tv_sec || (a.tv_sec == b.tv_sec && a.tv_nsec > b.tv_nsec);
}

static void times(void)
{
    int fd = made(SIZE, O_RDWR);
    struct stat first, then;
    unsigned char *map = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    say("fsync", fsync(fd));
    say("stat", fstat(fd, &first));
    usleep(100000);
    say("msync of nothing", msync(map, SIZE, MS_SYNC));
    say("newer", fstat(fd, &then) == 0 && is_newer(then.st_mtim, first.st_mtim));
    map[400000] = 3;
    say("msync", msync(map, SIZE, MS_SYNC));
    say("newer", fstat(fd, &then) == 0 && is_newer(then.st_mtim, first.st_mtim));
    say("munmap", munmap(map, SIZE));
}

static const struct {
    const char *name;
    void (*run)(void);
} checks[] = {
    {"private_read", private_read}, {"shared_read", shared_read}, {"shared_write", shared_write}, {"private_write", private_write},
    {"offsets", offsets},           {"end_of_file", end_of_file}, {"growth", growth},             {"truncated", truncated},
    {"sparse", sparse},             {"processes", processes},     {"partial_unmap", partial_unmap}, {"protection", protection},
    {"fixed", fixed},               {"remapped", remapped},       {"refusals", refusals},         {"unlinked", unlinked},
    {"times", times},               {"threads", threads},
};

int main(int argc, char **argv)
{
    struct sigaction action = {.sa_handler = caught};
    if (argc != 2) {
        fputs("usage: maps DIR\n", stderr);
        return 2;
    }
    sigaction(SIGBUS, &action, NULL);
    sigaction(SIGSEGV, &action, NULL);
    setvbuf(stdout, NULL, _IONBF, 0);
    for (size_t i = 0; i < sizeof checks / sizeof checks[0]; i++) {
        snprintf(path, sizeof path, "%s/%s", argv[1], checks[i].name);
        printf("%s\n", checks[i].name);
        checks[i].run();
    }
    return 0;
}
