/*
 * mpiio: the MPI program that every experiment runs.
 *
 * It fills, writes and reads one shared file through MPI-IO in a chosen access pattern, checks every byte that it reads, and prints one JSON line with
 * the bandwidth of each phase (MB = 10^6 bytes; time = the longest rank's, from a barrier to its last request; in several windows the sum of theirs).
 * See --help and content.h.
 */
#define _POSIX_C_SOURCE 200809L
#include <inttypes.h>
#include <mpi.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "content.h"
#include "options.h"
#include "owners.h"
#include "pattern.h"

enum { CHUNK_BYTES = 4 << 20, FILL_ALIGN_BYTES = 4096 };

struct job {
    struct options options;
    struct pattern pattern;
    struct owners owners;
    struct content_check check;
    MPI_File file;
    int rank, processes;
    int filled;
    unsigned char *buf;
    double verify_seconds;
    double window_took[2][WINDOWS_MAX]; /* seconds: written, read */
};

static void fail(const struct job *job, const char *form, ...)
{
    va_list arguments;
    char text[1024];
    va_start(arguments, form);
    vsnprintf(text, sizeof text, form, arguments);
    va_end(arguments);
    fprintf(stderr, "mpiio: rank %d: %s\n", job->rank, text);
    fflush(stderr);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static void require(const struct job *job, int code, const char *call)
{
    char text[MPI_MAX_ERROR_STRING];
    int length = 0;
    if (code == MPI_SUCCESS)
        return;
    MPI_Error_string(code, text, &length);
    fail(job, "%s on %s: %s", call, job->options.file, text);
}

/* A barrier whose waiters sleep: on a machine with fewer cores than ranks, spinning would take the processor from those that still work. */
static void polite_barrier(void)
{
    MPI_Request request;
    int done = 0;
    MPI_Ibarrier(MPI_COMM_WORLD, &request);
    for (;;) {
        MPI_Test(&request, &done, MPI_STATUS_IGNORE);
        if (done)
            return;
        nanosleep(&(struct timespec){.tv_nsec = 200 * 1000}, NULL);
    }
}

static void require_bytes(const struct job *job, MPI_Status *status, uint64_t expected, const char *call, uint64_t offset)
{
    MPI_Count got = 0;
    MPI_Get_elements_x(status, MPI_BYTE, &got);
    if ((uint64_t)got != expected)
        fail(job, "%s on %s at offset %" PRIu64 ": expected %" PRIu64 " bytes, found %lld", call, job->options.file, offset, expected, (long long)got);
}

static void transfer(struct job *job, int writing, uint64_t view_offset, uint64_t bytes, uint64_t offset)
{
    MPI_Status status;
    MPI_Offset at = (MPI_Offset)view_offset;
    int collective = job->options.collective;
    int count = (int)bytes;
    int code;
    const char *call;
    if (writing) {
        call = collective ? "MPI_File_write_at_all" : "MPI_File_write_at";
        code = collective ? MPI_File_write_at_all(job->file, at, job->buf, count, MPI_BYTE, &status)
                          : MPI_File_write_at(job->file, at, job->buf, count, MPI_BYTE, &status);
    } else {
        call = collective ? "MPI_File_read_at_all" : "MPI_File_read_at";
        code = collective ? MPI_File_read_at_all(job->file, at, job->buf, count, MPI_BYTE, &status)
                          : MPI_File_read_at(job->file, at, job->buf, count, MPI_BYTE, &status);
    }
    require(job, code, call);
    require_bytes(job, &status, bytes, call, offset);
}

static void report_first_error(const struct job *job)
{
    char text[640];
    content_explain(&job->check, job->options.file_bytes, text, sizeof text);
    fprintf(stderr, "mpiio: rank %d: %s: %s\n", job->rank, job->options.file, text);
}

static void verify(struct job *job, const unsigned char *buf, uint64_t offset, uint64_t bytes)
{
    double start = MPI_Wtime();
    uint64_t before = job->check.errors;
    owners_verify(&job->owners, &job->check, buf, offset, bytes);
    if (before == 0 && job->check.errors > 0)
        report_first_error(job);
    job->verify_seconds += MPI_Wtime() - start;
}

/* The view of one rank: etype byte, so that offsets count bytes of the view's data. */
static void set_view(struct job *job, unsigned half)
{
    const struct pattern *p = &job->pattern;
    MPI_Aint piece = (MPI_Aint)p->granule_bytes, across = (MPI_Aint)(p->processes * p->granule_bytes);
    MPI_Offset displacement = (MPI_Offset)job->rank * piece;
    MPI_Datatype base, inner, type;
    MPI_Type_contiguous((int)piece, MPI_BYTE, &base);
    if (p->kind == PATTERN_STRIDED) {
        MPI_Type_create_resized(base, 0, across, &type);
    } else if (p->kind == PATTERN_NESTED) {
        MPI_Aint group = (MPI_Aint)p->inner * across;
        MPI_Datatype nested;
        MPI_Type_create_hvector((int)p->inner, 1, across, base, &inner);
        MPI_Type_create_hvector((int)p->outer, 1, 2 * group, inner, &nested);
        MPI_Type_create_resized(nested, 0, 2 * (MPI_Aint)p->outer * group, &type);
        MPI_Type_free(&inner);
        MPI_Type_free(&nested);
        displacement += (MPI_Offset)half * group;
    } else {
        int tile_rows = (int)(p->requests_max * p->pieces), across_count = (int)p->inner;
        int sizes[2] = {(int)p->outer * tile_rows, across_count}, subsizes[2] = {tile_rows, 1};
        int starts[2] = {job->rank / across_count * tile_rows, job->rank % across_count};
        MPI_Type_create_subarray(2, sizes, subsizes, starts, MPI_ORDER_C, base, &type);
        displacement = 0;
    }
    MPI_Type_commit(&type);
    require(job, MPI_File_set_view(job->file, displacement, MPI_BYTE, type, "native", MPI_INFO_NULL), "MPI_File_set_view");
    MPI_Type_free(&type);
    MPI_Type_free(&base);
}

static void set_plain_view(struct job *job)
{
    require(job, MPI_File_set_view(job->file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL), "MPI_File_set_view");
}

static uint64_t share_bytes(const struct job *job)
{
    uint64_t processes = (uint64_t)job->processes;
    uint64_t share = (job->options.file_bytes + processes - 1) / processes;
    return (share + FILL_ALIGN_BYTES - 1) / FILL_ALIGN_BYTES * FILL_ALIGN_BYTES;
}

/* Fill (writing) or check the rank's contiguous share of the file. */
static void sweep(struct job *job, int writing)
{
    uint64_t share = share_bytes(job), at = share * (uint64_t)job->rank, end = at + share;
    if (end > job->options.file_bytes)
        end = job->options.file_bytes;
    while (at < end) {
        uint64_t take = end - at < CHUNK_BYTES ? end - at : CHUNK_BYTES;
        MPI_Status status;
        if (writing) {
            content_make(job->buf, at, take, content_stamp(job->owners.run, CONTENT_PHASE_FILL, (unsigned)job->rank));
            require(job, MPI_File_write_at(job->file, (MPI_Offset)at, job->buf, (int)take, MPI_BYTE, &status), "MPI_File_write_at");
            require_bytes(job, &status, take, "MPI_File_write_at", at);
        } else {
            require(job, MPI_File_read_at(job->file, (MPI_Offset)at, job->buf, (int)take, MPI_BYTE, &status), "MPI_File_read_at");
            require_bytes(job, &status, take, "MPI_File_read_at", at);
            verify(job, job->buf, at, take);
        }
        at += take;
    }
}

/* The requests of one window. */
static void run_requests(struct job *job, int writing, uint64_t window)
{
    const struct pattern *p = &job->pattern;
    uint64_t requests = writing ? job->options.writes : job->options.reads, each = p->window_requests[!writing];
    uint64_t begin = window * each < requests ? window * each : requests, end = requests - begin < each ? requests : begin + each;
    uint32_t stamp = content_stamp(job->owners.run, CONTENT_PHASE_WRITE, (unsigned)job->rank);
    int viewed = pattern_needs_view(p);
    unsigned half_now = pattern_half(p, begin);
    if (viewed)
        set_view(job, half_now);
    for (uint64_t i = begin; i < end; i++) {
        uint64_t first = pattern_offset(p, (uint64_t)job->rank, !writing, i);
        if (viewed && pattern_half(p, i) != half_now)
            set_view(job, half_now = pattern_half(p, i));
        if (writing)
            for (uint64_t k = 0; k < p->pieces; k++)
                content_make(job->buf + k * p->granule_bytes, pattern_piece(p, first, k), p->granule_bytes, stamp);
        transfer(job, writing, viewed ? pattern_view_offset(p, i) : first, p->request_bytes, first);
        if (!writing && job->options.verify)
            for (uint64_t k = 0; k < p->pieces; k++)
                verify(job, job->buf + k * p->granule_bytes, pattern_piece(p, first, k), p->granule_bytes);
    }
    if (viewed)
        set_plain_view(job);
}

enum phase { PHASE_FILL, PHASE_WRITE, PHASE_READ, PHASE_CHECK };

/* Run one phase, or one window of it; returns the seconds of the slowest rank. */
static double timed(struct job *job, enum phase phase, uint64_t window)
{
    double seconds, longest = 0;
    polite_barrier();
    double start = MPI_Wtime();
    if (phase == PHASE_FILL || phase == PHASE_CHECK)
        sweep(job, phase == PHASE_FILL);
    else
        run_requests(job, phase == PHASE_WRITE, window);
    if (phase == PHASE_WRITE && job->options.sync)
        require(job, MPI_File_sync(job->file), "MPI_File_sync");
    seconds = MPI_Wtime() - start;
    polite_barrier();
    MPI_Allreduce(&seconds, &longest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return longest;
}

/* The write or the read phase window by window; returns the sum of what each took, without the pauses between them. */
static double in_windows(struct job *job, enum phase phase)
{
    double *took = job->window_took[phase == PHASE_READ], sum = 0, start = MPI_Wtime();
    for (uint64_t window = 0; window < job->options.windows; window++) {
        double pause = start + (double)window * job->options.window_seconds - MPI_Wtime();
        if (pause > 0)
            nanosleep(&(struct timespec){.tv_sec = (time_t)pause, .tv_nsec = (long)((pause - (double)(time_t)pause) * 1e9)}, NULL);
        sum += took[window] = timed(job, phase, window);
    }
    return sum;
}

static void open_file(struct job *job)
{
    MPI_Info info;
    int writing = job->options.fill || job->options.write;
    MPI_Info_create(&info);
    for (unsigned i = 0; i < job->options.hints; i++)
        require(job, MPI_Info_set(info, job->options.hint_keys[i], job->options.hint_values[i]), "MPI_Info_set");
    require(job, MPI_File_open(MPI_COMM_WORLD, job->options.file, writing ? MPI_MODE_RDWR | MPI_MODE_CREATE : MPI_MODE_RDONLY, info, &job->file), "MPI_File_open");
    MPI_Info_free(&info);
    if (job->options.atomic)
        require(job, MPI_File_set_atomicity(job->file, 1), "MPI_File_set_atomicity");
}

/* Rank 0 decides for all: the run's stamp, and whether the file has to be filled. */
static void agree(struct job *job)
{
    uint64_t decided[2] = {job->options.stamp, 1};
    if (job->rank == 0) {
        struct timespec now;
        MPI_Offset size = 0;
        clock_gettime(CLOCK_REALTIME, &now);
        if (decided[0] == 0)
            decided[0] = 1 + ((uint64_t)now.tv_nsec / 1000 + (uint64_t)now.tv_sec * 7919 + (uint64_t)getpid() * 104729) % 65535;
        require(job, MPI_File_get_size(job->file, &size), "MPI_File_get_size");
        decided[1] = !job->options.fill_if_missing || (uint64_t)size < job->options.file_bytes;
    }
    MPI_Bcast(decided, 2, MPI_UINT64_T, 0, MPI_COMM_WORLD);
    job->owners.run = (uint32_t)decided[0];
    job->filled = job->options.fill && decided[1];
    job->owners.processes = (unsigned)job->processes;
    job->owners.holes_legal = job->options.holes_legal;
}

static void print_rate(const char *name, int ran, double bytes, double seconds)
{
    if (ran && seconds > 0)
        printf("\"%s\": %.3f, ", name, bytes / 1e6 / seconds);
    else
        printf("\"%s\": null, ", name);
}

static void print_windows(const struct job *job, const char *name, int ran, const double *took)
{
    if (!ran || job->options.windows == 1)
        return;
    printf("\"%s\": [", name);
    for (uint64_t window = 0; window < job->options.windows; window++)
        printf("%s%.6f", window == 0 ? "" : ", ", took[window]);
    printf("], ");
}

/* Returns the number of wrong bytes on all ranks. */
static uint64_t report(struct job *job, const double seconds[4])
{
    const struct options *o = &job->options;
    uint64_t mine[4] = {job->check.verified_bytes, job->check.errors, job->check.undecided_bytes, job->check.hole_bytes}, all[4];
    double verify_seconds = 0;
    uint64_t processes = (uint64_t)job->processes;
    uint64_t writes = o->write ? o->writes * processes : 0, reads = o->read ? o->reads * processes : 0;
    MPI_Allreduce(mine, all, 4, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
    MPI_Allreduce(&job->verify_seconds, &verify_seconds, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    if (job->rank != 0)
        return all[1];
    printf("{\"pattern\": \"%s\", \"processes\": %d, \"request_bytes\": %" PRIu64 ", \"file_bytes\": %" PRIu64 ", \"reads\": %" PRIu64 ", \"writes\": %" PRIu64 ", ",
           options_pattern_name(o->pattern), job->processes, o->request_bytes, o->file_bytes, reads, writes);
    print_rate("read_mb_s", o->read, (double)reads * (double)o->request_bytes, seconds[PHASE_READ]);
    print_rate("write_mb_s", o->write, (double)writes * (double)o->request_bytes, seconds[PHASE_WRITE]);
    printf("\"read_seconds\": %.6f, \"write_seconds\": %.6f, \"fill_seconds\": %.6f, \"check_seconds\": %.6f, \"verify_seconds\": %.6f, ", seconds[PHASE_READ],
           seconds[PHASE_WRITE], seconds[PHASE_FILL], seconds[PHASE_CHECK], verify_seconds);
    print_windows(job, "write_window_seconds", o->write, job->window_took[0]);
    print_windows(job, "read_window_seconds", o->read, job->window_took[1]);
    printf("\"verified_bytes\": %" PRIu64 ", \"errors\": %" PRIu64 ", \"undecided_bytes\": %" PRIu64 ", \"hole_bytes\": %" PRIu64 ", ", all[0], all[1], all[2], all[3]);
    printf("\"collective\": %s, \"filled\": %s, \"seed\": %" PRIu64 ", \"stamp\": %u}\n", o->collective ? "true" : "false", job->filled ? "true" : "false",
           o->seed, job->owners.run);
    fflush(stdout);
    return all[1];
}

static void run_phases(struct job *job, double seconds[4])
{
    const struct options *o = &job->options;
    if (job->filled) {
        seconds[PHASE_FILL] = timed(job, PHASE_FILL, 0);
        job->owners.fill_share_bytes = share_bytes(job);
    }
    if (o->write) {
        seconds[PHASE_WRITE] = in_windows(job, PHASE_WRITE);
        if (o->verify && owners_note_writes(&job->owners, &job->pattern, o->file_bytes, o->writes) != 0)
            fail(job, "no memory to note who wrote what: use larger requests or --no-verify");
    }
    /* MPI's default consistency: what others wrote is visible after sync, barrier, sync. */
    if (job->filled || o->write) {
        require(job, MPI_File_sync(job->file), "MPI_File_sync");
        polite_barrier();
        require(job, MPI_File_sync(job->file), "MPI_File_sync");
    }
    if (o->read)
        seconds[PHASE_READ] = in_windows(job, PHASE_READ);
    if (o->check)
        seconds[PHASE_CHECK] = timed(job, PHASE_CHECK, 0);
}

static int start(struct job *job, int argc, char **argv)
{
    char text[256];
    int parsed = options_parse(&job->options, argc, argv, text, sizeof text);
    if (parsed == 1) {
        if (job->rank == 0)
            fputs(options_usage(), stdout);
        return 1;
    }
    if (parsed == 0 && job->processes > CONTENT_RANKS_MAX)
        parsed = snprintf(text, sizeof text, "at most %d processes", CONTENT_RANKS_MAX);
    if (parsed == 0)
        parsed = pattern_init(&job->pattern, &job->options, (uint64_t)job->processes, text, sizeof text);
    if (parsed == 0 && job->pattern.kind == PATTERN_TILES && job->options.file_bytes / job->pattern.granule_bytes > INT32_MAX)
        parsed = snprintf(text, sizeof text, "tiles: more than 2^31 rows; use a larger --request-size");
    if (parsed != 0) {
        if (job->rank == 0)
            fprintf(stderr, "mpiio: %s\n", text);
        return 2;
    }
    if (!job->options.reads_given)
        job->options.reads = job->pattern.requests_max;
    if (!job->options.writes_given)
        job->options.writes = job->pattern.requests_max;
    job->pattern.window_requests[0] = (job->options.writes + job->options.windows - 1) / job->options.windows;
    job->pattern.window_requests[1] = (job->options.reads + job->options.windows - 1) / job->options.windows;
    job->buf = malloc(job->options.request_bytes > CHUNK_BYTES ? job->options.request_bytes : CHUNK_BYTES);
    if (job->buf == NULL)
        fail(job, "no memory for a request of %" PRIu64 " bytes", job->options.request_bytes);
    return 0;
}

int main(int argc, char **argv)
{
    struct job job = {0};
    double seconds[4] = {0};
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &job.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &job.processes);
    int stop = start(&job, argc, argv);
    if (stop != 0) {
        MPI_Finalize();
        return stop == 1 ? 0 : 2;
    }
    open_file(&job);
    agree(&job);
    run_phases(&job, seconds);
    require(&job, MPI_File_close(&job.file), "MPI_File_close");
    uint64_t errors = report(&job, seconds);
    if (job.options.delete_after && job.rank == 0)
        require(&job, MPI_File_delete(job.options.file, MPI_INFO_NULL), "MPI_File_delete");
    free(job.buf);
    pattern_free(&job.pattern);
    owners_free(&job.owners);
    MPI_Finalize();
    return errors > 0 ? 1 : 0;
}
