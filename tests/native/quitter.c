/*
 * quitter: a thread writes one byte and ends in a signal handler, wherever it is by then.
 *
 * usage: quitter FILE MILLISECONDS
 *
 * Prints "ended" when the thread is gone, and goes on until standard input ends.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int file;

static void end(int number)
{
    (void)number;
    pthread_exit(NULL);
}

static void *work(void *unused)
{
    (void)unused;
    if (pwrite(file, "x", 1, 0) == 1) fprintf(stderr, "the write ended before the thread\n");
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t thread;
    char byte;
    if (argc != 3) return 2;
    signal(SIGUSR1, end);
    if ((file = open(argv[1], O_RDWR | O_CREAT, 0644)) < 0 || pthread_create(&thread, NULL, work, NULL) != 0) {
        fprintf(stderr, "quitter: %s: %s\n", argv[1], strerror(errno));
        return 1;
    }
    usleep((useconds_t)atoi(argv[2]) * 1000);
    pthread_kill(thread, SIGUSR1);
    pthread_join(thread, NULL);
    printf("ended\n");
    fflush(stdout);
    while (read(0, &byte, 1) > 0) {}
    return 0;
}
