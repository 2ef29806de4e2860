/* What the parts of the player share: one rank's state, its files, its counts. */
#ifndef PLAYER_PLAY_H
#define PLAYER_PLAY_H

#include <mpi.h>
#include <stddef.h>
#include <stdint.h>

#include "known.h"
#include "path/ops.h"
#include "path/path.h"
#include "path/walk.h"

enum { BUCKETS = 16 * 40 };

/* A nonblocking request that nobody has waited for. */
struct pending {
    struct pending *next;
    struct pending *before_all, *after_all; /* of the collective ones of all files; NULL for others */
    const struct file *file;
    const struct handle *handle;
    MPI_Request request;
    unsigned char *buffer; /* to be freed; NULL where the bytes lie in the row of contents */
    uint64_t position, bytes; /* in the view */
    int is_read;
};

/* A mapping that munmap takes away. */
struct mapping {
    struct mapping *below;
    void *base;
    size_t bytes;
};

/* An open file; a file may be open several times, and the last open is what requests go to. */
struct handle {
    struct handle *below;
    int fd;             /* POSIX */
    void *directory;    /* DIR * */
    MPI_File file;      /* MPI */
    uint64_t position;  /* of the pointer: of the descriptor, or in the view */
    int mode, locks;
    uint64_t displacement;
    const struct path_view *view; /* NULL: bytes as they lie */
    struct pending *oldest, *youngest;
    struct mapping *mappings;
};

struct file {
    char *name; /* below the directory that was given, which is its begin */
    uint64_t key;
    int is_strict; /* nobody else takes bytes away: what was written stays */
    int has_gaps;  /* written through a view: MPI-IO may write what lies between its pieces, and beyond the end that is whatever its buffer held */
    int is_made;   /* a mkdir of the path makes it */
    int is_altered; /* a directory that the path makes, removes, renames or changes: none of the user's */
    struct known known;
    struct handle *posix, *mpi;
};

struct counts {
    uint64_t ops[OPS_MAX];
    uint64_t bytes_read, bytes_written, verified_bytes, unwritten_bytes, wrong_bytes, short_bytes, refused;
    uint64_t slack_errors[BUCKETS]; /* by 16 buckets for each power of two of ns */
};

struct player {
    struct path path;
    struct file *files;
    MPI_Comm *comms;
    MPI_Comm all; /* where ranks wait for each other: no call on a file is made on it */
    const char *directory;
    struct pending *collectives; /* begun, and not yet waited for */
    int rank, processes, node_rank, node_ranks, cores;
    int is_prepared;   /* the files have been made, and looked at, by another run */
    int is_fast;       /* no slack */
    uint64_t ended_ns; /* when the last call ended, before its bytes were compared; unknown where is_fast */
    double speed;
    unsigned char *read_buffer;
    size_t read_bytes_max;
    int *error_said; /* shared by the ranks of a node; NULL before there is one */
    struct counts counts;
    /* For messages: what is being played. */
    struct request current;
    char first_wrong[256];
};

/* Ends all ranks with one message, from whichever rank fails first. Does not return. */
__attribute__((noreturn, format(printf, 2, 3))) void play_fail(struct player *player, const char *form, ...);
/* The same for what a call on the current file has left in errno, and for an MPI error. */
__attribute__((noreturn)) void play_fail_errno(struct player *player, int error);
void play_require(struct player *player, int code);

/* Prints one line of an error, control characters (of names) as \xNN. */
void play_say(const char *text);

/* To be called right after each call. */
void play_ended(struct player *player);

/* files.c */
void files_begin(struct player *player, char *error);
/* What is there must not be harmed: no links, not the path itself, and unless files may exist nothing that the path writes. */
int files_check(struct player *player, const char *path_name, int may_exist, char *error);
int files_prepare(struct player *player, int replace, char *error);

/* verify.c: bytes read or written at places of the current file, in a view or not. */
const unsigned char *bytes_to_write(struct player *player, struct file *file, const struct handle *handle, uint64_t position, uint64_t bytes,
                                    unsigned char **made);
void bytes_written(struct player *player, struct file *file, const struct handle *handle, uint64_t position, uint64_t bytes);
void bytes_read(struct player *player, struct file *file, const struct handle *handle, uint64_t position, const unsigned char *buffer, uint64_t asked,
                uint64_t bytes);
/* From an offset of the file to a place in the view, and back. */
uint64_t view_position(const struct handle *handle, uint64_t offset);
/* Whether a request in a view stays within PATH_REACH_MAX bytes of its file. */
int view_reaches(const struct handle *handle, uint64_t position, uint64_t bytes);
uint64_t view_offset(const struct handle *handle, uint64_t position);

void posix_play(struct player *player, const struct request *request, struct file *file);
void mpi_play(struct player *player, const struct request *request, struct file *file);
void mpi_finish(struct player *player, struct file *file);
/* ROMIO takes a nonblocking collective further only where it is asked for it: who waits for anything else asks meanwhile. */
void mpi_advance(struct player *player);

/* pace.c */
uint64_t now_ns(void);
void pace_begin(void);
/* Waits until slack has passed since a time, which is exact where every rank has a core; notes by how much it was missed. */
void pace_wait(struct player *player, uint64_t since_ns, uint64_t slack_ns);

/* Waits for all ranks; when that was over. */
uint64_t pace_together(struct player *player);

/* report.c */
void report(struct player *player, double seconds);

#endif
