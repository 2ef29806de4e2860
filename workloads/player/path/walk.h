/* The requests of one rank, one after the other: loops expanded as they are gone over, in constant memory. */
#ifndef PLAYER_WALK_H
#define PLAYER_WALK_H

#include "path.h"

struct request {
    const struct path_node *node;
    uint32_t index;    /* of the node */
    int64_t offset;    /* of the file; meaningless where the operation has none */
    uint64_t size;
    uint64_t slack_ns;
    int is_together; /* all ranks wait for each other before the slack */
};

struct walk_loop {
    uint64_t end, rounds, round, counted, before, made;
    uint32_t first;
    int64_t base;
};

struct walk {
    const struct path *path;
    uint32_t rank, processes, at, dropped;
    unsigned depth;
    uint64_t made; /* requests so far */
    uint64_t seeds[2]; /* shared, own */
    struct walk_loop loops[PATH_DEPTH_MAX];
};

void walk_begin(struct walk *walk, const struct path *path, uint32_t rank, uint32_t processes);

/* 1 with the next request, 0 at the end. */
int walk_next(struct walk *walk, struct request *request);

#endif
