/* The table of writers, and the rule that it gives for any range of the file. See owners.h. */
#include "owners.h"

#include <stdlib.h>

enum { OWNERS_SEVERAL = 0xffff };

int owners_note_writes(struct owners *owners, const struct pattern *pattern, uint64_t file_bytes, uint64_t writes)
{
    owners->granule_bytes = pattern->granule_bytes;
    owners->granules = file_bytes / pattern->granule_bytes;
    owners->writers = calloc(owners->granules, sizeof *owners->writers);
    if (owners->writers == NULL)
        return -1;
    for (uint64_t rank = 0; rank < pattern->processes; rank++) {
        uint16_t mine = (uint16_t)(rank + 1);
        for (uint64_t i = 0; i < writes; i++) {
            uint64_t first = pattern_offset(pattern, rank, 0, i);
            for (uint64_t k = 0; k < pattern->pieces; k++) {
                uint16_t *entry = &owners->writers[pattern_piece(pattern, first, k) / pattern->granule_bytes];
                *entry = *entry == 0 || *entry == mine ? mine : OWNERS_SEVERAL;
            }
        }
    }
    return 0;
}

void owners_free(struct owners *owners)
{
    free(owners->writers);
}

/* The rule at an offset, and how far it reaches; not looked for beyond limit. */
static struct content_rule rule_at(const struct owners *owners, uint64_t offset, uint64_t limit, uint64_t *end)
{
    uint16_t writer = 0;
    *end = UINT64_MAX;
    if (owners->writers != NULL && offset / owners->granule_bytes < owners->granules) {
        uint64_t granule = offset / owners->granule_bytes;
        writer = owners->writers[granule];
        do
            *end = ++granule * owners->granule_bytes;
        while (writer != OWNERS_SEVERAL && *end < limit && granule < owners->granules && owners->writers[granule] == writer);
        if (granule == owners->granules && writer == 0)
            *end = UINT64_MAX;
    }
    if (writer == OWNERS_SEVERAL)
        return (struct content_rule){.first = content_stamp(owners->run, CONTENT_PHASE_WRITE, 0),
                                     .last = content_stamp(owners->run, CONTENT_PHASE_WRITE, owners->processes - 1)};
    uint32_t stamp = content_stamp(owners->run, CONTENT_PHASE_WRITE, writer - 1u);
    if (writer == 0) {
        if (owners->fill_share_bytes == 0)
            return (struct content_rule){.unknown = 1, .holes = owners->holes_legal};
        uint64_t share = offset / owners->fill_share_bytes;
        if ((share + 1) * owners->fill_share_bytes < *end)
            *end = (share + 1) * owners->fill_share_bytes;
        stamp = content_stamp(owners->run, CONTENT_PHASE_FILL, (unsigned)share);
    }
    return (struct content_rule){.first = stamp, .last = stamp};
}

uint64_t owners_verify(const struct owners *owners, struct content_check *check, const unsigned char *buf, uint64_t offset, uint64_t length)
{
    uint64_t wrong = 0, done = 0;
    while (done < length) {
        uint64_t end;
        struct content_rule rule = rule_at(owners, offset + done, offset + length, &end);
        uint64_t take = end - (offset + done) < length - done ? end - (offset + done) : length - done;
        wrong += content_verify(check, buf + done, offset + done, take, rule);
        done += take;
    }
    return wrong;
}
