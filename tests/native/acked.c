/*
 * acked: a writer that tells on standard output what must survive, and the check of what did.
 *
 * usage: acked write FILE SEED SLOTS (fsync | written) [WRITER WRITERS]
 *                                                        prints "slot version" for every block as soon as it is durable (fsync) or written (written);
 *                                                        of several WRITERS each has the slots whose number leaves its own when divided by theirs
 *        acked check FILE                                reads such lines; each slot must hold its version or a later one, and no byte that was never written
 *
 * FILE is an array of slots of SLOT_BYTES; block version v of a slot is a function of slot, version and position. Blocks begin and end at any word of their
 * slot, so they cross stripe and page borders; the part of a slot outside its block is zero for ever.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SLOT_BYTES = 20000, SLOTS_MAX = 1 << 16, BATCH_MAX = 8 };

static unsigned char buf[SLOT_BYTES];

static uint64_t mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

/* Where in its slot the block lies: the same for all versions, and on words of the file, which no kill tears: pieces end at pages. Words of 8 bytes:
   version in the low half, a check in the high half. */
static uint32_t block_start(uint32_t slot)
{
    return (uint32_t)(mix(slot) % 3000 / 8 * 8);
}

static uint32_t block_words(uint32_t slot)
{
    return (uint32_t)((SLOT_BYTES - 3000 - mix(slot + 77777) % 12000) / 8);
}

static uint64_t word_of(uint32_t slot, uint32_t version, uint32_t index)
{
    return mix((uint64_t)slot << 32 | index) << 32 ^ mix(version) << 32 ^ version;
}

static int fail(const char *file, const char *what)
{
    fprintf(stderr, "acked: %s: %s: %s\n", file, what, strerror(errno));
    return 1;
}

static int write_forever(const char *file, uint64_t seed, uint32_t slots, int durable, uint32_t writer, uint32_t writers)
{
    struct { uint32_t slot, version; } batch[BATCH_MAX];
    unsigned count = 0, batch_size = 1;
    uint64_t random = seed;
    int fd = open(file, O_RDWR | O_CREAT, 0644);
    if (fd < 0)
        return fail(file, "open");
    for (uint32_t version = 1; version != 0; version++) {
        random = mix(random);
        uint32_t slot = (uint32_t)(random % slots) / writers * writers + writer, words = block_words(slot);
        for (uint32_t i = 0; i < words; i++) {
            uint64_t word = word_of(slot, version, i);
            memcpy(buf + 8 * i, &word, 8);
        }
        off_t at = (off_t)slot * SLOT_BYTES + block_start(slot);
        if (pwrite(fd, buf, 8 * words, at) != (ssize_t)(8 * words))
            return fail(file, "pwrite");
        batch[count].slot = slot;
        batch[count++].version = version;
        if (count < batch_size)
            continue;
        if (durable && fsync(fd) != 0)
            return fail(file, "fsync");
        for (unsigned i = 0; i < count; i++)
            printf("%u %u\n", batch[i].slot, batch[i].version);
        fflush(stdout);
        count = 0;
        batch_size = 1 + (unsigned)(random >> 40) % BATCH_MAX;
    }
    return 0;
}

static int check_slot(int fd, const char *file, uint32_t slot, uint32_t acked)
{
    ssize_t got = pread(fd, buf, SLOT_BYTES, (off_t)slot * SLOT_BYTES);
    uint32_t start = block_start(slot), words = block_words(slot);
    if (got < 0)
        return fail(file, "pread");
    memset(buf + got, 0, (size_t)(SLOT_BYTES - got));
    for (uint32_t i = 0; i < SLOT_BYTES; i++) {
        if ((i < start || i >= start + 8 * words) && buf[i] != 0) {
            fprintf(stderr, "acked: %s: offset %" PRIu64 ": a foreign byte %02x where nobody wrote\n", file, (uint64_t)slot * SLOT_BYTES + i, buf[i]);
            return 1;
        }
    }
    for (uint32_t i = 0; i < words; i++) {
        uint64_t word;
        memcpy(&word, buf + start + 8 * i, 8);
        uint32_t version = (uint32_t)word;
        int written = word == word_of(slot, version, i);
        if ((written && version >= acked) || (word == 0 && acked == 0))
            continue;
        fprintf(stderr, "acked: %s: offset %" PRIu64 " (slot %u): expected version %u or later, found %s %u (%016" PRIx64 ")\n", file,
                (uint64_t)slot * SLOT_BYTES + start + 8 * i, slot, acked, word == 0 ? "zeros instead of" : written ? "version" : "foreign bytes, as if version", version, word);
        return 1;
    }
    return 0;
}

static int check(const char *file)
{
    static uint32_t acked[SLOTS_MAX];
    uint32_t slot, version, slots = 0;
    int fd = open(file, O_RDONLY), wrong = 0;
    while (scanf("%u %u", &slot, &version) == 2 && slot < SLOTS_MAX)
        if (version > acked[slot])
            acked[slot] = version;
    if (fd < 0)
        return fail(file, "open");
    off_t size = lseek(fd, 0, SEEK_END);
    slots = (uint32_t)((size + SLOT_BYTES - 1) / SLOT_BYTES);
    for (slot = 0; slot < SLOTS_MAX; slot++)
        if (acked[slot] > 0 && slot >= slots)
            slots = slot + 1;
    for (slot = 0; slot < slots && !wrong; slot++)
        wrong = check_slot(fd, file, slot, acked[slot]);
    if (!wrong)
        printf("acked: ok, %u slots\n", slots);
    return wrong;
}

int main(int argc, char **argv)
{
    if ((argc == 6 || argc == 8) && strcmp(argv[1], "write") == 0) {
        uint32_t slots = (uint32_t)strtoul(argv[4], NULL, 10);
        uint32_t writer = argc == 8 ? (uint32_t)strtoul(argv[6], NULL, 10) : 0, writers = argc == 8 ? (uint32_t)strtoul(argv[7], NULL, 10) : 1;
        if (slots > 0 && slots <= SLOTS_MAX - writers && writer < writers)
            return write_forever(argv[2], strtoull(argv[3], NULL, 10), slots, strcmp(argv[5], "fsync") == 0, writer, writers);
    }
    if (argc == 3 && strcmp(argv[1], "check") == 0)
        return check(argv[2]);
    fputs("usage: acked write FILE SEED SLOTS (fsync | written) [WRITER WRITERS]\n       acked check FILE < LINES\n", stderr);
    return 2;
}
