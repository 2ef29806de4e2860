/* A job with files of all three classes, for the tests of `characterize`: the root alone has tokamak.txt; each process writes and reads plasma.R and
 * writes lonely.R by MPI-IO; all share fusion.dat (explicit offsets, then seek, iread, wait) and strata.dat (collective, through a view); children alone
 * have progeny.R. */
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PIECE = 16384, BLOCK = 65536, ROUNDS = 4, PIECES = 8, SMALL = 1024 };

static char name[4096];
static char buffer[BLOCK];

static const char *in(const char *directory, const char *file, int rank)
{
    if (rank < 0)
        snprintf(name, sizeof name, "%s/%s", directory, file);
    else
        snprintf(name, sizeof name, "%s/%s.%d", directory, file, rank);
    return name;
}

static void moved(ssize_t done, ssize_t wanted)
{
    if (done != wanted)
        MPI_Abort(MPI_COMM_WORLD, 1);
}

int main(int count, char **words)
{
    int rank, processes;
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &processes);
    const char *directory = words[1];
    struct stat found;
    MPI_File file;
    MPI_Request request;
    if (rank == 0) {
        int conf = open(in(directory, "tokamak.txt", -1), O_CREAT | O_RDWR | O_TRUNC, 0644);
        moved(write(conf, buffer, 5000), 5000);
        lseek(conf, 0, SEEK_SET);
        moved(read(conf, buffer, 5000), 5000);
        close(conf);
        stat(name, &found);
    }
    MPI_Barrier(MPI_COMM_WORLD);

    int own = open(in(directory, "plasma", rank), O_CREAT | O_WRONLY, 0644);
    for (int at = 0; at < ROUNDS; at++) {
        usleep(2000);
        moved(write(own, buffer, PIECE), PIECE);
    }
    close(own);
    own = open(name, O_RDONLY);
    for (int at = ROUNDS; at-- > 0;) {
        lseek(own, (off_t)at * PIECE, SEEK_SET);
        moved(read(own, buffer, PIECE), PIECE);
    }
    close(own);

    MPI_File_open(MPI_COMM_WORLD, in(directory, "fusion.dat", -1), MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    for (int at = 0; at < ROUNDS; at++)
        MPI_File_write_at(file, (MPI_Offset)(at * processes + rank) * BLOCK, buffer, BLOCK, MPI_BYTE, MPI_STATUS_IGNORE);
    for (int at = 0; at < ROUNDS; at++) {
        MPI_File_seek(file, (MPI_Offset)(at * processes + rank) * BLOCK, MPI_SEEK_SET);
        MPI_File_iread(file, buffer, BLOCK, MPI_BYTE, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    MPI_File_close(&file);

    MPI_Datatype strided;
    MPI_Type_vector(PIECES, SMALL, SMALL * processes, MPI_BYTE, &strided);
    MPI_Type_create_resized(strided, 0, (MPI_Aint)PIECES * SMALL * processes, &strided);
    MPI_Type_commit(&strided);
    MPI_File_open(MPI_COMM_WORLD, in(directory, "strata.dat", -1), MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file);
    MPI_File_set_view(file, (MPI_Offset)rank * SMALL, MPI_BYTE, strided, "native", MPI_INFO_NULL);
    for (int at = 0; at < ROUNDS; at++)
        MPI_File_write_all(file, buffer, PIECES * SMALL, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_File_close(&file);

    MPI_File_open(MPI_COMM_SELF, in(directory, "lonely", rank), MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file);
    MPI_File_iwrite_at(file, 0, buffer, BLOCK, MPI_BYTE, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_File_close(&file);

    if (rank > 0) {
        int child = open(in(directory, "progeny", rank), O_CREAT | O_WRONLY, 0644);
        moved(write(child, buffer, 20000), 20000);
        close(child);
    } else {
        unlink(in(directory, "tokamak.txt", -1));
    }
    MPI_Finalize();
    return 0;
}
