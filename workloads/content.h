/*
 * What a byte of the test file must be: a function of its offset and of the stamp of whoever wrote it.
 *
 * Every aligned 8-byte word carries its writer's stamp, masked by a hash of the word's position, and a check value of both. So a reader can tell
 * the right bytes from zeros, from bytes of another offset and from bytes of another run, in a file without any header. Words are stored in the
 * machine's byte order; requests may begin and end at any byte.
 */
#ifndef STRIPEWISE_CONTENT_H
#define STRIPEWISE_CONTENT_H

#include <stddef.h>
#include <stdint.h>

/* A stamp: run (16 bits), phase (2 bits), rank (14 bits), so that the stamps of one phase of one run are a contiguous range. */
enum { CONTENT_PHASE_FILL = 1, CONTENT_PHASE_WRITE = 2, CONTENT_RANKS_MAX = 1 << 14 };

/* The stamps that are legal at a place: first..last. unknown = 1: anything that a run of this program can have written; holes = 1: or nothing. */
struct content_rule {
    uint32_t first;
    uint32_t last;
    int unknown;
    int holes;
};

/* What a check found; kept by the caller over all its checks. */
struct content_check {
    uint64_t verified_bytes;
    uint64_t undecided_bytes; /* parts of words of unknown writers, of which no whole word was seen */
    uint64_t hole_bytes;      /* zeros where the rule allows holes */
    uint64_t errors;          /* bytes that are wrong */
    uint64_t first_offset;    /* of the first wrong byte range, valid when errors > 0 */
    uint64_t first_found;     /* up to 8 bytes as found */
    unsigned first_bytes;
    struct content_rule first_rule;
    uint32_t seen[64]; /* stamps met in whole words where the rule was unknown */
    unsigned seen_count;
};

uint32_t content_stamp(uint32_t run, unsigned phase, unsigned rank);

/* Fill buf with the content of bytes [offset, offset + length) as the holder of the stamp writes them. */
void content_make(unsigned char *buf, uint64_t offset, size_t length, uint32_t stamp);

/* Check bytes read from [offset, offset + length) against a rule that holds for all of them. Returns the number of wrong bytes. */
uint64_t content_verify(struct content_check *check, const unsigned char *buf, uint64_t offset, size_t length, struct content_rule rule);

/* Describe the first error of a check: one sentence in text. file_bytes bounds the search for the place that the found bytes belong to. */
void content_explain(const struct content_check *check, uint64_t file_bytes, char *text, size_t text_bytes);

#endif
