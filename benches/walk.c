/* Reads 4 KiB of an open file COUNT times, and nothing else between: what a read runs through is what grows with COUNT. tools/walks/read.py counts it.
 *
 *   walk FILE COUNT */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { BLOCK = 4096, BLOCKS = 16 };

int main(int argc, char **argv)
{
    static char buffer[BLOCK];
    int fd = argc == 3 ? open(argv[1], O_RDONLY) : -1;
    if (fd < 0) {
        fprintf(stderr, "usage: walk FILE COUNT, of a file of %d bytes or more\n", BLOCK * BLOCKS);
        return 1;
    }
    for (long n = strtol(argv[2], NULL, 10); n > 0; n--) {
        if (pread(fd, buffer, BLOCK, BLOCK * (n % BLOCKS)) != BLOCK) {
            perror(argv[1]);
            return 1;
        }
    }
    return close(fd);
}
