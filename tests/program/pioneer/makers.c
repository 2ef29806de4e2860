/* A job in which not all make the same requests of its shared files, for the tests of statistics that know who makes a request. All write and read
 * campaign.dat, collectively and each for itself; the root alone writes its header, rewrites it, looks at it by itself, stats it and renames it; odd ranks
 * alone stat it and read parts of it. */
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HEADER = 512, DATA = 4096, BLOCK = 16384, ROUNDS = 6, PART = 1000, PARTS = 9 };

static char name[4096], renamed[4096];
static char buffer[BLOCK];

static void whole(int is_whole)
{
    if (!is_whole)
        MPI_Abort(MPI_COMM_WORLD, 1);
}

static void read_parts(const char *of, int parts, int size)
{
    int file = open(of, O_RDONLY);
    for (int at = 0; at < parts; at++)
        whole(pread(file, buffer, size, (off_t)at * size) == size);
    close(file);
}

int main(int count, char **words)
{
    int rank, processes;
    struct stat found;
    MPI_File file;
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &processes);
    snprintf(name, sizeof name, "%s/campaign.dat", words[1]);
    snprintf(renamed, sizeof renamed, "%s/finished.dat", words[1]);

    MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    if (rank == 0)
        MPI_File_write_at(file, 0, buffer, HEADER, MPI_BYTE, MPI_STATUS_IGNORE);
    for (int at = 0; at < ROUNDS; at++) {
        MPI_Offset place = DATA + (MPI_Offset)(at * processes + rank) * BLOCK;
        if (at % 2 == 0)
            MPI_File_write_at_all(file, place, buffer, BLOCK, MPI_BYTE, MPI_STATUS_IGNORE);
        else
            MPI_File_write_at(file, place, buffer, BLOCK, MPI_BYTE, MPI_STATUS_IGNORE);
        if (rank == 0 && at % 3 == 2)
            MPI_File_write_at(file, 0, buffer, HEADER, MPI_BYTE, MPI_STATUS_IGNORE);
    }
    for (int at = 0; at < ROUNDS; at++) {
        MPI_Offset place = DATA + (MPI_Offset)(at * processes + rank) * BLOCK;
        if (at % 2 == 0)
            MPI_File_read_at_all(file, place, buffer, BLOCK, MPI_BYTE, MPI_STATUS_IGNORE);
        else
            MPI_File_read_at(file, place, buffer, BLOCK, MPI_BYTE, MPI_STATUS_IGNORE);
    }
    MPI_File_close(&file);
    MPI_Barrier(MPI_COMM_WORLD);

    if (rank == 0) {
        for (int at = 0; at < 3; at++)
            stat(name, &found);
        read_parts(name, 1, HEADER);
    } else if (rank % 2 == 1) {
        for (int at = 0; at < PARTS; at++)
            stat(name, &found);
        read_parts(name, PARTS, PART);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        rename(name, renamed);
    MPI_Finalize();
    return 0;
}
