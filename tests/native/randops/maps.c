/* Memory maps, private and shared, to read and to write. A subject may refuse a map; then nothing must have changed. */
#define _GNU_SOURCE
#include "randops.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PAGE = 4096, MAP_PAGES_MAX = 80 };

struct map {
    int protection, flags;
    int64_t offset;
    size_t length, inside; /* inside: bytes up to the end of the file's last page, beyond which touching is a SIGBUS */
    size_t valid;          /* bytes up to the file's end */
};

static struct map pick_map(struct world *w, const struct pair *p)
{
    struct map m = {.protection = PROT_READ | (world_below(w, 2) ? PROT_WRITE : 0), .flags = world_below(w, 2) ? MAP_SHARED : MAP_PRIVATE};
    struct stat status;
    int64_t size = fstat(p->oracle, &status) == 0 ? status.st_size : 0;
    m.length = 1 + world_below(w, MAP_PAGES_MAX * PAGE);
    m.offset = world_offset(w) / PAGE * PAGE;
    if (m.offset > size)
        m.offset = size / 2 / PAGE * PAGE;
    if (world_below(w, 50) == 0)
        m.offset += 5; /* EINVAL */
    int64_t valid = size - m.offset, inside = (valid + PAGE - 1) / PAGE * PAGE;
    m.valid = valid < 0 ? 0 : (size_t)valid < m.length ? (size_t)valid : m.length;
    m.inside = inside < 0 ? 0 : (size_t)inside < m.length ? (size_t)inside : m.length;
    return m;
}

static void compare_maps(struct world *w, const struct map *m, const unsigned char *s, const unsigned char *o)
{
    for (size_t i = 0; m->inside > 0 && memcmp(s, o, m->inside) != 0; i++)
        if (s[i] != o[i])
            world_fail(w, "byte %zu of the map at %" PRId64 " is %02x, a plain file's %02x", i, m->offset, s[i], o[i]);
}

/* The same bytes into both, within the file; the rest of its last page belongs to nobody. */
static void scribble(struct world *w, const struct map *m, unsigned char *s, unsigned char *o)
{
    for (int round = 0; round < 4 && m->valid > 0; round++) {
        size_t at = world_below(w, m->valid), length = 1 + world_below(w, m->valid - at);
        if (length > 4000 && world_below(w, 2))
            length = 1 + length % 4000;
        world_fill(w, length);
        memcpy(s + at, w->buf, length);
        memcpy(o + at, w->buf, length);
    }
}

static int is_refusal(int error)
{
    return error == ENODEV || error == EACCES || error == EBADF;
}

void op_map(struct world *w, struct pair *p)
{
    struct map m = pick_map(w, p);
    enum kind kind = m.protection & PROT_WRITE ? MAP_WRITE : MAP_READ;
    world_note(w, "mmap(%d, %s%s, %" PRId64 ", %zu)", p->subject, m.flags == MAP_SHARED ? "shared" : "private", kind == MAP_WRITE ? " to write" : "", m.offset, m.length);
    unsigned char *o = mmap(NULL, m.length, m.protection, m.flags, p->oracle, m.offset);
    int oracle_errno = errno;
    unsigned char *s = mmap(NULL, m.length, m.protection, m.flags, p->subject, m.offset);
    int subject_errno = errno;
    if (s == MAP_FAILED && is_refusal(subject_errno) && (o != MAP_FAILED || subject_errno != oracle_errno)) {
        tally(kind, REFUSED);
        if (o != MAP_FAILED)
            munmap(o, m.length);
        world_compare_state(w, p);
        return;
    }
    if (!world_same(w, s == MAP_FAILED ? -1 : 0, subject_errno, o == MAP_FAILED ? -1 : 0, oracle_errno)) {
        tally(kind, ALIKE);
        return;
    }
    tally(kind, CARRIED);
    compare_maps(w, &m, s, o);
    if (kind == MAP_WRITE) {
        scribble(w, &m, s, o);
        compare_maps(w, &m, s, o);
        if (world_below(w, 2))
            world_same(w, msync(s, m.length, MS_SYNC), errno, 0, 0);
    }
    world_same(w, munmap(s, m.length), errno, munmap(o, m.length), errno);
    world_compare_state(w, p);
    world_compare_range(w, p, m.offset, (int64_t)m.length);
}
