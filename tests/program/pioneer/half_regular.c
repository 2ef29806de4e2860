/* A job of a regular and an irregular file, for the tests of mixtures: in each step all processes write their turn in strided.dat (MPI_File_write_at) and
 * scattered.R pieces of pseudo-random sizes at pseudo-random places. Words: directory, steps. */
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { TURN = 8192, LARGEST = 6000, PLACES = 1 << 22 };

static char buffer[TURN];

static unsigned long drawn(unsigned long *state)
{
    *state = *state * 6364136223846793005UL + 1442695040888963407UL;
    return *state >> 33;
}

int main(int count, char **words)
{
    int rank, processes;
    char name[4096];
    MPI_File shared;
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &processes);
    long steps = atol(words[2]);
    unsigned long state = 12345 + (unsigned long)rank;
    snprintf(name, sizeof name, "%s/strided.dat", words[1]);
    MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &shared);
    snprintf(name, sizeof name, "%s/scattered.%d", words[1], rank);
    int own = open(name, O_CREAT | O_WRONLY, 0644);
    if (own < 0)
        MPI_Abort(MPI_COMM_WORLD, 1);
    for (long step = 0; step < steps; step++) {
        MPI_File_write_at(shared, (MPI_Offset)(step * processes + rank) * TURN, buffer, TURN, MPI_BYTE, MPI_STATUS_IGNORE);
        for (unsigned long pieces = 1 + drawn(&state) % 3; pieces > 0; pieces--) {
            size_t size = 1 + drawn(&state) % LARGEST;
            if (pwrite(own, buffer, size, (off_t)(drawn(&state) % PLACES)) != (ssize_t)size)
                MPI_Abort(MPI_COMM_WORLD, 1);
        }
    }
    close(own);
    MPI_File_close(&shared);
    MPI_Finalize();
    return 0;
}
