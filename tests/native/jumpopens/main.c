/* One thread leaves its opens and closes of a file by siglongjmp, again and again; another opens, reads and closes it meanwhile, and must come to its end. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static sigjmp_buf out;
static atomic_int over, ready;
static const char *path;

static void leave(int number)
{
    (void)number;
    siglongjmp(out, 1);
}

static void *jumps(void *unused)
{
    (void)unused;
    char block[4096];
    sigsetjmp(out, 1);
    ready = 1;
    while (!over) {
        int fd = open(path, O_RDONLY);
        if (pread(fd, block, sizeof block, 0) < 0 && fd >= 0) return NULL;
        close(fd);
    }
    return NULL;
}

static void *opens(void *unused)
{
    (void)unused;
    char block[4096];
    for (int i = 0; i < 20000; i++) {
        int fd = open(path, O_RDONLY);
        if (fd < 0 || pread(fd, block, sizeof block, 0) != sizeof block) return NULL;
        close(fd);
    }
    over = 1;
    return NULL;
}

int main(int argc, char **argv)
{
    if (argc != 2) return 2;
    path = argv[1];
    struct sigaction action = { .sa_handler = leave };
    sigaction(SIGUSR1, &action, NULL);
    pthread_t one, other;
    pthread_create(&one, NULL, jumps, NULL);
    while (!ready) usleep(100);
    sigset_t blocked;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &blocked, NULL);
    pthread_create(&other, NULL, opens, NULL);
    for (int i = 0; i < 20000 && !over; i++) {
        pthread_kill(one, SIGUSR1);
        usleep(777);
    }
    puts(over ? "ok" : "not ok: the other thread waits for a lock that was left");
    return over ? 0 : 1;
}
