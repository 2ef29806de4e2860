/*
 * ways: programs that an engine in between would break if it were careless. ways WAY FILE; prints "end WAY" by rank 0 when all is as it must be.
 */
#include <fcntl.h>
#include <mpi.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BLOCK = 512, BLOCKS = 256, MODE = MPI_MODE_RDWR | MPI_MODE_CREATE, DUPS = 4000 };

static int rank, size;
static const char *name;
static jmp_buf back;

static int is(const char *a, const char *b) { return strcmp(a, b) == 0; }

static MPI_File opened(MPI_Comm comm)
{
    MPI_File file;
    if (MPI_File_open(comm, name, MODE, MPI_INFO_NULL, &file) != MPI_SUCCESS)
        MPI_Abort(MPI_COMM_WORLD, 3);
    return file;
}

/* Collective calls of either kind, some of them from deeper in the stack than whatever was before. */
static __attribute__((noinline)) void work(MPI_File file, int n, int turns)
{
    volatile char deep[4096];
    char block[BLOCK];
    deep[0] = 0;
    for (int turn = 0; turn < turns; turn++) {
        memset(block, rank + turn, BLOCK);
        MPI_File_write_at_all(file, (MPI_Offset)(rank + n * (turn % 16)) * BLOCK, block, BLOCK, MPI_BYTE, MPI_STATUS_IGNORE);
        memset(block, 0, BLOCK);
        MPI_File_read_at_all(file, (MPI_Offset)(rank + n * (turn % 16)) * BLOCK, block, BLOCK, MPI_BYTE, MPI_STATUS_IGNORE);
        if (block[BLOCK - 1] != (char)(rank + turn))
            MPI_Abort(MPI_COMM_WORLD, 4);
    }
    (void)deep[0];
}

/* Through a second handle, or by one process alone, bytes are written into gaps of a view just before all write through that: nothing overlaps. */
static void gaps(int by_one)
{
    static char all[BLOCK * BLOCKS], own[BLOCK], got[BLOCK];
    const MPI_Offset turn = (MPI_Offset)BLOCK * 2 * size;
    MPI_File plain = opened(MPI_COMM_WORLD), view = opened(MPI_COMM_WORLD), alone = opened(MPI_COMM_SELF);
    MPI_Datatype block, type;
    MPI_Type_contiguous(BLOCK, MPI_BYTE, &block);
    MPI_Type_create_resized(block, 0, turn, &type);
    MPI_Type_commit(&type);
    MPI_File_set_view(view, (MPI_Offset)rank * BLOCK, MPI_BYTE, type, "native", MPI_INFO_NULL);
    for (int step = 0; step < 150; step++) {
        MPI_Offset at = step * 7 % BLOCKS * turn + (MPI_Offset)(size + rank) * BLOCK;
        int mine = !by_one || rank == step % size;
        memset(all, step, sizeof all);
        memset(own, step, BLOCK);
        if (!by_one)
            MPI_File_write_at_all(plain, at, own, BLOCK, MPI_BYTE, MPI_STATUS_IGNORE);
        else if (mine)
            MPI_File_write_at(alone, at, own, BLOCK, MPI_BYTE, MPI_STATUS_IGNORE);
        MPI_File_write_at_all(view, 0, all, BLOCK * BLOCKS, MPI_BYTE, MPI_STATUS_IGNORE);
        MPI_File_sync(plain);
        MPI_File_sync(view);
        MPI_File_sync(alone);
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_File_read_at(plain, at, got, BLOCK, MPI_BYTE, MPI_STATUS_IGNORE);
        if (mine && memcmp(got, own, BLOCK)) {
            fprintf(stderr, "ways: rank %d: what was written into a gap in step %d is lost\n", rank, step);
            MPI_Abort(MPI_COMM_WORLD, 5);
        }
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_File_close(&plain);
    MPI_File_close(&view);
    MPI_File_close(&alone);
    MPI_Type_free(&type);
    MPI_Type_free(&block);
}

/* Through the view in force; whether ROMIO was told to make such writes safe. */
static void write_through(MPI_File file)
{
    static char block[BLOCK];
    char value[16] = "";
    int flag;
    MPI_Info info;
    for (int turn = 0; turn < 20; turn++)
        MPI_File_write_at_all(file, 0, block, rank ? 64 : BLOCK, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_File_get_info(file, &info);
    MPI_Info_get(info, "romio_ds_write", sizeof value - 1, value, &flag);
    MPI_Info_free(&info);
    if (!is(value, "disable")) {
        fprintf(stderr, "ways: rank %d: writes behind views with gaps are sieved: %s\n", rank, value);
        MPI_Abort(MPI_COMM_WORLD, 10);
    }
}

/* After a view that MPI has refused the one before is in force; which of the processes have gaps in it is as it was. */
static void refused(int first_whole, int again)
{
    MPI_File file = opened(MPI_COMM_WORLD);
    MPI_Datatype block, type;
    MPI_Type_contiguous(64, MPI_BYTE, &block);
    MPI_Type_create_resized(block, 0, 8192, &type);
    MPI_Type_commit(&type);
    for (int turn = 0; turn < 2; turn++) {
        int is_whole = first_whole && rank == 0;
        if (turn == again && MPI_File_set_view(file, -5, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL) == MPI_SUCCESS)
            MPI_Abort(MPI_COMM_WORLD, 11);
        if (turn == 0)
            MPI_File_set_view(file, is_whole ? 4096 : rank * 64, MPI_BYTE, is_whole ? MPI_BYTE : type, "native", MPI_INFO_NULL);
    }
    write_through(file);
    MPI_File_close(&file);
    MPI_Type_free(&type);
    MPI_Type_free(&block);
}

/* Pieces of 1 MiB, 2 MiB between them, in a filetype of 6 GiB of data; each piece begins with its number. */
static void far(void)
{
    static long got[2 << 17];
    const MPI_Offset piece = 1 << 20;
    MPI_File file = opened(MPI_COMM_WORLD);
    MPI_Datatype type;
    int fd = open(name, O_RDWR);
    for (long at = 1024; at <= 6024; at += 1000)
        for (long k = at; k < at + 2; k++)
            if (pwrite(fd, &k, sizeof k, (off_t)(3 * k + rank) * piece) != sizeof k)
                MPI_Abort(MPI_COMM_WORLD, 12);
    close(fd);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Type_create_hvector(6144, (int)piece, (MPI_Aint)3 * piece, MPI_BYTE, &type);
    MPI_Type_commit(&type);
    MPI_File_set_view(file, rank * piece, MPI_BYTE, type, "native", MPI_INFO_NULL);
    for (long at = 1024; at <= 6024; at += 1000) {
        MPI_File_read_at_all(file, at * piece, got, 2 * (int)piece, MPI_BYTE, MPI_STATUS_IGNORE);
        if (got[0] != at || got[1 << 17] != at + 1) {
            fprintf(stderr, "ways: rank %d: piece %ld is %ld\n", rank, at, got[0]);
            MPI_Abort(MPI_COMM_WORLD, 13);
        }
    }
    MPI_File_close(&file);
    MPI_Type_free(&type);
}

static void jump(MPI_File *file, int *error, ...)
{
    (void)file;
    (void)error;
    longjmp(back, 1);
}

int main(int argc, char **argv)
{
    MPI_File file;
    char block[BLOCK] = { 0 };
    const char *way = argc > 2 ? argv[1] : "";
    name = argc > 2 ? argv[2] : "";
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (is(way, "gaps") || is(way, "alone")) {
        gaps(is(way, "alone"));
    } else if (is(way, "refused")) {
        for (int kind = 0; kind < 4; kind++)
            refused(kind % 2, kind / 2);
    } else if (is(way, "far")) {
        far();
    } else if (is(way, "spawn")) {
        /* Two worlds that know nothing of each other any more, on one file; of the second, which keeps to itself, the first does not see the data. */
        MPI_Comm other;
        char *words[] = { (char *)"spawn", (char *)name, 0 };
        MPI_Comm_get_parent(&other);
        int is_child = other != MPI_COMM_NULL;
        if (!is_child)
            MPI_Comm_spawn(argv[0], words, size, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &other, MPI_ERRCODES_IGNORE);
        MPI_Barrier(other);
        MPI_Comm_disconnect(&other);
        file = opened(MPI_COMM_WORLD);
        for (int turn = 0; turn < 2000; turn++) {
            MPI_File_write_at_all(file, (MPI_Offset)(rank + size * (turn % 16)) * BLOCK, block, BLOCK, MPI_BYTE, MPI_STATUS_IGNORE);
            MPI_File_read_at_all(file, (MPI_Offset)(rank + size * (turn % 16)) * BLOCK, block, BLOCK, MPI_BYTE, MPI_STATUS_IGNORE);
        }
        MPI_File_close(&file);
        if (is_child)
            way = "child";
    } else if (is(way, "jump")) {
        MPI_Errhandler handler;
        file = opened(MPI_COMM_WORLD);
        MPI_File_create_errhandler((MPI_File_errhandler_function *)jump, &handler);
        MPI_File_set_errhandler(MPI_FILE_NULL, handler);
        if (rank == 0 && !setjmp(back)) {
            MPI_File none;
            MPI_File_open(MPI_COMM_SELF, "/nowhere/f", MPI_MODE_RDONLY, MPI_INFO_NULL, &none);
        }
        work(file, size, 200);
        MPI_File_close(&file);
    } else if (is(way, "retry")) {
        /* Errors of one process, which the others do not see. */
        file = opened(MPI_COMM_WORLD);
        if (rank == 0)
            usleep(100 * 1000);
        if (rank == 0
            && (MPI_File_set_view(file, -7, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL) == MPI_SUCCESS
                || MPI_File_write_at_all(file, 0, block, -1, MPI_BYTE, MPI_STATUS_IGNORE) == MPI_SUCCESS
                || MPI_File_read_at_all(file, 0, block, 1, MPI_DATATYPE_NULL, MPI_STATUS_IGNORE) == MPI_SUCCESS
                || MPI_File_read_at_all(file, -1, block, 1, MPI_BYTE, MPI_STATUS_IGNORE) == MPI_SUCCESS))
            MPI_Abort(MPI_COMM_WORLD, 6);
        MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL);
        work(file, size, 500);
        MPI_File_close(&file);
    } else if (is(way, "none")) {
        if (MPI_File_open(MPI_COMM_NULL, name, MODE, MPI_INFO_NULL, &file) == MPI_SUCCESS)
            MPI_Abort(MPI_COMM_WORLD, 7);
        file = opened(MPI_COMM_WORLD);
        if (MPI_File_set_view(file, 0, MPI_INT, MPI_DATATYPE_NULL, "native", MPI_INFO_NULL) == MPI_SUCCESS)
            MPI_Abort(MPI_COMM_WORLD, 8);
        work(file, size, 50);
        MPI_File_close(&file);
    } else if (is(way, "contexts")) {
        /* As many communicators as MPI has, but for the one that the file needs. */
        static MPI_Comm dup[DUPS];
        int n = 0;
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
        while (n < DUPS && MPI_Comm_dup(MPI_COMM_WORLD, &dup[n]) == MPI_SUCCESS)
            n++;
        MPI_Comm_free(&dup[--n]);
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
        file = opened(MPI_COMM_WORLD);
        work(file, size, 50);
        MPI_File_close(&file);
        while (n > 0)
            MPI_Comm_free(&dup[--n]);
    } else if (is(way, "close")) {
        /* After a close everybody sees all of the file. */
        for (int turn = 0; turn < 40; turn++) {
            if (rank == 0)
                unlink(name);
            MPI_Barrier(MPI_COMM_WORLD);
            file = opened(MPI_COMM_WORLD);
            MPI_File_write_at_all(file, (MPI_Offset)rank * BLOCK, block, BLOCK, MPI_BYTE, MPI_STATUS_IGNORE);
            MPI_File_close(&file);
            int fd = open(name, O_RDONLY);
            if (lseek(fd, 0, SEEK_END) != (off_t)size * BLOCK)
                MPI_Abort(MPI_COMM_WORLD, 9);
            close(fd);
            MPI_Barrier(MPI_COMM_WORLD);
        }
    } else {
        return 2;
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        printf("end %s\n", way);
    MPI_Finalize();
    return 0;
}
