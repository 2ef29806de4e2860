/* Scripts for streams: drawn once, run on subject and oracle. */
#ifndef STREAMS_H
#define STREAMS_H

#include "randops.h"

#include <stdio.h>

enum { STEPS_MAX = 12, STREAM_BUFFER = 9000, STREAM_BYTES = 21000 };
enum action { READ, WRITE, SEEK, TELL, FLUSH, UNREAD, GET, PUT, LINE, ACTIONS };

struct step {
    enum action action;
    size_t length;
    int64_t offset;
    int whence, from; /* from: where in the buffer the bytes to write begin */
};

struct script {
    const char *mode;
    int buffering, count;
    size_t buffer_bytes;
    struct step steps[STEPS_MAX];
};

struct result {
    int64_t returned, at;
    int error, state; /* state: at the end, failed */
    uint64_t sum;
};

struct script stream_draw(struct world *w, const struct pair *p);
/* Fills one result per step. */
void stream_run(struct world *w, FILE *stream, const struct script *script, unsigned char *into, struct result *results);
/* Compares one result per step, and one more. */
void stream_compare(struct world *w, const struct script *script, const struct result *subject, const struct result *oracle);
/* Compares positions where they are promised, and makes them equal where not. */
void stream_settle(struct world *w, const struct script *script, const struct result *subject, const struct result *oracle, struct pair *p);

#endif
