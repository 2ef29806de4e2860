/*
 * Access patterns: which bytes request i of a rank touches, as plain arithmetic.
 *
 * A request is one piece or several pieces of equal size. All pieces lie on a grid of granules, so that the writers of the whole file can
 * be kept in one small table (owners.h). Requests past requests_max walk over the rank's share again.
 */
#ifndef STRIPEWISE_PATTERN_H
#define STRIPEWISE_PATTERN_H

#include <stddef.h>
#include <stdint.h>
#include "options.h"

struct pattern {
    enum pattern_kind kind;
    uint64_t seed;
    uint64_t processes;
    uint64_t request_bytes;
    uint64_t pieces;        /* of a request; 1 where requests are contiguous */
    uint64_t granule_bytes; /* of a piece */
    uint64_t slots;         /* whole requests that fit in the file */
    uint64_t requests_max;  /* requests of one rank that cover its share once */
    uint64_t inner;         /* nested: pieces of an inner group; tiles: processes across */
    uint64_t outer;         /* nested: groups; tiles: processes down */
    uint64_t region_bytes;  /* zipf */
    uint64_t regions;
    double *cumulative;      /* zipf: share of the requests that popularity ranks 0..k get */
    uint64_t *rank_to_region; /* zipf: where the region of a popularity rank lies in window 0 */
    uint64_t shift;           /* zipf: popularity ranks that move down from window to window */
    uint64_t window_requests[2]; /* of one rank: written, read; 0 = one window */
};

/* Returns 0, or -1 with one sentence in text. */
int pattern_init(struct pattern *pattern, const struct options *options, uint64_t processes, char *text, size_t text_bytes);
void pattern_free(struct pattern *pattern);

/* First byte of a request. phase: 0 write, 1 read; the random patterns draw other requests in each. */
uint64_t pattern_offset(const struct pattern *pattern, uint64_t rank, unsigned phase, uint64_t request);

/* The window that a request belongs to; the request's phase as above. */
uint64_t pattern_window(const struct pattern *pattern, unsigned phase, uint64_t request);

/* Offset of one piece of the request that begins at first_offset. */
uint64_t pattern_piece(const struct pattern *pattern, uint64_t first_offset, uint64_t piece);

/* Whether MPI must see the request through a file view (view.h). */
int pattern_needs_view(const struct pattern *pattern);

/* nested: the second half of a rank's requests fills the gaps of the first; each half has a view of its own. */
unsigned pattern_half(const struct pattern *pattern, uint64_t request);

/* The request's offset in the data of its view. */
uint64_t pattern_view_offset(const struct pattern *pattern, uint64_t request);

#endif
