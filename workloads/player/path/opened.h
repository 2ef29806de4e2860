/*
 * The communicators of files as a path opens them, in preorder; crates/workpath/src/matching.rs does the same.
 *
 * A file that is always opened on the same one needs no more. Of others it is followed who has opened them where: in each loop they must be closed again by
 * who opened them, so that all rounds and ranks find the same.
 */
#ifndef PLAYER_OPENED_H
#define PLAYER_OPENED_H

#include "path.h"

struct opened;

/* NULL where there is no memory. */
struct opened *opened_begin(const struct path *path);
void opened_end(struct opened *opened);

/* An operation of the mpi layer, whose node is the last of depth + 1, the loops around it before. 0, or -1 with one sentence. */
int opened_see(struct opened *opened, const struct path *path, const uint32_t *nodes, unsigned depth, char *error);

/* A loop ends before a node, and so many are left. */
int opened_end_loop(struct opened *opened, unsigned depth, uint32_t before, char *error);

#endif
