/*
 * Like LANL's MPI-IO Test: writes a pattern to a file, closes it, opens it for reading, reads, checks, closes. First N-1 (one file, the processes' requests in
 * turn), then N-N (a file for each process, on MPI_COMM_SELF); each request is a seek, a nonblocking call of `bytes` and its wait, `count` a step, with a
 * barrier and computing before each of `steps` steps.
 */
#include "common.h"

#include <stdlib.h>

static void pass_over(struct job *job, MPI_File handle, int writing, int shared, const char *name, unsigned char *buf, uint64_t file)
{
    long each = job->steps * job->count;
    for (long i = 0; i < each; i++) {
        MPI_Request request;
        MPI_Status status;
        MPI_Offset at = (MPI_Offset)((shared ? i * job->processes + job->rank : i) * job->bytes);
        if (i % job->count == 0) {
            job_barrier();
            job_compute(job);
        }
        job_require(job, MPI_File_seek(handle, at, MPI_SEEK_SET), "MPI_File_seek", name);
        if (writing) {
            content_make(buf, file, (uint64_t)at, (size_t)job->bytes);
            job_require(job, MPI_File_iwrite(handle, buf, (int)job->bytes, MPI_BYTE, &request), "MPI_File_iwrite", name);
        } else {
            job_require(job, MPI_File_iread(handle, buf, (int)job->bytes, MPI_BYTE, &request), "MPI_File_iread", name);
        }
        job_require(job, MPI_Wait(&request, &status), "MPI_Wait", name);
        if (!writing)
            content_check(job, buf, file, (uint64_t)at, (size_t)job->bytes);
        job_think(job);
    }
}

static void test(struct job *job, int shared, unsigned char *buf)
{
    char name[4096];
    MPI_Comm with = shared ? MPI_COMM_WORLD : MPI_COMM_SELF;
    uint64_t file = shared ? 0 : 1 + (uint64_t)job->rank;
    job_name(job, name, sizeof name, shared ? "mpiiotest.n1.%ld" : "mpiiotest.nn.%ld", shared ? 0 : job->rank);
    for (int writing = 1; writing >= 0; writing--) {
        MPI_File handle;
        int mode = writing ? MPI_MODE_CREATE | MPI_MODE_WRONLY : MPI_MODE_RDONLY;
        job_require(job, MPI_File_open(with, name, mode, MPI_INFO_NULL, &handle), "MPI_File_open", name);
        pass_over(job, handle, writing, shared, name, buf, file);
        if (writing)
            job_require(job, MPI_File_sync(handle), "MPI_File_sync", name);
        job_require(job, MPI_File_close(&handle), "MPI_File_close", name);
        job_barrier();
    }
}

int main(int argc, char **argv)
{
    struct job job = {.program = "mpiiotest", .steps = 5, .count = 24, .bytes = 64 << 10, .compute_s = 0.2, .think_s = 0.003};
    job_begin(&job, argc, argv);
    unsigned char *buf = malloc((size_t)job.bytes);
    test(&job, 1, buf);
    test(&job, 0, buf);
    free(buf);
    return job_end(&job);
}
