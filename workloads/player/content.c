/* The row of bytes that files are cut from: see content.h. */
#define _GNU_SOURCE
#include "content.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static const unsigned char *row, *constant;

static uint64_t mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

/* `bytes` of memory mapped one time after another over `length` bytes. By number: no part of the workload, so nothing for a trace. */
static const unsigned char *repeated(const void *bytes, size_t count, size_t length)
{
    int fd = (int)syscall(SYS_memfd_create, "player", 1u);
    if (fd < 0)
        return NULL;
    size_t rounded = (length + count - 1) / count * count;
    long base = syscall(SYS_write, fd, bytes, count) == (long)count ? syscall(SYS_mmap, NULL, rounded, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) : -1;
    for (size_t at = 0; base != -1 && at < rounded; at += count)
        if (syscall(SYS_mmap, base + (long)at, count, PROT_READ, MAP_SHARED | MAP_FIXED | MAP_POPULATE, fd, 0) == -1)
            base = -1;
    syscall(SYS_close, fd);
    return base == -1 ? NULL : (const unsigned char *)base;
}

int content_begin(size_t request_bytes_max)
{
    static uint64_t words[CONTENT_PERIOD / sizeof(uint64_t)];
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        words[i] = mix(i);
    row = repeated(words, sizeof words, request_bytes_max + CONTENT_PERIOD);
    memset(words, CONTENT_CONSTANT, sizeof words);
    constant = repeated(words, sizeof words, request_bytes_max);
    return row && constant ? 0 : errno ? errno : ENOMEM;
}

uint64_t content_key(const char *name)
{
    uint64_t key = 0;
    for (; *name; name++)
        key = mix(key ^ (unsigned char)*name);
    return key % CONTENT_PERIOD;
}

const unsigned char *content_at(uint64_t key, uint64_t offset)
{
    return key == CONTENT_EVERYWHERE ? constant : row + (key + offset) % CONTENT_PERIOD;
}

struct content_found content_compare(uint64_t key, uint64_t offset, const unsigned char *found, size_t length, enum content_rule rule)
{
    const unsigned char *expected = content_at(key, offset);
    struct content_found result = {length, 0, 0, 0};
    if (memcmp(found, expected, length) == 0)
        return result;
    result.right = 0;
    /* Holes are read by the megabyte. */
    if (rule != CONTENT_ONLY && key != CONTENT_EVERYWHERE && found[0] == 0 && memcmp(found, found + 1, length - 1) == 0)
        return (struct content_found){0, length, 0, 0};
    for (size_t i = 0; i < length; i++) {
        if (found[i] == expected[i])
            result.right++;
        else if (rule == CONTENT_OR_ANYTHING || (rule == CONTENT_OR_ZEROS && found[i] == 0))
            result.unwritten++;
        else if (result.wrong++ == 0)
            result.first_wrong = offset + i;
    }
    return result;
}
