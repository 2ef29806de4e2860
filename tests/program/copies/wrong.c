/* Calls that an MPI refuses, and views that are set where nobody looks, on a file that is read: what comes of them, a line each.
 * Usage: wrong FILE */
#include <mpi.h>
#include <setjmp.h>
#include <stdio.h>
#include <string.h>

enum { BYTES = 64, FURTHER = 65536 };

static MPI_File file;
static jmp_buf back;
static int handled;

static void say(const char *what, int result, const unsigned char *bytes)
{
    int class = 0;
    if (result) MPI_Error_class(result, &class);
    printf("%s: class %s, memory", what, class == MPI_ERR_TYPE ? "type" : class == MPI_ERR_ARG ? "arg" : class ? "other" : "none");
    for (int i = 0; i < 8; i++) printf(" %02x", bytes[i]);
    printf("\n");
}

static void sets_view(MPI_File *which, int *error, ...)
{
    (void)which, (void)error;
    handled++;
    MPI_File_set_view(file, FURTHER, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL);
}

static void jumps(MPI_File *which, int *error, ...)
{
    (void)which, (void)error;
    longjmp(back, 1);
}

__attribute__((noinline)) static void set_view_below(MPI_Offset at)
{
    volatile char pad[8192];
    pad[0] = 1;
    MPI_File_set_view(file, at, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL);
    pad[1] = pad[0];
}

static void reopen(const char *name)
{
    if (file != MPI_FILE_NULL) MPI_File_close(&file);
    MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_RDONLY, MPI_INFO_NULL, &file);
}

int main(int argc, char **argv)
{
    unsigned char to[BYTES];
    MPI_Datatype type;
    MPI_Errhandler handler;
    MPI_Status status;
    int count = 0;
    MPI_Init(&argc, &argv);
    file = MPI_FILE_NULL;
    reopen(argv[1]);
    memset(to, 7, BYTES);
    say("no type", MPI_File_read_at(file, 0, to, 4, MPI_DATATYPE_NULL, MPI_STATUS_IGNORE), to);
    say("no type, collective", MPI_File_read_at_all(file, 0, to, 4, MPI_DATATYPE_NULL, MPI_STATUS_IGNORE), to);
    MPI_Type_contiguous(4, MPI_INT, &type);
    say("uncommitted", MPI_File_read_at(file, 0, to, 1, type, &status), to);
    MPI_Type_commit(&type);
    say("committed", MPI_File_read_at(file, 0, to, 1, type, &status), to);
    MPI_Get_count(&status, type, &count);
    printf("count %d\n", count);
    say("negative", MPI_File_read_at(file, -5, to, 4, MPI_BYTE, &status), to);
    MPI_File_create_errhandler(sets_view, &handler);
    MPI_File_set_errhandler(file, handler);
    MPI_File_read_at(file, -5, to, 4, MPI_BYTE, &status);
    say("after a view that a handler set", MPI_File_read_at(file, 0, to, BYTES, MPI_BYTE, &status), to);
    printf("handled %d\n", handled);
    reopen(argv[1]);
    MPI_File_create_errhandler(jumps, &handler);
    MPI_File_set_errhandler(file, handler);
    if (!setjmp(back)) MPI_File_read_at(file, -5, to, 4, MPI_BYTE, &status);
    set_view_below(FURTHER);
    say("after a view behind a jump", MPI_File_read_at(file, 0, to, BYTES, MPI_BYTE, &status), to);
    MPI_File_close(&file);
    MPI_Type_free(&type);
    MPI_Finalize();
    return 0;
}
