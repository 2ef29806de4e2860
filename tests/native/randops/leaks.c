/* What a process holds: descriptors, the library's own among them, and memory areas. */
#define _GNU_SOURCE
#include "randops.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* The heap, and the stacks and heaps of the C library's helper threads, come and go. A map that leaks once in ten operations is beyond this. */
enum { AREAS_SPARE = 100 };

/* Those of a process. The store's trash is held from its first use on, which may be before the start or after it: whether somebody else has the first file
   that is removed is chance. */
static int descriptors(void)
{
    int count = 0;
    DIR *dir = opendir("/proc/self/fd");
    for (struct dirent *entry; dir != NULL && (entry = readdir(dir)) != NULL;) {
        char target[PATH_MAX];
        ssize_t got = readlinkat(dirfd(dir), entry->d_name, target, sizeof target);
        bool is_trash = got > 6 && memcmp(target + got - 6, "/trash", 6) == 0;
        bool is_copies = got > 7 && memcmp(target + got - 7, "/copies", 7) == 0;
        count += !is_trash && !is_copies;
    }
    if (dir != NULL)
        closedir(dir);
    return count;
}

static int lines_of(const char *path)
{
    char bytes[65536];
    int count = 0, fd = open(path, O_RDONLY | O_CLOEXEC);
    for (ssize_t got; fd >= 0 && (got = read(fd, bytes, sizeof bytes)) > 0;)
        for (ssize_t i = 0; i < got; i++)
            count += bytes[i] == '\n';
    close(fd);
    return count;
}

struct leaks leaks_now(void)
{
    /* Files that were closed just now are kept ready, each with two descriptors; a fork, whose child would share them, closes them. */
    pid_t child = fork();
    if (child == 0)
        _exit(0);
    if (child > 0)
        waitpid(child, NULL, 0);
    return (struct leaks){descriptors(), lines_of("/proc/self/maps")};
}

static void show_areas(void)
{
    char line[PATH_MAX + 128];
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps != NULL && fgets(line, sizeof line, maps) != NULL)
        fprintf(stderr, "  %s", line);
}

static void show_descriptors(void)
{
    for (int fd = 0; fd < 1 << 20; fd++) {
        char path[32], target[PATH_MAX];
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        ssize_t got = readlink(path, target, sizeof target - 1);
        if (got >= 0)
            fprintf(stderr, "  %d: %.*s\n", fd, (int)got, target);
    }
}

void leaks_check(const struct leaks *before)
{
    struct leaks now = leaks_now();
    if (now.descriptors == before->descriptors && now.areas <= before->areas + AREAS_SPARE)
        return;
    show_areas();
    show_descriptors();
    fprintf(stderr, "randops: %d descriptors and %d memory areas at the start, %d and %d at the end\n", before->descriptors, before->areas, now.descriptors, now.areas);
    exit(1);
}
