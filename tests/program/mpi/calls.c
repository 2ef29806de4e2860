/* Carries out a script of MPI-IO calls, one file of lines for each rank: what the tests of the mpi layer compare with their own expansion of the same
 * script. Prints what it has read, so that runs can be compared. Usage: calls DATA SCRIPT, with SCRIPT.<rank>. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST 64
static struct {
    char name[16];
    MPI_Datatype type;
} types[MOST];
static int type_count;
static struct {
    MPI_Request request;
    char *buffer;
    size_t bytes;
    int reads;
} slots[MOST];
static MPI_File file;
static unsigned long digest = 5381;
static unsigned step;
static char *split_buffer;
static size_t split_bytes;

static void die(const char *what)
{
    fprintf(stderr, "calls: %s\n", what);
    MPI_Abort(MPI_COMM_WORLD, 1);
}
static char *word(void)
{
    char *w = strtok(NULL, " \n");
    if (!w) die("a line is too short");
    return w;
}
static long long number(void) { return atoll(word()); }
static MPI_Datatype type(void)
{
    char *name = word();
    if (!strcmp(name, "byte")) return MPI_BYTE;
    if (!strcmp(name, "int")) return MPI_INT;
    if (!strcmp(name, "double")) return MPI_DOUBLE;
    if (!strcmp(name, "short_int")) return MPI_SHORT_INT;
    for (int i = 0; i < type_count; i++)
        if (!strcmp(name, types[i].name)) return types[i].type;
    die("no such type");
    return MPI_DATATYPE_NULL;
}
static void ints(int n, int *into) { for (int i = 0; i < n; i++) into[i] = (int)number(); }
static void addresses(int n, MPI_Aint *into) { for (int i = 0; i < n; i++) into[i] = (MPI_Aint)number(); }
static int order(void) { return *word() == 'F' ? MPI_ORDER_FORTRAN : MPI_ORDER_C; }

static void define(void)
{
    char *name = word(), *kind = word();
    int a[MOST], b[MOST], c[MOST], d[MOST], n;
    MPI_Aint at[MOST];
    MPI_Datatype made, of[MOST];
    if (!strcmp(kind, "contiguous")) {
        n = number();
        MPI_Type_contiguous(n, type(), &made);
    } else if (!strcmp(kind, "vector")) {
        ints(3, a);
        MPI_Type_vector(a[0], a[1], a[2], type(), &made);
    } else if (!strcmp(kind, "hvector")) {
        ints(2, a), addresses(1, at);
        MPI_Type_create_hvector(a[0], a[1], at[0], type(), &made);
    } else if (!strcmp(kind, "indexed")) {
        n = number(), ints(n, a), ints(n, b);
        MPI_Type_indexed(n, a, b, type(), &made);
    } else if (!strcmp(kind, "hindexed")) {
        n = number(), ints(n, a), addresses(n, at);
        MPI_Type_create_hindexed(n, a, at, type(), &made);
    } else if (!strcmp(kind, "indexed_block")) {
        n = number(), ints(1, a), ints(n, b);
        MPI_Type_create_indexed_block(n, a[0], b, type(), &made);
    } else if (!strcmp(kind, "hindexed_block")) {
        n = number(), ints(1, a), addresses(n, at);
        MPI_Type_create_hindexed_block(n, a[0], at, type(), &made);
    } else if (!strcmp(kind, "struct")) {
        n = number(), ints(n, a), addresses(n, at);
        for (int i = 0; i < n; i++) of[i] = type();
        MPI_Type_create_struct(n, a, at, of, &made);
    } else if (!strcmp(kind, "subarray")) {
        n = number(), ints(n, a), ints(n, b), ints(n, c);
        int in = order();
        MPI_Type_create_subarray(n, a, b, c, in, type(), &made);
    } else if (!strcmp(kind, "darray")) {
        int size = number(), rank = number();
        n = number(), ints(n, a);
        for (int i = 0; i < n; i++) {
            char how = *word();
            b[i] = how == 'b' ? MPI_DISTRIBUTE_BLOCK : how == 'c' ? MPI_DISTRIBUTE_CYCLIC : MPI_DISTRIBUTE_NONE;
        }
        ints(n, c), ints(n, d);
        for (int i = 0; i < n; i++)
            if (c[i] < 0) c[i] = MPI_DISTRIBUTE_DFLT_DARG;
        int in = order();
        MPI_Type_create_darray(size, rank, n, a, b, c, d, in, type(), &made);
    } else if (!strcmp(kind, "resized")) {
        addresses(2, at);
        MPI_Type_create_resized(type(), at[0], at[1], &made);
    } else if (!strcmp(kind, "dup")) {
        MPI_Type_dup(type(), &made);
    } else
        die("no such kind of type");
    MPI_Type_commit(&made);
    strncpy(types[type_count].name, name, sizeof types[0].name - 1);
    types[type_count++].type = made;
}

static void take(const char *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++) digest = digest * 33 + (unsigned char)bytes[i];
}
/* A buffer for n elements, filled by rank and step, or with a mark where it is read into. */
static char *buffer(long long n, MPI_Datatype of, int reads, size_t *bytes)
{
    MPI_Aint lower, extent;
    int rank;
    MPI_Type_get_extent(of, &lower, &extent);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    *bytes = (size_t)(n * extent) + 64;
    char *made = malloc(*bytes);
    for (size_t i = 0; i < *bytes; i++) made[i] = reads ? 0x5a : (char)(rank * 37 + step * 11 + i);
    return made;
}
static void ended(int slot)
{
    if (slots[slot].reads) take(slots[slot].buffer, slots[slot].bytes);
    free(slots[slot].buffer);
    slots[slot].buffer = NULL;
}
static void status_is(MPI_Status *status)
{
    int count;
    MPI_Get_elements(status, MPI_BYTE, &count);
    take((char *)&count, sizeof count);
}

#if MPI_VERSION >= 4
#define IF_LARGE(call) call
#else
#define IF_LARGE(call) die("no large counts here")
#endif
#define IS(name) !strcmp(op, name)
/* A call by either count. Half of the statuses are ignored. */
#define STATUS (step % 2 ? &status : MPI_STATUS_IGNORE)
#define AT(name, is_read)                                                                   \
    if (IS(#name) || IS(#name "_c")) {                                                      \
        MPI_Offset at = number();                                                           \
        long long n = number();                                                             \
        MPI_Datatype of = type();                                                           \
        size_t bytes;                                                                       \
        char *data = buffer(n, of, is_read, &bytes);                                        \
        if (IS(#name)) MPI_File_##name(file, at, data, (int)n, of, STATUS);                 \
        else IF_LARGE(MPI_File_##name##_c(file, at, data, n, of, STATUS));                  \
        if (step % 2) status_is(&status);                                                   \
        if (is_read) take(data, bytes);                                                     \
        free(data);                                                                         \
        return 1;                                                                           \
    }
#define HERE(name, is_read)                                                                 \
    if (IS(#name) || IS(#name "_c")) {                                                      \
        long long n = number();                                                             \
        MPI_Datatype of = type();                                                           \
        size_t bytes;                                                                       \
        char *data = buffer(n, of, is_read, &bytes);                                        \
        if (IS(#name)) MPI_File_##name(file, data, (int)n, of, STATUS);                     \
        else IF_LARGE(MPI_File_##name##_c(file, data, n, of, STATUS));                      \
        if (step % 2) status_is(&status);                                                   \
        if (is_read) take(data, bytes);                                                     \
        free(data);                                                                         \
        return 1;                                                                           \
    }
#define SLOT(is_read)                                                                       \
    int slot = number();                                                                    \
    slots[slot].reads = is_read;                                                            \
    slots[slot].buffer = buffer(n, of, is_read, &slots[slot].bytes)
#define IAT(name, is_read)                                                                  \
    if (IS(#name) || IS(#name "_c")) {                                                      \
        MPI_Offset at = number();                                                           \
        long long n = number();                                                             \
        MPI_Datatype of = type();                                                           \
        SLOT(is_read);                                                                      \
        if (IS(#name)) MPI_File_##name(file, at, slots[slot].buffer, (int)n, of, &slots[slot].request); \
        else IF_LARGE(MPI_File_##name##_c(file, at, slots[slot].buffer, n, of, &slots[slot].request)); \
        return 1;                                                                           \
    }
#define IHERE(name, is_read)                                                                \
    if (IS(#name) || IS(#name "_c")) {                                                      \
        long long n = number();                                                             \
        MPI_Datatype of = type();                                                           \
        SLOT(is_read);                                                                      \
        if (IS(#name)) MPI_File_##name(file, slots[slot].buffer, (int)n, of, &slots[slot].request); \
        else IF_LARGE(MPI_File_##name##_c(file, slots[slot].buffer, n, of, &slots[slot].request)); \
        return 1;                                                                           \
    }
#define SPLIT(name, is_read, at_param, at_arg)                                              \
    if (IS(#name "_begin") || IS(#name "_begin_c")) {                                       \
        at_param;                                                                           \
        long long n = number();                                                             \
        MPI_Datatype of = type();                                                           \
        split_buffer = buffer(n, of, is_read, &split_bytes);                                \
        if (IS(#name "_begin")) MPI_File_##name##_begin(file, at_arg split_buffer, (int)n, of); \
        else IF_LARGE(MPI_File_##name##_begin_c(file, at_arg split_buffer, n, of));         \
        return 1;                                                                           \
    }                                                                                       \
    if (IS(#name "_end")) {                                                                 \
        MPI_File_##name##_end(file, split_buffer, STATUS);                                  \
        if (step % 2) status_is(&status);                                                   \
        if (is_read) take(split_buffer, split_bytes);                                       \
        free(split_buffer);                                                                 \
        return 1;                                                                           \
    }
#define COMMA ,

static int moves(const char *op)
{
    MPI_Status status;
    AT(read_at, 1) AT(write_at, 0) AT(read_at_all, 1) AT(write_at_all, 0)
    HERE(read, 1) HERE(write, 0) HERE(read_all, 1) HERE(write_all, 0)
    HERE(read_shared, 1) HERE(write_shared, 0) HERE(read_ordered, 1) HERE(write_ordered, 0)
    IAT(iread_at, 1) IAT(iwrite_at, 0) IAT(iread_at_all, 1) IAT(iwrite_at_all, 0)
    IHERE(iread, 1) IHERE(iwrite, 0) IHERE(iread_all, 1) IHERE(iwrite_all, 0) IHERE(iread_shared, 1) IHERE(iwrite_shared, 0)
    SPLIT(read_at_all, 1, MPI_Offset at = number(), at COMMA) SPLIT(write_at_all, 0, MPI_Offset at = number(), at COMMA)
    SPLIT(read_all, 1, , ) SPLIT(write_all, 0, , ) SPLIT(read_ordered, 1, , ) SPLIT(write_ordered, 0, , )
    return 0;
}

/* Completes slots 0 to n - 1 by one of the families. */
static void complete(const char *how, int n)
{
    MPI_Request requests[MOST];
    MPI_Status statuses[MOST], *all = step % 2 ? statuses : MPI_STATUSES_IGNORE, *one = step % 2 ? statuses : MPI_STATUS_IGNORE;
    int indices[MOST], left = n, flag = 0, count;
    for (int i = 0; i < n; i++) requests[i] = slots[i].request;
    if (!strcmp(how, "wait")) {
        for (int i = 0; i < n; i++) MPI_Wait(&requests[i], one);
    } else if (!strcmp(how, "test")) {
        for (int i = 0; i < n; i++)
            for (flag = 0; !flag;) MPI_Test(&requests[i], &flag, one);
    } else if (!strcmp(how, "waitall")) {
        MPI_Waitall(n, requests, all);
    } else if (!strcmp(how, "testall")) {
        while (!flag) MPI_Testall(n, requests, &flag, all);
    } else if (!strcmp(how, "waitany")) {
        while (left--) MPI_Waitany(n, requests, indices, one);
    } else if (!strcmp(how, "testany")) {
        while (left) {
            MPI_Testany(n, requests, indices, &flag, one);
            if (flag) left--;
        }
    } else {
        while (left > 0) {
            if (!strcmp(how, "waitsome")) MPI_Waitsome(n, requests, &count, indices, all);
            else MPI_Testsome(n, requests, &count, indices, all);
            left -= count;
        }
    }
    for (int i = 0; i < n; i++) {
        slots[i].request = requests[i];
        ended(i);
    }
}

int main(int argc, char **argv)
{
    static char line[65536], name[4096];
    int rank;
    MPI_Offset size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (argc != 3) die("usage: calls DATA SCRIPT");
    snprintf(name, sizeof name, "%s.%d", argv[2], rank);
    FILE *script = fopen(name, "r");
    if (!script) die("no script");
    for (step = 0; fgets(line, sizeof line, script); step++) {
        char *op = strtok(line, " \n");
        if (!op || moves(op)) continue;
        if (IS("type")) define();
        else if (IS("open")) {
            char *mode = word(), *comm = word(), *key = word(), *value = word();
            MPI_Info info = MPI_INFO_NULL;
            MPI_Comm with = MPI_COMM_WORLD;
            if (strcmp(key, "-")) MPI_Info_create(&info), MPI_Info_set(info, key, value);
            if (!strcmp(comm, "self")) with = MPI_COMM_SELF;
            if (!strcmp(comm, "half")) MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &with);
            int flags = *mode == 'r' ? MPI_MODE_RDONLY : MPI_MODE_RDWR | MPI_MODE_CREATE;
            char path[4200];
            snprintf(path, sizeof path, "%s%s", argv[1], !strcmp(comm, "half") ? (rank % 2 ? ".1" : ".0") : !strcmp(comm, "self") ? (rank == 0 ? ".a" : rank == 1 ? ".b" : ".c") : "");
            if (MPI_File_open(with, path, flags, info, &file) != MPI_SUCCESS) die("open");
            if (info != MPI_INFO_NULL) MPI_Info_free(&info);
        } else if (IS("view")) {
            MPI_Offset at = number();
            MPI_Datatype etype = type();
            if (MPI_File_set_view(file, at, etype, type(), "native", MPI_INFO_NULL) != MPI_SUCCESS) die("view");
        } else if (IS("hint") || IS("hinted_view")) {
            MPI_Info info;
            char *key = word();
            MPI_Info_create(&info);
            MPI_Info_set(info, key, word());
            if (IS("hint") && MPI_File_set_info(file, info) != MPI_SUCCESS) die("set_info");
            if (IS("hinted_view") && MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", info) != MPI_SUCCESS) die("hinted view");
            MPI_Info_free(&info);
        } else if (IS("seek") || IS("seek_shared")) {
            MPI_Offset to = number();
            char *from = word();
            int whence = *from == 's' ? MPI_SEEK_SET : *from == 'c' ? MPI_SEEK_CUR : MPI_SEEK_END;
            if (IS("seek")) MPI_File_seek(file, to, whence);
            else MPI_File_seek_shared(file, to, whence);
        } else if (IS("sync")) MPI_File_sync(file);
        else if (IS("set_size")) MPI_File_set_size(file, number());
        else if (IS("preallocate")) MPI_File_preallocate(file, number());
        else if (IS("get_size")) {
            MPI_File_get_size(file, &size);
            take((char *)&size, sizeof size);
        } else if (IS("atomicity")) MPI_File_set_atomicity(file, (int)number());
        else if (IS("close")) MPI_File_close(&file);
        else if (IS("delete")) MPI_File_delete(argv[1], MPI_INFO_NULL);
        else if (IS("barrier")) MPI_Barrier(MPI_COMM_WORLD);
        else if (IS("complete")) {
            char *how = word();
            complete(how, (int)number());
        } else if (IS("free")) {
            for (int i = 0; i < type_count; i++) MPI_Type_free(&types[i].type);
            type_count = 0;
        } else
            die(op);
    }
    printf("rank %d: %lx\n", rank, digest);
    MPI_Finalize();
    return 0;
}
