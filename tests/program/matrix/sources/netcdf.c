/* Parallel netCDF-4 and classic netCDF: every rank writes its columns of a variable and reads its neighbour's. */
#include <mpi.h>
#include <netcdf.h>
#include <netcdf_par.h>
#include <stdio.h>
#include <stdlib.h>

enum { LENGTH = 5000 };

static void must(int status)
{
    if (status != NC_NOERR) {
        printf("netcdf: %s\n", nc_strerror(status));
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

int main(int argc, char **argv)
{
    int rank, size, wrong = 0, all = 0, file, dim, var;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    static int values[LENGTH];
    must(nc_create_par(argv[1], NC_NETCDF4 | NC_CLOBBER, MPI_COMM_WORLD, MPI_INFO_NULL, &file));
    must(nc_def_dim(file, "n", (size_t)LENGTH * (size_t)size, &dim));
    must(nc_def_var(file, "v", NC_INT, 1, &dim, &var));
    must(nc_put_att_text(file, var, "units", 1, "m"));
    must(nc_enddef(file));
    must(nc_var_par_access(file, var, NC_COLLECTIVE));
    for (int k = 0; k < LENGTH; k++) values[k] = rank * LENGTH + k;
    size_t start = (size_t)rank * LENGTH, count = LENGTH;
    must(nc_put_vara_int(file, var, &start, &count, values));
    must(nc_close(file));
    must(nc_open_par(argv[1], NC_NOWRITE, MPI_COMM_WORLD, MPI_INFO_NULL, &file));
    must(nc_inq_varid(file, "v", &var));
    start = (size_t)((rank + 1) % size) * LENGTH;
    must(nc_get_vara_int(file, var, &start, &count, values));
    for (int k = 0; k < LENGTH; k++) wrong += values[k] != (int)start + k;
    must(nc_close(file));
    MPI_Reduce(&wrong, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) printf("%d ranks, %d errors\n", size, all);
    MPI_Finalize();
    return all != 0;
}
