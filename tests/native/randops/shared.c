/*
 * Several workers on the same files. Two laws: what byte-range locks guard stays equal to the oracle, which is written under the same locks;
 * and every record that was appended is there, whole, once and in its writer's order.
 */
#define _GNU_SOURCE
#include "randops.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SHARED_BYTES = 2 << 20, RANGE_BYTES_MAX = 200 << 10, RECORD_BYTES_MAX = 900, WORKERS_MAX = 256 };

struct record {
    uint32_t magic, worker, sequence, bytes; /* bytes: all of the record, header included */
};
static const uint32_t record_magic = 0x52454353, last_record_magic = 0x4c415354;

static void path_of(char path[PATH_MAX], const char *dir, const char *name)
{
    snprintf(path, PATH_MAX, "%s/%s", dir, name);
}

static void create(const char *dir, const char *name, off_t size)
{
    char path[PATH_MAX];
    path_of(path, dir, name);
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0644);
    if (fd < 0 || ftruncate(fd, size) != 0) {
        fprintf(stderr, "randops: %s: %s\n", path, strerror(errno));
        exit(1);
    }
    close(fd);
}

void shared_prepare(const char *dir, const char *oracle_dir)
{
    create(dir, "shared.dat", SHARED_BYTES);
    create(oracle_dir, "shared.dat", SHARED_BYTES);
    create(dir, "log.dat", 0);
}

/* Threads share their process's POSIX locks, so they lock by open file description. */
static void lock(struct world *w, int fd, short type, int64_t offset, int64_t length)
{
    struct flock range = {.l_type = type, .l_whence = SEEK_SET, .l_start = offset, .l_len = length};
    int command = w->threaded ? F_OFD_SETLKW : F_SETLKW;
    while (fcntl(fd, command, &range) != 0)
        if (errno != EINTR)
            world_fail(w, "locking %" PRId64 "+%" PRId64 ": %s", offset, length, strerror(errno));
}

static void guarded(struct world *w, struct pair *p)
{
    int64_t offset = (int64_t)world_below(w, SHARED_BYTES);
    int64_t length = 1 + (int64_t)world_below(w, RANGE_BYTES_MAX);
    if (offset + length > SHARED_BYTES)
        length = SHARED_BYTES - offset;
    int writing = (int)world_below(w, 2);
    world_note(w, "lock, compare%s %" PRId64 "+%" PRId64, writing ? ", write" : "", offset, length);
    lock(w, p->subject, writing ? F_WRLCK : F_RDLCK, offset, length);
    if (pread(p->subject, w->subject_buf, (size_t)length, offset) != length || pread(p->oracle, w->oracle_buf, (size_t)length, offset) != length)
        world_fail(w, "a short read under a lock: %s", strerror(errno));
    for (int64_t i = 0; i < length; i++)
        if (w->subject_buf[i] != w->oracle_buf[i])
            world_fail(w, "under a lock byte %" PRId64 " is %02x, a plain file's %02x", offset + i, w->subject_buf[i], w->oracle_buf[i]);
    if (writing) {
        memset(w->buf, (int)world_below(w, 256), (size_t)length);
        for (int64_t i = 0; i + 8 <= length; i += 64)
            memcpy(w->buf + i, &w->random, 8);
        if (pwrite(p->subject, w->buf, (size_t)length, offset) != length || pwrite(p->oracle, w->buf, (size_t)length, offset) != length)
            world_fail(w, "a short write under a lock: %s", strerror(errno));
    }
    lock(w, p->subject, F_UNLCK, offset, length);
}

static void append(struct world *w, int log, int worker, uint32_t magic)
{
    uint32_t sequence = w->records++;
    struct record record = {magic, (uint32_t)worker, sequence, 0};
    record.bytes = (uint32_t)(sizeof record + world_below(w, RECORD_BYTES_MAX - sizeof record));
    memset(w->buf, (int)(sequence & 0xff), record.bytes);
    memcpy(w->buf, &record, sizeof record);
    world_note(w, "append %u bytes", record.bytes);
    ssize_t done = write(log, w->buf, record.bytes);
    if (done != (ssize_t)record.bytes)
        world_fail(w, "appending returned %zd: %s", done, strerror(errno));
}

void shared_work(struct world *w, int worker, uint64_t operations, int last)
{
    char subject[PATH_MAX], oracle[PATH_MAX], log_path[PATH_MAX];
    path_of(subject, w->dir, "shared.dat");
    path_of(oracle, w->oracle_dir, "shared.dat");
    path_of(log_path, w->dir, "log.dat");
    struct pair p = {open(subject, O_RDWR | O_CLOEXEC), open(oracle, O_RDWR | O_CLOEXEC), 1, 1};
    int log = open(log_path, O_WRONLY | O_APPEND | O_CLOEXEC);
    if (p.subject < 0 || p.oracle < 0 || log < 0)
        world_fail(w, "opening the shared files: %s", strerror(errno));
    for (uint64_t i = 0; i < operations; i++, w->operation++) {
        if (world_below(w, 3) == 0)
            append(w, log, worker, record_magic);
        else
            guarded(w, &p);
    }
    if (last)
        append(w, log, worker, last_record_magic);
    close(log);
    close(p.subject);
    close(p.oracle);
}

void shared_finish(const char *dir, int workers)
{
    char path[PATH_MAX];
    uint32_t next[WORKERS_MAX] = {0};
    int ended = 0;
    struct stat status;
    path_of(path, dir, "log.dat");
    int fd = open(path, O_RDONLY);
    if (fd < 0 || fstat(fd, &status) != 0) {
        fprintf(stderr, "randops: %s: %s\n", path, strerror(errno));
        exit(1);
    }
    for (int64_t at = 0; at < status.st_size;) {
        unsigned char bytes[RECORD_BYTES_MAX];
        struct record record;
        ssize_t got = pread(fd, bytes, sizeof bytes, at);
        int whole = got >= (ssize_t)sizeof record;
        if (whole) {
            memcpy(&record, bytes, sizeof record);
            whole = (record.magic == record_magic || record.magic == last_record_magic) && record.worker < (uint32_t)workers && record.bytes <= (uint32_t)got && record.bytes >= sizeof record &&
                    record.sequence == next[record.worker];
            for (uint32_t i = sizeof record; whole && i < record.bytes; i++)
                whole = bytes[i] == (record.sequence & 0xff);
        }
        if (!whole) {
            fprintf(stderr, "randops: %s: the record at %" PRId64 " is torn, lost or out of order\n", path, at);
            exit(1);
        }
        next[record.worker] = record.magic == last_record_magic ? UINT32_MAX : record.sequence + 1;
        ended += record.magic == last_record_magic;
        at += record.bytes;
    }
    close(fd);
    if (ended != workers) {
        fprintf(stderr, "randops: %s: the last records of %d workers are lost\n", path, workers - ended);
        exit(1);
    }
}
