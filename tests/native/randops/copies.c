/* Operations that move bytes from one open file to another, or to the same: copy_file_range, sendfile, and splice by way of a pipe. */
#define _GNU_SOURCE
#include "randops.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SPLICE_BYTES_MAX = 48 << 10 };

/* An explicit offset, or the position of the descriptor. */
struct place {
    int given;
    off64_t at, subject_at, oracle_at;
};

static struct place pick_place(struct world *w, const struct pair *p, int may_be_given)
{
    struct place place = {.given = may_be_given && world_below(w, 2)};
    place.at = place.given ? world_offset(w) : lseek(p->oracle, 0, SEEK_CUR);
    place.subject_at = place.oracle_at = place.at;
    return place;
}

/* Pages that lie in a pipe are the file's own: what an overlapping copy reads depends on the kernel's batches. */
static int overlap(const struct pair *from, const struct pair *to, int64_t from_at, int64_t to_at, int64_t length)
{
    struct stat f, t;
    if (fstat(from->oracle, &f) != 0 || fstat(to->oracle, &t) != 0 || f.st_ino != t.st_ino)
        return 0;
    return from_at < to_at + length && to_at < from_at + length;
}

static void compare_places(struct world *w, const struct place *place)
{
    if (place->subject_at != place->oracle_at)
        world_fail(w, "the offset given became %" PRId64 ", a plain file's %" PRId64, (int64_t)place->subject_at, (int64_t)place->oracle_at);
}

static void compare_after(struct world *w, const struct pair *from, const struct pair *to, const struct place *in, const struct place *out, int64_t moved)
{
    compare_places(w, in);
    compare_places(w, out);
    world_compare_state(w, from);
    world_compare_state(w, to);
    if (moved > 0)
        world_compare_range(w, to, out->at, moved);
}

void op_copy(struct world *w, struct pair *from, struct pair *to)
{
    if (to->writes)
        world_bound(w, to);
    struct place in = pick_place(w, from, 1), out = pick_place(w, to, 1);
    size_t length = world_length(w);
    world_note(w, "copy_file_range(%d %s%" PRId64 ", %d %s%" PRId64 ", %zu)", from->subject, in.given ? "" : "@", (int64_t)in.at, to->subject, out.given ? "" : "@",
               (int64_t)out.at, length);
    ssize_t s = copy_file_range(from->subject, in.given ? &in.subject_at : NULL, to->subject, out.given ? &out.subject_at : NULL, length, 0);
    int subject_errno = errno;
    ssize_t o = copy_file_range(from->oracle, in.given ? &in.oracle_at : NULL, to->oracle, out.given ? &out.oracle_at : NULL, length, 0);
    tally(COPY, world_same(w, s, subject_errno, o, errno) ? CARRIED : ALIKE);
    compare_after(w, from, to, &in, &out, o);
}

void op_send(struct world *w, struct pair *from, struct pair *to)
{
    if (to->writes)
        world_bound(w, to);
    struct place in = pick_place(w, from, 1), out = pick_place(w, to, 0);
    size_t length = world_length(w);
    if (overlap(from, to, in.at, out.at, (int64_t)length))
        return;
    world_note(w, "sendfile(%d %s%" PRId64 ", %d @%" PRId64 ", %zu)", from->subject, in.given ? "" : "@", (int64_t)in.at, to->subject, (int64_t)out.at, length);
    ssize_t s = sendfile(to->subject, from->subject, in.given ? &in.subject_at : NULL, length);
    int subject_errno = errno;
    ssize_t o = sendfile(to->oracle, from->oracle, in.given ? &in.oracle_at : NULL, length);
    tally(SEND, world_same(w, s, subject_errno, o, errno) ? CARRIED : ALIKE);
    compare_after(w, from, to, &in, &out, o);
}

/* What a failed splice left in the pipes is the same. */
static void empty_pipes(struct world *w, ssize_t left)
{
    for (ssize_t done = 0; done < left;) {
        ssize_t s = read(w->subject_pipe[0], w->subject_buf, (size_t)(left - done)), o = read(w->oracle_pipe[0], w->oracle_buf, (size_t)(left - done));
        if (s <= 0 || s != o || memcmp(w->subject_buf, w->oracle_buf, (size_t)s) != 0)
            world_fail(w, "the pipe holds %zd other bytes than the plain file's %zd", s, o);
        done += s;
    }
}

void op_splice(struct world *w, struct pair *from, struct pair *to)
{
    if (to->writes)
        world_bound(w, to);
    struct place in = pick_place(w, from, 1), out = pick_place(w, to, 1);
    size_t length = world_below(w, SPLICE_BYTES_MAX);
    if (overlap(from, to, in.at, out.at, (int64_t)length))
        return;
    world_note(w, "splice(%d %s%" PRId64 ", a pipe, %zu; %d %s%" PRId64 ")", from->subject, in.given ? "" : "@", (int64_t)in.at, length, to->subject,
               out.given ? "" : "@", (int64_t)out.at);
    ssize_t s = splice(from->subject, in.given ? &in.subject_at : NULL, w->subject_pipe[1], NULL, length, 0);
    int subject_errno = errno;
    ssize_t o = splice(from->oracle, in.given ? &in.oracle_at : NULL, w->oracle_pipe[1], NULL, length, 0);
    if (!world_same(w, s, subject_errno, o, errno) || s == 0) {
        tally(SPLICE, s == 0 ? CARRIED : ALIKE);
        compare_after(w, from, to, &in, &out, 0);
        return;
    }
    ssize_t part = world_below(w, 3) == 0 ? 1 + (ssize_t)world_below(w, (uint64_t)s) : s;
    ssize_t stored = splice(w->subject_pipe[0], NULL, to->subject, out.given ? &out.subject_at : NULL, (size_t)part, SPLICE_F_MOVE);
    subject_errno = errno;
    o = splice(w->oracle_pipe[0], NULL, to->oracle, out.given ? &out.oracle_at : NULL, (size_t)part, SPLICE_F_MOVE);
    tally(SPLICE, world_same(w, stored, subject_errno, o, errno) ? CARRIED : ALIKE);
    empty_pipes(w, s - (stored > 0 ? stored : 0));
    compare_after(w, from, to, &in, &out, o);
}
