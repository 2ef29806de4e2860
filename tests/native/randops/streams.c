/*
 * Streams of the C library over duplicates of a pair's descriptors. A short script is drawn first and run on the subject, then on the oracle, and what
 * every step returned is compared. A subject whose library does not carry streams answers EBADF to the first step that touches the file; then nothing
 * must have changed. Such a library does not see fclose either, so the descriptor is closed once more for it: not among threads, where its number may
 * be another's already.
 */
#define _GNU_SOURCE
#include "randops.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { STEPS_MAX = 12 };
enum action { READ, WRITE, SEEK, TELL, FLUSH, UNREAD, GET, PUT, LINE, ACTIONS };

struct step {
    enum action action;
    size_t length;
    int64_t offset;
    int whence, from; /* from: where in the buffer the bytes to write begin */
};

struct script {
    const char *mode;
    int buffering, count;
    size_t buffer_bytes;
    struct step steps[STEPS_MAX];
};

struct result {
    int64_t returned, at;
    int error, state; /* state: at the end, failed */
    uint64_t sum;
};

static uint64_t sum_of(const unsigned char *bytes, size_t count)
{
    uint64_t sum = 1469598103934665603u;
    for (size_t i = 0; i < count; i++)
        sum = (sum ^ bytes[i]) * 1099511628211u;
    return sum;
}

static int is_allowed(const struct pair *p, enum action action)
{
    if (action == WRITE || action == PUT)
        return p->writes;
    return p->reads || (action != READ && action != UNREAD && action != GET && action != LINE);
}

static struct script draw(struct world *w, const struct pair *p)
{
    static const int bufferings[] = {_IOFBF, _IOFBF, _IOLBF, _IONBF};
    struct script s = {.mode = p->reads && p->writes ? "r+" : p->reads ? "r" : "w", .buffering = world_below(w, 3) ? -1 : bufferings[world_below(w, 4)]};
    s.buffer_bytes = 1 + world_below(w, 9000);
    int steps = 1 + (int)world_below(w, STEPS_MAX);
    /* The first step touches the file, so that a refusal shows. */
    enum action before = p->reads ? GET : WRITE;
    s.steps[s.count++] = (struct step){.action = p->reads ? GET : PUT};
    while (s.count < steps) {
        struct step step = {.action = (enum action)world_below(w, ACTIONS), .length = world_length(w), .offset = world_offset(w), .from = (int)world_below(w, 1000)};
        step.length = step.length % 20000;
        step.whence = (int)world_below(w, 3);
        if (step.whence != SEEK_SET)
            step.offset = -(int64_t)world_below(w, 3000);
        /* The C standard wants a seek between reading and writing; a byte is put back only after one was got. */
        int switches = (step.action == WRITE || step.action == PUT) ? before != WRITE && before != SEEK : step.action != SEEK && step.action != TELL && before == WRITE;
        if (!is_allowed(p, step.action) || (step.action == UNREAD && before != GET) || (switches && step.action != FLUSH))
            step = (struct step){.action = SEEK, .offset = world_offset(w), .whence = SEEK_SET};
        if (step.action != TELL)
            before = step.action == PUT ? WRITE : step.action;
        s.steps[s.count++] = step;
    }
    return s;
}

static int64_t run_step(struct world *w, FILE *stream, const struct step *step, unsigned char *into, uint64_t *sum)
{
    size_t got = 0;
    int64_t returned = 0;
    switch (step->action) {
    case READ: returned = (int64_t)(got = fread(into, 1, step->length, stream)); break;
    case WRITE: returned = (int64_t)fwrite(w->buf + step->from, 1, step->length, stream); break;
    case SEEK: returned = fseeko(stream, step->offset, step->whence); break;
    case TELL: returned = ftello(stream); break;
    case FLUSH: returned = fflush(stream); break;
    case UNREAD: returned = ungetc('u', stream); break;
    case GET: returned = getc(stream); break;
    case PUT: returned = putc('p', stream); break;
    default:
        if (fgets((char *)into, (int)(step->length % 5000) + 1, stream) != NULL)
            got = 1 + strlen((char *)into);
        returned = (int64_t)got;
    }
    *sum = sum_of(into, got);
    return returned;
}

/* The last result is that of fclose. Returns whether the file's library refused. */
static int run(struct world *w, int fd, const struct script *script, unsigned char *into, struct result results[STEPS_MAX + 1])
{
    int copy = dup(fd), refused = 0;
    char buffer[9000];
    FILE *stream = copy < 0 ? NULL : fdopen(copy, script->mode);
    if (stream == NULL) {
        int error = errno;
        close(copy);
        results[0] = (struct result){.returned = -1, .error = error};
        return error == EBADF;
    }
    if (script->buffering >= 0)
        setvbuf(stream, buffer, script->buffering, script->buffer_bytes);
    for (int i = 0; i < script->count; i++) {
        struct result *r = &results[i];
        errno = 0;
        r->returned = run_step(w, stream, &script->steps[i], into, &r->sum);
        r->error = r->returned < 0 || ferror(stream) ? errno : 0;
        r->state = (feof(stream) != 0) + 2 * (ferror(stream) != 0);
        refused |= r->error == EBADF;
    }
    errno = 0;
    int closed = fclose(stream), error = closed != 0 ? errno : 0;
    results[script->count] = (struct result){.returned = closed, .error = error};
    refused |= error == EBADF;
    if (refused)
        close(copy);
    return refused;
}

static int refuses_streams; /* found out before there are threads */

void stream_probe(const char *dir)
{
    char path[PATH_MAX];
    struct world w = {.buf = (unsigned char *)path};
    struct script script = {.mode = "r", .buffering = -1, .count = 1, .steps = {{.action = GET}}};
    struct result results[STEPS_MAX + 1];
    unsigned char into[1];
    snprintf(path, sizeof path, "%s/probe", dir);
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (fd < 0)
        return; /* the first operation will say why */
    refuses_streams = run(&w, fd, &script, into, results);
    close(fd);
    unlink(path);
}

void op_stream(struct world *w, struct pair *p)
{
    struct result subject[STEPS_MAX + 1], oracle[STEPS_MAX + 1];
    if (w->threaded && refuses_streams) {
        tally(STREAM, REFUSED);
        return;
    }
    memset(subject, 0, sizeof subject);
    memset(oracle, 0, sizeof oracle);
    if (p->writes)
        world_bound(w, p);
    struct script script = draw(w, p);
    world_fill(w, 21000);
    world_note(w, "fdopen(%d, %s), buffering %d, %d steps", p->subject, script.mode, script.buffering, script.count);
    int64_t at = lseek(p->oracle, 0, SEEK_CUR);
    if (run(w, p->subject, &script, w->subject_buf, subject)) {
        tally(STREAM, REFUSED);
        lseek(p->subject, at, SEEK_SET);
        world_compare_state(w, p);
        return;
    }
    run(w, p->oracle, &script, w->oracle_buf, oracle);
    for (int i = 0; i <= script.count; i++) {
        const struct result *s = &subject[i], *o = &oracle[i];
        if (s->returned != o->returned || s->error != o->error || s->state != o->state || s->sum != o->sum)
            world_fail(w, "step %d (%d, length %zu, offset %" PRId64 " from %d) returned %" PRId64 " (%s, state %d, sum %" PRIx64 "), a plain file %" PRId64 " (%s, %d, %" PRIx64 ")", i,
                       i < script.count ? (int)script.steps[i].action : -1, script.steps[i % STEPS_MAX].length, script.steps[i % STEPS_MAX].offset,
                       script.steps[i % STEPS_MAX].whence, s->returned, strerror(s->error), s->state, s->sum, o->returned, strerror(o->error), o->state, o->sum);
    }
    tally(STREAM, CARRIED);
    world_compare_state(w, p);
    if (p->reads)
        world_compare_range(w, p, at, 20000);
}
