/*
 * swapper: exchanges two names again and again, so that whoever looks at one of them twice finds two things there.
 *
 * usage: swapper NAME OTHER
 *
 * Each round is two exchanges (RENAME_EXCHANGE) and a pause of a length that changes, until standard input ends; the number of rounds is printed then.
 * The names are as they were at the end.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

int main(int argc, char **argv)
{
    struct pollfd end = {.fd = 0, .events = POLLIN};
    unsigned long rounds = 0, pause = 1;
    if (argc != 3)
        return 2;
    for (; poll(&end, 1, 0) == 0; rounds++) {
        for (int i = 0; i < 2; i++) {
            if (renameat2(AT_FDCWD, argv[1], AT_FDCWD, argv[2], RENAME_EXCHANGE) < 0) {
                fprintf(stderr, "swapper: %s: %s\n", argv[1], strerror(errno));
                return 1;
            }
            pause = pause * 1103515245 + 12345;
            struct timespec wait = {.tv_nsec = (long)(pause >> 8 & 0xffff)};
            if (pause & 0x10000)
                nanosleep(&wait, NULL);
        }
    }
    printf("%lu\n", rounds);
    return 0;
}
