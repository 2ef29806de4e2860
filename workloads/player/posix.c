/* Requests of the posix layer: real calls on descriptors and names. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "play.h"

/* Outside of sessions a call may be refused, as in the run that the path was made from (a stat of what is not there); a device may not. */
static void allow(struct player *player, int result)
{
    int error = errno;
    play_ended(player);
    if (result >= 0)
        return;
    if (error == ENOSPC || error == EDQUOT || error == EIO || error == EROFS)
        play_fail_errno(player, error);
    player->counts.refused++;
}

static void need(struct player *player, long result)
{
    int error = errno;
    play_ended(player);
    if (result < 0)
        play_fail_errno(player, error);
}

static struct handle *push(struct player *player, struct handle **top)
{
    struct handle *handle = calloc(1, sizeof *handle);
    if (!handle)
        play_fail(player, "no memory for an open file");
    handle->below = *top;
    handle->fd = -1;
    return *top = handle;
}

static void open_file(struct player *player, struct file *file, uint64_t mode)
{
    int flags = O_CLOEXEC;
    if (mode == 0)
        mode = MODE_READ | MODE_WRITE | MODE_CREATE;
    flags |= (mode & (MODE_READ | MODE_WRITE)) == (MODE_READ | MODE_WRITE) ? O_RDWR : mode & MODE_WRITE ? O_WRONLY : O_RDONLY;
    flags |= (mode & MODE_CREATE ? O_CREAT : 0) | (mode & MODE_EXCLUSIVE ? O_EXCL : 0) | (mode & MODE_TRUNCATE ? O_TRUNC : 0);
    flags |= mode & MODE_APPEND ? O_APPEND : 0;
    int fd = open(file->name, flags, 0666);
    need(player, fd);
    if (mode & MODE_TRUNCATE)
        known_forget(&file->known);
    struct handle *handle = push(player, &file->posix);
    handle->fd = fd;
    handle->mode = (int)mode;
}

static void unmap(struct handle *handle)
{
    struct mapping *mapping = handle->mappings;
    if (!mapping)
        return;
    handle->mappings = mapping->below;
    munmap(mapping->base, mapping->bytes);
    free(mapping);
}

static void close_file(struct player *player, struct file *file)
{
    struct handle *handle = file->posix;
    while (handle->mappings)
        unmap(handle);
    int result = handle->directory ? closedir(handle->directory) : close(handle->fd);
    need(player, result);
    file->posix = handle->below;
    free(handle);
}

static void read_file(struct player *player, struct file *file, const struct request *request, int is_explicit)
{
    struct handle *handle = file->posix;
    uint64_t at = is_explicit ? (uint64_t)request->offset : handle->position;
    unsigned char *to = player->read_buffer;
    /* One call, as in the run that the path was made from, also where the file ends before. */
    ssize_t got = is_explicit ? pread(handle->fd, to, request->size, (off_t)at) : read(handle->fd, to, request->size);
    if (got < 0)
        play_fail_errno(player, errno);
    if (!is_explicit)
        handle->position = at + (uint64_t)got;
    bytes_read(player, file, handle, at, to, request->size, (uint64_t)got);
}

static void write_file(struct player *player, struct file *file, const struct request *request, int is_explicit)
{
    struct handle *handle = file->posix;
    unsigned char *made;
    uint64_t at = is_explicit ? (uint64_t)request->offset : handle->position, done = 0;
    const unsigned char *from = bytes_to_write(player, file, handle, at, request->size, &made);
    do {
        ssize_t put = is_explicit ? pwrite(handle->fd, from + done, request->size - done, (off_t)(at + done))
                                  : write(handle->fd, from + done, request->size - done);
        if (put < 0 || (put == 0 && request->size))
            play_fail_errno(player, put < 0 ? errno : ENOSPC);
        done += (uint64_t)put;
    } while (done < request->size);
    if (!is_explicit)
        handle->position = at + done;
    bytes_written(player, file, handle, at, done);
}

static void seek(struct player *player, struct handle *handle, int64_t offset)
{
    if (lseek(handle->fd, (off_t)offset, SEEK_SET) < 0)
        play_fail_errno(player, errno);
    handle->position = (uint64_t)offset;
}

static void lock(struct player *player, struct handle *handle, const struct request *request)
{
    struct flock is = {.l_whence = SEEK_SET, .l_start = (off_t)request->offset, .l_len = (off_t)request->size};
    is.l_type = handle->locks++ % 2 ? F_UNLCK : handle->mode & MODE_WRITE ? F_WRLCK : F_RDLCK;
    allow(player, fcntl(handle->fd, F_SETLK, &is));
}

static void map(struct player *player, struct handle *handle, const struct request *request)
{
    struct mapping *mapping = malloc(sizeof *mapping);
    size_t bytes = request->size ? (size_t)request->size : 1;
    off_t page = (off_t)request->offset / 4096 * 4096;
    if (!mapping)
        play_fail(player, "no memory for a mapping");
    void *base = mmap(NULL, bytes, handle->mode & MODE_READ ? PROT_READ : PROT_NONE, MAP_SHARED, handle->fd, page);
    allow(player, base == MAP_FAILED ? -1 : 0);
    if (base == MAP_FAILED) {
        free(mapping);
        return;
    }
    *mapping = (struct mapping){handle->mappings, base, bytes};
    handle->mappings = mapping;
}

static void open_directory(struct player *player, struct file *file, int is_alone)
{
    DIR *directory = opendir(file->name);
    if (is_alone) {
        allow(player, directory ? closedir(directory) : -1);
        return;
    }
    need(player, directory ? 0 : -1);
    struct handle *handle = push(player, &file->posix);
    handle->directory = directory;
    handle->fd = dirfd(directory);
}

static void inside(struct player *player, const struct request *request, struct file *file)
{
    struct handle *handle = file->posix;
    struct stat about;
    unsigned op = request->node->op;
    if (!handle)
        play_fail(player, "the file is not open; the path must open it first");
    int is_alike = op == OP_CLOSE || op == OP_FSTAT || op == OP_FCNTL || op == OP_FSYNC || op == OP_FDATASYNC;
    if (handle->directory && op != OP_READDIR && !is_alike)
        play_fail(player, "the file is open as a directory");
    switch (op) {
    case OP_CLOSE: close_file(player, file); break;
    case OP_READ1: seek(player, handle, request->offset); /* fall through */
    case OP_READ0: read_file(player, file, request, 0); break;
    case OP_WRITE1: seek(player, handle, request->offset); /* fall through */
    case OP_WRITE0: write_file(player, file, request, 0); break;
    case OP_PREAD: read_file(player, file, request, 1); break;
    case OP_PWRITE: write_file(player, file, request, 1); break;
    case OP_LSEEK: seek(player, handle, request->offset); break;
    case OP_FSYNC: need(player, fsync(handle->fd)); break;
    case OP_FDATASYNC: need(player, fdatasync(handle->fd)); break;
    case OP_FTRUNCATE:
        known_forget(&file->known);
        need(player, ftruncate(handle->fd, (off_t)request->size));
        break;
    case OP_FALLOCATE: allow(player, fallocate(handle->fd, 0, (off_t)request->offset, request->size ? (off_t)request->size : 1)); break;
    case OP_FSTAT: need(player, fstat(handle->fd, &about)); break;
    case OP_FCNTL: need(player, fcntl(handle->fd, F_GETFL)); break;
    case OP_LOCK: lock(player, handle, request); break;
    case OP_MMAP: map(player, handle, request); break;
    case OP_MUNMAP: unmap(handle); break;
    case OP_READDIR:
        if (!handle->directory)
            play_fail(player, "the file is not open as a directory");
        if (!readdir(handle->directory))
            rewinddir(handle->directory);
        break;
    case OP_ADVISE: allow(player, -posix_fadvise(handle->fd, (off_t)request->offset, (off_t)request->size, POSIX_FADV_NORMAL)); break;
    default: play_fail(player, "the player does not know this operation");
    }
}

enum { LINK_BYTES = 4096 };

/* A link holds its target's whole name: a relative one that is renamed to a name with fewer directories would lead out of the directory. */
static void link_text(struct player *player, const char *target, char *text)
{
    size_t skipped = strlen(player->directory);
    char *whole = realpath(player->directory, NULL);
    if (!whole)
        play_fail_errno(player, errno);
    if (snprintf(text, LINK_BYTES, "%s%s", whole, target + skipped) >= LINK_BYTES)
        play_fail(player, "the name is too long for a link's target");
    free(whole);
}

void posix_play(struct player *player, const struct request *request, struct file *file)
{
    const char *name = file->name, *other = request->size && request->size <= player->path.header->files ? player->files[request->size - 1].name : name;
    struct stat about;
    struct statfs system;
    char target[LINK_BYTES];
    switch (request->node->op) {
    case OP_OPEN: open_file(player, file, request->size); return;
    case OP_OPENDIR: open_directory(player, file, request->node->flags & FLAG_ALONE); return;
    case OP_STAT: allow(player, stat(name, &about)); return;
    case OP_ACCESS: allow(player, access(name, R_OK)); return;
    case OP_STATFS: allow(player, statfs(name, &system)); return;
    case OP_READLINK: allow(player, (int)readlink(name, target, sizeof target)); return;
    case OP_MKDIR: allow(player, mkdir(name, 0777)); return;
    case OP_RMDIR: allow(player, rmdir(name)); return;
    case OP_MKNOD: allow(player, mknod(name, S_IFREG | 0666, 0)); return;
    case OP_SETATTR: allow(player, chmod(name, player->path.files[request->node->link].flags & FILE_DIRECTORY ? 0755 : 0644)); return;
    default: break;
    }
    switch (request->node->op) {
    case OP_UNLINK:
        known_forget(&file->known);
        allow(player, unlink(name));
        return;
    case OP_TRUNCATE:
        known_forget(&file->known);
        allow(player, truncate(name, (off_t)request->size));
        return;
    case OP_RENAME:
        known_forget(&file->known);
        allow(player, rename(name, other));
        return;
    case OP_LINK: allow(player, link(name, other)); return;
    case OP_SYMLINK:
        link_text(player, name, target);
        allow(player, symlink(target, other));
        return;
    default: inside(player, request, file);
    }
}
