/* A module that opens and reads a file by itself, to be loaded into a running program. */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

long slurp(const char *path)
{
    char text[4096];
    int fd = open(path, O_RDONLY);
    if (fd < 0) return -errno;
    long sum = 0, n;
    while ((n = read(fd, text, sizeof text)) > 0) sum += n;
    close(fd);
    return n < 0 ? -errno : sum;
}
