/* Reads a file and its twin by the same calls behind the same views, chosen by chance alike in all processes: bytes, status, position and result must be the
 * same. Whether a copy gave them, the trace tells.
 * Usage: views FILE TWIN BLOCK COLUMNS ROWS SEED STEPS CALLS */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FILES = 2, BLOCKS_MAX = 64 };

static unsigned long long state;
static unsigned chance(unsigned below)
{
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return (unsigned)(state >> 11) % below;
}

static int rank, size, block, columns, rows;

static void fail(const char *what, int step)
{
    printf("rank %d, step %d: %s differs\n", rank, step, what);
    fflush(stdout);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

/* A view's filetype of `of` bytes an element, chosen by chance; where it begins. Each process has columns of its own. */
static MPI_Datatype filetype(MPI_Datatype etype, int of, MPI_Offset *displacement)
{
    MPI_Datatype made, cut;
    int row = columns * block / of, column = (chance(columns) + rank) % columns, i, n, lengths[BLOCKS_MAX], places[BLOCKS_MAX];
    MPI_Aint bytes[BLOCKS_MAX];
    *displacement = 0;
    switch (chance(7)) {
    case 0: /* as it lies */
        *displacement = (MPI_Offset)column * block;
        MPI_Type_dup(etype, &made);
        break;
    case 1: /* a column */
        *displacement = (MPI_Offset)column * block;
        MPI_Type_vector(rows, block / of, row, etype, &cut);
        MPI_Type_create_resized(cut, 0, (MPI_Aint)rows * columns * block, &made);
        MPI_Type_free(&cut);
        break;
    case 2: { /* some rows of a column, or of two */
        int first = chance(rows), whole[2] = {rows, row}, part[2] = {1 + chance(rows - first), block / of * (1 + chance(2))};
        int from[2] = {first, block / of * (column < columns - 1 ? column : column - 1)};
        MPI_Type_create_subarray(2, whole, part, from, MPI_ORDER_C, etype, &made);
        break;
    }
    case 3: /* half blocks, rising */
        n = 1 + chance(BLOCKS_MAX);
        for (i = 0, places[0] = 0; i < n; i++) {
            lengths[i] = block / of / 2;
            places[i] = (i ? places[i - 1] + lengths[i] : 0) + lengths[i] * chance(3);
        }
        MPI_Type_indexed(n, lengths, places, etype, &made);
        break;
    case 4: /* of any length, anywhere */
        n = 1 + chance(BLOCKS_MAX);
        for (i = 0; i < n; i++) {
            lengths[i] = 1 + chance(block / of);
            bytes[i] = (i ? bytes[i - 1] + (MPI_Aint)lengths[i - 1] * of : 0) + (MPI_Aint)of * chance(400);
        }
        MPI_Type_create_hindexed(n, lengths, bytes, etype, &made);
        break;
    case 5: { /* dealt out */
        int whole[2] = {rows, row}, kind[2] = {MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC};
        int argument[2] = {MPI_DISTRIBUTE_DFLT_DARG, block / of}, grid[2] = {1, size};
        MPI_Type_create_darray(size, rank, 2, whole, kind, argument, grid, MPI_ORDER_C, etype, &made);
        break;
    }
    default: /* a quarter of each block of a column */
        *displacement = (MPI_Offset)column * block + block / 4;
        MPI_Type_vector(rows, block / of / 4, row, etype, &cut);
        MPI_Type_create_resized(cut, 0, (MPI_Aint)rows * columns * block, &made);
        MPI_Type_free(&cut);
    }
    MPI_Type_commit(&made);
    return made;
}

/* The program's memory: `n` elements of a type that is bytes as they lie, or (the last) has gaps. */
static MPI_Datatype memory(MPI_Datatype etype, int of, int n, int *count, size_t *room)
{
    MPI_Datatype made = MPI_DATATYPE_NULL;
    *room = (size_t)n * of, *count = n;
    switch (chance(4)) {
    case 0:
        MPI_Type_contiguous(n, etype, &made);
        *count = 1;
        break;
    case 1:
        MPI_Type_vector(n, 1, 2, etype, &made);
        *count = 1, *room *= 2;
        break;
    case 2:
        MPI_Type_dup(MPI_BYTE, &made);
        *count = n * of;
        break;
    default:
        return etype;
    }
    MPI_Type_commit(&made);
    return made;
}

static int call(unsigned which, MPI_File file, MPI_Offset at, void *to, int n, MPI_Datatype type, MPI_Status *status)
{
    MPI_Request request;
    int result;
    switch (which) {
    case 0: return MPI_File_read_at(file, at, to, n, type, status);
    case 1: return MPI_File_read_at_all(file, at, to, n, type, status);
    case 2: return MPI_File_read(file, to, n, type, status);
    case 3: return MPI_File_read_all(file, to, n, type, status);
    case 4:
        result = MPI_File_iread_at(file, at, to, n, type, &request);
        return result ? result : MPI_Wait(&request, status);
    default:
        result = MPI_File_read_at_all_begin(file, at, to, n, type);
        return result ? result : MPI_File_read_at_all_end(file, to, status);
    }
}

int main(int argc, char **argv)
{
    MPI_File file[FILES];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc != 9) return 2;
    block = atoi(argv[3]), columns = atoi(argv[4]), rows = atoi(argv[5]);
    for (int i = 0; i < FILES; i++)
        if (MPI_File_open(MPI_COMM_WORLD, argv[1 + i], MPI_MODE_RDONLY, MPI_INFO_NULL, &file[i])) fail("opening", -1);
    for (int step = 0; step < atoi(argv[7]); step++) {
        const MPI_Datatype etypes[] = {MPI_BYTE, MPI_INT, MPI_DOUBLE};
        MPI_Datatype etype, view, type;
        MPI_Offset displacement, at, position[FILES];
        MPI_Status status;
        MPI_Aint lower, extent;
        MPI_Offset shown;
        int bytes, of, n, count, result[FILES], elements[FILES];
        size_t room;
        unsigned which;
        char *to[FILES];
        state = 0x9e3779b97f4a7c15ull * (strtoull(argv[6], 0, 10) * 1000 + step + 1);
        etype = etypes[chance(3)], which = chance(atoi(argv[8]));
        MPI_Type_size(etype, &of);
        /* The kind of view is the same in all, what it shows is not. */
        view = filetype(etype, of, &displacement);
        state += 0x632be59bd9b4e019ull * rank, chance(9);
        MPI_Type_size(view, &bytes);
        MPI_Type_get_extent(view, &lower, &extent);
        shown = (rows * columns * block - displacement) / extent * (bytes / of);
        for (int i = 0; i < FILES; i++) MPI_File_set_view(file[i], displacement, etype, view, "native", MPI_INFO_NULL);
        for (int turn = 0; turn < 3; turn++) {
            /* Behind the end of a file MPI libraries differ from call to call. */
            at = chance(3) ? (MPI_Offset)chance(8) * block / of : (MPI_Offset)chance(rows * block / of);
            if (at > shown) at = shown;
            if (which == 2 || which == 3) {
                if (chance(2))
                    for (int i = 0; i < FILES; i++) MPI_File_seek(file[i], at, MPI_SEEK_SET);
                MPI_File_get_position(file[0], &at);
            }
            n = chance(4) ? block / of * (int)(1 + chance(rows)) : (int)chance(3 * block / of);
            if (n > shown - at) n = (int)(shown - at);
            type = memory(etype, of, n, &count, &room);
            for (int i = 0; i < FILES; i++) {
                to[i] = malloc(room + 1);
                memset(to[i], 7, room);
                result[i] = call(which, file[i], at, to[i], count, type, &status);
                elements[i] = -1;
                if (!result[i]) MPI_Get_elements(&status, MPI_BYTE, &elements[i]);
                MPI_File_get_position(file[i], &position[i]);
            }
            if (result[0] != result[1]) fail("result", step);
            if (elements[0] != elements[1]) fail("status", step);
            if (position[0] != position[1]) fail("position", step);
            if (memcmp(to[0], to[1], room)) fail("memory", step);
            for (int i = 0; i < FILES; i++) free(to[i]);
            if (type != etype) MPI_Type_free(&type);
        }
        MPI_Type_free(&view);
    }
    for (int i = 0; i < FILES; i++) MPI_File_close(&file[i]);
    if (rank == 0) printf("the same\n");
    MPI_Finalize();
    return 0;
}
