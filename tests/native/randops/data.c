/* Operations on the data of an open pair: reads, writes, seeks, sizes, holes. */
#define _GNU_SOURCE
#include "randops.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

enum { PIECES_MAX = 8, ALL_ZERO_BYTES_MAX = 16 << 20 };
enum { BY_OFFSET = 1, BY_VECTOR = 2, VERSION_2 = 4 };

static const char *const variant_names[8] = {"", "p", "v", "pv", NULL, NULL, NULL, "pv2"};

static int pick_variant(struct world *w)
{
    static const int variants[] = {0, BY_OFFSET, BY_VECTOR, BY_OFFSET | BY_VECTOR, BY_OFFSET | BY_VECTOR | VERSION_2, BY_OFFSET};
    return variants[world_below(w, sizeof variants / sizeof variants[0])];
}

/* Cut length bytes into pieces, some of them empty; the cuts are the same for subject and oracle. */
static int cut(struct world *w, size_t length, size_t sizes[PIECES_MAX])
{
    int pieces = 1 + (int)world_below(w, PIECES_MAX);
    for (int i = 0; i < pieces - 1; i++) {
        sizes[i] = world_below(w, 4) == 0 ? 0 : world_below(w, length + 1);
        length -= sizes[i];
    }
    sizes[pieces - 1] = length;
    return pieces;
}

static ssize_t transfer(int fd, int writing, int variant, unsigned char *buf, size_t length, const size_t sizes[PIECES_MAX], int pieces, int64_t offset, int flags)
{
    struct iovec iov[PIECES_MAX];
    for (int i = 0; i < pieces; i++) {
        iov[i] = (struct iovec){buf, sizes[i]};
        buf += sizes[i];
    }
    if (pieces > 0)
        buf -= length;
    switch (variant) {
    case 0: return writing ? write(fd, buf, length) : read(fd, buf, length);
    case BY_OFFSET: return writing ? pwrite(fd, buf, length, offset) : pread(fd, buf, length, offset);
    case BY_VECTOR: return writing ? writev(fd, iov, pieces) : readv(fd, iov, pieces);
    case BY_OFFSET | BY_VECTOR: return writing ? pwritev(fd, iov, pieces, offset) : preadv(fd, iov, pieces, offset);
    default: return writing ? pwritev2(fd, iov, pieces, offset, flags) : preadv2(fd, iov, pieces, offset, flags);
    }
}

struct request {
    int variant, pieces, flags;
    size_t length, sizes[PIECES_MAX];
    int64_t offset;
};

static struct request pick_request(struct world *w, int writing)
{
    struct request r = {.variant = pick_variant(w), .length = world_length(w), .offset = world_offset(w)};
    if (r.variant & BY_VECTOR)
        r.pieces = cut(w, r.length, r.sizes);
    if (world_below(w, 200) == 0)
        r.offset = -2; /* EINVAL, whatever else is wrong */
    if ((r.variant & VERSION_2) && world_below(w, 4) == 0)
        r.offset = -1; /* the current position */
    if ((r.variant & VERSION_2) && writing && world_below(w, 8) == 0)
        r.flags = world_below(w, 2) ? RWF_DSYNC : RWF_APPEND;
    return r;
}

void op_read(struct world *w, struct pair *p)
{
    struct request r = pick_request(w, 0);
    world_note(w, "read%s(%d, %zu bytes in %d, offset %" PRId64 ")", variant_names[r.variant], p->subject, r.length, r.pieces, r.offset);
    memset(w->subject_buf, 0xaa, r.length);
    memset(w->oracle_buf, 0xaa, r.length);
    ssize_t s = transfer(p->subject, 0, r.variant, w->subject_buf, r.length, r.sizes, r.pieces, r.offset, 0);
    int subject_errno = errno;
    ssize_t o = transfer(p->oracle, 0, r.variant, w->oracle_buf, r.length, r.sizes, r.pieces, r.offset, 0);
    world_same(w, s, subject_errno, o, errno);
    /* What lies past the bytes read must not have been touched either. */
    for (size_t i = 0; memcmp(w->subject_buf, w->oracle_buf, r.length) != 0; i++)
        if (w->subject_buf[i] != w->oracle_buf[i])
            world_fail(w, "byte %zu of the buffer is %02x, a plain file's %02x", i, w->subject_buf[i], w->oracle_buf[i]);
    world_compare_state(w, p);
}

void world_fill(struct world *w, size_t length)
{
    uint64_t word = 0;
    for (size_t i = 0; i < length; i++) {
        if (i % 8 == 0)
            word = world_random(w);
        w->buf[i] = (unsigned char)(word >> i % 8 * 8) | 1;
    }
}

void world_bound(struct world *w, struct pair *p)
{
    struct stat status;
    if (fstat(p->oracle, &status) == 0 && status.st_size > w->size_max && ftruncate(p->subject, 0) != ftruncate(p->oracle, 0))
        world_fail(w, "ftruncate to 0: %s", strerror(errno));
    if (lseek(p->oracle, 0, SEEK_CUR) > w->size_max) {
        lseek(p->oracle, 0, SEEK_SET);
        lseek(p->subject, 0, SEEK_SET);
    }
}

void op_write(struct world *w, struct pair *p)
{
    if (p->writes)
        world_bound(w, p);
    struct request r = pick_request(w, 1);
    world_note(w, "write%s(%d, %zu bytes in %d, offset %" PRId64 ")", variant_names[r.variant], p->subject, r.length, r.pieces, r.offset);
    world_fill(w, r.length);
    int64_t before = lseek(p->oracle, 0, SEEK_CUR);
    ssize_t s = transfer(p->subject, 1, r.variant, w->buf, r.length, r.sizes, r.pieces, r.offset, r.flags);
    int subject_errno = errno;
    ssize_t o = transfer(p->oracle, 1, r.variant, w->buf, r.length, r.sizes, r.pieces, r.offset, r.flags);
    world_same(w, s, subject_errno, o, errno);
    world_compare_state(w, p);
    int64_t after = lseek(p->oracle, 0, SEEK_CUR);
    if (o > 0)
        world_compare_range(w, p, after != before ? after - o : r.offset, o);
}

void op_seek(struct world *w, struct pair *p)
{
    static const int whences[] = {SEEK_SET, SEEK_CUR, SEEK_END};
    int whence = whences[world_below(w, 3)];
    int64_t offset = whence == SEEK_SET ? world_offset(w) : (int64_t)world_below(w, 20000) - 10000;
    if (world_below(w, 40) == 0)
        offset = -w->size_max * 2;
    world_note(w, "lseek(%d, %" PRId64 ", %d)", p->subject, offset, whence);
    int64_t s = lseek(p->subject, offset, whence);
    int subject_errno = errno;
    int64_t o = lseek(p->oracle, offset, whence);
    world_same(w, s, subject_errno, o, errno);
    world_compare_state(w, p);
}

static int all_zero(struct world *w, const struct pair *p, int64_t from, int64_t to)
{
    int64_t kept = lseek(p->oracle, 0, SEEK_CUR), data = lseek(p->oracle, from, SEEK_DATA);
    lseek(p->oracle, kept, SEEK_SET);
    if (data < 0 || data > from)
        from = data < 0 ? to : data;
    if (to - from > ALL_ZERO_BYTES_MAX)
        to = from + ALL_ZERO_BYTES_MAX;
    while (from < to) {
        size_t take = to - from < IO_BYTES_MAX ? (size_t)(to - from) : IO_BYTES_MAX;
        ssize_t got = pread(p->oracle, w->oracle_buf, take, from);
        if (got <= 0)
            return 1;
        for (ssize_t i = 0; i < got; i++)
            if (w->oracle_buf[i] != 0)
                return 0;
        from += got;
    }
    return 1;
}

/* Where holes are is the file system's choice. The law: what is skipped on the way to data, and what is called a hole, is zero. */
void op_seek_data(struct world *w, struct pair *p)
{
    int whence = world_below(w, 2) ? SEEK_DATA : SEEK_HOLE;
    int64_t offset = world_offset(w);
    struct stat status;
    world_note(w, "lseek(%d, %" PRId64 ", %s)", p->subject, offset, whence == SEEK_DATA ? "SEEK_DATA" : "SEEK_HOLE");
    if (fstat(p->oracle, &status) != 0)
        world_fail(w, "fstat: %s", strerror(errno));
    int64_t size = status.st_size;
    int64_t s = lseek(p->subject, offset, whence);
    int subject_errno = errno;
    if (s < 0 && subject_errno != ENXIO)
        world_fail(w, "%s", strerror(subject_errno));
    if (offset >= size && s >= 0)
        world_fail(w, "returned %" PRId64 " past the end, ENXIO is right", s);
    if (offset < size && whence == SEEK_HOLE && (s < offset || s > size))
        world_fail(w, "returned %" PRId64 " in a file of %" PRId64 " bytes", s, size);
    if (p->reads && offset < size && whence == SEEK_DATA && !all_zero(w, p, offset, s < 0 ? size : s))
        world_fail(w, "returned %" PRId64 " and skipped data", s);
    if (p->reads && s >= 0 && whence == SEEK_HOLE && s < size) {
        int64_t data = lseek(p->subject, s, SEEK_DATA);
        if (data == s)
            world_fail(w, "%" PRId64 " is called a hole and data", s);
        if (!all_zero(w, p, s, data < 0 ? size : data))
            world_fail(w, "data from %" PRId64 " on are called a hole", s);
    }
    lseek(p->subject, offset, SEEK_SET);
    lseek(p->oracle, offset, SEEK_SET);
    world_compare_state(w, p);
}

void op_truncate(struct world *w, struct pair *p)
{
    int64_t length = world_below(w, 50) == 0 ? -1 : world_offset(w);
    world_note(w, "ftruncate(%d, %" PRId64 ")", p->subject, length);
    int s = ftruncate(p->subject, length);
    int subject_errno = errno;
    int o = ftruncate(p->oracle, length);
    world_same(w, s, subject_errno, o, errno);
    world_compare_state(w, p);
    if (o == 0)
        world_compare_range(w, p, length, 0);
}

void op_fallocate(struct world *w, struct pair *p)
{
    static const int modes[FALLOCATE_MODES] = {0, FALLOC_FL_KEEP_SIZE, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, FALLOC_FL_ZERO_RANGE};
    int which = (int)world_below(w, FALLOCATE_MODES);
    int64_t offset = world_offset(w), length = (int64_t)world_length(w);
    int posix = which == 0 && world_below(w, 2);
    world_note(w, "%sfallocate(%d, mode %d, %" PRId64 ", %" PRId64 ")", posix ? "posix_" : "", p->subject, modes[which], offset, length);
    int s, subject_errno, o, oracle_errno;
    if (posix) {
        s = -(subject_errno = posix_fallocate(p->subject, offset, length));
        o = -(oracle_errno = posix_fallocate(p->oracle, offset, length));
    } else {
        s = fallocate(p->subject, modes[which], offset, length);
        subject_errno = errno;
        uint64_t seen = s == 0 ? 1 : subject_errno == EOPNOTSUPP ? 2 : 0;
        if (seen != 0 && w->fallocate_seen[which] != 0 && seen != w->fallocate_seen[which])
            world_fail(w, "mode %d is carried at one time and refused at another", modes[which]);
        if (seen != 0)
            w->fallocate_seen[which] = seen;
        if (seen == 2) {
            world_compare_state(w, p);
            return;
        }
        o = fallocate(p->oracle, modes[which], offset, length);
        oracle_errno = errno;
    }
    world_same(w, s < 0 ? -1 : 0, subject_errno, o < 0 ? -1 : 0, oracle_errno);
    world_compare_state(w, p);
    world_compare_range(w, p, offset, length);
}

/* Durability and advice, which change no byte. The oracle need not be durable, and its disk is not what is measured. */
void op_sync(struct world *w, struct pair *p)
{
    static const char *const ways[] = {"fsync", "fdatasync", "sync_file_range", "posix_fadvise", "readahead"};
    static const int advices[] = {POSIX_FADV_DONTNEED, POSIX_FADV_WILLNEED, POSIX_FADV_RANDOM};
    int way = (int)world_below(w, 5), advice = advices[world_below(w, 3)];
    int64_t offset = world_offset(w), length = (int64_t)world_length(w), s;
    world_note(w, "%s(%d, %" PRId64 ", %" PRId64 ")", ways[way], p->subject, offset, length);
    switch (way) {
    case 0: s = fsync(p->subject); break;
    case 1: s = fdatasync(p->subject); break;
    case 2: s = sync_file_range(p->subject, offset, length, SYNC_FILE_RANGE_WRITE); break;
    case 3: s = posix_fadvise(p->subject, offset, length, advice); break;
    default: s = p->reads ? readahead(p->subject, offset, (size_t)length) : 0;
    }
    world_same(w, s, errno, 0, 0);
    world_compare_state(w, p);
    world_compare_range(w, p, offset, length);
}
