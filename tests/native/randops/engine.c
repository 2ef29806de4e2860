/* The world of a run: random choices, the history that is printed on a mismatch, and the comparisons. */
#define _GNU_SOURCE
#include "randops.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { WINDOW_BYTES = 8192, COMPARE_ALL_EVERY = 128, ALL_BYTES_MAX = 16 << 20 };

uint64_t world_random(struct world *w)
{
    uint64_t x = w->random += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

uint64_t world_below(struct world *w, uint64_t bound)
{
    return world_random(w) % bound;
}

int64_t world_offset(struct world *w)
{
    static const int64_t grids[] = {1, 512, 4096, 16384, 65536, 1 << 20};
    int64_t grid = grids[world_below(w, sizeof grids / sizeof grids[0])];
    int64_t offset = (int64_t)world_below(w, (uint64_t)w->size_max + 1) / grid * grid;
    if (world_below(w, 3) == 0)
        offset += (int64_t)world_below(w, 9) - 4;
    return offset < 0 ? 0 : offset > w->size_max ? w->size_max : offset;
}

size_t world_length(struct world *w)
{
    switch (world_below(w, 8)) {
    case 0: return world_below(w, 4);
    case 1: return 4096 * (1 + world_below(w, 16));
    case 2: return world_below(w, IO_BYTES_MAX);
    case 3: return world_below(w, 65536);
    default: return world_below(w, 6000);
    }
}

void world_path(const struct world *w, int oracle, int name, char path[PATH_MAX])
{
    snprintf(path, PATH_MAX, "%s/%s", oracle ? w->oracle_dir : w->dir, w->names[name]);
}

void world_note(struct world *w, const char *form, ...)
{
    va_list arguments;
    va_start(arguments, form);
    vsnprintf(w->history[w->operation % HISTORY], sizeof w->history[0], form, arguments);
    va_end(arguments);
}

void world_fail(struct world *w, const char *form, ...)
{
    va_list arguments;
    char text[512];
    va_start(arguments, form);
    vsnprintf(text, sizeof text, form, arguments);
    va_end(arguments);
    fprintf(stderr, "randops: seed %" PRIu64 ", operation %" PRIu64 " in %s: %s\n", w->seed, w->operation, w->dir, text);
    uint64_t first = w->operation >= HISTORY ? w->operation - HISTORY + 1 : 0;
    for (uint64_t i = first; i <= w->operation; i++)
        fprintf(stderr, "  %" PRIu64 ": %s\n", i, w->history[i % HISTORY]);
    fflush(stderr);
    _exit(1);
}

int world_same(struct world *w, int64_t subject, int subject_errno, int64_t oracle, int oracle_errno)
{
    if ((subject < 0) != (oracle < 0) || (subject >= 0 && subject != oracle) || (subject < 0 && subject_errno != oracle_errno))
        world_fail(w, "returned %" PRId64 " (%s), a plain file %" PRId64 " (%s)", subject, subject < 0 ? strerror(subject_errno) : "no error", oracle,
                   oracle < 0 ? strerror(oracle_errno) : "no error");
    return subject >= 0;
}

static void compare_stat(struct world *w, const struct stat *s, const struct stat *o)
{
    if (s->st_size != o->st_size)
        world_fail(w, "size %" PRId64 ", a plain file's %" PRId64, (int64_t)s->st_size, (int64_t)o->st_size);
    if (s->st_mode != o->st_mode || s->st_uid != o->st_uid || s->st_gid != o->st_gid || s->st_nlink != o->st_nlink)
        world_fail(w, "mode %o, owner %u:%u, links %u; a plain file has %o, %u:%u, %u", s->st_mode, s->st_uid, s->st_gid, (unsigned)s->st_nlink, o->st_mode,
                   o->st_uid, o->st_gid, (unsigned)o->st_nlink);
}

void world_compare_state(struct world *w, const struct pair *pair)
{
    struct stat s, o;
    if (fstat(pair->subject, &s) != 0 || fstat(pair->oracle, &o) != 0)
        world_fail(w, "fstat: %s", strerror(errno));
    compare_stat(w, &s, &o);
    int shown = O_ACCMODE | O_APPEND | O_NONBLOCK, flags = fcntl(pair->subject, F_GETFL), oracle_flags = fcntl(pair->oracle, F_GETFL);
    if ((flags & shown) != (oracle_flags & shown))
        world_fail(w, "F_GETFL returned %#o, a plain file's %#o", flags, oracle_flags);
    int64_t at = lseek(pair->subject, 0, SEEK_CUR), oracle_at = lseek(pair->oracle, 0, SEEK_CUR);
    if (at != oracle_at)
        world_fail(w, "the file offset is %" PRId64 ", a plain file's %" PRId64, at, oracle_at);
}

void world_compare_range(struct world *w, const struct pair *pair, int64_t offset, int64_t length)
{
    int64_t end = offset + length + WINDOW_BYTES;
    int64_t at = offset > WINDOW_BYTES ? offset - WINDOW_BYTES : 0;
    if (!pair->reads)
        return;
    while (at < end) {
        size_t take = end - at < IO_BYTES_MAX ? (size_t)(end - at) : IO_BYTES_MAX;
        ssize_t s = pread(pair->subject, w->subject_buf, take, at);
        int subject_errno = errno;
        ssize_t o = pread(pair->oracle, w->oracle_buf, take, at);
        world_same(w, s, subject_errno, o, errno);
        for (ssize_t i = 0; s > 0 && memcmp(w->subject_buf, w->oracle_buf, (size_t)s) != 0; i++)
            if (w->subject_buf[i] != w->oracle_buf[i])
                world_fail(w, "byte %" PRId64 " is %02x, a plain file's %02x", at + i, w->subject_buf[i], w->oracle_buf[i]);
        if (s < (ssize_t)take)
            return;
        at += (int64_t)take;
    }
}

/* All bytes; in a large file without those that both files call holes. */
static void compare_file(struct world *w, const struct pair *pair)
{
    struct stat status;
    if (fstat(pair->oracle, &status) != 0 || !pair->reads)
        return;
    if (status.st_size <= ALL_BYTES_MAX) {
        world_compare_range(w, pair, 0, status.st_size);
        return;
    }
    int64_t kept = lseek(pair->oracle, 0, SEEK_CUR);
    for (int64_t at = 0; at < status.st_size;) {
        int64_t s = lseek(pair->subject, at, SEEK_DATA), o = lseek(pair->oracle, at, SEEK_DATA);
        if (s < 0 && o < 0)
            break;
        at = s < 0 || (o >= 0 && o < s) ? o : s;
        world_compare_range(w, pair, at, IO_BYTES_MAX);
        at += IO_BYTES_MAX;
    }
    lseek(pair->subject, kept, SEEK_SET);
    lseek(pair->oracle, kept, SEEK_SET);
}

void world_compare_name(struct world *w, int name)
{
    char subject[PATH_MAX], oracle[PATH_MAX];
    world_path(w, 0, name, subject);
    world_path(w, 1, name, oracle);
    struct pair pair = {.reads = 1};
    pair.subject = open(subject, O_RDONLY);
    int subject_errno = errno;
    pair.oracle = open(oracle, O_RDONLY);
    if (!world_same(w, pair.subject < 0 ? -1 : 0, subject_errno, pair.oracle < 0 ? -1 : 0, errno))
        return;
    world_compare_state(w, &pair);
    compare_file(w, &pair);
    close(pair.subject);
    close(pair.oracle);
}

/* Two names or descriptors are of one file exactly where those of the oracle are. */
static void compare_identities(struct world *w)
{
    struct stat s[NAMES + PAIRS_MAX], o[NAMES + PAIRS_MAX];
    int count = 0;
    for (int name = 0; name < NAMES; name++) {
        char path[PATH_MAX];
        world_path(w, 0, name, path);
        int found = stat(path, &s[count]) == 0;
        world_path(w, 1, name, path);
        if (found != (stat(path, &o[count]) == 0))
            world_fail(w, "%s %s", w->names[name], found ? "is there still" : "is missing");
        count += found;
    }
    for (int i = 0; i < w->pair_count; i++, count++)
        if (fstat(w->pairs[i].subject, &s[count]) != 0 || fstat(w->pairs[i].oracle, &o[count]) != 0)
            world_fail(w, "fstat: %s", strerror(errno));
    for (int i = 0; i < count; i++)
        for (int j = 0; j < i; j++)
            if ((s[i].st_ino == s[j].st_ino && s[i].st_dev == s[j].st_dev) != (o[i].st_ino == o[j].st_ino && o[i].st_dev == o[j].st_dev))
                world_fail(w, "inodes %" PRIu64 " and %" PRIu64 ", a plain file's %" PRIu64 " and %" PRIu64, (uint64_t)s[i].st_ino, (uint64_t)s[j].st_ino,
                           (uint64_t)o[i].st_ino, (uint64_t)o[j].st_ino);
}

void world_compare_all(struct world *w)
{
    compare_identities(w);
    maps_compare(w);
    for (int name = 0; name < NAMES; name++)
        world_compare_name(w, name);
    for (int i = 0; i < w->pair_count; i++) {
        world_compare_state(w, &w->pairs[i]);
        compare_file(w, &w->pairs[i]);
    }
}

void world_init(struct world *w, const char *dir, const char *oracle_dir, const char *prefix, uint64_t seed, int64_t size_max)
{
    memset(w, 0, sizeof *w);
    w->dir = dir;
    w->oracle_dir = oracle_dir;
    w->seed = w->random = seed;
    w->size_max = size_max;
    for (int i = 0; i < NAMES; i++)
        snprintf(w->names[i], sizeof w->names[i], "%s%c.dat", prefix, 'a' + i);
    w->buf = malloc(3 * (size_t)IO_BYTES_MAX);
    w->dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    w->oracle_dir_fd = open(oracle_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (w->buf == NULL || w->dir_fd < 0 || w->oracle_dir_fd < 0)
        world_fail(w, "%s and %s must be directories: %s", dir, oracle_dir, strerror(errno));
    if (pipe2(w->subject_pipe, O_CLOEXEC) != 0 || pipe2(w->oracle_pipe, O_CLOEXEC) != 0)
        world_fail(w, "pipe2: %s", strerror(errno));
    w->subject_buf = w->buf + IO_BYTES_MAX;
    w->oracle_buf = w->subject_buf + IO_BYTES_MAX;
}

void world_close(struct world *w)
{
    maps_end(w);
    while (w->pair_count > 0)
        op_close(w, w->pair_count - 1);
    close(w->dir_fd);
    close(w->oracle_dir_fd);
    for (int end = 0; end < 2; end++) {
        close(w->subject_pipe[end]);
        close(w->oracle_pipe[end]);
    }
    free(w->buf);
}

static void on_names(struct world *w)
{
    switch (world_below(w, 10)) {
    case 0: op_rename(w); break;
    case 1: op_unlink(w); break;
    case 2: op_truncate_name(w); break;
    case 3: op_access(w); break;
    case 4: op_link(w); break;
    case 5: op_replace(w); break;
    default: op_stat(w);
    }
}

/* Ways to the data around read and write. */
static void on_other_ways(struct world *w, struct pair *p, struct pair *other)
{
    switch (world_below(w, 12)) {
    case 0: op_copy(w, p, other); break;
    case 1: op_send(w, p, other); break;
    case 2: op_splice(w, p, other); break;
    case 3: op_aio(w, p); break;
    case 4: op_list(w, p); break;
    case 5:
    case 6: op_map(w, p); break;
    case 7:
    case 8: op_kept_map(w, p); break;
    case 9: op_reopen(w, p, other); break;
    default: op_stream(w, p);
    }
}

static void on_attributes(struct world *w, struct pair *p)
{
    switch (world_below(w, 3)) {
    case 0: op_mode(w, p); break;
    case 1: op_times(w, p); break;
    default: op_attribute(w, p);
    }
}

static void one_operation(struct world *w)
{
    uint64_t choice = world_below(w, 1000);
    if (w->pair_count == 0 || choice < 40) {
        op_open(w);
        return;
    }
    int index = (int)world_below(w, (uint64_t)w->pair_count);
    struct pair *p = &w->pairs[index], *other = &w->pairs[world_below(w, (uint64_t)w->pair_count)];
    if (choice < 300)
        op_read(w, p);
    else if (choice < 540)
        op_write(w, p);
    else if (choice < 560)
        on_attributes(w, p);
    else if (choice < 760)
        on_other_ways(w, p, other);
    else if (choice < 800)
        op_seek(w, p);
    else if (choice < 815)
        op_seek_data(w, p);
    else if (choice < 845)
        op_truncate(w, p);
    else if (choice < 870)
        op_fallocate(w, p);
    else if (choice < 885)
        op_sync(w, p);
    else if (choice < 900)
        op_duplicate(w, index);
    else if (choice < 930)
        op_close(w, index);
    else if (choice < 945)
        op_flags(w, p);
    else if (choice < 950)
        op_temporary(w);
    else if (choice < 952)
        op_fork(w);
    else if (choice < 954)
        op_exec(w);
    else if (choice < 956)
        op_standard(w, p, other);
    else
        on_names(w);
}

void world_run(struct world *w, uint64_t operations)
{
    for (uint64_t done = 0; done < operations; done++) {
        one_operation(w);
        if (done % COMPARE_ALL_EVERY == COMPARE_ALL_EVERY - 1)
            world_compare_all(w);
        w->operation++;
    }
    if (w->operation > 0)
        w->operation--;
    world_compare_all(w);
}
