/*
 * Like IOR (POSIX-ordered segments through MPI-IO in one shared file): each of `steps` repetitions writes the file anew and reads it back, each process what
 * its neighbour has written. A segment is one block of each process, a block `count` transfers of `bytes`; there are SEGMENTS of them.
 */
#include "common.h"

#include <stdlib.h>

enum { SEGMENTS = 4 };

static void phase(struct job *job, int writing, const char *name, unsigned char *buf, uint64_t file)
{
    MPI_File handle;
    MPI_Status status;
    int mode = writing ? MPI_MODE_CREATE | MPI_MODE_WRONLY : MPI_MODE_RDONLY;
    long slot = writing ? job->rank : (job->rank + 1) % job->processes;
    job_require(job, MPI_File_open(MPI_COMM_WORLD, name, mode, MPI_INFO_NULL, &handle), "MPI_File_open", name);
    for (long segment = 0; segment < SEGMENTS; segment++) {
        job_compute(job);
        for (long i = 0; i < job->count; i++) {
            MPI_Offset at = (MPI_Offset)(((segment * job->processes + slot) * job->count + i) * job->bytes);
            if (writing) {
                content_make(buf, file, (uint64_t)at, (size_t)job->bytes);
                job_require(job, MPI_File_write_at(handle, at, buf, (int)job->bytes, MPI_BYTE, &status), "MPI_File_write_at", name);
            } else {
                job_require(job, MPI_File_read_at(handle, at, buf, (int)job->bytes, MPI_BYTE, &status), "MPI_File_read_at", name);
                content_check(job, buf, file, (uint64_t)at, (size_t)job->bytes);
            }
            job_think(job);
        }
    }
    if (writing)
        job_require(job, MPI_File_sync(handle), "MPI_File_sync", name);
    job_require(job, MPI_File_close(&handle), "MPI_File_close", name);
}

int main(int argc, char **argv)
{
    struct job job = {.program = "ior", .steps = 4, .count = 16, .bytes = 256 << 10, .compute_s = 0.15, .think_s = 0.004};
    char name[4096];
    job_begin(&job, argc, argv);
    unsigned char *buf = malloc((size_t)job.bytes);
    for (long step = 0; step < job.steps; step++) {
        job_name(&job, name, sizeof name, "ior.%03ld", step);
        job_barrier();
        phase(&job, 1, name, buf, (uint64_t)step);
        job_barrier();
        phase(&job, 0, name, buf, (uint64_t)step);
    }
    free(buf);
    return job_end(&job);
}
