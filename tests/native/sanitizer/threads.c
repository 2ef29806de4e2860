/*
 * threads: threads read and write one file at once, each its own records, by every usual way; then one thread reads all of it back. It ends with 0 and
 * says nothing where each byte is the one that was written. For tools that watch memory and threads.
 *
 * usage: threads FILE
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

enum { THREADS = 4, RECORDS = 24, RECORD = 6000, APPENDED = 500, ROUNDS = 10 };

static const char *path;

static void need(int holds, const char *what)
{
    if (!holds) {
        perror(what);
        exit(1);
    }
}

static unsigned char byte_of(int thread, int record, int at) { return (unsigned char)(1 + (thread * 31 + record * 7 + at) % 251); }

static off_t place_of(int thread, int record) { return (off_t)(record * THREADS + thread) * RECORD; }

static void fill(unsigned char *to, int thread, int record)
{
    for (int at = 0; at < RECORD; at++)
        to[at] = byte_of(thread, record, at);
}

static void check(const unsigned char *got, int thread, int record)
{
    for (int at = 0; at < RECORD; at++)
        need(got[at] == byte_of(thread, record, at), "another byte than was written");
}

/* One descriptor for all threads, and a stream and a descriptor of each thread's own. */
static int shared;

static void *work(void *number)
{
    int thread = (int)(long)number;
    unsigned char *text = malloc(RECORD), *back = malloc(RECORD);
    int own = open(path, O_RDWR);
    need(own >= 0, "open");
    for (int record = 0; record < RECORDS; record++) {
        fill(text, thread, record);
        off_t at = place_of(thread, record);
        struct iovec halves[] = {{text, RECORD / 2}, {text + RECORD / 2, RECORD / 2}};
        switch (record % 4) {
        case 0: need(pwrite(shared, text, RECORD, at) == RECORD, "pwrite"); break;
        case 1: need(pwritev(own, halves, 2, at) == RECORD, "pwritev"); break;
        case 2: need(lseek(own, at, SEEK_SET) == at && write(own, text, RECORD) == RECORD, "write"); break;
        default: {
            FILE *stream = fopen(path, "r+");
            need(stream && fseeko(stream, at, SEEK_SET) == 0 && fwrite(text, 1, RECORD, stream) == RECORD && fclose(stream) == 0, "fwrite");
        }
        }
        memset(back, 0, RECORD);
        need(pread(record % 2 ? shared : own, back, RECORD, at) == RECORD, "pread");
        check(back, thread, record);
    }
    close(own);
    for (int round = 0; round < ROUNDS; round++) {
        char name[4096];
        snprintf(name, sizeof name, "%s-%d", path, thread);
        int fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0600);
        struct stat st;
        need(fd >= 0 && write(fd, text, APPENDED) == APPENDED && ftruncate(fd, RECORD) == 0 && fstat(fd, &st) == 0, "a file of the thread's own");
        need(st.st_size == RECORD && fsync(fd) == 0 && close(fd) == 0 && unlink(name) == 0, "its end");
    }
    free(text);
    free(back);
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t threads[THREADS];
    need(argc == 2, "usage: threads FILE");
    path = argv[1];
    shared = open(path, O_RDWR | O_CREAT | O_TRUNC, 0644);
    need(shared >= 0, path);
    for (long thread = 0; thread < THREADS; thread++)
        need(pthread_create(&threads[thread], NULL, work, (void *)thread) == 0, "pthread_create");
    for (int thread = 0; thread < THREADS; thread++)
        pthread_join(threads[thread], NULL);

    size_t size = (size_t)THREADS * RECORDS * RECORD;
    const unsigned char *all = mmap(NULL, size, PROT_READ, MAP_SHARED, shared, 0);
    need(all != MAP_FAILED, "mmap");
    for (int thread = 0; thread < THREADS; thread++)
        for (int record = 0; record < RECORDS; record++)
            check(all + place_of(thread, record), thread, record);
    need(munmap((void *)all, size) == 0 && close(shared) == 0, "munmap");
    return 0;
}
