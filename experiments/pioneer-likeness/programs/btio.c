/*
 * Like NAS BTIO, full: after every five time steps all processes together write an array of five doubles per cell (nx x ny x nz) through a view, and in the
 * end read all `steps` arrays back. Diagonal multipartitioning in y and z: both are cut into as many parts as there are processes, of which each process has
 * one in every plane of parts, so the number of processes must divide NY. nz grows with the processes (weak scaling); `count` is nx.
 */
#include "common.h"

#include <stdlib.h>

enum { NY = 48, NZ_EACH = 8, CELL_BYTES = 40, TIME_STEPS = 5 };

/* A subarray for each plane of parts, together one type as large as an array, which repeats itself with every array. */
static MPI_Datatype view_type(const struct job *job)
{
    int p = job->processes, lengths[NY];
    MPI_Aint places[NY];
    MPI_Datatype parts[NY], cell, type;
    MPI_Type_contiguous(CELL_BYTES, MPI_BYTE, &cell);
    for (int k = 0; k < p; k++) {
        int sizes[3] = {NZ_EACH * p, NY, (int)job->count}, subsizes[3] = {NZ_EACH, NY / p, (int)job->count};
        int starts[3] = {k * NZ_EACH, (job->rank + k) % p * (NY / p), 0};
        MPI_Type_create_subarray(3, sizes, subsizes, starts, MPI_ORDER_C, cell, &parts[k]);
        lengths[k] = 1;
        places[k] = 0;
    }
    MPI_Type_create_struct(p, lengths, places, parts, &type);
    MPI_Type_commit(&type);
    for (int k = 0; k < p; k++)
        MPI_Type_free(&parts[k]);
    MPI_Type_free(&cell);
    return type;
}

/* The process's bytes of one array, row by row as the view has them. */
static void over_rows(struct job *job, unsigned char *buf, long step, int checking)
{
    int p = job->processes;
    size_t row = (size_t)job->count * CELL_BYTES;
    for (int k = 0; k < p; k++)
        for (int z = 0; z < NZ_EACH; z++)
            for (int y = 0; y < NY / p; y++, buf += row) {
                uint64_t line = ((uint64_t)step * (uint64_t)(NZ_EACH * p) + (uint64_t)(k * NZ_EACH + z)) * NY + (uint64_t)((job->rank + k) % p * (NY / p) + y);
                if (checking)
                    content_check(job, buf, 0, line * row, row);
                else
                    content_make(buf, 0, line * row, row);
            }
}

int main(int argc, char **argv)
{
    struct job job = {.program = "btio", .steps = 12, .count = 32, .compute_s = 0.1};
    char name[4096];
    MPI_File handle;
    MPI_Status status;
    job_begin(&job, argc, argv);
    if (job.processes > NY || NY % job.processes != 0)
        job_fail(&job, "needs a number of processes that divides 48", "mpiexec -n");
    int bytes = NY * NZ_EACH * (int)job.count * CELL_BYTES;
    unsigned char *buf = malloc((size_t)bytes);
    MPI_Datatype type = view_type(&job);
    job_name(&job, name, sizeof name, "btio.out%ld", 0);
    job_require(&job, MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &handle), "MPI_File_open", name);
    job_require(&job, MPI_File_set_view(handle, 0, MPI_BYTE, type, "native", MPI_INFO_NULL), "MPI_File_set_view", name);
    for (long step = 0; step < job.steps; step++) {
        for (int i = 0; i < TIME_STEPS; i++)
            job_compute(&job);
        over_rows(&job, buf, step, 0);
        job_barrier();
        job_require(&job, MPI_File_write_at_all(handle, (MPI_Offset)step * bytes, buf, bytes, MPI_BYTE, &status), "MPI_File_write_at_all", name);
    }
    for (long step = 0; step < job.steps; step++) {
        job_barrier();
        job_require(&job, MPI_File_read_at_all(handle, (MPI_Offset)step * bytes, buf, bytes, MPI_BYTE, &status), "MPI_File_read_at_all", name);
        over_rows(&job, buf, step, 1);
        job_think(&job);
    }
    job_require(&job, MPI_File_close(&handle), "MPI_File_close", name);
    MPI_Type_free(&type);
    free(buf);
    return job_end(&job);
}
