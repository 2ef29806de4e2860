/* What the player is measured beside: a program that makes the same calls in a plain loop, and nothing else.
 *
 *     play posix|mpi FILE CALLS
 *
 * Writes and reads 4 KiB by turns, over the first 16 MiB of the file. Prints {"ns_per_call": ...}.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

int main(int count, char **words)
{
    MPI_Init(&count, &words);
    if (count != 4) {
        fprintf(stderr, "usage: play posix|mpi FILE CALLS\n");
        return 2;
    }
    long calls = atol(words[3]);
    double took = strcmp(words[1], "mpi") == 0 ? mpi(words[2], calls) : posix(words[2], calls);
    printf("{\"ns_per_call\": %.1f}\n", took * 1e9 / (double)calls);
    MPI_Finalize();
    return took < 0;
}
