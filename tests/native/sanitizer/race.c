/* Two threads that read one file into the same memory at once: a race of the program's own. */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static char line[64];
static int lines;

static void *work(void *path)
{
    int fd = open(path, O_RDONLY);
    for (int i = 0; i < 1000; i++)
        lines += pread(fd, line, sizeof line, 0) > 0;
    close(fd);
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t other;
    if (argc != 2 || pthread_create(&other, NULL, work, argv[1]) != 0)
        return 2;
    work(argv[1]);
    pthread_join(other, NULL);
    return printf("%d\n", lines) < 0;
}
