/* The line that rank 0 prints at the end. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "play.h"

/* The upper end of a bucket, us. */
static double bucket_us(unsigned bucket)
{
    if (bucket < 16)
        return bucket / 1e3;
    unsigned power = bucket / 16 + 3;
    return (double)((uint64_t)(bucket % 16 + 17) << (power - 4)) / 1e3;
}

static double share_us(const uint64_t *buckets, uint64_t count, double share)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < BUCKETS; i++) {
        sum += buckets[i];
        if (sum > 0 && (double)sum >= share * (double)count)
            return bucket_us(i);
    }
    return 0;
}

/* The most memory that was resident, KiB; 0 where the kernel does not tell. By number: no part of the workload, so nothing for a trace. */
static uint64_t memory_kib(void)
{
    char text[4096];
    int fd = (int)syscall(SYS_openat, AT_FDCWD, "/proc/self/status", O_RDONLY | O_CLOEXEC);
    long length = fd < 0 ? -1 : syscall(SYS_read, fd, text, sizeof text - 1);
    if (fd >= 0)
        syscall(SYS_close, fd);
    if (length < 0)
        return 0;
    text[length] = '\0';
    const char *line = strstr(text, "VmHWM:");
    return line ? strtoull(line + strlen("VmHWM:"), NULL, 10) : 0;
}

void report(struct player *player, double seconds)
{
    struct counts all;
    struct {
        double value;
        int rank;
    } worst = {(double)player->counts.wrong_bytes, player->rank}, first;
    double longest = 0;
    uint64_t memory = memory_kib(), most = 0;
    MPI_Reduce(&memory, &most, 1, MPI_UINT64_T, MPI_MAX, 0, MPI_COMM_WORLD);
    MPI_Reduce(&player->counts, &all, (int)(sizeof all / sizeof(uint64_t)), MPI_UINT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
    MPI_Reduce(&seconds, &longest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    MPI_Allreduce(&worst, &first, 1, MPI_DOUBLE_INT, MPI_MAXLOC, MPI_COMM_WORLD);
    MPI_Bcast(player->first_wrong, sizeof player->first_wrong, MPI_CHAR, first.rank, MPI_COMM_WORLD);
    if (player->rank != 0)
        return;
    uint64_t requests = 0, slacks = 0;
    for (unsigned op = 0; op < OPS_MAX; op++)
        requests += all.ops[op];
    for (unsigned i = 0; i < BUCKETS; i++)
        slacks += all.slack_errors[i];
    printf("{\"processes\": %d, \"requests\": %" PRIu64 ", \"bytes_read\": %" PRIu64 ", \"bytes_written\": %" PRIu64 ", \"verified_bytes\": %" PRIu64
           ", \"unwritten_bytes\": %" PRIu64 ", \"wrong_bytes\": %" PRIu64 ", \"short_bytes\": %" PRIu64 ", \"refused\": %" PRIu64 ", \"seconds\": %.6f, \"memory_kib\": %" PRIu64
           ", \"slacks\": %" PRIu64 ", \"slack_error_us\": {\"median\": %.3f, \"p99\": %.3f}, \"ops\": {",
           player->processes, requests, all.bytes_read, all.bytes_written, all.verified_bytes, all.unwritten_bytes, all.wrong_bytes, all.short_bytes, all.refused,
           longest, most, slacks, share_us(all.slack_errors, slacks, 0.5), share_us(all.slack_errors, slacks, 0.99));
    const char *between = "";
    for (unsigned op = 0; op < OPS_MAX; op++)
        if (all.ops[op]) {
            printf("%s\"%s\": %" PRIu64, between, op_facts[op].name, all.ops[op]);
            between = ", ";
        }
    printf("}}\n");
    fflush(stdout);
    if (all.wrong_bytes) {
        char line[sizeof player->first_wrong + 80];
        snprintf(line, sizeof line, "%" PRIu64 " bytes are not what was written; first: %s", all.wrong_bytes, player->first_wrong);
        play_say(line);
    }
}
