/* What mdtest measures, with nothing but the C library: processes make files in trees of directories, ask for them, open, read, list, rename and remove them,
 * phase by phase, all waiting for each other in between. Every answer is checked (sizes, bytes, entries), so a rate is never that of failed calls. Prints one
 * JSON object with operations per second by phase; tools/bench/bench_metadata.py runs it beside itself on other directories.
 *
 *   metadata DIR [--processes P] [--files N] [--branch B] [--depth D] [--bytes N] [--shared]
 *
 * Makes DIR/metadata and removes it. Each process has N files in a tree of its own, or all have theirs in one (--shared); a directory has B more below it, D
 * levels deep. Stat, open and read are of files that the next process made, as with mdtest's -N: nobody asks for what he has just made himself. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PROCESSES_MAX = 256, FILES_MAX = 1000000, DIRECTORIES_MAX = 10000, BYTES_MAX = 65536, PATH_BYTES = 4096 };
enum phase { CREATE, STAT, OPEN_CLOSE, READ, READDIR, RENAME, UNLINK, PHASES };
static const char *const phase_names[PHASES] = {"create", "stat", "open_close", "read", "readdir", "rename", "unlink"};

static struct {
    char root[PATH_BYTES / 2];
    int processes, files, branch, depth, bytes, shared;
    int directories;
} run = {.processes = 1, .files = 1000, .branch = 4, .depth = 1, .bytes = 16};

struct span {
    double begin, end;
    long operations;
};
/* What the processes share. */
static struct {
    pthread_barrier_t barrier;
    struct span spans[PROCESSES_MAX][PHASES];
} *common;

static void die(const char *format, ...)
{
    int number = errno;
    va_list words;
    va_start(words, format);
    fprintf(stderr, "metadata: ");
    vfprintf(stderr, format, words);
    va_end(words);
    fprintf(stderr, number ? ": %s\n" : "\n", strerror(number));
    exit(1);
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Directory 0 is the tree's top; that of directory n is directory (n - 1) / branch. */
static void directory_path(char *path, int tree, int directory)
{
    int above[64], levels = 0;
    for (int at = directory; at > 0; at = (at - 1) / run.branch) above[levels++] = at;
    int used = snprintf(path, PATH_BYTES, "%s/%d", run.root, tree);
    while (levels > 0) used += snprintf(path + used, (size_t)(PATH_BYTES - used), "/d%d", above[--levels]);
}

static void file_path(char *path, int process, int file, char kind)
{
    directory_path(path, run.shared ? 0 : process, file % run.directories);
    size_t used = strlen(path);
    snprintf(path + used, PATH_BYTES - used, "/%c%d.%d", kind, process, file);
}

static void fill(char *bytes, int process, int file)
{
    for (int i = 0; i < run.bytes; i++) bytes[i] = (char)(process + 31 * file + i);
}

static void on_file(enum phase phase, int process, int file)
{
    char path[PATH_BYTES], other[PATH_BYTES];
    static char bytes[BYTES_MAX], wanted[BYTES_MAX];
    struct stat st;
    int fd;
    file_path(path, process, file, phase == UNLINK ? 'r' : 'f');
    switch (phase) {
    case CREATE:
        fill(bytes, process, file);
        if ((fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0644)) < 0) die("%s is not made", path);
        if (run.bytes && write(fd, bytes, (size_t)run.bytes) != run.bytes) die("%s is not written", path);
        if (close(fd)) die("%s is not closed", path);
        return;
    case STAT:
        if (stat(path, &st)) die("%s is not found", path);
        errno = 0;
        if (!S_ISREG(st.st_mode) || st.st_size != run.bytes) die("%s is no file of %d bytes", path, run.bytes);
        return;
    case OPEN_CLOSE:
        if ((fd = open(path, O_RDONLY)) < 0 || close(fd)) die("%s is not opened and closed", path);
        return;
    case READ:
        if ((fd = open(path, O_RDONLY)) < 0) die("%s is not opened", path);
        if (read(fd, bytes, BYTES_MAX) != run.bytes) die("%s is not read", path);
        if (close(fd)) die("%s is not closed", path);
        fill(wanted, process, file);
        errno = 0;
        if (memcmp(bytes, wanted, (size_t)run.bytes)) die("%s has other bytes than were written", path);
        return;
    case RENAME:
        file_path(other, process, file, 'r');
        if (rename(path, other)) die("%s is not renamed", path);
        return;
    default:
        if (unlink(path)) die("%s is not removed", path);
    }
}

/* All entries of a tree. */
static long listed(int tree)
{
    long entries = 0, wanted = (long)run.files * (run.shared ? run.processes : 1) + run.directories - 1 + 2L * run.directories;
    for (int directory = 0; directory < run.directories; directory++) {
        char path[PATH_BYTES];
        directory_path(path, tree, directory);
        DIR *stream = opendir(path);
        if (!stream) die("%s is not listed", path);
        errno = 0;
        while (readdir(stream)) entries++;
        if (errno || closedir(stream)) die("%s is not listed", path);
    }
    if (entries != wanted) die("%s/%d has %ld entries instead of %ld", run.root, tree, entries, wanted);
    return entries;
}

static void make_tree(int tree)
{
    for (int directory = 0; directory < run.directories; directory++) {
        char path[PATH_BYTES];
        directory_path(path, tree, directory);
        if (mkdir(path, 0755)) die("%s is not made", path);
    }
}

static void remove_tree(int tree)
{
    for (int directory = run.directories; directory-- > 0;) {
        char path[PATH_BYTES];
        directory_path(path, tree, directory);
        if (rmdir(path)) die("%s is not removed", path);
    }
}

static void work(int process)
{
    int tree = run.shared ? 0 : process, next = (process + 1) % run.processes;
    if (process == tree) make_tree(tree);
    for (int phase = 0; phase < PHASES; phase++) {
        struct span *span = &common->spans[process][phase];
        pthread_barrier_wait(&common->barrier);
        /* For who counts system calls by phase (strace): one that does nothing. */
        sched_yield();
        span->begin = now();
        if (phase == READDIR) {
            span->operations = listed(tree);
        } else {
            int whose = phase == STAT || phase == OPEN_CLOSE || phase == READ ? next : process;
            for (int file = 0; file < run.files; file++) on_file((enum phase)phase, whose, file);
            span->operations = run.files;
        }
        span->end = now();
    }
    pthread_barrier_wait(&common->barrier);
    sched_yield();
    if (process == tree) remove_tree(tree);
}

/* From the first process's begin to the last one's end. */
static double rate(int phase)
{
    struct span all = common->spans[0][phase];
    for (int process = 1; process < run.processes; process++) {
        const struct span *span = &common->spans[process][phase];
        all.begin = span->begin < all.begin ? span->begin : all.begin;
        all.end = span->end > all.end ? span->end : all.end;
        all.operations += span->operations;
    }
    return (double)all.operations / (all.end - all.begin);
}

static void number(const char *option, const char *text, int least, int most, int *value)
{
    char *end;
    long found = strtol(text, &end, 10);
    errno = 0;
    if (!*text || *end || found < least || found > most) die("--%s takes %d to %d, not '%s'", option, least, most, text);
    *value = (int)found;
}

static void parse(int argc, char **argv)
{
    static const struct option options[] = {{"processes", 1, 0, 'p'}, {"files", 1, 0, 'f'}, {"branch", 1, 0, 'b'}, {"depth", 1, 0, 'd'},
                                            {"bytes", 1, 0, 'n'},     {"shared", 0, 0, 's'}, {0, 0, 0, 0}};
    for (int which; (which = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        if (which == 'p') number("processes", optarg, 1, PROCESSES_MAX, &run.processes);
        else if (which == 'f') number("files", optarg, 1, FILES_MAX, &run.files);
        else if (which == 'b') number("branch", optarg, 1, 100, &run.branch);
        else if (which == 'd') number("depth", optarg, 0, 10, &run.depth);
        else if (which == 'n') number("bytes", optarg, 0, BYTES_MAX - 1, &run.bytes);
        else if (which == 's') run.shared = 1;
        else optind = argc + 1;
    }
    if (optind != argc - 1) {
        fprintf(stderr, "usage: metadata DIR [--processes P] [--files N] [--branch B] [--depth D] [--bytes N] [--shared]\n");
        exit(2);
    }
    long directories = 0, level = 1;
    for (int depth = 0; depth <= run.depth && directories <= DIRECTORIES_MAX; depth++, level *= run.branch) directories += level;
    if (directories > DIRECTORIES_MAX) die("--branch %d and --depth %d make more than %d directories", run.branch, run.depth, DIRECTORIES_MAX);
    run.directories = (int)directories;
    if (snprintf(run.root, sizeof run.root, "%s/metadata", argv[optind]) >= (int)sizeof run.root) die("DIR's name is too long");
}

static void kill_all(const pid_t *processes, int count)
{
    for (int process = 0; process < count; process++)
        if (processes[process] > 0) kill(processes[process], SIGKILL);
    while (wait(NULL) > 0) continue;
}

/* Whoever fails leaves the others waiting for him: they are killed. */
static void wait_for(pid_t *processes)
{
    for (int left = run.processes; left > 0; left--) {
        int status;
        pid_t ended = wait(&status);
        if (ended < 0) die("wait");
        for (int process = 0; process < run.processes; process++)
            if (processes[process] == ended) processes[process] = 0;
        if (!status) continue;
        kill_all(processes, run.processes);
        errno = 0;
        die("a process failed; remove what it left in %s", run.root);
    }
}

int main(int argc, char **argv)
{
    parse(argc, argv);
    common = mmap(NULL, sizeof *common, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pthread_barrierattr_t attributes;
    pthread_barrierattr_init(&attributes);
    pthread_barrierattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    if (common == MAP_FAILED || pthread_barrier_init(&common->barrier, &attributes, (unsigned)run.processes)) die("no shared memory");
    if (mkdir(run.root, 0755)) die("%s is not made", run.root);
    pid_t processes[PROCESSES_MAX];
    for (int process = 0; process < run.processes; process++) {
        processes[process] = fork();
        if (processes[process] < 0) {
            int number = errno;
            kill_all(processes, process);
            errno = number;
            die("a process is not started");
        }
        if (!processes[process]) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            work(process);
            return 0;
        }
    }
    wait_for(processes);
    if (rmdir(run.root)) die("%s is not removed", run.root);
    printf("{\"processes\": %d, \"files\": %d, \"directories\": %d, \"shared\": %s, \"operations_per_s\": {", run.processes, run.processes * run.files,
           run.directories * (run.shared ? 1 : run.processes), run.shared ? "true" : "false");
    for (int phase = 0; phase < PHASES; phase++) printf("%s\"%s\": %.1f", phase ? ", " : "", phase_names[phase], rate(phase));
    printf("}}\n");
    return 0;
}
