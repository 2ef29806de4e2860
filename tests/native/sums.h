/* Checksums (FNV-1a) of what a transcript shows of contents. */
#ifndef SUMS_H
#define SUMS_H
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

static inline uint64_t sum_of(const char *bytes, size_t count)
{
    uint64_t sum = 1469598103934665603u;
    for (size_t i = 0; i < count; i++)
        sum = (sum ^ (unsigned char)bytes[i]) * 1099511628211u;
    return sum;
}

/* Of the first MiB at most. */
static inline uint64_t sum_of_file(int fd)
{
    static char bytes[1 << 20];
    ssize_t got = pread(fd, bytes, sizeof bytes, 0);
    return got < 0 ? 0 : sum_of(bytes, (size_t)got);
}
#endif
