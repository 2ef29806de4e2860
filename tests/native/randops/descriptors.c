/* Operations on descriptors: open in all modes, close, dup, flags, and what a child inherits across fork and exec. */
#define _GNU_SOURCE
#include "randops.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CHILD_OPERATIONS = 24 };

static void add_pair(struct world *w, int subject, int oracle, int flags)
{
    int mode = flags & O_ACCMODE;
    w->pairs[w->pair_count++] = (struct pair){subject, oracle, mode != O_WRONLY, mode != O_RDONLY};
}

static void make_room(struct world *w)
{
    if (w->pair_count == PAIRS_MAX)
        op_close(w, (int)world_below(w, PAIRS_MAX));
}

static int open_flags(struct world *w)
{
    static const int modes[] = {O_RDONLY, O_WRONLY, O_RDWR, O_RDWR};
    int flags = modes[world_below(w, 4)];
    if (world_below(w, 3) != 0)
        flags |= O_CREAT;
    if (world_below(w, 6) == 0)
        flags |= O_TRUNC;
    if (world_below(w, 5) == 0)
        flags |= O_APPEND;
    if ((flags & O_CREAT) && world_below(w, 6) == 0)
        flags |= O_EXCL;
    if (world_below(w, 4) == 0)
        flags |= O_CLOEXEC;
    if (world_below(w, 60) == 0)
        flags |= O_DIRECTORY;
    return flags;
}

void op_open(struct world *w)
{
    make_room(w);
    int name = (int)world_below(w, NAMES), flags = open_flags(w), at = (int)world_below(w, 2);
    /* O_TRUNC without write access and O_CREAT with O_DIRECTORY are left to each file system by POSIX and Linux. */
    if ((flags & O_ACCMODE) == O_RDONLY)
        flags &= ~O_TRUNC;
    if (flags & O_DIRECTORY)
        flags &= ~(O_CREAT | O_EXCL | O_TRUNC);
    mode_t mode = world_below(w, 2) ? 0644 : 0600;
    char subject[PATH_MAX], oracle[PATH_MAX];
    world_path(w, 0, name, subject);
    world_path(w, 1, name, oracle);
    world_note(w, "open%s(%s, %#o, %#o)", at ? "at" : "", w->names[name], flags, mode);
    int s = at ? openat(w->dir_fd, w->names[name], flags, mode) : open(subject, flags, mode);
    int subject_errno = errno;
    int o = at ? openat(w->oracle_dir_fd, w->names[name], flags, mode) : open(oracle, flags, mode);
    if (!world_same(w, s < 0 ? -1 : 0, subject_errno, o < 0 ? -1 : 0, errno))
        return;
    add_pair(w, s, o, flags);
    world_compare_state(w, &w->pairs[w->pair_count - 1]);
}

void op_temporary(struct world *w)
{
    make_room(w);
    world_note(w, "open(., O_TMPFILE)");
    int s = open(w->dir, O_TMPFILE | O_RDWR, 0600);
    int subject_errno = errno;
    int o = open(w->oracle_dir, O_TMPFILE | O_RDWR, 0600);
    if (o < 0 && errno == EOPNOTSUPP) { /* this oracle's file system has none: nothing to compare with */
        if (s >= 0)
            close(s);
        return;
    }
    if (!world_same(w, s < 0 ? -1 : 0, subject_errno, o < 0 ? -1 : 0, errno))
        return;
    add_pair(w, s, o, O_RDWR);
}

void op_close(struct world *w, int index)
{
    struct pair p = w->pairs[index];
    world_note(w, "close(%d)", p.subject);
    int s = close(p.subject);
    int subject_errno = errno;
    world_same(w, s, subject_errno, close(p.oracle), errno);
    if (!w->threaded && close(p.subject) != -1)
        world_fail(w, "closing %d twice succeeded", p.subject);
    w->pairs[index] = w->pairs[--w->pair_count];
}

void op_duplicate(struct world *w, int index)
{
    static const char *const ways[] = {"dup", "F_DUPFD", "F_DUPFD_CLOEXEC", "dup2", "dup3"};
    int way = (int)world_below(w, 5), s, o;
    struct pair from = w->pairs[index];
    if (way >= 3) {
        int onto = (int)world_below(w, (uint64_t)w->pair_count);
        struct pair *target = &w->pairs[onto];
        if (way == 4 && onto == index)
            return;
        world_note(w, "%s(%d, %d)", ways[way], from.subject, target->subject);
        s = way == 3 ? dup2(from.subject, target->subject) : dup3(from.subject, target->subject, O_CLOEXEC);
        o = way == 3 ? dup2(from.oracle, target->oracle) : dup3(from.oracle, target->oracle, O_CLOEXEC);
        if (s != target->subject || o != target->oracle)
            world_fail(w, "returned %d: %s", s, strerror(errno));
        *target = (struct pair){s, o, from.reads, from.writes};
    } else {
        int least = 3 + (int)world_below(w, 60);
        if (w->pair_count == PAIRS_MAX)
            return;
        world_note(w, "%s(%d, %d)", ways[way], from.subject, least);
        int command = way == 1 ? F_DUPFD : F_DUPFD_CLOEXEC;
        s = way == 0 ? dup(from.subject) : fcntl(from.subject, command, least);
        o = way == 0 ? dup(from.oracle) : fcntl(from.oracle, command, least);
        if (s < 0 || o < 0 || (way != 0 && s < least))
            world_fail(w, "returned %d: %s", s, strerror(errno));
        w->pairs[w->pair_count++] = (struct pair){s, o, from.reads, from.writes};
    }
    world_compare_state(w, &from);
}

void op_flags(struct world *w, struct pair *p)
{
    int shown = O_ACCMODE | O_APPEND | O_NONBLOCK;
    int s = fcntl(p->subject, F_GETFL), o = fcntl(p->oracle, F_GETFL);
    world_note(w, "fcntl(%d, F_GETFL, F_GETFD, F_SETFL)", p->subject);
    if (s < 0 || (s & shown) != (o & shown))
        world_fail(w, "F_GETFL returned %#o, a plain file's %#o", s, o);
    s = fcntl(p->subject, F_GETFD);
    o = fcntl(p->oracle, F_GETFD);
    world_same(w, s, 0, o, 0);
    if (world_below(w, 2) == 0) {
        int flags = fcntl(p->oracle, F_GETFL) ^ O_APPEND;
        s = fcntl(p->subject, F_SETFL, flags);
        world_same(w, s, errno, fcntl(p->oracle, F_SETFL, flags), errno);
    }
}

static void wait_for(struct world *w, pid_t child, const char *what)
{
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status) != 0)
        world_fail(w, "the %s child failed (status %#x)", what, status);
    for (int i = 0; i < w->pair_count; i++)
        world_compare_state(w, &w->pairs[i]);
}

/* The child works on the same open files; what it moves, writes and truncates is seen here. */
void op_fork(struct world *w)
{
    if (w->threaded || w->nested)
        return;
    world_note(w, "fork, %d operations in the child", CHILD_OPERATIONS);
    uint64_t seed = world_random(w);
    pid_t child = fork();
    if (child == 0) {
        w->random = seed;
        w->nested = 1;
        world_run(w, CHILD_OPERATIONS);
        _exit(0);
    }
    wait_for(w, child, "forked");
}

/* As op_fork, with a new program that knows its descriptors only by number. */
void op_exec(struct world *w)
{
    char pairs[PAIRS_MAX * 40] = "", seed[32], size[32];
    if (w->threaded || w->nested)
        return;
    world_note(w, "fork and exec, %d operations in the child", CHILD_OPERATIONS);
    snprintf(seed, sizeof seed, "%" PRIu64, world_random(w));
    snprintf(size, sizeof size, "%" PRId64, w->size_max);
    for (int i = 0; i < w->pair_count; i++) {
        size_t at = strlen(pairs);
        snprintf(pairs + at, sizeof pairs - at, "%d:%d:%d:%d,", w->pairs[i].subject, w->pairs[i].oracle, w->pairs[i].reads, w->pairs[i].writes);
    }
    pid_t child = fork();
    if (child == 0) {
        for (int i = 0; i < w->pair_count; i++) {
            fcntl(w->pairs[i].subject, F_SETFD, 0);
            fcntl(w->pairs[i].oracle, F_SETFD, 0);
        }
        char operations[16];
        snprintf(operations, sizeof operations, "%d", CHILD_OPERATIONS);
        execl(program_path, program_path, "--inherit", pairs, "--dir", w->dir, "--oracle-dir", w->oracle_dir, "--prefix", w->names[0], "--seed", seed,
              "--ops", operations, "--max-size", size, (char *)NULL);
        fprintf(stderr, "randops: cannot execute %s: %s\n", program_path, strerror(errno));
        _exit(1);
    }
    wait_for(w, child, "executed");
    tally(EXECUTE, CARRIED);
}
