/* Ranges that are known to be written: see known.h. */
#include "known.h"

#include <stdlib.h>
#include <string.h>

/* The first range that ends at or behind a place. */
static unsigned find(const struct known *known, uint64_t at)
{
    unsigned low = 0, high = known->count;
    if (high && known->ranges[high - 1].to < at)
        return high;
    while (low < high) {
        unsigned middle = low + (high - low) / 2;
        if (known->ranges[middle].to >= at)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static int make_room(struct known *known)
{
    if (known->count < known->room)
        return 1;
    unsigned room = known->room ? 2 * known->room : 16;
    if (room > KNOWN_MAX)
        return 0;
    struct known_range *grown = realloc(known->ranges, room * sizeof *grown);
    if (!grown)
        return 0;
    known->ranges = grown;
    known->room = room;
    return 1;
}

void known_add(struct known *known, uint64_t from, uint64_t to)
{
    if (from >= to)
        return;
    unsigned at = find(known, from), after = at;
    while (after < known->count && known->ranges[after].from <= to) {
        from = known->ranges[after].from < from ? known->ranges[after].from : from;
        to = known->ranges[after].to > to ? known->ranges[after].to : to;
        after++;
    }
    if (after == at && !make_room(known))
        return;
    if (after != at + 1)
        memmove(known->ranges + at + 1, known->ranges + after, (known->count - after) * sizeof *known->ranges);
    known->count = known->count + 1 - (after - at);
    known->ranges[at] = (struct known_range){from, to};
}

int known_at(const struct known *known, uint64_t from, uint64_t to, uint64_t *end)
{
    unsigned at = find(known, from);
    if (at < known->count && known->ranges[at].to == from)
        at++;
    int is_known = at < known->count && known->ranges[at].from <= from;
    *end = to;
    if (at < known->count && (is_known ? known->ranges[at].to : known->ranges[at].from) < to)
        *end = is_known ? known->ranges[at].to : known->ranges[at].from;
    return is_known;
}

void known_forget(struct known *known)
{
    known->count = 0;
}
