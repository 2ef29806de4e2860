/* Which bytes of a file this rank knows to be written: what it reads there must be content, elsewhere zeros may be as well. */
#ifndef PLAYER_KNOWN_H
#define PLAYER_KNOWN_H

#include <stdint.h>

struct known_range {
    uint64_t from, to;
};

/* Disjoint ranges in ascending order. Beyond KNOWN_MAX of them new ones are forgotten: less is claimed, never more. */
enum { KNOWN_MAX = 1024 };
struct known {
    struct known_range *ranges;
    unsigned count, room;
};

void known_add(struct known *known, uint64_t from, uint64_t to);
/* Whether a place is known to be written; up to `end` (at most `to`) its neighbours are as it is. */
int known_at(const struct known *known, uint64_t from, uint64_t to, uint64_t *end);
void known_forget(struct known *known);

#endif
