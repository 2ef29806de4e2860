/* Threads that each open a file of their own for writing at the same moment, before the process has opened anything else. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static pthread_barrier_t all;

static void *first(void *path)
{
    pthread_barrier_wait(&all);
    if (open(path, O_WRONLY | O_CLOEXEC) < 0) {
        perror(path);
        exit(1);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t threads[64];
    int n = argc - 1 < 64 ? argc - 1 : 64;
    pthread_barrier_init(&all, NULL, (unsigned)n);
    for (int i = 0; i < n; i++)
        if (pthread_create(&threads[i], NULL, first, argv[i + 1])) return 1;
    for (int i = 0; i < n; i++) pthread_join(threads[i], NULL);
    return 0;
}
