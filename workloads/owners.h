/*
 * Who wrote which part of the file in this run, so that a lost or stale write is found and not only a garbled one.
 *
 * Every rank replays the write requests of all ranks into a table with one entry per granule: nobody, one rank, or several.
 */
#ifndef STRIPEWISE_OWNERS_H
#define STRIPEWISE_OWNERS_H

#include <stdint.h>
#include "content.h"
#include "pattern.h"

struct owners {
    uint16_t *writers; /* 0 nobody, r + 1 rank r, OWNERS_SEVERAL; NULL while nothing was written */
    uint64_t granules;
    uint64_t granule_bytes;
    uint64_t fill_share_bytes; /* what each rank filled; 0 = this run did not fill */
    uint32_t run;
    unsigned processes;
    int holes_legal;
};

/* Note the write phase: writes requests of each rank. Returns 0, or -1 when there is no memory for the table. */
int owners_note_writes(struct owners *owners, const struct pattern *pattern, uint64_t file_bytes, uint64_t writes);
void owners_free(struct owners *owners);

/* Check bytes [offset, offset + length) of the file against what this run knows about them. Returns the number of wrong bytes. */
uint64_t owners_verify(const struct owners *owners, struct content_check *check, const unsigned char *buf, uint64_t offset, uint64_t length);

#endif
