/* Following the opens of files: see opened.h. */
#include "opened.h"

#include <stdio.h>
#include <stdlib.h>

#include "ops.h"

static const char cure[] = "its opens differ in their communicator, so let those who open it close it, in the same loop";

struct open {
    struct open *below;
    struct path_comm comm;
    unsigned who, depth;
};

struct opened {
    struct opened_file {
        struct path_comm only;
        unsigned char is_opened, is_several;
        struct open *last;
    } *files;
    uint32_t count;
    uint32_t by_depth[PATH_DEPTH_MAX + 2];
};

static int are_same(struct path_comm one, struct path_comm other)
{
    return one.kind == other.kind && (one.kind < COMM_BLOCKS || one.ranks == other.ranks);
}

struct opened *opened_begin(const struct path *path)
{
    struct opened *opened = calloc(1, sizeof *opened);
    if (!opened || !(opened->files = calloc(path->header->files + 1u, sizeof *opened->files))) {
        free(opened);
        return NULL;
    }
    opened->count = path->header->files;
    uint32_t dropped = 0;
    for (uint32_t i = 0; i < path->header->nodes; i++) {
        const struct path_node *node = &path->nodes[i];
        if (i - dropped >= PATH_WINDOW) {
            path_drop(path, dropped, i);
            dropped = i;
        }
        if (!node->is_request || node->op != OP_MPI_OPEN)
            continue;
        struct opened_file *file = &opened->files[node->link];
        struct path_comm comm = path_comm_of(path, node->comm);
        if (!file->is_opened)
            file->only = comm;
        file->is_several |= !are_same(file->only, comm);
        file->is_opened = 1;
    }
    return opened;
}

static void pop(struct opened *opened, struct opened_file *file)
{
    struct open *last = file->last;
    file->last = last->below;
    opened->by_depth[last->depth]--;
    free(last);
}

void opened_end(struct opened *opened)
{
    if (!opened)
        return;
    for (uint32_t i = 0; i < opened->count; i++)
        while (opened->files[i].last)
            pop(opened, &opened->files[i]);
    free(opened->files);
    free(opened);
}

int opened_end_loop(struct opened *opened, unsigned depth, uint32_t before, char *error)
{
    if (opened->by_depth[depth + 1] == 0)
        return 0;
    uint32_t file = 0;
    while (file + 1 < opened->count && !(opened->files[file].last && opened->files[file].last->depth > depth))
        file++;
    snprintf(error, PATH_ERROR_BYTES, "a loop that ends before node %u leaves file %u open; %s", before, file, cure);
    return -1;
}

/* Whether the node, or a loop around it from a place on, is for these ranks. */
static int is_of(const struct path *path, const uint32_t *nodes, unsigned from, unsigned depth, unsigned who)
{
    for (unsigned i = from; i <= depth; i++)
        if (path->nodes[nodes[i]].who == who)
            return 1;
    return 0;
}

int opened_see(struct opened *opened, const struct path *path, const uint32_t *nodes, unsigned depth, char *error)
{
    const struct path_node *node = &path->nodes[nodes[depth]];
    struct opened_file *file = &opened->files[node->link];
    struct path_comm comm = path_comm_of(path, node->comm);
    const char *fault = NULL, *why = "";
    if (node->op == OP_MPI_DELETE || !file->is_opened)
        return 0;
    struct open *last = file->last;
    if (!file->is_several) {
        fault = are_same(file->only, comm) ? NULL : "its communicator is another than that of the file's open";
    } else if (node->op == OP_MPI_OPEN) {
        struct open *open = malloc(sizeof *open);
        if (!open) {
            fault = "no memory to check it with";
        } else {
            *open = (struct open){last, comm, node->who, depth};
            file->last = open;
            opened->by_depth[depth]++;
        }
    } else if (!last) {
        fault = "the file is not open; ";
        why = cure;
    } else if (!are_same(last->comm, comm)) {
        fault = "its communicator is another than that of the file's open";
    } else if ((node->op == OP_MPI_CLOSE && (last->who != node->who || last->depth != depth))
               || (last->who != WHO_ALL && !is_of(path, nodes, last->depth, depth, last->who))) {
        fault = "not all who make it have opened the file last; ";
        why = cure;
    } else if (node->op == OP_MPI_CLOSE) {
        pop(opened, file);
    }
    if (fault)
        snprintf(error, PATH_ERROR_BYTES, "node %u (%s): %s%s", nodes[depth], op_facts[node->op].name, fault, why);
    return fault ? -1 : 0;
}
