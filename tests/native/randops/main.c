/* randops: options, and the three ways to run: one process, several processes, several threads. See randops.h. */
#define _GNU_SOURCE
#include "randops.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WORKERS_MAX = 256 };

const char *program_path;

struct settings {
    const char *dir, *oracle_dir, *prefix, *inherit;
    uint64_t seed, operations;
    int64_t size_max;
    int processes, threads;
};

static void usage(int code)
{
    fputs("usage: randops --dir DIR --oracle-dir DIR [--ops N] [--seed N] [--procs N | --threads N] [--max-size BYTES] [--prefix NAME]\n"
          "Does random file operations in DIR and the same on plain files in the other directory; exits 1 at the first difference.\n",
          code == 0 ? stdout : stderr);
    exit(code);
}

static uint64_t number(const char *text)
{
    char *end;
    errno = 0;
    uint64_t value = strtoull(text, &end, 10);
    if (errno != 0 || *text < '0' || *text > '9' || *end != '\0')
        usage(2);
    return value;
}

static struct settings parse(int argc, char **argv)
{
    struct settings s = {.prefix = "", .seed = 1, .operations = 100000, .size_max = 1 << 20, .processes = 1};
    for (int i = 1; i < argc; i += 2) {
        const char *name = argv[i], *value = argv[i + 1];
        if (strcmp(name, "--help") == 0)
            usage(0);
        if (i + 1 >= argc)
            usage(2);
        if (strcmp(name, "--dir") == 0)
            s.dir = value;
        else if (strcmp(name, "--oracle-dir") == 0)
            s.oracle_dir = value;
        else if (strcmp(name, "--prefix") == 0)
            s.prefix = value;
        else if (strcmp(name, "--inherit") == 0)
            s.inherit = value;
        else if (strcmp(name, "--seed") == 0)
            s.seed = number(value);
        else if (strcmp(name, "--ops") == 0)
            s.operations = number(value);
        else if (strcmp(name, "--max-size") == 0)
            s.size_max = (int64_t)number(value);
        else if (strcmp(name, "--procs") == 0)
            s.processes = (int)number(value);
        else if (strcmp(name, "--threads") == 0)
            s.threads = (int)number(value);
        else
            usage(2);
    }
    if (s.dir == NULL || s.oracle_dir == NULL || s.size_max < 65536 || s.processes < 1 || s.processes > WORKERS_MAX || s.threads > WORKERS_MAX)
        usage(2);
    return s;
}

/* What the library sets up once in a process, it does now. */
static void touch(const char *dir, int worker)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/touched-%d", dir, worker);
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL, 0600);
    ssize_t wrote = write(fd, path, 1);
    close(fd);
    if (fd < 0 || wrote != 1 || unlink(path) != 0) {
        fprintf(stderr, "randops: %s: %s\n", path, strerror(errno));
        exit(1);
    }
}

/* Half of a worker's operations are on its own files, half on those that all share. */
static void work(const struct settings *s, int worker, int threaded)
{
    struct world w;
    char prefix[16];
    uint64_t workers = (uint64_t)(threaded ? s->threads : s->processes);
    snprintf(prefix, sizeof prefix, "w%d-", worker);
    if (!threaded)
        touch(s->dir, worker);
    struct leaks before = leaks_now();
    world_init(&w, s->dir, s->oracle_dir, prefix, s->seed * 1000003 + (uint64_t)worker, s->size_max);
    w.threaded = threaded;
    for (int round = 0; round < 4; round++) {
        world_run(&w, s->operations / workers / 8);
        shared_work(&w, worker, s->operations / workers / 8, round == 3);
    }
    world_close(&w);
    if (!threaded)
        leaks_check(&before);
}

struct thread {
    pthread_t id;
    const struct settings *settings;
    int worker;
};

static void *thread_main(void *argument)
{
    struct thread *thread = argument;
    work(thread->settings, thread->worker, 1);
    return NULL;
}

static void run_threads(const struct settings *s)
{
    struct thread threads[WORKERS_MAX];
    for (int i = 0; i < s->threads; i++) {
        threads[i] = (struct thread){.settings = s, .worker = i};
        if (pthread_create(&threads[i].id, NULL, thread_main, &threads[i]) != 0) {
            fputs("randops: cannot start a thread\n", stderr);
            exit(1);
        }
    }
    for (int i = 0; i < s->threads; i++)
        pthread_join(threads[i].id, NULL);
}

static void run_processes(const struct settings *s)
{
    int failed = 0;
    for (int i = 0; i < s->processes; i++) {
        pid_t child = fork();
        if (child == 0) {
            work(s, i, 0);
            exit(0);
        }
        if (child < 0) {
            fprintf(stderr, "randops: fork: %s\n", strerror(errno));
            exit(1);
        }
    }
    for (int i = 0, status; i < s->processes; i++)
        if (wait(&status) < 0 || !WIFEXITED(status) || WEXITSTATUS(status) != 0)
            failed = 1;
    if (failed)
        exit(1);
}

/* An executed child: the descriptors are known by number only; --prefix is the parent's first name. */
static void run_inherited(const struct settings *s)
{
    struct world w;
    char prefix[32];
    snprintf(prefix, sizeof prefix, "%s", s->prefix);
    if (strlen(prefix) >= 5)
        prefix[strlen(prefix) - 5] = '\0'; /* less "a.dat" */
    world_init(&w, s->dir, s->oracle_dir, prefix, s->seed, s->size_max);
    w.nested = 1;
    char *copy = strdup(s->inherit), *save = NULL;
    for (char *word = strtok_r(copy, ",", &save); word != NULL && w.pair_count < PAIRS_MAX; word = strtok_r(NULL, ",", &save)) {
        struct pair p;
        if (sscanf(word, "%d:%d:%d:%d", &p.subject, &p.oracle, &p.reads, &p.writes) != 4)
            usage(2);
        w.pairs[w.pair_count++] = p;
    }
    free(copy);
    world_note(&w, "executed with the descriptors %s", s->inherit);
    world_compare_all(&w);
    world_run(&w, s->operations);
    world_close(&w);
}

int main(int argc, char **argv)
{
    struct settings s = parse(argc, argv);
    program_path = argv[0];
    tally_start();
    if (s.inherit != NULL) {
        run_inherited(&s);
        return 0;
    }
    touch(s.dir, 0);
    struct leaks before = leaks_now();
    if (s.threads > 0 || s.processes > 1) {
        shared_prepare(s.dir, s.oracle_dir);
        if (s.threads > 0)
            run_threads(&s);
        else
            run_processes(&s);
        shared_finish(s.dir, s.threads > 0 ? s.threads : s.processes);
        leaks_check(&before);
    } else {
        struct world w;
        world_init(&w, s.dir, s.oracle_dir, s.prefix, s.seed, s.size_max);
        world_run(&w, s.operations);
        world_close(&w);
        leaks_check(&before);
    }
    tally_print();
    printf("randops: ok, seed %" PRIu64 ", %" PRIu64 " operations, %d processes, %d threads\n", s.seed, s.operations, s.processes, s.threads);
    return 0;
}
