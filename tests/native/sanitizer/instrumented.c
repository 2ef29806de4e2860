/* Reads and writes a file from memory that a sanitizer watches; with a second argument it reads more than the memory holds. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    char *text = malloc(16);
    int fd = open(argv[1], O_RDWR | O_CREAT, 0644);
    if (fd < 0 || pwrite(fd, "hello", 5, 0) != 5) return perror(argv[1]), 1;
    printf("%zd\n", read(fd, text, argc > 2 ? 17 : 5));
    fflush(stdout);
    free(text);
    return close(fd);
}
