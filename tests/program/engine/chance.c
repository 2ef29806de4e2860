/*
 * chance: random MPI-IO programs that check themselves.
 *
 *   chance FILE FIRST COUNT [plain]
 *
 * Each seed is a program: all processes know from it what every process does, so each keeps the whole file as it must be (its shadow), and compares
 * what it reads, how much a status tells, and where its file pointer is. What processes write between two synchronisations does not overlap; what
 * they read there is their own. At the end the file is read by each process alone. Prints "ok COUNT" by rank 0.
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Pieces so many times as large. */
#ifndef SCALE
#define SCALE 1
#endif
enum { FILE_BYTES = SCALE << 16, LARGE = SCALE > 1 ? 1023 : 0 };

static int world_rank, is_plain;
static unsigned long seed_now;
static const char *step_now = "begin";

#define CHECK(condition)                                                                                                     \
    do {                                                                                                                     \
        if (!(condition)) {                                                                                                  \
            fprintf(stderr, "chance: rank %d, seed %lu, %s: %s (line %d)\n", world_rank, seed_now, step_now, #condition, __LINE__); \
            MPI_Abort(MPI_COMM_WORLD, 1);                                                                                    \
            exit(1);                                                                                                         \
        }                                                                                                                    \
    } while (0)
#define DO(call) CHECK((call) == MPI_SUCCESS)

static uint64_t mix(uint64_t x)
{
    x ^= x >> 31;
    x *= 0x7fb5d329728ea185u;
    x ^= x >> 27;
    x *= 0x81dadef4bc2dd44du;
    return x ^ x >> 33;
}

/* The common stream. */
static uint64_t stream;
static unsigned chance(unsigned below) { return (stream = mix(stream + 0x9e3779b97f4a7c15u)) % below; }
/* What one rank draws in one step: every process can tell. */
static unsigned of_rank(uint64_t step, int rank, unsigned what, unsigned below)
{
    return mix(mix(seed_now * 1000003 + step) * 31 + rank * 7919 + what) % below;
}

struct layout {
    int strided, mixed, common;
    /* strided: blocks of all processes in turn; else a region of each. mixed: strided with a gap of `region` bytes behind each turn, in one of which the first
     * process has its only data, through a view without gaps. common: regions in one view for all, in which each reads the next one's. */
    int64_t displacement, block, region;
};

static int64_t turn(const struct layout *l, int processes) { return l->block * processes + (l->mixed ? l->region : 0); }

/* The place in the file of a byte of a process's data. */
static int64_t place(const struct layout *l, int processes, int rank, int64_t at)
{
    if (l->mixed && rank == 0)
        return l->displacement + 2 * turn(l, processes) + l->block * processes + at;
    if (l->strided)
        return l->displacement + at / l->block * turn(l, processes) + rank * l->block + at % l->block;
    return l->displacement + rank * l->region + at;
}

/* Bytes of data that each process has. */
static int64_t room(const struct layout *l, int processes, int rank)
{
    if (l->mixed && rank == 0)
        return FILE_BYTES / turn(l, processes) < 4 ? 0 : l->region;
    return l->strided ? (FILE_BYTES - l->displacement) / turn(l, processes) * l->block : l->region;
}

struct program {
    MPI_Comm comm;
    MPI_File file;
    int rank, size;
    struct layout layout;
    unsigned char shadow[FILE_BYTES];
    unsigned char known[FILE_BYTES]; /* of gaps that nobody has written the contents are undefined, and ROMIO's sieving leaves any there */
    int64_t end;      /* of the file, as far as it is known */
    int reads_only, deferred;
    int hinted; /* some hint was given */
    int joined; /* others may still be writing what this process wrote by a collective call */
};

static void view(struct program *p, MPI_Info info)
{
    struct layout *l = &p->layout;
    MPI_Datatype block, type;
    l->strided = chance(2);
    l->displacement = chance(3) ? 0 : chance(512);
    l->block = SCALE * (1 + (int)(chance(2) ? chance(64) : LARGE + chance(1500)));
    /* ROMIO's independent writes lose bytes where views are mixed: collective ones alone, as MPI chooses to make them. */
    l->mixed = l->strided && !p->hinted && chance(3) == 0;
    l->region = l->mixed ? SCALE * (16 + (int)chance(400)) : (FILE_BYTES - l->displacement) / p->size;
    /* Collective calls of Open MPI's do not see what those of other processes have just written, with or without Stripewise. */
    l->common = !l->strided && !p->hinted && !is_plain && chance(2);
    /* Of all processes, now and then: the view before stays as it was until the next one. */
    static unsigned set;
    if (++set % 5 == 0 && !is_plain) {
        step_now = "set_view refused";
        CHECK(MPI_File_set_view(p->file, -5, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL) != MPI_SUCCESS);
    }
    step_now = "set_view";
    if (l->mixed && p->rank == 0) {
        DO(MPI_File_set_view(p->file, place(l, p->size, 0, 0), MPI_BYTE, MPI_BYTE, "native", info));
    } else if (l->strided) {
        DO(MPI_Type_contiguous((int)l->block, MPI_BYTE, &block));
        DO(MPI_Type_create_resized(block, 0, turn(l, p->size), &type));
        DO(MPI_Type_commit(&type));
        DO(MPI_File_set_view(p->file, l->displacement + p->rank * l->block, MPI_BYTE, type, "native", info));
        MPI_Type_free(&type);
        MPI_Type_free(&block);
    } else {
        DO(MPI_File_set_view(p->file, l->displacement + (l->common ? 0 : p->rank * l->region), MPI_BYTE, MPI_BYTE, "native", info));
    }
}

static void sync_all(struct program *p)
{
    const char *before = step_now;
    step_now = "sync";
    p->joined = 0;
    /* Of a file that is open for reading alone it is an error. */
    if (!p->reads_only)
        DO(MPI_File_sync(p->file));
    DO(MPI_Barrier(p->comm));
    if (!p->reads_only)
        DO(MPI_File_sync(p->file));
    step_now = before;
}

/* One collective step, or calls of their own of some. */
static void transfer(struct program *p, uint64_t step)
{
    static unsigned char buffer[FILE_BYTES + 64];
    static const char *names[] = { "at_all", "all", "at_all split", "all split", "own at", "own i_at" };
    int kind = chance(16), writes = !p->reads_only && chance(5) < 3, mine = 0, got = 0;
    int64_t at = 0, bytes = 0, ahead;
    int whose = p->rank;
    MPI_Status status;
    MPI_Request request;
    /* Mostly those that are decided on. */
    kind = kind < 8 ? 0 : kind < 12 ? 1 : kind == 12 ? 2 : kind == 13 ? 3 : kind == 14 ? 4 : 5;
    /* Where aggregators alone have opened the file, no process may use it by itself. */
    if ((p->deferred || p->layout.mixed || p->layout.common) && kind > 3)
        kind = 0;
    /* Open MPI hangs in some of them, with or without Stripewise. */
    if (is_plain && (kind == 2 || kind == 3 || kind == 5))
        kind = kind == 5 ? 4 : kind - 2;
    step_now = names[kind];
    /* Data that a collective call has given to an aggregator may not be in the file yet: ROMIO's independent calls, and those that a hint makes so, see and
     * overtake that. Programs must synchronise there; collective calls without hints see what collective calls have written. */
    if (p->joined && (p->hinted || kind > 3))
        sync_all(p);
    if (writes && kind < 4)
        p->joined = 1;
    for (int rank = 0; rank < p->size; rank++) {
        int64_t all = room(&p->layout, p->size, rank);
        int64_t from = all <= 0 ? 0 : of_rank(step, rank, 1, (unsigned)all);
        int64_t n = all > 0 && of_rank(step, rank, 2, 4) ? of_rank(step, rank, 3, (unsigned)(all - from) + 1) : 0;
        /* Through the data one behind the other, as programs do, or the same again and again. */
        int way = of_rank(step, 0, 4, 4);
        if (way) {
            n = way == 1 ? all / 16 : all / 3;
            from = way == 1 ? (int64_t)(step % 16) * n : 0;
        }
        int takes_part = kind < 4 || of_rank(step, rank, 5, 3);
        if (rank == p->rank)
            mine = takes_part, at = from, bytes = n;
        if (!takes_part || !writes)
            continue;
        for (int64_t k = 0; k < n; k++) {
            int64_t where = place(&p->layout, p->size, rank, from + k);
            p->shadow[where] = (unsigned char)mix(step * 131 + rank * 17 + from + k);
            p->known[where] = 1;
            if (where >= p->end)
                p->end = where + 1;
        }
    }
    for (int64_t k = 0; k < bytes; k++)
        buffer[k] = writes ? (unsigned char)mix(step * 131 + p->rank * 17 + at + k) : 0xa5;
    /* What collective calls have written ROMIO's collective calls of all processes see. */
    if (p->layout.common && !writes)
        whose = (p->rank + 1) % p->size;
    ahead = p->layout.common ? whose * p->layout.region : 0;
    if ((kind == 1 || kind == 3) && mine)
        DO(MPI_File_seek(p->file, ahead + at, MPI_SEEK_SET));
    memset(&status, 0, sizeof status);
    /* Large counts, and types other than bytes, now and then. */
    MPI_Datatype type = MPI_BYTE;
    int count = (int)bytes;
    if (chance(4) == 0) {
        DO(MPI_Type_contiguous(count ? count : 1, MPI_BYTE, &type));
        DO(MPI_Type_commit(&type));
        count = count ? 1 : 0;
    }
    switch (kind) {
    case 0:
        if (writes) DO(MPI_File_write_at_all(p->file, ahead + at, buffer, count, type, &status));
        else DO(MPI_File_read_at_all(p->file, ahead + at, buffer, count, type, &status));
        break;
    case 1:
        if (writes) DO(MPI_File_write_all(p->file, buffer, count, type, &status));
        else DO(MPI_File_read_all(p->file, buffer, count, type, &status));
        break;
    case 2:
        if (writes) { DO(MPI_File_write_at_all_begin(p->file, ahead + at, buffer, count, type)); DO(MPI_File_write_at_all_end(p->file, buffer, &status)); }
        else { DO(MPI_File_read_at_all_begin(p->file, ahead + at, buffer, count, type)); DO(MPI_File_read_at_all_end(p->file, buffer, &status)); }
        break;
    case 3:
        if (writes) { DO(MPI_File_write_all_begin(p->file, buffer, count, type)); DO(MPI_File_write_all_end(p->file, buffer, &status)); }
        else { DO(MPI_File_read_all_begin(p->file, buffer, count, type)); DO(MPI_File_read_all_end(p->file, buffer, &status)); }
        break;
    case 4:
        if (mine && writes) DO(MPI_File_write_at(p->file, at, buffer, count, type, &status));
        else if (mine) DO(MPI_File_read_at(p->file, at, buffer, count, type, &status));
        break;
    default:
        if (mine && writes) DO(MPI_File_iwrite_at(p->file, at, buffer, count, type, &request));
        else if (mine) DO(MPI_File_iread_at(p->file, at, buffer, count, type, &request));
        if (mine) DO(MPI_Wait(&request, &status));
    }
    if (type != MPI_BYTE)
        MPI_Type_free(&type);
    if (!mine)
        return;
    DO(MPI_Get_count(&status, MPI_BYTE, &got));
    if (writes)
        CHECK(got == bytes);
    if (kind == 1 || kind == 3) {
        MPI_Offset now;
        DO(MPI_File_get_position(p->file, &now));
        if (writes || got == bytes)
            CHECK(now == ahead + at + bytes);
    }
    if (!writes) {
        /* What others wrote since the last synchronisation may have made the file longer, but is not this process's. */
        CHECK(got <= bytes);
        for (int64_t k = 0; k < got; k++) {
            int64_t where = place(&p->layout, p->size, whose, at + k);
            CHECK(!p->known[where] || buffer[k] == p->shadow[where]);
        }
    }
}

static MPI_Info hints(int at_open)
{
    static const char *ways[] = { "enable", "disable", "automatic" };
    MPI_Info info;
    if (chance(3))
        return MPI_INFO_NULL;
    DO(MPI_Info_create(&info));
    if (at_open && chance(6) == 0) {
        /* With independent calls, by whatever hint, it is an error. */
        MPI_Info_set(info, "romio_no_indep_rw", "true");
        return info;
    }
    if (chance(2)) MPI_Info_set(info, "romio_cb_write", ways[chance(3)]);
    if (chance(2)) MPI_Info_set(info, "romio_cb_read", ways[chance(3)]);
    /* Of all processes alike, and no draw more: the programs stay those that they were. */
    static unsigned given;
    if (++given % 4 == 0) MPI_Info_set(info, "romio_ds_read", ways[given / 4 % 3]);
    /* After the open ROMIO takes another size and keeps the buffer, over whose end it reads then. */
    if (at_open && chance(2)) MPI_Info_set(info, "cb_buffer_size", chance(2) ? "4096" : "65536");
    return info;
}

static void run(const char *name, unsigned long seed)
{
    static struct program p;
    static unsigned char whole[FILE_BYTES];
    char own[4096];
    MPI_Info info;
    MPI_Status status;
    MPI_File alone;
    int got, colour;
    memset(&p, 0, sizeof p);
    seed_now = seed;
    stream = mix(seed);
    /* All processes, some of them, or each by itself. */
    int how = chance(8);
    colour = how == 0 ? world_rank : how < 3 ? world_rank % 2 : 0;
    DO(MPI_Comm_split(MPI_COMM_WORLD, colour, how == 2 ? -world_rank : world_rank, &p.comm));
    MPI_Comm_rank(p.comm, &p.rank);
    MPI_Comm_size(p.comm, &p.size);
    /* What a file's reads were made by last is told once for each name. */
    snprintf(own, sizeof own, "%s.%d.%lu", name, colour, SCALE > 1 ? seed % 8 : 0);
    if (p.rank == 0)
        MPI_File_delete(own, MPI_INFO_NULL);
    DO(MPI_Barrier(p.comm));
    int rounds = 1 + chance(2);
    for (int round = 0; round < rounds; round++) {
        info = hints(1);
        p.deferred = 0;
        p.hinted = info != MPI_INFO_NULL;
        if (info != MPI_INFO_NULL) {
            char value[8];
            int flag;
            MPI_Info_get(info, "romio_no_indep_rw", 7, value, &flag);
            p.deferred = flag;
        }
        step_now = "open";
        p.reads_only = round && chance(3) == 0;
        DO(MPI_File_open(p.comm, own, (p.reads_only ? MPI_MODE_RDONLY : MPI_MODE_RDWR) | (round ? 0 : MPI_MODE_CREATE), info, &p.file));
        if (info != MPI_INFO_NULL)
            MPI_Info_free(&info);
        /* The communicator may go while the file is open. */
        if (chance(4) == 0) {
            MPI_Comm again;
            DO(MPI_Comm_dup(p.comm, &again));
            DO(MPI_Comm_free(&p.comm));
            p.comm = again;
        }
        int atomic = chance(6) == 0;
        if (atomic) {
            step_now = "set_atomicity";
            DO(MPI_File_set_atomicity(p.file, 1));
        }
        int epochs = 1 + chance(3);
        for (int epoch = 0; epoch < epochs; epoch++) {
            info = p.deferred || chance(3) ? MPI_INFO_NULL : hints(0);
            p.hinted |= info != MPI_INFO_NULL;
            view(&p, info);
            if (info != MPI_INFO_NULL)
                MPI_Info_free(&info);
            if (chance(6) == 0 && !p.reads_only) {
                step_now = "set_size";
                int64_t size = chance(FILE_BYTES);
                DO(MPI_File_set_size(p.file, size));
                memset(p.known + size, 0, FILE_BYTES - size);
                p.end = size;
                sync_all(&p);
            }
            int steps = chance(40);
            for (int step = 0; step < steps; step++) {
                uint64_t number = (uint64_t)round << 40 | (uint64_t)epoch << 20 | (uint64_t)step;
                transfer(&p, number);
                /* As above, with the view in force; and hints of reads by themselves. */
                static unsigned done;
                if (++done % 23 == 0 && !is_plain) {
                    step_now = "set_view refused";
                    CHECK(MPI_File_set_view(p.file, -5, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL) != MPI_SUCCESS);
                }
                if (done % 57 == 0 && !p.deferred) {
                    static const char *reads[] = { "automatic", "DISABLE", "enable", "disable" };
                    DO(MPI_Info_create(&info));
                    MPI_Info_set(info, "romio_ds_read", reads[done / 57 % 4]);
                    step_now = "set_info";
                    DO(MPI_File_set_info(p.file, info));
                    MPI_Info_free(&info);
                }
            }
            if (atomic && chance(2)) {
                step_now = "set_atomicity";
                DO(MPI_File_set_atomicity(p.file, 0));
                atomic = 0;
            }
            sync_all(&p);
        }
        step_now = "close";
        DO(MPI_File_close(&p.file));
        DO(MPI_Barrier(p.comm));
    }
    step_now = "check";
    memset(whole, 0, sizeof whole);
    DO(MPI_File_open(MPI_COMM_SELF, own, MPI_MODE_RDONLY, MPI_INFO_NULL, &alone));
    DO(MPI_File_read_at(alone, 0, whole, FILE_BYTES, MPI_BYTE, &status));
    DO(MPI_Get_count(&status, MPI_BYTE, &got));
    CHECK(got == p.end);
    for (int k = 0; k < FILE_BYTES; k++)
        CHECK(!p.known[k] || whole[k] == p.shadow[k]);
    DO(MPI_File_close(&alone));
    DO(MPI_Barrier(p.comm));
    DO(MPI_Comm_free(&p.comm));
    if (how == 0)
        remove(own);
}

int main(int argc, char **argv)
{
    if (argc < 4)
        return 2;
    is_plain = argc > 4;
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    unsigned long first = strtoul(argv[2], 0, 10), count = strtoul(argv[3], 0, 10);
    for (unsigned long seed = first; seed < first + count; seed++)
        run(argv[1], seed);
    MPI_Barrier(MPI_COMM_WORLD);
    if (world_rank == 0)
        printf("ok %lu\n", count);
    MPI_Finalize();
    return 0;
}
