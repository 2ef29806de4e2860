/* Writes and reads more than an int counts by the function with a large count, as a program does that asks whether there is one. Prints what it found. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int (*write_fn)(MPI_File, MPI_Offset, const void *, MPI_Count, MPI_Datatype, MPI_Status *);
typedef int (*read_fn)(MPI_File, MPI_Offset, void *, MPI_Count, MPI_Datatype, MPI_Status *);

int main(int argc, char **argv)
{
    const long long n = (1LL << 31) + 4096 + 3;
    MPI_Init(&argc, &argv);
    write_fn write_at = (write_fn)dlsym(RTLD_DEFAULT, "MPI_File_write_at_c");
    read_fn read_at = (read_fn)dlsym(RTLD_DEFAULT, "MPI_File_read_at_c");
    if (!write_at || !read_at) {
        printf("rank 0: none\n");
        return MPI_Finalize();
    }
    char *data = calloc((size_t)n, 1);
    memcpy(data, "first", 5);
    memcpy(data + n - 4, "last", 4);
    MPI_File file;
    MPI_Status status;
    MPI_Offset size;
    MPI_Count count = 0;
    if (MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL, &file) != MPI_SUCCESS) return 1;
    int wrote = write_at(file, 10, data, n, MPI_BYTE, &status);
    MPI_Get_elements_x(&status, MPI_BYTE, &count);
    MPI_File_get_size(file, &size);
    memset(data, 1, 5), memset(data + n - 4, 1, 4);
    int got = read_at(file, 10, data, n, MPI_BYTE, MPI_STATUS_IGNORE);
    printf("rank 0: %d %d %lld %lld %.5s %.4s\n", wrote, got, (long long)count, (long long)size, data, data + n - 4);
    MPI_File_close(&file);
    return MPI_Finalize();
}
