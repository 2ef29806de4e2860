/*
 * Streams of the C library over duplicates of a pair's descriptors. A short script is drawn first and run on the subject, then on the oracle, and what
 * every step returned is compared.
 */
#define _GNU_SOURCE
#include "streams.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

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

struct script stream_draw(struct world *w, const struct pair *p)
{
    static const int bufferings[] = {_IOFBF, _IOFBF, _IOLBF, _IONBF};
    /* A stream that does not know that its descriptor appends is mistaken about positions. */
    int appends = fcntl(p->oracle, F_GETFL) & O_APPEND;
    struct script s = {.mode = !p->writes ? "r" : p->reads ? appends ? "a+" : "r+" : appends ? "a" : "w", .buffering = world_below(w, 3) ? -1 : bufferings[world_below(w, 4)]};
    s.buffer_bytes = 1 + world_below(w, STREAM_BUFFER);
    int steps = 1 + (int)world_below(w, STEPS_MAX);
    enum action before = SEEK;
    while (s.count < steps) {
        struct step step = {.action = (enum action)world_below(w, ACTIONS), .length = world_length(w), .offset = world_offset(w), .from = (int)world_below(w, 1000)};
        step.length = 1 + step.length % 20000;
        step.whence = (int)world_below(w, 3);
        if (step.whence != SEEK_SET)
            step.offset = -(int64_t)world_below(w, 3000);
        /* The C library is mistaken about its place after a byte was put back. */
        if (before == UNREAD && (step.action == SEEK || step.action == FLUSH))
            step = (struct step){.action = SEEK, .offset = world_offset(w), .whence = SEEK_SET};
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

void stream_run(struct world *w, FILE *stream, const struct script *script, unsigned char *into, struct result *results)
{
    for (int i = 0; i < script->count; i++) {
        struct result *r = &results[i];
        errno = 0;
        r->returned = run_step(w, stream, &script->steps[i], into, &r->sum);
        r->error = r->returned < 0 || ferror(stream) ? errno : 0;
        r->state = (feof(stream) != 0) + 2 * (ferror(stream) != 0);
    }
}

static void show(const struct script *script, const struct result *subject, const struct result *oracle, int count)
{
    static const char *const names[ACTIONS] = {"read", "write", "seek", "tell", "flush", "unread", "get", "put", "line"};
    fprintf(stderr, "  stream: mode %s, buffering %d of %zu\n", script->mode, script->buffering, script->buffer_bytes);
    for (int i = 0; i < count; i++) {
        const struct step *step = &script->steps[i];
        fprintf(stderr, "  step %d: %s, length %zu, offset %" PRId64 " from %d: %" PRId64 ", %" PRId64 "\n", i, names[step->action], step->length, step->offset, step->whence,
                subject[i].returned, oracle[i].returned);
    }
}

void stream_compare(struct world *w, const struct script *script, const struct result *subject, const struct result *oracle)
{
    for (int i = 0; i <= script->count; i++) {
        const struct result *s = &subject[i], *o = &oracle[i];
        if (s->returned == o->returned && s->error == o->error && s->state == o->state && s->sum == o->sum)
            continue;
        show(script, subject, oracle, i < script->count ? i + 1 : i);
        world_fail(w, "step %d returned %" PRId64 " (%s, state %d, sum %" PRIx64 "), a plain file %" PRId64 " (%s, %d, %" PRIx64 ")", i, s->returned, strerror(s->error), s->state,
                   s->sum, o->returned, strerror(o->error), o->state, o->sum);
    }
}

/* How far a stream reads ahead is its own affair: a position is promised only after what was written, or after a flush (not of bytes that were
 * put back). */
void stream_settle(struct world *w, const struct script *script, const struct result *subject, const struct result *oracle, struct pair *p)
{
    enum action last = TELL;
    int unread = 0;
    for (int i = 0; i < script->count; i++) {
        if (script->steps[i].action != TELL)
            last = script->steps[i].action;
        unread |= last == UNREAD;
    }
    int64_t at = lseek(p->subject, 0, SEEK_CUR), oracle_at = lseek(p->oracle, 0, SEEK_CUR);
    if (last != WRITE && last != PUT && (last != FLUSH || unread))
        lseek(p->subject, oracle_at, SEEK_SET);
    else if (at != oracle_at)
        show(script, subject, oracle, script->count);
    world_compare_state(w, p);
}

/* The last result is that of fclose. */
static void run(struct world *w, int fd, const struct script *script, unsigned char *into, struct result results[STEPS_MAX + 1])
{
    int copy = dup(fd);
    char buffer[STREAM_BUFFER];
    FILE *stream = copy < 0 ? NULL : fdopen(copy, script->mode);
    if (stream == NULL)
        world_fail(w, "dup, fdopen: %s", strerror(errno));
    if (script->buffering >= 0)
        setvbuf(stream, buffer, script->buffering, script->buffer_bytes);
    stream_run(w, stream, script, into, results);
    errno = 0;
    int closed = fclose(stream);
    results[script->count] = (struct result){.returned = closed, .error = closed != 0 ? errno : 0};
}

void op_stream(struct world *w, struct pair *p)
{
    struct result subject[STEPS_MAX + 1], oracle[STEPS_MAX + 1];
    if (p->writes)
        world_bound(w, p);
    struct script script = stream_draw(w, p);
    world_fill(w, STREAM_BYTES);
    world_note(w, "fdopen(%d, %s), buffering %d, %d steps", p->subject, script.mode, script.buffering, script.count);
    int64_t at = lseek(p->oracle, 0, SEEK_CUR);
    run(w, p->subject, &script, w->subject_buf, subject);
    run(w, p->oracle, &script, w->oracle_buf, oracle);
    stream_compare(w, &script, subject, oracle);
    tally(STREAM, CARRIED);
    stream_settle(w, &script, subject, oracle, p);
    world_compare_range(w, p, at, STREAM_BYTES);
}
