/*
 * toucher: does to one file over and over what a program can do besides writing at an offset, and prints a line for each round, so that a test sees it go on.
 *
 * usage: toucher FILE FLOOR
 *
 * The bytes below FLOOR are others'; it makes the file so long, reads there, and behind it appends, allocates and cuts zeros. It prints "round N".
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char zeros[60000], buf[100000];

static int fail(const char *what)
{
    fprintf(stderr, "toucher: %s: %s\n", what, strerror(errno));
    return 1;
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    off_t below = strtoll(argv[2], NULL, 10);
    for (unsigned long round = 1;; round++) {
        struct stat st;
        int fd = open(argv[1], O_RDWR | O_CREAT | O_APPEND, 0644);
        if (fd < 0)
            return fail("open");
        if (fstat(fd, &st) != 0 || (st.st_size < below && ftruncate(fd, below) != 0))
            return fail("grow");
        if (pread(fd, buf, sizeof buf, (off_t)(round * 7919 % 100) * below / 100) < 0)
            return fail("pread");
        if (write(fd, zeros, 1 + round * 4099 % sizeof zeros) < 0)
            return fail("append");
        if (fsync(fd) != 0)
            return fail("fsync");
        if (round % 3 == 0 && fallocate(fd, 0, below + (off_t)(round % 50000), 30000) != 0)
            return fail("fallocate");
        if (ftruncate(fd, below + (off_t)(round * 977 % 10000)) != 0)
            return fail("ftruncate");
        if (fstat(fd, &st) != 0 || st.st_size != below + (off_t)(round * 977 % 10000))
            return fail("another size than it was cut to");
        if (close(fd) != 0)
            return fail("close");
        printf("round %lu\n", round);
        fflush(stdout);
    }
}
