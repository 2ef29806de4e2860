/*
 * What a byte of a played file must be: a function of the file's name and of the offset.
 *
 * All files are cut from one endless row of random bytes that repeats every CONTENT_PERIOD bytes (257 pages: no stride of a power of two comes round to
 * the same bytes), each from another place on. The row is mapped again and again, so a write of any size takes its bytes from where they lie, and nothing
 * is made for it. Files whose offsets nobody knows beforehand (appends, shared pointers) hold one byte value throughout.
 */
#ifndef PLAYER_CONTENT_H
#define PLAYER_CONTENT_H

#include <stddef.h>
#include <stdint.h>

enum { CONTENT_PERIOD = 257 * 4096, CONTENT_CONSTANT = 0xa5 };

/* Begins of a file in the row; CONTENT_EVERYWHERE: a file of one value. */
#define CONTENT_EVERYWHERE UINT64_MAX

/* For requests up to so many bytes. 0, or an errno. */
int content_begin(size_t request_bytes_max);

uint64_t content_key(const char *name);

/* The bytes of [offset, offset + length) of a file, valid as long as the program runs. */
const unsigned char *content_at(uint64_t key, uint64_t offset);

/* What else than content may be at a place: nothing, zeros where nobody wrote, or what an MPI library leaves between the pieces of a view. */
enum content_rule { CONTENT_ONLY, CONTENT_OR_ZEROS, CONTENT_OR_ANYTHING };

/* Bytes that were read from an offset: how many are right, are nobody's, or are wrong. */
struct content_found {
    uint64_t right, unwritten, wrong, first_wrong;
};
struct content_found content_compare(uint64_t key, uint64_t offset, const unsigned char *found, size_t length, enum content_rule rule);

#endif
