/*
 * posix: a table of small cases, each of which does a few system calls in a directory of its own and says what it observed.
 *
 * What is said are facts that do not depend on when and where a case runs: results, names of errors, sizes, whether a time moved; never times,
 * inode numbers or addresses. So the same table run in two directories must say the same, line by line.
 *
 * A file of cases defines SUBJECT, includes this header, and writes CASE(a_sentence) { ... } as often as it likes.
 */
#ifndef POSIX_H
#define POSIX_H
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

struct test {
    const char *subject, *name;
    int line;
    void (*run)(void);
};

/* Cases register themselves: the linker gathers the section. */
#define CASE(sentence)                                                                                       \
    static void sentence(void);                                                                              \
    static const struct test test_##sentence = {SUBJECT, #sentence, __LINE__, sentence};                     \
    static const struct test *const entry_##sentence __attribute__((section("posix_tests"), used)) = &test_##sentence; \
    static void sentence(void)

/* --- saying (engine.c): everything that was said, joined by commas, is the outcome ------------------------------------------ */
void say(const char *form, ...) __attribute__((format(printf, 1, 2)));
long ret(long result);            /* the number, or the name of errno when it is -1 */
int err(int number);              /* the name of an error that was returned, or 0 */
int fd_ret(int fd);               /* "fd", or the name of errno */
void bytes(const void *data, long length); /* text as it is; long or binary data by length and sum */
void say_content(const char *name);        /* the bytes of a file, read through open and read */
void say_fd_content(int fd);               /* the same by pread from 0 */
void say_size(const char *name);           /* st_size */
void say_fd_size(int fd);
void say_mode(const char *name);           /* type and permissions */
void say_offset(int fd);
const char *error_name(int number);

/* --- setting up: these end the case when they fail ----------------------------------------------------------------------------- */
int need(long result);                                 /* -1 ends the case */
void make_file(const char *name, const char *content); /* mode 0644 */
void make_large(const char *name, long length);        /* byte i is (i / 7 + i) % 251 */
void make_dir(const char *name);
int open_file(const char *name, int flags); /* opens what exists */
int ten(int flags);                         /* a new file "f" of the digits, open */
int new_file(const char *name, int flags, const char *content); /* creates, writes the content, offset at its end */
void stat_file(const char *name, struct stat *st);
void stat_fd(int fd, struct stat *st);
void settle(void); /* waits until a change of times shows */
void say_times(const struct stat *before, const struct stat *after); /* "m+ c=": modification changed, status change did not */
int be_nobody(void); /* drops to uid and gid 65534 where root; else says that root is needed and returns 0 */

/* Values that the compiler would warn of. */
long hidden(long value) __attribute__((noipa));
#define BAD ((void *)hidden(16))
#define NONE ((void *)hidden(0))

/* --- other processes ----------------------------------------------------------------------------------------------------------- */
/* A child that runs a function and ends; whatever it says is said in order. finish waits for it. */
pid_t child(void (*work)(void *), void *argument);
void finish(pid_t pid);
void in_child(void (*work)(void *), void *argument);
/* Executes this program anew with words that helpers.c understands; says what it prints. */
void in_new_image(const char *word, ...) __attribute__((sentinel));
int run_helper(int argc, char **argv); /* helpers.c */
extern const char *program_path;
#endif
