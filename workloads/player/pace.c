/* Slack: slept to an absolute time; where every rank of the node has a core, the last microseconds are spun. And the wait for all ranks. */
#define _GNU_SOURCE
#include <errno.h>
#include <sys/prctl.h>
#include <time.h>

#include "play.h"

/* A sleep ends some tens of microseconds late. */
enum { SPUN_NS = 80 * 1000 };
/* How often a rank that has no core for itself looks whether all have come. */
enum { LOOKED_NS = 100 * 1000 };

uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void pace_begin(void)
{
    /* Sleeps are otherwise rounded up by 50 us. */
    (void)prctl(PR_SET_TIMERSLACK, 1);
}

static void sleep_until(uint64_t until_ns)
{
    struct timespec until = {.tv_sec = (time_t)(until_ns / 1000000000u), .tv_nsec = (long)(until_ns % 1000000000u)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
        ;
}

static unsigned bucket_of(uint64_t ns)
{
    if (ns < 16)
        return (unsigned)ns;
    unsigned power = 63 - (unsigned)__builtin_clzll(ns);
    unsigned bucket = 16 * (power - 3) + (unsigned)(ns >> (power - 4) & 15);
    return bucket < BUCKETS ? bucket : BUCKETS - 1;
}

void pace_wait(struct player *player, uint64_t since_ns, uint64_t slack_ns)
{
    uint64_t slack = player->speed == 1.0 ? slack_ns : (uint64_t)((double)slack_ns / player->speed);
    uint64_t until = since_ns + slack, now = now_ns();
    uint64_t spun = player->node_ranks <= player->cores ? SPUN_NS : 0;
    if (now + spun < until)
        sleep_until(until - spun);
    while ((now = now_ns()) < until)
        ;
    player->counts.slack_errors[bucket_of(now - until)]++;
}

uint64_t pace_together(struct player *player)
{
    MPI_Request all;
    int have_come = 0;
    /* A barrier of most MPI libraries spins, which would take the cores from those who are waited for. */
    MPI_Ibarrier(player->all, &all);
    for (MPI_Test(&all, &have_come, MPI_STATUS_IGNORE); !have_come; MPI_Test(&all, &have_come, MPI_STATUS_IGNORE)) {
        mpi_advance(player);
        if (player->node_ranks > player->cores)
            sleep_until(now_ns() + LOOKED_NS);
    }
    return now_ns();
}
