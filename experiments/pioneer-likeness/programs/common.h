/* What the programs of this experiment share: options, emulated computing, bytes that are a function of file and offset, errors that end the job. */
#ifndef LIKENESS_COMMON_H
#define LIKENESS_COMMON_H

#include <mpi.h>
#include <stddef.h>
#include <stdint.h>

/* One process of a job; `steps`, `count` and `bytes` are what each program says of them. */
struct job {
    const char *program;
    const char *directory;
    int rank, processes;
    long steps, count, bytes;
    double compute_s; /* between phases of I/O */
    double think_s;   /* between requests */
    int spin;         /* compute with the processor, not asleep */
    uint64_t drawn;   /* how many times computed, for the draws */
    uint64_t wrong_bytes, checked_bytes;
};

/* Starts MPI and reads `PROGRAM DIRECTORY [--steps N] [--count N] [--bytes N] [--compute S] [--think S] [--spin]`; what is not given stays. */
void job_begin(struct job *job, int argc, char **argv);
/* Says what was verified, and ends MPI; the program's exit status. */
int job_end(struct job *job);
/* One sentence, and the whole job ends. */
_Noreturn void job_fail(const struct job *job, const char *what, const char *name);
void job_require(const struct job *job, int code, const char *what, const char *name);

/* The time between phases, or requests, within a tenth of what was asked for, drawn by rank and number. */
void job_compute(struct job *job);
void job_think(struct job *job);
/* A barrier whose waiters sleep: there may be fewer cores than processes. */
void job_barrier(void);
/* The name of a file below the directory; `form` takes one number. */
void job_name(const struct job *job, char *name, size_t room, const char *form, long number);

void content_make(unsigned char *at, uint64_t file, uint64_t offset, size_t bytes);
void content_check(struct job *job, const unsigned char *at, uint64_t file, uint64_t offset, size_t bytes);

#endif
