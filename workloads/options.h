/* The command line of mpiio: parsed on every rank alike, so that no rank has to be told anything. */
#ifndef STRIPEWISE_OPTIONS_H
#define STRIPEWISE_OPTIONS_H

#include <stdint.h>

enum pattern_kind { PATTERN_SEQUENTIAL, PATTERN_INTERLEAVED, PATTERN_STRIDED, PATTERN_RANDOM, PATTERN_ZIPF, PATTERN_NESTED, PATTERN_TILES, PATTERN_KINDS };

enum { HINTS_MAX = 32, WINDOWS_MAX = 1024 };

struct options {
    const char *file;
    enum pattern_kind pattern;
    uint64_t request_bytes;
    uint64_t file_bytes;
    uint64_t region_bytes;
    double alpha;
    uint64_t reads;  /* requests per rank */
    uint64_t writes;
    int reads_given, writes_given;
    uint64_t pieces; /* per request: strided, nested, tiles */
    uint64_t windows; /* parts of the write and of the read phase */
    uint64_t shift;   /* zipf: places in the order of popularity that regions move by from window to window */
    double window_seconds; /* a window begins so long after the one before, or when that one is done */
    int fill, write, read, check; /* phases */
    int fill_if_missing;
    uint64_t seed;
    uint32_t stamp; /* 1..65535; 0 = drawn by rank 0 */
    int collective, verify, sync, delete_after, atomic, holes_legal;
    const char *hint_keys[HINTS_MAX];
    const char *hint_values[HINTS_MAX];
    unsigned hints;
};

const char *options_pattern_name(enum pattern_kind kind);
const char *options_usage(void);

/* Returns 0; 1 when help was asked for; -1 with one sentence in text. */
int options_parse(struct options *options, int argc, char **argv, char *text, unsigned text_bytes);

#endif
