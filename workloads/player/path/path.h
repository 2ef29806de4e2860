/*
 * A workload path (docs/formats.md, Workload path) as it lies in a mapped file.
 *
 * Nothing is copied or parsed: nodes and tables are read where they stand. path_open checks every number that leads somewhere, so that whoever goes over
 * the nodes needs to check none. It knows nothing of MPI.
 */
#ifndef PLAYER_PATH_H
#define PLAYER_PATH_H

#include <stddef.h>
#include <stdint.h>

enum { PATH_VERSION = 1, PATH_DEPTH_MAX = 64, PATH_FIRST_GROUP = 16, PATH_PROCESSES_MAX = 1 << 20, PATH_ERROR_BYTES = 512 };

/* Bytes of a file that a request in a view may go over. */
#define PATH_REACH_MAX ((uint64_t)1 << 62)

/* Bits of an open's `size`. */
enum { MODE_READ = 1, MODE_WRITE = 2, MODE_CREATE = 4, MODE_EXCLUSIVE = 8, MODE_TRUNCATE = 16, MODE_APPEND = 32, MODE_KNOWN = 63 };

enum { CLASS_ROOT, CLASS_SHARED, CLASS_PRIVATE };
enum { WHO_ALL, WHO_ROOT, WHO_ALL_BUT_ROOT, WHO_LAST, WHO_ALL_BUT_LAST };
enum { FLAG_ALONE = 1, FLAG_APART = 2, FLAG_TOGETHER = 4, FLAG_TOGETHER_REST = 8, FILE_PRESENT = 1, FILE_DIRECTORY = 2 };
enum { COMM_WORLD, COMM_SELF, COMM_BLOCKS, COMM_CONGRUENT };

struct path_header {
    char magic[8];
    uint32_t version, header_bytes, crc, processes;
    uint64_t file_bytes, seed, requests;
    uint32_t nodes, files, comms, groups, distributions, words, views, numbers, names;
    uint32_t unused[11];
};

struct path_node {
    uint8_t is_request, op, who, flags;
    uint32_t link; /* file of a request, nodes in the body of a loop */
    uint16_t comm, view;
    uint32_t table;
    int64_t at, at_rank, stride;
    uint64_t size; /* rounds of a loop */
    uint64_t slack_ns;
    uint32_t slack_first, slack_rest;
};

struct path_file {
    uint8_t class, flags, unused[2];
    uint32_t name_at, name_bytes, unused4;
    uint64_t bytes, unused8;
};

struct path_comm {
    uint32_t kind, ranks;
};

struct path_group {
    uint32_t kind, unused, a, b;
};

struct path_distribution {
    uint32_t kind, count;
    uint64_t first;
};

struct path_view {
    uint64_t piece, distance, pieces, tile;
};

struct path_numbers {
    int64_t at, stride;
    uint64_t size;
};

struct path {
    const struct path_header *header;
    const struct path_node *nodes;
    const struct path_file *files;
    const struct path_comm *comms;
    const struct path_group *groups;
    const struct path_distribution *distributions;
    const uint64_t *words;
    const struct path_view *views;
    const struct path_numbers *numbers;
    const char *names;
    size_t mapped_bytes;
};

/* Maps and checks a file. Returns 0, or -1 with one sentence in error (PATH_ERROR_BYTES). */
int path_open(struct path *path, const char *name, char *error);
void path_close(struct path *path);

/* A sum over all bytes of the file, which differs where paths do. */
uint64_t path_sum(const struct path *path);

/* Whether rank of processes makes requests of these. */
int path_takes_part(const struct path *path, unsigned who, uint32_t rank, uint32_t processes);

/* Where a path has no communicators, 0 is world. */
static inline struct path_comm path_comm_of(const struct path *path, unsigned comm)
{
    return path->header->comms ? path->comms[comm] : (struct path_comm){COMM_WORLD, 0};
}

/* Ranks with equal numbers are in one communicator of this kind. */
uint32_t path_colour(const struct path *path, unsigned comm, uint32_t rank);

/* Place, stride and size of a node for a rank. */
static inline struct path_numbers path_numbers_of(const struct path *path, const struct path_node *node, uint32_t rank)
{
    if (node->table)
        return path->numbers[(uint64_t)(node->table - 1) * path->header->processes + rank];
    return (struct path_numbers){(int64_t)((uint64_t)node->at + (uint64_t)node->at_rank * rank), node->stride, node->size};
}

/* The seed of a rank where each draws for itself. */
uint64_t path_seed_of(uint64_t seed, uint32_t rank);

/* Slack in ns from a distribution (from 1): a function of seed, node and round. */
uint64_t path_draw(const struct path *path, uint32_t distribution, uint64_t seed, uint64_t node, uint64_t round);

/* Whether so many processes can play it: collective calls, and requests before which all ranks wait for each other, must match. Returns 0, or -1 with one
 * sentence. */
int path_playable(const struct path *path, uint32_t processes, char *error);

/* Nodes of this range are not needed soon: their memory goes. Whoever goes over all nodes calls it every PATH_WINDOW of them (4 MiB). */
enum { PATH_WINDOW = 1 << 16 };
void path_drop(const struct path *path, uint32_t from, uint32_t to);

#endif
