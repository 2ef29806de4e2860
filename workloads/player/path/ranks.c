/* Which ranks make a request, which open a file together, how long they wait, and whether their collective calls match: see path.h. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "opened.h"
#include "ops.h"
#include "path.h"

int path_takes_part(const struct path *path, unsigned who, uint32_t rank, uint32_t processes)
{
    switch (who) {
    case WHO_ALL: return 1;
    case WHO_ROOT: return rank == 0;
    case WHO_ALL_BUT_ROOT: return rank != 0;
    case WHO_LAST: return rank + 1 == processes;
    case WHO_ALL_BUT_LAST: return rank + 1 != processes;
    default: break;
    }
    const struct path_group *group = &path->groups[who - PATH_FIRST_GROUP];
    if (rank == 0)
        return 0;
    if (group->kind == 1)
        return rank % group->a == group->b;
    uint64_t at = (uint64_t)rank << 16;
    return (uint64_t)group->a * processes <= at && at < (uint64_t)group->b * processes;
}

uint32_t path_colour(const struct path *path, unsigned comm, uint32_t rank)
{
    struct path_comm is = path_comm_of(path, comm);
    switch (is.kind) {
    case COMM_SELF: return rank;
    case COMM_BLOCKS: return rank / is.ranks;
    case COMM_CONGRUENT: return rank % is.ranks;
    default: return 0;
    }
}

/* The finaliser of splitmix64. */
static uint64_t mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

uint64_t path_seed_of(uint64_t seed, uint32_t rank)
{
    return mix(seed ^ mix(~(uint64_t)rank));
}

uint64_t path_draw(const struct path *path, uint32_t distribution, uint64_t seed, uint64_t node, uint64_t round)
{
    const struct path_distribution *is = &path->distributions[distribution - 1];
    const uint64_t *own = path->words + is->first;
    uint64_t random = mix(mix(seed ^ mix(node)) ^ round);
    if (is->kind == 0) {
        uint64_t total = own[2 * (uint64_t)is->count - 1];
        uint64_t drawn = (uint64_t)((unsigned __int128)random * total >> 64);
        uint32_t low = 0, high = is->count - 1;
        while (low < high) {
            uint32_t middle = low + (high - low) / 2;
            if (own[2 * (uint64_t)middle + 1] > drawn)
                high = middle;
            else
                low = middle + 1;
        }
        return own[2 * (uint64_t)low];
    }
    uint64_t place = (random >> 32) * (is->count - 1);
    uint64_t from = own[place >> 32], to = (place >> 32) + 1 < is->count ? own[(place >> 32) + 1] : from;
    return from + (uint64_t)((unsigned __int128)(to - from) * (place & 0xffffffffu) >> 32);
}

/* The loops around a node, and the node. */
struct chain {
    uint32_t of[PATH_DEPTH_MAX + 1];
    unsigned length;
};

/* How often a rank makes what a node says, each time that it comes there. */
static uint64_t rounds_of(const struct path *path, const struct path_node *node, uint32_t rank, uint32_t processes)
{
    if (!path_takes_part(path, node->who, rank, processes))
        return 0;
    return node->is_request ? 1 : path_numbers_of(path, node, rank).size;
}

/* Whether two ranks make the call in the same rounds of all loops: equal totals may come in another order. */
static int are_alike(const struct path *path, const struct chain *chain, uint32_t one, uint32_t other, uint32_t processes)
{
    for (unsigned i = 0; i < chain->length; i++) {
        const struct path_node *node = &path->nodes[chain->of[i]];
        uint64_t made = rounds_of(path, node, one, processes);
        if (made != rounds_of(path, node, other, processes))
            return 0;
        if (made == 0)
            return 1;
    }
    return 1;
}

static int is_for_all(const struct path *path, const struct chain *chain)
{
    for (unsigned i = 0; i < chain->length; i++) {
        const struct path_node *node = &path->nodes[chain->of[i]];
        if (node->who != WHO_ALL || (!node->is_request && node->table))
            return 0;
    }
    return 1;
}

/* Whether the ranks of each communicator make the last node of a chain in equal rounds; where all ranks wait for each other before it, all ranks. */
static int matches(const struct path *path, const struct chain *chain, int is_together, uint32_t processes, uint32_t *first, char *error)
{
    uint32_t index = chain->of[chain->length - 1];
    const struct path_node *node = &path->nodes[index];
    if (is_for_all(path, chain))
        return 0;
    for (uint32_t rank = 0; rank < processes; rank++)
        first[rank] = UINT32_MAX;
    for (uint32_t rank = 0; rank < processes; rank++) {
        uint32_t *one = &first[is_together ? 0 : path_colour(path, node->comm, rank)];
        if (*one == UINT32_MAX)
            *one = rank;
        if (are_alike(path, chain, *one, rank, processes))
            continue;
        if (is_together)
            snprintf(error, PATH_ERROR_BYTES,
                     "node %u (%s): rank %u waits for all ranks before it in other rounds than rank %u; let all ranks make it, in loops of equal rounds",
                     index, op_facts[node->op].name, rank, *one);
        else
            snprintf(error, PATH_ERROR_BYTES,
                     "node %u (%s): rank %u makes this collective call in other rounds than rank %u of its communicator; let all ranks make it, in loops of "
                     "equal rounds", index, op_facts[node->op].name, rank, *one);
        return -1;
    }
    return 0;
}

static int check_calls(const struct path *path, uint32_t processes, uint32_t *first, struct opened *opened, char *error)
{
    struct chain chain = {.length = 0};
    uint64_t ends[PATH_DEPTH_MAX];
    uint32_t dropped = 0;
    for (uint32_t i = 0;; i++) {
        const struct path_node *node = &path->nodes[i];
        while (chain.length && ends[chain.length - 1] == i)
            if (opened_end_loop(opened, --chain.length, i, error) != 0)
                return -1;
        if (i >= path->header->nodes)
            return 0;
        chain.of[chain.length] = i;
        if (!node->is_request) {
            ends[chain.length++] = (uint64_t)i + 1 + node->link;
            continue;
        }
        if (i - dropped >= PATH_WINDOW) {
            path_drop(path, dropped, i);
            dropped = i;
        }
        int is_mpi = op_facts[node->op].layer == MPI, is_together = (node->flags & (FLAG_TOGETHER | FLAG_TOGETHER_REST)) != 0;
        int is_collective = is_mpi && op_facts[node->op].collective && path_comm_of(path, node->comm).kind != COMM_SELF;
        chain.length++;
        int is_playable = (!is_together || matches(path, &chain, 1, processes, first, error) == 0)
                          && (!is_mpi || opened_see(opened, path, chain.of, chain.length - 1, error) == 0)
                          && (!is_collective || matches(path, &chain, 0, processes, first, error) == 0);
        chain.length--;
        if (!is_playable)
            return -1;
    }
}

int path_playable(const struct path *path, uint32_t processes, char *error)
{
    uint32_t fixed = path->header->processes;
    if (processes == 0 || processes > PATH_PROCESSES_MAX) {
        snprintf(error, PATH_ERROR_BYTES, "%u processes are not from 1 to %d", processes, PATH_PROCESSES_MAX);
        return -1;
    }
    if (fixed && fixed != processes) {
        snprintf(error, PATH_ERROR_BYTES, "the path is for %u processes, not %u; use -n %u, or 'stripewise synth' with -n %u", fixed, processes, fixed,
                 processes);
        return -1;
    }
    uint32_t *first = malloc(processes * sizeof *first);
    struct opened *opened = opened_begin(path);
    int is_playable = -1;
    if (first && opened)
        is_playable = check_calls(path, processes, first, opened, error);
    else
        snprintf(error, PATH_ERROR_BYTES, "no memory to check the path with");
    free(first);
    opened_end(opened);
    return is_playable;
}
