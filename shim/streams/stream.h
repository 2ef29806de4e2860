/* Streams on managed files. The C library reads and writes inside itself, past every hook, so a stream of a managed file is one of fopencookie's
 * whose functions call the hooks on the descriptor, and whose descriptor number is put back where fileno() finds it. */
#ifndef STRIPEWISE_STREAM_H
#define STRIPEWISE_STREAM_H
#include "../hook.h"
#include <stdio.h>
#include <stdio_ext.h>

/* What a mode string of fopen says. */
struct sw_mode {
    int flags;        /* of open */
    int has_charset;  /* ",ccs=": wide characters in an encoding of their own */
    char kind[3];     /* r w a, perhaps + */
};
int sw_mode_of(const char *text, struct sw_mode *mode); /* 0: not a mode */

/* The body of a function of a format and values, by the one that takes them as a va_list. */
#define WITH_VALUES(call)     \
    va_list values;           \
    va_start(values, format); \
    int n = call;             \
    va_end(values);           \
    return n;

static inline int is_managed(int fd)
{
    uint32_t e = entry(fd);
    return e != 0 && !(e & (SW_TRACED | SW_INTERNAL));
}
int sw_is_stream(FILE *fp);                                         /* one that sw_stream_on made */
FILE *sw_stream_on(int fd, const struct sw_mode *mode);             /* NULL: errno says why, the descriptor stays open */
void sw_stream_become(FILE *fp, int fd, const struct sw_mode *mode); /* the same stream on another descriptor */
int sw_stream_end(FILE *fp);                                        /* closes it, but leaves it to whoever still holds it */
int sw_seek_to_append(int fd, const struct sw_mode *mode);          /* where "a" begins; -1: it failed */
#endif
