/* Operations on what a file has besides data: mode, times, extended attributes; by name and by descriptor. */
#define _GNU_SOURCE
#include "randops.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

enum { VALUE_BYTES_MAX = 300, LIST_BYTES_MAX = 4096 };

/* By name (a random one) or by the descriptor of a pair. */
struct object {
    int by_name, subject, oracle;
    const char *name;
    char subject_path[PATH_MAX], oracle_path[PATH_MAX];
};

static void pick_object(struct world *w, const struct pair *p, struct object *object)
{
    int name = (int)world_below(w, NAMES);
    object->by_name = (int)world_below(w, 2);
    object->subject = p->subject, object->oracle = p->oracle;
    object->name = object->by_name ? w->names[name] : "a descriptor";
    world_path(w, 0, name, object->subject_path);
    world_path(w, 1, name, object->oracle_path);
}

static int stat_object(const struct object *object, int oracle, struct stat *status)
{
    if (object->by_name)
        return stat(oracle ? object->oracle_path : object->subject_path, status);
    return fstat(oracle ? object->oracle : object->subject, status);
}

/* The owner keeps his rights, so that the rest of the run can go on whoever he is. */
void op_mode(struct world *w, struct pair *p)
{
    static const mode_t modes[] = {0600, 0640, 0644, 0666, 0700, 0755, 01644};
    struct object object;
    struct stat s, o;
    pick_object(w, p, &object);
    mode_t mode = modes[world_below(w, sizeof modes / sizeof modes[0])];
    world_note(w, "chmod(%s, %#o) or fchmod(%d)", object.name, mode, p->subject);
    int result = object.by_name ? chmod(object.subject_path, mode) : fchmod(p->subject, mode);
    int subject_errno = errno;
    int oracle = object.by_name ? chmod(object.oracle_path, mode) : fchmod(p->oracle, mode);
    if (!world_same(w, result, subject_errno, oracle, errno)) {
        tally(MODE, ALIKE);
        return;
    }
    tally(MODE, CARRIED);
    if (stat_object(&object, 0, &s) != 0 || stat_object(&object, 1, &o) != 0 || s.st_mode != o.st_mode)
        world_fail(w, "mode %o, a plain file's %o", s.st_mode, o.st_mode);
    world_compare_state(w, p);
}

static int is_time(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

/* A time that was given is the file's, and one that was omitted stays. */
static void compare_times(struct world *w, const struct object *object, const struct timespec times[2], const struct stat *before)
{
    struct stat after;
    if (stat_object(object, 0, &after) != 0)
        world_fail(w, "stat: %s", strerror(errno));
    const struct timespec *wanted[2] = {times[0].tv_nsec == UTIME_OMIT ? &before->st_atim : &times[0], times[1].tv_nsec == UTIME_OMIT ? &before->st_mtim : &times[1]};
    if (!is_time(&after.st_atim, wanted[0]) || !is_time(&after.st_mtim, wanted[1]))
        world_fail(w, "times %" PRId64 ".%09ld and %" PRId64 ".%09ld, %" PRId64 ".%09ld and %" PRId64 ".%09ld are right", (int64_t)after.st_atim.tv_sec,
                   after.st_atim.tv_nsec, (int64_t)after.st_mtim.tv_sec, after.st_mtim.tv_nsec, (int64_t)wanted[0]->tv_sec, wanted[0]->tv_nsec,
                   (int64_t)wanted[1]->tv_sec, wanted[1]->tv_nsec);
}

/* What was written before the times were set must not change them any more, also not at fsync and close. */
void op_times(struct world *w, struct pair *p)
{
    struct object object;
    struct timespec times[2];
    struct stat before;
    pick_object(w, p, &object);
    for (int i = 0; i < 2; i++)
        times[i] = (struct timespec){(time_t)world_below(w, 2000000000), world_below(w, 4) == 0 ? UTIME_OMIT : (long)world_below(w, 1000000000)};
    world_note(w, "utimensat(%s) or futimens(%d)", object.name, p->subject);
    int copy = dup(p->subject);
    if (p->writes) {
        world_bound(w, p);
        world_fill(w, 10);
        int64_t at = world_offset(w);
        world_same(w, pwrite(copy, w->buf, 10, at), errno, pwrite(p->oracle, w->buf, 10, at), errno);
    }
    int there = stat_object(&object, 0, &before) == 0;
    int s = object.by_name ? utimensat(AT_FDCWD, object.subject_path, times, 0) : futimens(p->subject, times);
    int subject_errno = errno;
    int o = object.by_name ? utimensat(AT_FDCWD, object.oracle_path, times, 0) : futimens(p->oracle, times);
    int done = world_same(w, s, subject_errno, o, errno);
    tally(TIMES, done ? CARRIED : ALIKE);
    if (done && there)
        compare_times(w, &object, times, &before);
    if (world_below(w, 4) == 0)
        fsync(copy);
    close(copy);
    if (done && there)
        compare_times(w, &object, times, &before);
    world_compare_state(w, p);
}

static ssize_t get(const struct object *object, int oracle, const char *name, void *value, size_t room)
{
    if (object->by_name)
        return getxattr(oracle ? object->oracle_path : object->subject_path, name, value, room);
    return fgetxattr(oracle ? object->oracle : object->subject, name, value, room);
}

static ssize_t list(const struct object *object, int oracle, char *names, size_t room)
{
    if (object->by_name)
        return listxattr(oracle ? object->oracle_path : object->subject_path, names, room);
    return flistxattr(oracle ? object->oracle : object->subject, names, room);
}

static int set(const struct object *object, int oracle, const char *name, const void *value, size_t bytes, int flags)
{
    if (object->by_name)
        return setxattr(oracle ? object->oracle_path : object->subject_path, name, value, bytes, flags);
    return fsetxattr(oracle ? object->oracle : object->subject, name, value, bytes, flags);
}

static int drop(const struct object *object, int oracle, const char *name)
{
    if (object->by_name)
        return removexattr(oracle ? object->oracle_path : object->subject_path, name);
    return fremovexattr(oracle ? object->oracle : object->subject, name);
}

/* Alike in number and length; a name that one lacks shows when its value is got. */
static void compare_lists(struct world *w, const struct object *object)
{
    char s[LIST_BYTES_MAX], o[LIST_BYTES_MAX];
    ssize_t subject = list(object, 0, s, sizeof s);
    int subject_errno = errno;
    world_same(w, subject, subject_errno, list(object, 1, o, sizeof o), errno);
}

void op_attribute(struct world *w, struct pair *p)
{
    static const char *const names[] = {"user.one", "user.two", "user.a longer name of one"};
    static const int ways[] = {0, 0, XATTR_CREATE, XATTR_REPLACE};
    unsigned char s_value[VALUE_BYTES_MAX], o_value[VALUE_BYTES_MAX];
    struct object object;
    pick_object(w, p, &object);
    const char *name = names[world_below(w, 3)];
    int dropping = world_below(w, 4) == 0, flags = ways[world_below(w, 4)];
    size_t bytes = world_below(w, VALUE_BYTES_MAX), room = world_below(w, 3) ? VALUE_BYTES_MAX : world_below(w, VALUE_BYTES_MAX);
    world_fill(w, bytes);
    world_note(w, "%s(%s or %d, %s, %zu bytes, %d)", dropping ? "removexattr" : "setxattr", object.name, p->subject, name, bytes, flags);
    int s = dropping ? drop(&object, 0, name) : set(&object, 0, name, w->buf, bytes, flags);
    int subject_errno = errno;
    int o = dropping ? drop(&object, 1, name) : set(&object, 1, name, w->buf, bytes, flags);
    tally(ATTRIBUTE, world_same(w, s, subject_errno, o, errno) ? CARRIED : ALIKE);
    ssize_t got = get(&object, 0, name, s_value, room);
    subject_errno = errno;
    if (world_same(w, got, subject_errno, get(&object, 1, name, o_value, room), errno) && room > 0 && memcmp(s_value, o_value, (size_t)got) != 0)
        world_fail(w, "another value than a plain file's");
    compare_lists(w, &object);
    world_compare_state(w, p);
}
