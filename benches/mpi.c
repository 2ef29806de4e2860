/* Costs of MPI-IO calls, side by side in one process: MPI's own function (looked up in its library, past any preloaded one) and the hooked one, batch by
 * batch in turn. Prints one JSON object; tools/bench/bench_mpi.py runs it.
 *
 *   mpi added FILE    ns that the hook adds to a MPI_File_write_at of no bytes, by no view and by a strided one, and to a MPI_File_write: a call of no
 *                     bytes is the shortest there is, so that what is added stands out
 *   mpi decided FILE  ns that a MPI_File_write_at_all of no bytes takes beyond MPI's own MPI_File_write_at: where processes decide to make it so
 *   mpi small FILE    ns of a cached MPI_File_write_at of 4 KiB */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { BLOCK = 4096, BATCHES = 61, CALLS = 4000, BLOCKS = 256 };

typedef int (*write_at_fn)(MPI_File, MPI_Offset, const void *, int, MPI_Datatype, MPI_Status *);
typedef int (*write_fn)(MPI_File, const void *, int, MPI_Datatype, MPI_Status *);

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}
static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}
static double median(double *values)
{
    qsort(values, BATCHES, sizeof *values, compare);
    return values[BATCHES / 2];
}
static void *own(const char *name)
{
    void *library = dlopen("libmpi.so.12", RTLD_NOW | RTLD_NOLOAD), *found = library ? dlsym(library, name) : NULL;
    if (!found) {
        fprintf(stderr, "mpi: no %s in libmpi.so.12\n", name);
        exit(1);
    }
    return found;
}

static char block[BLOCK];
static double at(write_at_fn f, MPI_File file, int bytes)
{
    MPI_Status status;
    double begun = now();
    for (int i = 0; i < CALLS; i++) f(file, (MPI_Offset)(i % BLOCKS) * bytes, block, bytes, MPI_BYTE, &status);
    return (now() - begun) / CALLS;
}
static double here(write_fn f, MPI_File file)
{
    MPI_Status status;
    double begun = now();
    for (int i = 0; i < CALLS; i++) f(file, block, 0, MPI_BYTE, &status);
    return (now() - begun) / CALLS;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    if (argc != 3) return 2;
    MPI_File file;
    if (MPI_File_open(MPI_COMM_WORLD, argv[2], MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL, &file) != MPI_SUCCESS) return 1;
    write_at_fn own_at = (write_at_fn)own("MPI_File_write_at");
    write_fn own_here = (write_fn)own("MPI_File_write");
    double direct[BATCHES], hooked[BATCHES];
    if (!strcmp(argv[1], "small")) {
        for (int i = 0; i < BATCHES; i++) hooked[i] = at(MPI_File_write_at, file, BLOCK);
        printf("{\"small_ns\": %.1f}\n", median(hooked));
    } else if (!strcmp(argv[1], "decided")) {
        for (int i = 0; i < BATCHES; i++) {
            direct[i] = at(own_at, file, 0);
            hooked[i] = at(MPI_File_write_at_all, file, 0);
        }
        double base = median(direct);
        printf("{\"decided_ns\": %.1f, \"direct_ns\": %.1f}\n", median(hooked) - base, base);
    } else {
        double added[3], base[3];
        MPI_Datatype spread;
        MPI_Type_vector(64, 1, 2, MPI_BYTE, &spread);
        MPI_Type_commit(&spread);
        for (int kind = 0; kind < 3; kind++) {
            if (kind == 1) MPI_File_set_view(file, 0, MPI_BYTE, spread, "native", MPI_INFO_NULL);
            if (kind == 2) MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL);
            for (int i = 0; i < BATCHES; i++) {
                direct[i] = kind == 2 ? here(own_here, file) : at(own_at, file, 0);
                hooked[i] = kind == 2 ? here(MPI_File_write, file) : at(MPI_File_write_at, file, 0);
            }
            base[kind] = median(direct), added[kind] = median(hooked) - base[kind];
        }
        printf("{\"added_ns\": %.1f, \"strided_ns\": %.1f, \"pointer_ns\": %.1f, \"direct_ns\": %.1f}\n", added[0], added[1], added[2], base[0]);
        MPI_Type_free(&spread);
    }
    MPI_File_close(&file);
    MPI_Finalize();
    return 0;
}
