/* Costs of calls, side by side in one process: the C library's own function (looked up in libc.so itself, so past any preloaded
 * library) and the hooked one, on a plain and on a managed file, batch by batch in turn. Prints one JSON object; tools/bench/bench.py runs it.
 *
 *   calls pread PLAIN MANAGED           ns of one cached 4 KiB pread: direct, hooked on the plain file, hooked on the managed file
 *   calls bulk PLAIN MANAGED            bytes/s of 1 MiB reads, overwrites and extending writes: direct on the plain file, hooked on the managed
 *   calls small PLAIN MANAGED BATCHES   ns of open + close, stat, create + close + unlink and a 4 KiB pread over the files of two directories, which it
 *                                       makes: direct on the plain ones, hooked on both; and of the system calls without which the parts of a managed
 *                                       file neither come nor go, on plain ones
 *   calls closed REQUESTS PROCS FILE... closed loop: PROCS processes per file read REQUESTS random 4 KiB blocks each; seconds in all */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { BLOCK = 4096, BULK = 1 << 20, BATCHES = 61, CALLS = 4000 };

typedef ssize_t (*pread_fn)(int, void *, size_t, off_t);
typedef ssize_t (*pwrite_fn)(int, const void *, size_t, off_t);

static void die(const char *what)
{
    perror(what);
    exit(1);
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static uint64_t next(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, int n)
{
    qsort(values, (size_t)n, sizeof *values, compare);
    return values[n / 2];
}

static void *libc_function(const char *name)
{
    void *libc = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD), *f = libc ? dlsym(libc, name) : NULL;
    if (!f) {
        fprintf(stderr, "calls: no %s in libc.so.6\n", name);
        exit(1);
    }
    return f;
}

static int open_or_die(const char *path, int flags)
{
    int fd = open(path, flags, 0644);
    if (fd < 0) die(path);
    return fd;
}

static double batch(pread_fn f, int fd, char *buffer, uint64_t blocks, uint64_t *seed)
{
    /* Each batch finds its own file's pages and code warm, whatever ran before. */
    for (int i = 0; i < CALLS / 4; i++)
        if (f(fd, buffer, BLOCK, (off_t)(next(seed) % blocks * BLOCK)) != BLOCK) die("pread");
    double start = now();
    for (int i = 0; i < CALLS; i++)
        if (f(fd, buffer, BLOCK, (off_t)(next(seed) % blocks * BLOCK)) != BLOCK) die("pread");
    return (now() - start) / CALLS * 1e9;
}

static void pread_costs(const char *plain, const char *managed)
{
    static char buffer[BLOCK];
    int p = open_or_die(plain, O_RDONLY), m = open_or_die(managed, O_RDONLY);
    struct stat st;
    if (fstat(m, &st)) die(managed);
    uint64_t blocks = (uint64_t)st.st_size / BLOCK, seed = 42;
    pread_fn direct = (pread_fn)libc_function("pread64");
    double times[3][BATCHES], added[2][BATCHES];
    for (int i = 0; i < BATCHES; i++) {
        times[0][i] = batch(direct, p, buffer, blocks, &seed);
        times[1][i] = batch(pread, p, buffer, blocks, &seed);
        times[2][i] = batch(pread, m, buffer, blocks, &seed);
        added[0][i] = times[1][i] - times[0][i];
        added[1][i] = times[2][i] - times[0][i];
    }
    printf("{\"direct_ns\": %.1f, \"unmanaged_added_ns\": %.1f, \"managed_added_ns\": %.1f}\n", median(times[0], BATCHES), median(added[0], BATCHES),
           median(added[1], BATCHES));
}

static double bulk_pass(pread_fn r, pwrite_fn w, int fd, char *buffer, uint64_t from, uint64_t to)
{
    double start = now();
    for (uint64_t at = from; at < to; at += BULK)
        if ((r ? r(fd, buffer, BULK, (off_t)at) : w(fd, buffer, BULK, (off_t)at)) != BULK) die("1 MiB");
    return (now() - start);
}

static void bulk_ratios(const char *plain, const char *managed)
{
    enum { PASSES = 15, SIZE = 64 << 20 };
    char *buffer = mmap(NULL, BULK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(buffer, 7, BULK);
    pread_fn direct_read = (pread_fn)libc_function("pread64");
    pwrite_fn direct_write = (pwrite_fn)libc_function("pwrite64");
    double ratio[3][PASSES], direct[3][PASSES];
    for (int i = 0; i < PASSES; i++) {
        int p = open_or_die(plain, O_RDWR | O_CREAT | O_TRUNC), m = open_or_die(managed, O_RDWR | O_CREAT | O_TRUNC);
        direct[2][i] = bulk_pass(NULL, direct_write, p, buffer, 0, SIZE);
        ratio[2][i] = direct[2][i] / bulk_pass(NULL, pwrite, m, buffer, 0, SIZE);
        direct[1][i] = bulk_pass(NULL, direct_write, p, buffer, 0, SIZE);
        ratio[1][i] = direct[1][i] / bulk_pass(NULL, pwrite, m, buffer, 0, SIZE);
        direct[0][i] = bulk_pass(direct_read, NULL, p, buffer, 0, SIZE);
        ratio[0][i] = direct[0][i] / bulk_pass(pread, NULL, m, buffer, 0, SIZE);
        close(p), close(m);
    }
    const char *names[] = {"read", "overwrite", "extend"};
    printf("{");
    for (int k = 0; k < 3; k++) printf("%s\"%s_ratio\": %.3f, \"%s_plain_mb_s\": %.0f", k ? ", " : "", names[k], median(ratio[k], PASSES), names[k], SIZE / 1e6 / median(direct[k], PASSES));
    printf("}\n");
}

enum { SMALL_FILES = 32, SMALL_KINDS = 4 };
typedef int (*open_fn)(const char *, int, ...);
typedef int (*close_fn)(int);
typedef int (*stat_fn)(const char *, struct stat *);
typedef int (*unlink_fn)(const char *);
/* The functions of one side: the C library's own, or what the program was linked with. */
struct side {
    open_fn open;
    close_fn close;
    stat_fn stat;
    pread_fn pread;
    unlink_fn unlink;
};
struct small {
    char path[SMALL_FILES][BLOCK];
    char fresh[SMALL_FILES][BLOCK];
    int fd[SMALL_FILES];
};

static void make_small(struct small *files, const char *dir)
{
    static char content[BLOCK];
    memset(content, 7, BLOCK);
    for (int i = 0; i < SMALL_FILES; i++) {
        snprintf(files->path[i], BLOCK, "%s/f%d", dir, i);
        snprintf(files->fresh[i], BLOCK, "%s/n%d", dir, i);
        files->fd[i] = open_or_die(files->path[i], O_RDWR | O_CREAT);
        if (pwrite(files->fd[i], content, BLOCK, 0) != BLOCK) die(files->path[i]);
    }
}

static void one_small(const struct side *side, const struct small *files, int kind, int i)
{
    static char buffer[BLOCK];
    struct stat st;
    if (kind == 0) {
        int fd = side->open(files->path[i], O_RDONLY);
        if (fd < 0 || side->close(fd)) die(files->path[i]);
    } else if (kind == 1) {
        if (side->stat(files->path[i], &st) || st.st_size != BLOCK) die(files->path[i]);
    } else if (kind == 3) {
        int fd = side->open(files->fresh[i], O_RDWR | O_CREAT | O_EXCL, 0644);
        if (fd < 0 || side->close(fd) || side->unlink(files->fresh[i])) die(files->fresh[i]);
    } else if (side->pread(files->fd[i], buffer, BLOCK, 0) != BLOCK) {
        die(files->path[i]);
    }
}

static int made_part(int dir, const char *name, const char *bytes, size_t len)
{
    int fd = (int)syscall(SYS_openat, dir, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (fd < 0 || (len && syscall(SYS_write, fd, bytes, len) != (long)len)) die(name);
    return fd;
}

/* What comes and goes with a managed file (docs/formats.md): a directory of layout, head, ctl and the record of its link, and the link. Nothing is
 * looked at, checked or locked. */
static void bare_parts(const char *place, const char *link)
{
    static const char bytes[236];
    enum { CTL = 65536 };
    int at = AT_FDCWD;
    char trash[BLOCK + 8];
    snprintf(trash, sizeof trash, "%s.trash", place);
    if (syscall(SYS_mkdirat, at, place, 0711)) die(place);
    int dir = (int)syscall(SYS_openat, at, place, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    syscall(SYS_close, made_part(dir, "layout", bytes, sizeof bytes));
    int head = made_part(dir, "head", NULL, 0), ctl = made_part(dir, "ctl", NULL, 0);
    if (syscall(SYS_fallocate, ctl, 0, 0, BLOCK) || syscall(SYS_ftruncate, ctl, CTL)) die("ctl");
    volatile char *words = mmap(NULL, CTL, PROT_READ | PROT_WRITE, MAP_SHARED, ctl, 0);
    if (words == MAP_FAILED) die("ctl");
    words[0] = 1;
    if (syscall(SYS_symlinkat, "/stripewise:/a/store/0123456789abcdef", at, link)) die(link);
    syscall(SYS_close, made_part(dir, "link.new", bytes, 60));
    if (syscall(SYS_renameat2, dir, "link.new", dir, "link", 0)) die("link");
    syscall(SYS_close, head);
    if (syscall(SYS_unlinkat, at, link, 0) || syscall(SYS_renameat2, at, place, at, trash, 0)) die(link);
    static const char *parts[] = {"link", "layout", "ctl", "head"};
    for (int i = 0; i < 4; i++)
        if (syscall(SYS_unlinkat, dir, parts[i], 0)) die(parts[i]);
    if (syscall(SYS_unlinkat, at, trash, AT_REMOVEDIR)) die(trash);
    syscall(SYS_close, ctl);
    syscall(SYS_close, dir);
    munmap((void *)words, CTL);
}

static double bare_batch(const struct small *files, const char *place)
{
    double start = now();
    for (int i = 0; i < 4 * SMALL_FILES; i++) bare_parts(place, files->fresh[i % SMALL_FILES]);
    return (now() - start) / (4 * SMALL_FILES) * 1e9;
}

static double small_batch(const struct side *side, struct small *files, int kind, int open_now)
{
    /* What stays open would spare the next opening its work: descriptors are open only while they are read from. */
    for (int i = 0; i < SMALL_FILES && open_now; i++) files->fd[i] = open_or_die(files->path[i], O_RDWR);
    for (int i = 0; i < SMALL_FILES; i++) one_small(side, files, kind, i);
    double start = now();
    for (int i = 0; i < 4 * SMALL_FILES; i++) one_small(side, files, kind, i % SMALL_FILES);
    double took = (now() - start) / (4 * SMALL_FILES) * 1e9;
    for (int i = 0; i < SMALL_FILES && open_now; i++) close(files->fd[i]);
    return took;
}

static void small_costs(const char *plain_dir, const char *managed_dir, int batches)
{
    static struct small plain, managed;
    struct side direct = {(open_fn)libc_function("open64"), (close_fn)libc_function("close"), (stat_fn)libc_function("stat64"),
                          (pread_fn)libc_function("pread64"), (unlink_fn)libc_function("unlink")};
    struct side hooked = {open, close, (stat_fn)stat, pread, unlink};
    make_small(&plain, plain_dir), make_small(&managed, managed_dir);
    for (int i = 0; i < SMALL_FILES; i++) close(plain.fd[i]), close(managed.fd[i]);
    static const char *kinds[SMALL_KINDS] = {"open_close", "stat", "pread_4k", "create_unlink"};
    char place[BLOCK];
    snprintf(place, sizeof place, "%s/parts", plain_dir);
    printf("{");
    for (int kind = 0; kind < SMALL_KINDS; kind++) {
        double times[4][BATCHES];
        int n = batches < 1 ? 1 : batches > BATCHES ? BATCHES : batches;
        for (int i = 0; i < n; i++) {
            times[0][i] = small_batch(&direct, &plain, kind, kind == 2);
            times[1][i] = small_batch(&hooked, &plain, kind, kind == 2);
            times[2][i] = small_batch(&hooked, &managed, kind, kind == 2);
            times[3][i] = kind == 3 ? bare_batch(&plain, place) : 0;
        }
        printf("%s\"%s\": {\"plain_ns\": %.1f, \"hooked_plain_ns\": %.1f, \"managed_ns\": %.1f, \"parts_ns\": %.1f}", kind ? ", " : "", kinds[kind],
               median(times[0], n), median(times[1], n), median(times[2], n), median(times[3], n));
    }
    printf("}\n");
}

static void closed_loop(int requests, int procs, char **files, int n)
{
    int *go = mmap(NULL, BLOCK, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    for (int k = 0; k < n * procs; k++) {
        pid_t child = fork();
        if (child < 0) die("fork");
        if (child) continue;
        static char buffer[BLOCK];
        int fd = open_or_die(files[k % n], O_RDONLY);
        struct stat st;
        fstat(fd, &st);
        uint64_t seed = 1000003u * (unsigned)(k + 1), blocks = (uint64_t)st.st_size / BLOCK;
        __atomic_fetch_add(go, 1, __ATOMIC_SEQ_CST);
        while (__atomic_load_n(go, __ATOMIC_SEQ_CST) <= n * procs) usleep(100);
        for (int i = 0; i < requests; i++)
            if (pread(fd, buffer, BLOCK, (off_t)(next(&seed) % blocks * BLOCK)) != BLOCK) die("pread");
        _exit(0);
    }
    while (__atomic_load_n(go, __ATOMIC_SEQ_CST) < n * procs) usleep(100);
    double start = now();
    __atomic_fetch_add(go, 1, __ATOMIC_SEQ_CST);
    for (int k = 0; k < n * procs; k++) {
        int status;
        if (wait(&status) < 0 || status) die("a reader failed");
    }
    printf("{\"seconds\": %.6f}\n", now() - start);
}

int main(int argc, char **argv)
{
    if (argc == 4 && !strcmp(argv[1], "pread")) pread_costs(argv[2], argv[3]);
    else if (argc == 4 && !strcmp(argv[1], "bulk")) bulk_ratios(argv[2], argv[3]);
    else if (argc == 5 && !strcmp(argv[1], "small")) small_costs(argv[2], argv[3], atoi(argv[4]));
    else if (argc > 4 && !strcmp(argv[1], "closed")) closed_loop(atoi(argv[2]), atoi(argv[3]), argv + 4, argc - 4);
    else {
        fprintf(stderr, "usage: calls pread PLAIN MANAGED | bulk PLAIN MANAGED | small PLAIN MANAGED BATCHES | closed REQUESTS PROCS FILE...\n");
        return 2;
    }
    return 0;
}
