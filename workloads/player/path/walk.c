/* Going over a path: see walk.h. crates/workpath/src/expand.rs does the same, and a test compares both. */
#include "walk.h"

void walk_begin(struct walk *walk, const struct path *path, uint32_t rank, uint32_t processes)
{
    walk->path = path;
    walk->rank = rank;
    walk->processes = processes;
    walk->at = 0;
    walk->dropped = 0;
    walk->depth = 0;
    walk->made = 0;
    walk->seeds[0] = path->header->seed;
    walk->seeds[1] = path_seed_of(path->header->seed, rank);
}

static void end_rounds(struct walk *walk)
{
    while (walk->depth) {
        struct walk_loop *loop = &walk->loops[walk->depth - 1];
        if (loop->end != walk->at)
            return;
        /* A body without a request for this rank has none in any round. */
        if (++loop->round < loop->rounds && loop->made < walk->made) {
            loop->counted = loop->before + loop->round;
            walk->at = loop->first;
            walk->dropped = walk->at;
            return;
        }
        walk->depth--;
    }
}

int walk_next(struct walk *walk, struct request *request)
{
    const struct path *path = walk->path;
    for (;;) {
        end_rounds(walk);
        if (walk->at >= path->header->nodes)
            return 0;
        uint32_t index = walk->at++;
        if (index >= walk->dropped + PATH_WINDOW) {
            path_drop(path, walk->dropped, index);
            walk->dropped = index;
        }
        const struct path_node *node = &path->nodes[index];
        int takes_part = node->who == WHO_ALL || path_takes_part(path, node->who, walk->rank, walk->processes);
        if (!takes_part) {
            walk->at += node->is_request ? 0 : node->link;
            continue;
        }
        struct path_numbers own = path_numbers_of(path, node, walk->rank);
        struct walk_loop *loop = walk->depth ? &walk->loops[walk->depth - 1] : 0;
        uint64_t round = loop ? loop->round : 0, counted = loop ? loop->counted : 0;
        int64_t place = (int64_t)((uint64_t)(loop ? loop->base : 0) + (uint64_t)own.at + (uint64_t)own.stride * round);
        if (!node->is_request) {
            if (own.size == 0) {
                walk->at += node->link;
                continue;
            }
            uint64_t before = counted * own.size;
            walk->loops[walk->depth++] = (struct walk_loop){(uint64_t)walk->at + node->link, own.size, 0, before, before, walk->made, walk->at, place};
            continue;
        }
        walk->made++;
        uint32_t drawn = round == 0 ? node->slack_first : node->slack_rest;
        uint64_t seed = walk->seeds[node->flags & FLAG_APART ? 1 : 0];
        int is_together = (node->flags & (round == 0 ? FLAG_TOGETHER : FLAG_TOGETHER_REST)) != 0;
        uint64_t slack_ns = drawn ? path_draw(path, drawn, seed, index, counted) : node->slack_ns;
        *request = (struct request){node, index, place, own.size, slack_ns, is_together};
        return 1;
    }
}
