/*
 * Like mdtest: in each of `steps` rounds every process makes a directory and in it `count` files, with `bytes` written to each, asks for their status, reads
 * every fourth one, and removes all of them again; a barrier and computing stand between these phases. The parent directory is made by rank 0.
 */
#define _POSIX_C_SOURCE 200809L
#include "common.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static void require(const struct job *job, int good, const char *what, const char *name)
{
    if (!good) {
        perror(what);
        job_fail(job, what, name);
    }
}

static void one(struct job *job, int phase, const char *name, unsigned char *buf, uint64_t file)
{
    struct stat found;
    int fd;
    if (phase == 0) {
        content_make(buf, file, 0, (size_t)job->bytes);
        require(job, (fd = open(name, O_CREAT | O_EXCL | O_WRONLY, 0644)) >= 0, "open", name);
        require(job, write(fd, buf, (size_t)job->bytes) == job->bytes, "write", name);
        require(job, close(fd) == 0, "close", name);
    } else if (phase == 1) {
        require(job, stat(name, &found) == 0 && found.st_size == job->bytes, "stat", name);
    } else if (phase == 2 && file % 4 == 0) {
        require(job, (fd = open(name, O_RDONLY)) >= 0, "open", name);
        require(job, read(fd, buf, (size_t)job->bytes) == job->bytes, "read", name);
        content_check(job, buf, file, 0, (size_t)job->bytes);
        require(job, close(fd) == 0, "close", name);
    } else if (phase == 3) {
        require(job, unlink(name) == 0, "unlink", name);
    }
}

int main(int argc, char **argv)
{
    struct job job = {.program = "metadata", .steps = 4, .count = 100, .bytes = 3904, .compute_s = 0.35, .think_s = 0.001};
    char top[4000], own[4040], name[4096];
    job_begin(&job, argc, argv);
    unsigned char *buf = malloc((size_t)job.bytes);
    job_name(&job, top, sizeof top, "tree%ld", 0);
    snprintf(own, sizeof own, "%s/rank.%d", top, job.rank);
    require(&job, job.rank != 0 || mkdir(top, 0755) == 0, "mkdir", top);
    for (long step = 0; step < job.steps; step++) {
        job_barrier();
        require(&job, mkdir(own, 0755) == 0, "mkdir", own);
        for (int phase = 0; phase < 4; phase++) {
            job_barrier();
            job_compute(&job);
            for (long i = 0; i < job.count; i++) {
                snprintf(name, sizeof name, "%s/file.%ld", own, i);
                one(&job, phase, name, buf, (uint64_t)i);
                job_think(&job);
            }
        }
        require(&job, rmdir(own) == 0, "rmdir", own);
    }
    job_barrier();
    require(&job, job.rank != 0 || rmdir(top) == 0, "rmdir", top);
    free(buf);
    return job_end(&job);
}
