/* The shared parts of the programs (common.h). */
#define _POSIX_C_SOURCE 200809L
#include "common.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double number(const struct job *job, const char *flag, const char *text)
{
    char *end;
    double value = text == NULL ? -1 : strtod(text, &end);
    if (text == NULL || *text == '\0' || *end != '\0' || !(value >= 0 && value < 1e12))
        job_fail(job, "takes a number of at least 0", flag);
    return value;
}

void job_begin(struct job *job, int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &job->rank);
    MPI_Comm_size(MPI_COMM_WORLD, &job->processes);
    if (argc < 2)
        job_fail(job, "usage: PROGRAM DIRECTORY [--steps N] [--count N] [--bytes N] [--compute S] [--think S] [--spin]", argv[0]);
    job->directory = argv[1];
    for (int i = 2; i < argc; i++) {
        if (strcmp(argv[i], "--spin") == 0) {
            job->spin = 1;
            continue;
        }
        double value = number(job, argv[i], argv[i + 1]);
        if (strcmp(argv[i], "--steps") == 0)
            job->steps = (long)value;
        else if (strcmp(argv[i], "--count") == 0)
            job->count = (long)value;
        else if (strcmp(argv[i], "--bytes") == 0)
            job->bytes = (long)value;
        else if (strcmp(argv[i], "--compute") == 0)
            job->compute_s = value;
        else if (strcmp(argv[i], "--think") == 0)
            job->think_s = value;
        else
            job_fail(job, "is no option of this program", argv[i]);
        i++;
    }
}

int job_end(struct job *job)
{
    uint64_t mine[2] = {job->checked_bytes, job->wrong_bytes}, all[2];
    MPI_Allreduce(mine, all, 2, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
    if (job->rank == 0)
        printf("{\"program\": \"%s\", \"processes\": %d, \"verified_bytes\": %" PRIu64 ", \"errors\": %" PRIu64 "}\n", job->program, job->processes, all[0], all[1]);
    MPI_Finalize();
    return all[1] != 0;
}

_Noreturn void job_fail(const struct job *job, const char *what, const char *name)
{
    fprintf(stderr, "%s: rank %d: %s: %s\n", job->program, job->rank, name, what);
    fflush(stderr);
    MPI_Abort(MPI_COMM_WORLD, 1);
    abort();
}

void job_require(const struct job *job, int code, const char *what, const char *name)
{
    char text[MPI_MAX_ERROR_STRING + 64], said[MPI_MAX_ERROR_STRING];
    int length = 0;
    if (code == MPI_SUCCESS)
        return;
    MPI_Error_string(code, said, &length);
    snprintf(text, sizeof text, "%s: %s", what, said);
    job_fail(job, text, name);
}

static uint64_t mixed(uint64_t word)
{
    word += 0x9e3779b97f4a7c15u;
    word = (word ^ word >> 30) * 0xbf58476d1ce4e5b9u;
    word = (word ^ word >> 27) * 0x94d049bb133111ebu;
    return word ^ word >> 31;
}

static double now_s(void)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (double)at.tv_sec + (double)at.tv_nsec * 1e-9;
}

static void pass(struct job *job, double seconds)
{
    double share = (double)(mixed((uint64_t)job->rank << 32 | job->drawn++) >> 11) / 9007199254740992.0;
    double until = now_s() + seconds * (0.9 + 0.2 * share), left;
    while (seconds > 0 && (left = until - now_s()) > 0)
        if (!job->spin)
            nanosleep(&(struct timespec){.tv_sec = (time_t)left, .tv_nsec = (long)((left - (double)(time_t)left) * 1e9)}, NULL);
}

void job_compute(struct job *job)
{
    pass(job, job->compute_s);
}

void job_think(struct job *job)
{
    pass(job, job->think_s);
}

void job_barrier(void)
{
    MPI_Request request;
    int done = 0;
    MPI_Ibarrier(MPI_COMM_WORLD, &request);
    for (MPI_Test(&request, &done, MPI_STATUS_IGNORE); !done; MPI_Test(&request, &done, MPI_STATUS_IGNORE))
        nanosleep(&(struct timespec){.tv_nsec = 200 * 1000}, NULL);
}

void job_name(const struct job *job, char *name, size_t room, const char *form, long value)
{
    char last[256];
    snprintf(last, sizeof last, form, value);
    if ((size_t)snprintf(name, room, "%s/%s", job->directory, last) >= room)
        job_fail(job, "is too long a name", job->directory);
}

/* Words of eight bytes, so offsets and sizes are multiples of eight. */
void content_make(unsigned char *at, uint64_t file, uint64_t offset, size_t bytes)
{
    for (size_t i = 0; i < bytes; i += 8) {
        uint64_t word = mixed(mixed(file) ^ (offset + i));
        memcpy(at + i, &word, 8);
    }
}

void content_check(struct job *job, const unsigned char *at, uint64_t file, uint64_t offset, size_t bytes)
{
    for (size_t i = 0; i < bytes; i += 8) {
        uint64_t word = mixed(mixed(file) ^ (offset + i));
        job->wrong_bytes += memcmp(at + i, &word, 8) != 0 ? 8 : 0;
    }
    job->checked_bytes += bytes;
}
