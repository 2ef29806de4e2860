/* Each rank writes its columns of a table by HDF5, all at once, and reads them back. Prints where the table lies in the file. */
#include <hdf5.h>
#include <mpi.h>
#include <stdio.h>

enum { ROWS = 12, COLUMNS = 5 };

int main(int argc, char **argv)
{
    int rank, size, data[ROWS * COLUMNS], back[ROWS * COLUMNS], errors = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int i = 0; i < ROWS * COLUMNS; i++) data[i] = rank * 1000 + i;
    hid_t access = H5Pcreate(H5P_FILE_ACCESS), transfer = H5Pcreate(H5P_DATASET_XFER);
    H5Pset_fapl_mpio(access, MPI_COMM_WORLD, MPI_INFO_NULL);
    H5Pset_dxpl_mpio(transfer, H5FD_MPIO_COLLECTIVE);
    hid_t file = H5Fcreate(argv[1], H5F_ACC_TRUNC, H5P_DEFAULT, access);
    hsize_t whole[2] = {ROWS, (hsize_t)(COLUMNS * size)}, start[2] = {0, (hsize_t)(COLUMNS * rank)}, part[2] = {ROWS, COLUMNS};
    hid_t space = H5Screate_simple(2, whole, NULL), memory = H5Screate_simple(2, part, NULL);
    hid_t table = H5Dcreate2(file, "table", H5T_NATIVE_INT, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, part, NULL);
    H5Dwrite(table, H5T_NATIVE_INT, memory, space, transfer, data);
    H5Dread(table, H5T_NATIVE_INT, memory, space, transfer, back);
    for (int i = 0; i < ROWS * COLUMNS; i++) errors += data[i] != back[i];
    printf("rank %d: offset %llu errors %d\n", rank, (unsigned long long)H5Dget_offset(table), errors);
    H5Dclose(table), H5Sclose(space), H5Sclose(memory), H5Fclose(file), H5Pclose(access), H5Pclose(transfer);
    MPI_Finalize();
    return 0;
}
