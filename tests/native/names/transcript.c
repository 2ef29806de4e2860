/* Calls printed with their results. */
#include "transcript.h"

char start[PATH_MAX];

void say(const char *what, long result)
{
    int error = errno;
    if (result < 0)
        printf("%s: %ld %s\n", what, result, strerrorname_np(error));
    else
        printf("%s: %ld\n", what, result);
    fflush(stdout);
}

/* A path below DIRECTORY is printed without it. */
void say_path(const char *what, const char *path)
{
    size_t n = strlen(start);
    int error = errno;
    if (!path)
        printf("%s: %s\n", what, strerrorname_np(error));
    else
        printf("%s: %s\n", what, strncmp(path, start, n) == 0 ? path + n : path);
}

void make(const char *name, const char *text)
{
    int fd = open(name, O_CREAT | O_WRONLY | O_TRUNC, 0644);
    if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
        say(name, -1);
    close(fd);
}
