/* What the files of this program share: the transcript that every check writes to, and small files to work on. */
#ifndef STDIO_TRANSCRIPT_H
#define STDIO_TRANSCRIPT_H
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <wchar.h>

/* Prints into the transcript, wherever standard output leads by now. */
__attribute__((format(printf, 1, 2))) void say(const char *format, ...);
/* From here on the transcript is what standard output is now. */
void begin_transcript(void);
/* Prints what a file holds, by way of descriptors. */
void show(const char *name);
/* Makes a file that holds a text. */
void make(const char *name, const char *text);
long size_of(const char *name);
unsigned long sum(const unsigned char *data, size_t n);
void see_number(long value);
void see_text(const char *value);
void wait_for(pid_t child);

/* Prints up to eight values on a line, made one after the other (arguments of one call would be made in any order). */
#define SEE1(x) _Generic((x), char *: see_text, const char *: see_text, default: see_number)(x);
#define SEE2(x, ...) SEE1(x) SEE1(__VA_ARGS__)
#define SEE3(x, ...) SEE1(x) SEE2(__VA_ARGS__)
#define SEE4(x, ...) SEE1(x) SEE3(__VA_ARGS__)
#define SEE5(x, ...) SEE1(x) SEE4(__VA_ARGS__)
#define SEE6(x, ...) SEE1(x) SEE5(__VA_ARGS__)
#define SEE7(x, ...) SEE1(x) SEE6(__VA_ARGS__)
#define SEE8(x, ...) SEE1(x) SEE7(__VA_ARGS__)
#define PICK(a, b, c, d, e, f, g, h, name, ...) name
#define SEE(...)                                                                        \
    do {                                                                                \
        PICK(__VA_ARGS__, SEE8, SEE7, SEE6, SEE5, SEE4, SEE3, SEE2, SEE1, )(__VA_ARGS__) \
        say("\n");                                                                      \
    } while (0)

/* Runs in a child, so that what it does to the standard streams ends with it. */
#define IN_CHILD                                                     \
    for (pid_t child_ = fork(), once_ = 1; once_; once_ = 0, wait_for(child_)) \
        if (child_ == 0)

void writes_and_reads(void);
void appends(void);
void updates_in_place(void);
void refuses(void);
void moves_large_pieces(void);
void buffers_as_asked(void);
void shares_descriptors(void);
void leaves_no_trace_of_a_closed_descriptor(void);
void reopens(void);
void standard_streams_by_freopen(void);
void standard_streams_by_dup2(void);
void unlocked_and_locked(void);
void wide_characters(void);
void others_are_untouched(void);
void descriptors_by_name(void);
void temporary_files(void);
void ends_of_processes(void);
#endif
