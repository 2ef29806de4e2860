/* Operations on names: stat, truncate, rename, unlink, access, link. */
#define _GNU_SOURCE
#include "randops.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef RENAME_NOREPLACE
#define RENAME_NOREPLACE 1
#endif

static int pick_name(struct world *w)
{
    return (int)world_below(w, NAMES);
}

static int stat_as(const struct world *w, int way, int oracle, int name, struct stat *status)
{
    char path[PATH_MAX];
    struct statx extended;
    world_path(w, oracle, name, path);
    int dir_fd = oracle ? w->oracle_dir_fd : w->dir_fd;
    switch (way) {
    case 0: return stat(path, status);
    case 1: return lstat(path, status);
    case 2: return fstatat(dir_fd, w->names[name], status, 0);
    case 3: return fstatat(dir_fd, w->names[name], status, AT_SYMLINK_NOFOLLOW);
    default:
        memset(status, 0, sizeof *status);
        if (statx(dir_fd, w->names[name], 0, STATX_BASIC_STATS, &extended) != 0)
            return -1;
        status->st_size = (off_t)extended.stx_size;
        status->st_mode = extended.stx_mode;
        status->st_nlink = extended.stx_nlink;
        return 0;
    }
}

void op_stat(struct world *w)
{
    static const char *const ways[] = {"stat", "lstat", "fstatat", "fstatat nofollow", "statx"};
    struct stat s, o;
    int name = pick_name(w), way = (int)world_below(w, 5);
    world_note(w, "%s(%s)", ways[way], w->names[name]);
    int result = stat_as(w, way, 0, name, &s);
    int subject_errno = errno;
    int oracle = stat_as(w, way, 1, name, &o);
    if (!world_same(w, result, subject_errno, oracle, errno))
        return;
    if (s.st_size != o.st_size || s.st_mode != o.st_mode || s.st_nlink != o.st_nlink)
        world_fail(w, "size %" PRId64 ", mode %o, links %u; a plain file has %" PRId64 ", %o, %u", (int64_t)s.st_size, s.st_mode, (unsigned)s.st_nlink,
                   (int64_t)o.st_size, o.st_mode, (unsigned)o.st_nlink);
}

void op_truncate_name(struct world *w)
{
    char subject[PATH_MAX], oracle[PATH_MAX];
    int name = pick_name(w);
    int64_t length = world_offset(w);
    world_path(w, 0, name, subject);
    world_path(w, 1, name, oracle);
    world_note(w, "truncate(%s, %" PRId64 ")", w->names[name], length);
    int s = truncate(subject, length);
    int subject_errno = errno;
    world_same(w, s, subject_errno, truncate(oracle, length), errno);
}

void op_rename(struct world *w)
{
    int from = pick_name(w), to = pick_name(w), s, subject_errno, o;
    char subject_from[PATH_MAX], subject_to[PATH_MAX], oracle_from[PATH_MAX], oracle_to[PATH_MAX];
    if (world_below(w, 3) == 0) {
        world_note(w, "renameat2(%s, %s, RENAME_NOREPLACE)", w->names[from], w->names[to]);
        s = renameat2(w->dir_fd, w->names[from], w->dir_fd, w->names[to], RENAME_NOREPLACE);
        subject_errno = errno;
        o = renameat2(w->oracle_dir_fd, w->names[from], w->oracle_dir_fd, w->names[to], RENAME_NOREPLACE);
    } else {
        world_note(w, "rename(%s, %s)", w->names[from], w->names[to]);
        world_path(w, 0, from, subject_from);
        world_path(w, 0, to, subject_to);
        world_path(w, 1, from, oracle_from);
        world_path(w, 1, to, oracle_to);
        s = rename(subject_from, subject_to);
        subject_errno = errno;
        o = rename(oracle_from, oracle_to);
    }
    world_same(w, s, subject_errno, o, errno);
}

void op_unlink(struct world *w)
{
    int name = pick_name(w), way = (int)world_below(w, 3), s, subject_errno, o;
    char subject[PATH_MAX], oracle[PATH_MAX];
    world_path(w, 0, name, subject);
    world_path(w, 1, name, oracle);
    world_note(w, "%s(%s)", way == 0 ? "unlinkat" : way == 1 ? "remove" : "unlink", w->names[name]);
    if (way == 0) {
        s = unlinkat(w->dir_fd, w->names[name], 0);
        subject_errno = errno;
        o = unlinkat(w->oracle_dir_fd, w->names[name], 0);
    } else {
        s = way == 1 ? remove(subject) : unlink(subject);
        subject_errno = errno;
        o = way == 1 ? remove(oracle) : unlink(oracle);
    }
    world_same(w, s, subject_errno, o, errno);
}

void op_access(struct world *w)
{
    static const int modes[] = {F_OK, R_OK, W_OK, X_OK, R_OK | W_OK};
    int name = pick_name(w), mode = modes[world_below(w, 5)];
    char subject[PATH_MAX], oracle[PATH_MAX];
    world_path(w, 0, name, subject);
    world_path(w, 1, name, oracle);
    world_note(w, "access(%s, %d)", w->names[name], mode);
    int s = access(subject, mode);
    int subject_errno = errno;
    world_same(w, s, subject_errno, access(oracle, mode), errno);
}

static int do_link(const struct world *w, int way, int oracle, int from, int to)
{
    char from_path[PATH_MAX], to_path[PATH_MAX];
    int dir_fd = oracle ? w->oracle_dir_fd : w->dir_fd;
    world_path(w, oracle, from, from_path);
    world_path(w, oracle, to, to_path);
    return way == 0 ? link(from_path, to_path) : linkat(dir_fd, w->names[from], dir_fd, w->names[to], 0);
}

/* A second name, after which one of the two may go: the file must stay. */
void op_link(struct world *w)
{
    int from = pick_name(w), to = pick_name(w), way = (int)world_below(w, 2), clear = from != to && world_below(w, 4) != 0;
    char path[PATH_MAX];
    world_note(w, "%s(%s, %s)%s", way == 0 ? "link" : "linkat", w->names[from], w->names[to], clear ? " after unlink of the second" : "");
    for (int oracle = 0; oracle < 2 && clear; oracle++) {
        world_path(w, oracle, to, path);
        unlink(path);
    }
    int s = do_link(w, way, 0, from, to);
    int subject_errno = errno;
    int o = do_link(w, way, 1, from, to);
    if (!world_same(w, s, subject_errno, o, errno)) {
        tally(LINK, ALIKE);
        return;
    }
    tally(LINK, CARRIED);
    if (world_below(w, 2)) {
        int gone = world_below(w, 2) ? from : to;
        world_path(w, 0, gone, path);
        s = unlink(path);
        subject_errno = errno;
        world_path(w, 1, gone, path);
        world_same(w, s, subject_errno, unlink(path), errno);
    }
    world_compare_name(w, from);
    world_compare_name(w, to);
}

/* As editors save: a new file takes the name of another that is open, which lives on without a name. */
void op_replace(struct world *w)
{
    int name = pick_name(w), results[2], errors[2];
    size_t length = world_length(w);
    char path[PATH_MAX], other[PATH_MAX + 8];
    unsigned char byte;
    world_fill(w, length);
    world_note(w, "%zu bytes in a new file, rename over %s", length, w->names[name]);
    for (int oracle = 0; oracle < 2; oracle++) {
        world_path(w, oracle, name, path);
        snprintf(other, sizeof other, "%s.new", path);
        int old = open(path, O_RDONLY), fd = open(other, O_WRONLY | O_CREAT | O_EXCL, 0600);
        if (fd < 0 || write(fd, w->buf, length) != (ssize_t)length)
            world_fail(w, "writing %s: %s", other, strerror(errno));
        results[oracle] = rename(other, path);
        errors[oracle] = errno;
        struct stat status;
        if (old >= 0 && (fstat(old, &status) != 0 || (status.st_size > 0 && read(old, &byte, 1) != 1)))
            world_fail(w, "what was replaced is lost: %s", strerror(errno));
        if (old >= 0)
            results[oracle] += 1 + (int)status.st_nlink;
        close(old);
        close(fd);
    }
    tally(REPLACE, world_same(w, results[0], errors[0], results[1], errors[1]) ? CARRIED : ALIKE);
    world_compare_name(w, name);
}
