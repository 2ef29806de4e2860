/*
 * rings: every way to set up a ring of io_uring or a context of libaio, and what each answers: one line "NAME: 0" or "NAME: errno".
 *
 * usage: rings [FILE]
 * With FILE it is opened before. Linked with liburing and libaio by the test that wants their versioned symbols; without them the functions are there
 * only where a preloaded library has them.
 */
#define _GNU_SOURCE
#include "inlined.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/io_uring.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifdef LINKED
#define MAYBE
#else
#define MAYBE __attribute__((weak))
#endif
MAYBE int io_uring_queue_init(unsigned entries, void *ring, unsigned flags);
MAYBE int io_uring_queue_init_params(unsigned entries, void *ring, void *params);
MAYBE void *io_uring_get_probe(void);
MAYBE int io_setup(int events, void *context);
MAYBE int io_queue_init(int events, void *context);

static void say(const char *name, long answer)
{
    printf("%s: %ld\n", name, answer < 0 ? -answer : 0);
}

int main(int argc, char **argv)
{
    static char ring[4096];
    static struct io_uring_params params;
    aio_context_t context = 0;
    if (argc > 1 && open(argv[1], O_RDONLY) < 0) {
        perror(argv[1]);
        return 1;
    }
    if (&io_uring_queue_init != NULL) say("io_uring_queue_init", io_uring_queue_init(2, ring, 0));
    if (&io_uring_queue_init_params != NULL) say("io_uring_queue_init_params", io_uring_queue_init_params(2, ring, &params));
    if (&io_uring_get_probe != NULL) say("io_uring_get_probe", io_uring_get_probe() ? 0 : -ENOSYS);
    if (&io_setup != NULL) say("io_setup", io_setup(1, &context));
    context = 0;
    if (&io_queue_init != NULL) say("io_queue_init", io_queue_init(1, &context));
    context = 0;
    memset(&params, 0, sizeof params);
    say("syscall(io_uring_setup)", syscall(SYS_io_uring_setup, 2, &params) < 0 ? -errno : 0);
    say("syscall(io_setup)", syscall(SYS_io_setup, 1, &context) < 0 ? -errno : 0);
    context = 0;
    memset(&params, 0, sizeof params);
    say("inlined io_uring_setup", inlined(SYS_io_uring_setup, 2, (long)&params));
    say("inlined io_setup", inlined(SYS_io_setup, 1, (long)&context));
    return 0;
}
