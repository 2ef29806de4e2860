/*
 * randops: random file operations, each done twice: on a subject (a managed file, or any) and on a plain oracle file elsewhere.
 *
 * After every operation return values, errno, sizes, offsets and the bytes around it must be the same; all bytes of all files are compared every few
 * operations. A world is one such set of files and descriptors; every process or thread has its own.
 */
#ifndef RANDOPS_H
#define RANDOPS_H

#include <limits.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { NAMES = 4, PAIRS_MAX = 12, KEPT_MAPS = 4, HISTORY = 24, IO_BYTES_MAX = 320 << 10, FALLOCATE_MODES = 4 };

struct pair {
    int subject, oracle;
    int reads, writes; /* by access mode */
};

/* A map that lives on over other operations, with descriptors of its own to know the file's size by. */
struct kept_map {
    unsigned char *subject, *oracle;
    int protection, flags;
    int64_t offset;
    size_t length;
    struct pair file;
};

struct world {
    uint64_t seed, random, operation;
    const char *dir, *oracle_dir;
    int dir_fd, oracle_dir_fd;
    char names[NAMES][32];
    int64_t size_max;
    struct pair pairs[PAIRS_MAX];
    int pair_count;
    struct kept_map kept[KEPT_MAPS];
    int kept_count;
    int threaded; /* descriptor numbers may be reused by others at any moment */
    int nested;   /* in a forked or executed child: no children of its own */
    char history[HISTORY][160];
    uint64_t fallocate_seen[FALLOCATE_MODES]; /* 1 carried, 2 refused: must not change */
    uint32_t records; /* appended to the shared log so far */
    int subject_pipe[2], oracle_pipe[2];
    unsigned char *buf, *subject_buf, *oracle_buf;
};

/* engine.c */
void world_init(struct world *w, const char *dir, const char *oracle_dir, const char *prefix, uint64_t seed, int64_t size_max);
void world_run(struct world *w, uint64_t operations);
void world_compare_all(struct world *w);
void world_close(struct world *w);
uint64_t world_random(struct world *w);
uint64_t world_below(struct world *w, uint64_t bound);
int64_t world_offset(struct world *w); /* 0..size_max, often near a border */
size_t world_length(struct world *w);
void world_note(struct world *w, const char *form, ...) __attribute__((format(printf, 2, 3)));
void world_fail(struct world *w, const char *form, ...) __attribute__((format(printf, 2, 3), noreturn));
/* Both results alike? errno counts when they are negative. Returns whether both succeeded. */
int world_same(struct world *w, int64_t subject, int subject_errno, int64_t oracle, int oracle_errno);
void world_compare_state(struct world *w, const struct pair *pair);
void world_compare_range(struct world *w, const struct pair *pair, int64_t offset, int64_t length);
void world_compare_name(struct world *w, int name);
void world_path(const struct world *w, int oracle, int name, char path[PATH_MAX]);

/* data.c */
void world_fill(struct world *w, size_t length);         /* bytes to write into buf: never zero, so that they differ from a hole */
void world_bound(struct world *w, struct pair *p);       /* writers must not grow a file without end */

/* tally.c: what a run has exercised. Alike: it failed, and so it did on a plain file. */
enum kind { COPY, SEND, SPLICE, AIO, LIST, MAP_READ, MAP_WRITE, STREAM, REOPEN, STANDARD, LINK, REPLACE, MODE, TIMES, ATTRIBUTE, EXECUTE, KINDS };
enum outcome { CARRIED, ALIKE, OUTCOMES };
void tally_start(void);
void tally(enum kind kind, enum outcome outcome);
void tally_print(void);

/* One operation each, chosen by engine.c */
void op_read(struct world *w, struct pair *p);
void op_write(struct world *w, struct pair *p);
void op_seek(struct world *w, struct pair *p);
void op_seek_data(struct world *w, struct pair *p);
void op_truncate(struct world *w, struct pair *p);
void op_fallocate(struct world *w, struct pair *p);
void op_sync(struct world *w, struct pair *p);
void op_open(struct world *w);
void op_temporary(struct world *w);
void op_close(struct world *w, int index);
void op_duplicate(struct world *w, int index);
void op_flags(struct world *w, struct pair *p);
void op_fork(struct world *w);
void op_exec(struct world *w);
void op_stat(struct world *w);
void op_truncate_name(struct world *w);
void op_rename(struct world *w);
void op_unlink(struct world *w);
void op_access(struct world *w);
void op_copy(struct world *w, struct pair *from, struct pair *to);
void op_send(struct world *w, struct pair *from, struct pair *to);
void op_splice(struct world *w, struct pair *from, struct pair *to);
void op_aio(struct world *w, struct pair *p);
void op_list(struct world *w, struct pair *p);
void op_map(struct world *w, struct pair *p);
void op_kept_map(struct world *w, struct pair *p);
void maps_compare(struct world *w);
void maps_end(struct world *w);
void op_stream(struct world *w, struct pair *p);
void op_reopen(struct world *w, struct pair *p, struct pair *other);
void op_standard(struct world *w, struct pair *p, struct pair *other);
void op_link(struct world *w);
void op_replace(struct world *w);
void op_mode(struct world *w, struct pair *p);
void op_times(struct world *w, struct pair *p);
void op_attribute(struct world *w, struct pair *p);

/* leaks.c: a run must leave as many descriptors and about as many memory areas as there were. */
struct leaks {
    int descriptors, areas;
};
struct leaks leaks_now(void);
void leaks_check(const struct leaks *before);

/* shared.c: several workers on the same files. Each returns only when all is well. */
void shared_prepare(const char *dir, const char *oracle_dir);
void shared_work(struct world *w, int worker, uint64_t operations, int last);
void shared_finish(const char *dir, int workers);

/* main.c */
extern const char *program_path;

#endif
