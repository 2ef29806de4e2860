/* Streams whose file changes under them: freopen, dup2 onto a stream's descriptor, and the standard streams of a child. */
#define _GNU_SOURCE
#include "streams.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* Two scripts: before and after the change. Each of their last results is that of the change and that of fclose. */
struct change {
    struct script first, second;
    const char *mode; /* of freopen; NULL: dup2 */
    struct result before[STEPS_MAX + 1], after[STEPS_MAX + 1];
    int64_t end; /* the position at the end, before fclose */
};

static void run(struct world *w, struct change *c, int fd, int other, const char *path, unsigned char *into)
{
    int copy = dup(fd);
    char buffer[STREAM_BUFFER];
    FILE *stream = copy < 0 ? NULL : fdopen(copy, c->first.mode);
    if (stream == NULL)
        world_fail(w, "dup, fdopen: %s", strerror(errno));
    if (c->first.buffering >= 0)
        setvbuf(stream, buffer, c->first.buffering, c->first.buffer_bytes);
    stream_run(w, stream, &c->first, into, c->before);
    errno = 0;
    int64_t changed;
    if (c->mode == NULL) {
        fflush(stream);
        errno = 0;
        changed = dup2(other, fileno(stream)) < 0 ? -1 : 0;
    } else {
        stream = freopen(path, c->mode, stream);
        changed = stream == NULL ? -1 : 0;
    }
    c->before[c->first.count] = (struct result){.returned = changed, .error = changed < 0 ? errno : 0};
    if (stream == NULL)
        return;
    stream_run(w, stream, &c->second, into, c->after);
    c->end = ftello(stream);
    errno = 0;
    int closed = fclose(stream);
    c->after[c->second.count] = (struct result){.returned = closed, .error = closed != 0 ? errno : 0};
}

/* A managed file can take the place of another, but not of a file without a name, which is a plain one. The stream goes on appending or not. */
static int may_be_replaced(const struct pair *p, const struct pair *other)
{
    struct stat status;
    int differ = (fcntl(p->oracle, F_GETFL) ^ fcntl(other->oracle, F_GETFL)) & O_APPEND;
    return fstat(p->oracle, &status) == 0 && status.st_nlink > 0 && !differ;
}

static int is_one_file(const struct pair *p, const struct pair *other)
{
    struct stat a, b;
    return fstat(p->oracle, &a) == 0 && fstat(other->oracle, &b) == 0 && a.st_ino == b.st_ino;
}

static void draw(struct world *w, struct change *c, const struct pair *p, const struct pair *other)
{
    static const char *const modes[] = {"r", "r+", "w", "w+", "a", "a+"};
    struct pair rights = {.oracle = p->oracle, .reads = p->reads && other->reads, .writes = p->writes && other->writes};
    c->first = stream_draw(w, p);
    /* dup2 changes neither the stream's mode nor what it has drawn from the old file: it is flushed and sent to a place first. */
    c->mode = (!rights.reads && !rights.writes) || !may_be_replaced(p, other) || world_below(w, 2) ? modes[world_below(w, 6)] : NULL;
    if (c->mode != NULL)
        rights = (struct pair){.oracle = p->oracle, .reads = c->mode[0] == 'r' || c->mode[1] == '+', .writes = c->mode[0] != 'r' || c->mode[1] == '+'};
    c->second = stream_draw(w, &rights);
    c->second.steps[0] = (struct step){.action = SEEK, .offset = world_offset(w), .whence = SEEK_SET};
}

void op_reopen(struct world *w, struct pair *p, struct pair *other)
{
    char subject_path[PATH_MAX], oracle_path[PATH_MAX];
    struct change s = {.end = 0}, o;
    int name = (int)world_below(w, NAMES);
    if (p->writes)
        world_bound(w, p);
    if (other->writes)
        world_bound(w, other);
    draw(w, &s, p, other);
    o = s;
    world_path(w, 0, name, subject_path);
    world_path(w, 1, name, oracle_path);
    world_fill(w, STREAM_BYTES);
    world_note(w, "fdopen(%d, %s), %d steps, %s(%s, %d), %d steps", p->subject, s.first.mode, s.first.count, s.mode != NULL ? "freopen" : "dup2",
               s.mode != NULL ? s.mode : "", s.mode != NULL ? name : other->subject, s.second.count);
    run(w, &s, p->subject, other->subject, subject_path, w->subject_buf);
    run(w, &o, p->oracle, other->oracle, oracle_path, w->oracle_buf);
    stream_compare(w, &s.first, s.before, o.before);
    stream_compare(w, &s.second, s.after, o.after);
    if (s.end != o.end)
        world_fail(w, "the stream's position is %" PRId64 ", a plain file's %" PRId64, s.end, o.end);
    tally(REOPEN, s.before[s.first.count].returned == 0 ? CARRIED : ALIKE);
    lseek(p->subject, lseek(p->oracle, 0, SEEK_CUR), SEEK_SET);
    lseek(other->subject, lseek(other->oracle, 0, SEEK_CUR), SEEK_SET);
    world_compare_state(w, p);
    world_compare_state(w, other);
    world_compare_name(w, name);
}

/* In a child: standard input and output led to files as a shell does, and then standard output by the program itself. Exits with what it has read. */
static _Noreturn void be_a_filter(int in, int out, const char *path, const char *mode, unsigned lines)
{
    char word[64];
    unsigned sum = 0;
    if (in >= 0 && dup2(in, 0) != 0)
        _exit(200);
    if (out >= 0 && dup2(out, 1) != 1)
        _exit(201);
    for (unsigned i = 0; i < lines; i++) {
        if (in >= 0)
            sum = sum * 31 + (unsigned)getchar() + (i % 7 == 0 && scanf("%60s", word) == 1 ? (unsigned char)word[0] : 0);
        if (out >= 0)
            printf("line %u: %u\n", i, sum);
    }
    if (freopen(path, mode, stdout) == NULL)
        _exit(202);
    for (unsigned i = 0; i < lines; i++)
        puts("what follows after freopen");
    if (fclose(stdout) != 0)
        _exit(203);
    exit((int)(sum % 200));
}

void op_standard(struct world *w, struct pair *p, struct pair *other)
{
    char path[2][PATH_MAX];
    int name = (int)world_below(w, NAMES), status[2] = {0, 0};
    unsigned lines = (unsigned)world_below(w, 600);
    const char *mode = world_below(w, 2) ? "a" : "w";
    /* How far a child reads ahead is its own affair, and its output would follow from there. */
    if (w->threaded || w->nested || is_one_file(p, other))
        return;
    if (other->writes)
        world_bound(w, other);
    world_note(w, "a child with %d for input and %d for output, then %s to %s, %u lines", p->reads ? p->subject : -1, other->writes ? other->subject : -1, mode,
               w->names[name], lines);
    fflush(stdout);
    for (int oracle = 0; oracle < 2; oracle++) {
        world_path(w, oracle, name, path[oracle]);
        int in = oracle ? p->oracle : p->subject, out = oracle ? other->oracle : other->subject;
        pid_t child = fork();
        if (child == 0)
            be_a_filter(p->reads ? in : -1, other->writes ? out : -1, path[oracle], mode, lines);
        if (child < 0 || waitpid(child, &status[oracle], 0) != child)
            world_fail(w, "fork: %s", strerror(errno));
    }
    if (status[0] != status[1])
        world_fail(w, "the child ended with %#x, a plain file's with %#x", status[0], status[1]);
    tally(STANDARD, CARRIED);
    world_compare_state(w, p);
    world_compare_state(w, other);
    world_compare_name(w, name);
}
