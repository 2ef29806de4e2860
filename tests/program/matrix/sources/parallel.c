/* Parallel HDF5: every rank writes its rows of a dataset, collectively and independently, and reads another rank's back. */
#include <hdf5.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROWS = 64, COLUMNS = 1000 };

int main(int argc, char **argv)
{
    int rank, size, wrong = 0, all = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    static double rows[ROWS][COLUMNS];
    for (int mode = 0; mode < 2; mode++) {
        hid_t access = H5Pcreate(H5P_FILE_ACCESS);
        H5Pset_fapl_mpio(access, MPI_COMM_WORLD, MPI_INFO_NULL);
        char name[64];
        snprintf(name, sizeof name, "%s%d.h5", argv[1], mode);
        hid_t file = H5Fcreate(name, H5F_ACC_TRUNC, H5P_DEFAULT, access);
        hsize_t whole[2] = {(hsize_t)ROWS * (hsize_t)size, COLUMNS}, part[2] = {ROWS, COLUMNS};
        hsize_t start[2] = {(hsize_t)ROWS * (hsize_t)rank, 0};
        hid_t space = H5Screate_simple(2, whole, NULL), memory = H5Screate_simple(2, part, NULL);
        hid_t data = H5Dcreate2(file, "d", H5T_NATIVE_DOUBLE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
        hid_t transfer = H5Pcreate(H5P_DATASET_XFER);
        H5Pset_dxpl_mpio(transfer, mode ? H5FD_MPIO_COLLECTIVE : H5FD_MPIO_INDEPENDENT);
        for (int row = 0; row < ROWS; row++)
            for (int column = 0; column < COLUMNS; column++) rows[row][column] = rank * 1e6 + row * 1e3 + column;
        H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, part, NULL);
        wrong += H5Dwrite(data, H5T_NATIVE_DOUBLE, memory, space, transfer, rows) < 0;
        wrong += H5Fflush(file, H5F_SCOPE_GLOBAL) < 0;
        MPI_Barrier(MPI_COMM_WORLD);
        int other = (rank + 1) % size;
        start[0] = (hsize_t)ROWS * (hsize_t)other;
        H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, part, NULL);
        wrong += H5Dread(data, H5T_NATIVE_DOUBLE, memory, space, transfer, rows) < 0;
        for (int row = 0; row < ROWS; row++)
            for (int column = 0; column < COLUMNS; column++) wrong += rows[row][column] != other * 1e6 + row * 1e3 + column;
        H5Pclose(transfer), H5Dclose(data), H5Sclose(memory), H5Sclose(space), H5Pclose(access);
        wrong += H5Fclose(file) < 0;
    }
    MPI_Reduce(&wrong, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) printf("%d ranks, %d errors\n", size, all);
    MPI_Finalize();
    return all != 0;
}
