/* What the player is measured beside: a program that makes the same calls in a plain loop, and nothing else, and one that only sleeps.
 *
 *     play posix|mpi FILE CALLS
 *     play sleep NS TIMES
 *
 * Writes and reads 4 KiB by turns, over the first 16 MiB of the file. Prints {"ns_per_call": ...}. Sleeps so many times, each process for itself, to an
 * absolute time NS from when the sleep before has ended. Prints {"late_us": ...}, the median over all processes and times.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum { REQUEST_BYTES = 4096, REQUESTS = 4096 };

static char buffer[REQUEST_BYTES];

static double posix(const char *name, long calls)
{
    int fd = open(name, O_RDWR | O_CREAT, 0666);
    double began = MPI_Wtime();
    for (long i = 0; i < calls / 2; i++) {
        off_t at = (off_t)(i % REQUESTS) * REQUEST_BYTES;
        if (pwrite(fd, buffer, REQUEST_BYTES, at) != REQUEST_BYTES || pread(fd, buffer, REQUEST_BYTES, at) != REQUEST_BYTES)
            return -1;
    }
    double took = MPI_Wtime() - began;
    close(fd);
    return took;
}

static double mpi(const char *name, long calls)
{
    MPI_File file;
    MPI_Status status;
    MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL, &file);
    double began = MPI_Wtime();
    for (long i = 0; i < calls / 2; i++) {
        MPI_Offset at = (MPI_Offset)(i % REQUESTS) * REQUEST_BYTES;
        if (MPI_File_write_at(file, at, buffer, REQUEST_BYTES, MPI_BYTE, &status) || MPI_File_read_at(file, at, buffer, REQUEST_BYTES, MPI_BYTE, &status))
            return -1;
    }
    double took = MPI_Wtime() - began;
    MPI_File_close(&file);
    return took;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Median of what sleeps are late, s; 0 on ranks other than the root. */
static double late(long ns, long times)
{
    int rank, processes;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &processes);
    double *own = calloc((size_t)times, sizeof *own), *all = rank == 0 ? calloc((size_t)(times * processes), sizeof *all) : NULL;
    /* As the player does: sleeps are otherwise rounded up by 50 us. */
    (void)prctl(PR_SET_TIMERSLACK, 1);
    MPI_Barrier(MPI_COMM_WORLD);
    for (long i = 0; i < times; i++) {
        double until = seconds() + 1e-9 * (double)ns;
        struct timespec at = {.tv_sec = (time_t)until, .tv_nsec = (long)((until - (double)(time_t)until) * 1e9)};
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
        own[i] = seconds() - until;
    }
    MPI_Gather(own, (int)times, MPI_DOUBLE, all, (int)times, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    double median = 0;
    if (all) {
        qsort(all, (size_t)(times * processes), sizeof *all, ascending);
        median = all[times * processes / 2];
    }
    free(all);
    free(own);
    return median;
}

int main(int count, char **words)
{
    MPI_Init(&count, &words);
    if (count != 4) {
        fprintf(stderr, "usage: play posix|mpi FILE CALLS, or play sleep NS TIMES\n");
        MPI_Finalize();
        return 2;
    }
    if (strcmp(words[1], "sleep") == 0) {
        int rank;
        double median = late(atol(words[2]), atol(words[3]));
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        if (rank == 0)
            printf("{\"late_us\": %.3f}\n", median * 1e6);
        MPI_Finalize();
        return 0;
    }
    long calls = atol(words[3]);
    double took = strcmp(words[1], "mpi") == 0 ? mpi(words[2], calls) : posix(words[2], calls);
    printf("{\"ns_per_call\": %.1f}\n", took * 1e9 / (double)calls);
    MPI_Finalize();
    return took < 0;
}
