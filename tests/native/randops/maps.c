/* Memory maps, private and shared, to read and to write: what lies in them is what reads see, while they are new and after whatever other operations
 * do to the file. */
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

static void measure(struct map *m, int64_t size)
{
    int64_t valid = size - m->offset, inside = (valid + PAGE - 1) / PAGE * PAGE;
    m->valid = valid < 0 ? 0 : (size_t)valid < m->length ? (size_t)valid : m->length;
    m->inside = inside < 0 ? 0 : (size_t)inside < m->length ? (size_t)inside : m->length;
}

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
    measure(&m, size);
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

static struct map again(const struct kept_map *k)
{
    struct stat status;
    int64_t size = fstat(k->file.oracle, &status) == 0 ? status.st_size : 0;
    struct map m = {.protection = k->protection, .flags = k->flags, .offset = k->offset, .length = k->length};
    measure(&m, size);
    return m;
}

static void unmap(struct world *w, const struct kept_map *k)
{
    world_same(w, munmap(k->subject, k->length), errno, munmap(k->oracle, k->length), errno);
    close(k->file.subject);
    close(k->file.oracle);
}

static void keep(struct world *w, const struct map *m, const struct pair *p, unsigned char *s, unsigned char *o)
{
    if (w->kept_count == KEPT_MAPS)
        unmap(w, &w->kept[--w->kept_count]);
    struct pair file = {fcntl(p->subject, F_DUPFD_CLOEXEC, 3), fcntl(p->oracle, F_DUPFD_CLOEXEC, 3), p->reads, p->writes};
    if (file.subject < 0 || file.oracle < 0)
        world_fail(w, "F_DUPFD_CLOEXEC: %s", strerror(errno));
    w->kept[w->kept_count++] = (struct kept_map){s, o, m->protection, m->flags, m->offset, m->length, file};
}

void maps_compare(struct world *w)
{
    for (int i = 0; i < w->kept_count; i++) {
        struct map m = again(&w->kept[i]);
        compare_maps(w, &m, w->kept[i].subject, w->kept[i].oracle);
    }
}

void maps_end(struct world *w)
{
    while (w->kept_count > 0)
        unmap(w, &w->kept[--w->kept_count]);
}

/* What is written through a map is read at once, and what is written to the file is in the map. */
static void exercise(struct world *w, const struct map *m, const struct pair *p, unsigned char *s, unsigned char *o)
{
    compare_maps(w, m, s, o);
    if (m->protection & PROT_WRITE)
        scribble(w, m, s, o);
    world_compare_range(w, p, m->offset, (int64_t)m->length);
    if (p->writes && m->valid > 0) {
        size_t at = world_below(w, m->valid), length = 1 + world_below(w, m->valid - at);
        world_fill(w, length);
        int64_t to = m->offset + (int64_t)at;
        world_same(w, pwrite(p->subject, w->buf, length, to), errno, pwrite(p->oracle, w->buf, length, to), errno);
    }
    compare_maps(w, m, s, o);
    if (world_below(w, 4) == 0)
        world_same(w, msync(s, m->length, world_below(w, 2) ? MS_SYNC : MS_ASYNC), errno, 0, 0);
}

void op_map(struct world *w, struct pair *p)
{
    struct map m = pick_map(w, p);
    enum kind kind = m.protection & PROT_WRITE ? MAP_WRITE : MAP_READ;
    world_note(w, "mmap(%d, %s%s, %" PRId64 ", %zu)", p->subject, m.flags == MAP_SHARED ? "shared" : "private", kind == MAP_WRITE ? " to write" : "", m.offset, m.length);
    unsigned char *o = mmap(NULL, m.length, m.protection, m.flags, p->oracle, m.offset);
    int oracle_errno = errno;
    unsigned char *s = mmap(NULL, m.length, m.protection, m.flags, p->subject, m.offset);
    if (!world_same(w, s == MAP_FAILED ? -1 : 0, errno, o == MAP_FAILED ? -1 : 0, oracle_errno)) {
        tally(kind, ALIKE);
        return;
    }
    tally(kind, CARRIED);
    exercise(w, &m, p, s, o);
    if (world_below(w, 3) == 0)
        keep(w, &m, p, s, o);
    else
        world_same(w, munmap(s, m.length), errno, munmap(o, m.length), errno);
    world_compare_state(w, p);
    world_compare_range(w, p, m.offset, (int64_t)m.length);
}

void op_kept_map(struct world *w, struct pair *p)
{
    if (w->kept_count == 0) {
        op_map(w, p);
        return;
    }
    int index = (int)world_below(w, (uint64_t)w->kept_count);
    struct kept_map *k = &w->kept[index];
    struct map m = again(k);
    world_note(w, "the map of %d at %" PRId64 " again", k->file.subject, k->offset);
    exercise(w, &m, &k->file, k->subject, k->oracle);
    if (world_below(w, 4) == 0) {
        unmap(w, k);
        *k = w->kept[--w->kept_count];
    }
}
