/* How often each kind of call was carried, or failed on both sides alike: a report shows what a run has exercised. Lives in memory that forked
 * children share. */
#define _GNU_SOURCE
#include "randops.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

static const char *const kind_names[KINDS] = {"copy_file_range", "sendfile", "splice", "aio", "lio_listio", "mmap to read", "mmap to write", "stdio",
                                         "freopen or dup2 of a stream", "standard streams", "link", "rename over an open file", "chmod", "utimens", "xattr", "exec"};
static uint64_t (*counts)[OUTCOMES];

void tally_start(void)
{
    counts = mmap(NULL, sizeof(uint64_t[KINDS][OUTCOMES]), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (counts == MAP_FAILED) {
        perror("randops: mmap");
        exit(1);
    }
}

void tally(enum kind kind, enum outcome outcome)
{
    __atomic_fetch_add(&counts[kind][outcome], 1, __ATOMIC_RELAXED);
}

void tally_print(void)
{
    for (int kind = 0; kind < KINDS; kind++)
        printf("randops: %s: %" PRIu64 " carried, %" PRIu64 " failed alike\n", kind_names[kind], counts[kind][CARRIED], counts[kind][ALIKE]);
}
