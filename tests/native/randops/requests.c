/* Asynchronous requests, one at a time and in lists. A list's requests are all on one descriptor: then the C library keeps their order. */
#define _GNU_SOURCE
#include "randops.h"

#include <aio.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LIST_MAX = 6, LIST_BYTES_MAX = IO_BYTES_MAX / LIST_MAX };

static struct aiocb request(int fd, int writing, void *buf, size_t length, int64_t offset)
{
    struct aiocb r;
    memset(&r, 0, sizeof r);
    r.aio_fildes = fd, r.aio_buf = buf, r.aio_nbytes = length, r.aio_offset = offset;
    r.aio_lio_opcode = writing ? LIO_WRITE : LIO_READ;
    r.aio_sigevent.sigev_notify = SIGEV_NONE;
    return r;
}

static int64_t outcome(struct aiocb *r, int *error)
{
    const struct aiocb *list[] = {r};
    while ((*error = aio_error(r)) == EINPROGRESS)
        aio_suspend(list, 1, NULL);
    return aio_return(r);
}

static int same_outcome(struct world *w, struct aiocb *subject, struct aiocb *oracle)
{
    int subject_errno, oracle_errno;
    int64_t s = outcome(subject, &subject_errno), o = outcome(oracle, &oracle_errno);
    return world_same(w, s, subject_errno, o, oracle_errno);
}

static void compare_buffers(struct world *w, size_t length)
{
    for (size_t i = 0; memcmp(w->subject_buf, w->oracle_buf, length) != 0; i++)
        if (w->subject_buf[i] != w->oracle_buf[i])
            world_fail(w, "byte %zu of the buffer is %02x, a plain file's %02x", i, w->subject_buf[i], w->oracle_buf[i]);
}

static void prepare(struct world *w, struct pair *p, size_t length)
{
    if (p->writes)
        world_bound(w, p);
    world_fill(w, length);
    memset(w->subject_buf, 0xaa, length);
    memset(w->oracle_buf, 0xaa, length);
}

/* A forked child has none of the C library's helper threads, and waits for them for ever. */
static int is_possible(const struct world *w)
{
    return !w->nested;
}

void op_aio(struct world *w, struct pair *p)
{
    if (!is_possible(w))
        return;
    int writing = (int)world_below(w, 2);
    size_t length = world_length(w);
    int64_t offset = world_below(w, 60) == 0 ? -1 : world_offset(w);
    prepare(w, p, length);
    world_note(w, "aio_%s(%d, %zu bytes, offset %" PRId64 ")", writing ? "write" : "read", p->subject, length, offset);
    struct aiocb subject = request(p->subject, writing, writing ? w->buf : w->subject_buf, length, offset);
    struct aiocb oracle = request(p->oracle, writing, writing ? w->buf : w->oracle_buf, length, offset);
    int s = writing ? aio_write(&subject) : aio_read(&subject);
    int subject_errno = errno;
    int o = writing ? aio_write(&oracle) : aio_read(&oracle);
    world_same(w, s, subject_errno, o, errno);
    tally(AIO, same_outcome(w, &subject, &oracle) ? CARRIED : ALIKE);
    compare_buffers(w, length);
    world_compare_state(w, p);
    world_compare_range(w, p, offset < 0 ? 0 : offset, (int64_t)length);
}

void op_list(struct world *w, struct pair *p)
{
    if (!is_possible(w))
        return;
    struct aiocb subjects[LIST_MAX], oracles[LIST_MAX], *subject_list[LIST_MAX], *oracle_list[LIST_MAX];
    int count = 1 + (int)world_below(w, LIST_MAX), mode = world_below(w, 2) ? LIO_WAIT : LIO_NOWAIT, carried = 1;
    prepare(w, p, IO_BYTES_MAX);
    world_note(w, "lio_listio(%d, %d requests, %s)", p->subject, count, mode == LIO_WAIT ? "LIO_WAIT" : "LIO_NOWAIT");
    for (int i = 0; i < count; i++) {
        int writing = (int)world_below(w, 2), nothing = world_below(w, 8) == 0;
        size_t at = (size_t)i * LIST_BYTES_MAX, length = world_below(w, LIST_BYTES_MAX);
        int64_t offset = world_below(w, 60) == 0 ? -1 : world_offset(w);
        subjects[i] = request(p->subject, writing, (writing ? w->buf : w->subject_buf) + at, length, offset);
        oracles[i] = request(p->oracle, writing, (writing ? w->buf : w->oracle_buf) + at, length, offset);
        subject_list[i] = nothing ? NULL : &subjects[i];
        oracle_list[i] = nothing ? NULL : &oracles[i];
    }
    int s = lio_listio(mode, subject_list, count, NULL);
    int subject_errno = errno;
    int o = lio_listio(mode, oracle_list, count, NULL);
    world_same(w, s, subject_errno, o, errno);
    for (int i = 0; i < count; i++)
        if (subject_list[i] != NULL)
            carried &= same_outcome(w, subject_list[i], oracle_list[i]);
    tally(LIST, carried ? CARRIED : ALIKE);
    compare_buffers(w, IO_BYTES_MAX);
    world_compare_state(w, p);
    for (int i = 0; i < count; i++)
        world_compare_range(w, p, subjects[i].aio_offset < 0 ? 0 : subjects[i].aio_offset, (int64_t)subjects[i].aio_nbytes);
}
