/* Operations on names: stat, truncate, rename, unlink, access. */
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
