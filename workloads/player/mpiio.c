/* Requests of the mpi layer: real calls of MPI-IO. */
#define _GNU_SOURCE
#include <inttypes.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "play.h"

/* Requests of one open file that nobody has waited for, at most; then the oldest is waited for. */
enum { PENDING_MAX = 1024 };

/* Waiting for one: yielding so long, looking at the device so often, and at most so long. */
#define SECOND_NS ((uint64_t)1000000000)
#define SPIN_NS ((uint64_t)200000)
#define LOOK_NS SECOND_NS
#define WAIT_MAX_NS (600 * SECOND_NS)

static void open_file(struct player *player, const struct request *request, struct file *file)
{
    uint64_t mode = request->size ? request->size : MODE_READ | MODE_WRITE | MODE_CREATE;
    int amode = (mode & (MODE_READ | MODE_WRITE)) == (MODE_READ | MODE_WRITE) ? MPI_MODE_RDWR : mode & MODE_WRITE ? MPI_MODE_WRONLY : MPI_MODE_RDONLY;
    if (amode != MPI_MODE_RDONLY)
        amode |= (mode & MODE_CREATE ? MPI_MODE_CREATE : 0) | (mode & MODE_EXCLUSIVE ? MPI_MODE_EXCL : 0);
    amode |= mode & MODE_APPEND ? MPI_MODE_APPEND : 0;
    struct handle *handle = calloc(1, sizeof *handle);
    if (!handle)
        play_fail(player, "no memory for an open file");
    play_require(player, MPI_File_open(player->comms[request->node->comm], file->name, amode, MPI_INFO_NULL, &handle->file));
    handle->mode = (int)mode;
    handle->below = file->mpi;
    file->mpi = handle;
}

/* A read or write has ended: how many bytes it moved, and what they are. */
static void moved(struct player *player, struct file *file, struct handle *handle, const struct pending *of, MPI_Status *status, const unsigned char *buffer)
{
    MPI_Count got = 0;
    MPI_Get_elements_x(status, MPI_BYTE, &got);
    uint64_t bytes = got < 0 ? 0 : (uint64_t)got;
    if (!of->is_read && bytes != of->bytes)
        play_fail(player, "only %" PRIu64 " of %" PRIu64 " bytes were written; is the device full?", bytes, of->bytes);
    if (of->is_read)
        bytes_read(player, file, handle, of->position, buffer, of->bytes, bytes < of->bytes ? bytes : of->bytes);
    else
        bytes_written(player, file, handle, of->position, bytes);
    MPI_Offset at = 0;
    if (bytes != of->bytes && !handle->oldest && MPI_File_get_position(handle->file, &at) == MPI_SUCCESS)
        handle->position = (uint64_t)at;
}

static uint64_t free_bytes(const char *name)
{
    struct statfs system;
    /* By number: no part of the workload, so nothing for a trace. */
    return syscall(SYS_statfs, name, &system) == 0 ? (uint64_t)system.f_bavail * (uint64_t)system.f_bsize : UINT64_MAX;
}

void mpi_advance(struct player *player)
{
    int is_done;
    for (struct pending *one = player->collectives; one; one = one->after_all)
        play_require(player, MPI_Request_get_status(one->request, &is_done, MPI_STATUS_IGNORE));
}

/* MPI_Wait with an end: ROMIO goes on asking for a write that the device refused, and never says so. Without a status the
 * request is left for the path's own wait. */
static void wait_for(struct player *player, struct pending *pending, MPI_Status *status)
{
    uint64_t began = now_ns(), looked = began, bytes = pending->bytes;
    const char *name = pending->file->name;
    for (int is_done = 0;;) {
        play_require(player, status ? MPI_Test(&pending->request, &is_done, status)
                                    : MPI_Request_get_status(pending->request, &is_done, MPI_STATUS_IGNORE));
        uint64_t now = now_ns();
        if (is_done)
            return;
        mpi_advance(player);
        if (now - looked > LOOK_NS) {
            uint64_t left = free_bytes(name);
            looked = now;
            if (left < bytes)
                play_fail(player, "a nonblocking request of %" PRIu64 " bytes does not end, and the device has only %" PRIu64 " left; free some space, or play "
                                  "in another directory", bytes, left);
        }
        if (now - began > WAIT_MAX_NS)
            play_fail(player, "a nonblocking request of %" PRIu64 " bytes has not ended for %" PRIu64 " s; look at the device, and at what the other ranks do", bytes,
                      WAIT_MAX_NS / SECOND_NS);
        if (now - began > SPIN_NS)
            nanosleep(&(struct timespec){.tv_nsec = now - began > SECOND_NS / 100 ? 200000 : 20000}, NULL);
        else
            sched_yield();
    }
}

static void forget_collective(struct player *player, const struct pending *pending)
{
    if (pending->before_all)
        pending->before_all->after_all = pending->after_all;
    else if (player->collectives == pending)
        player->collectives = pending->after_all;
    if (pending->after_all)
        pending->after_all->before_all = pending->before_all;
}

/* Before a collective call: whoever is in a blocking one advances no other, and those of one open file come in one order only one by one. All ranks have
 * begun what is waited for, and advance it wherever they wait, so none waits for ever. NULL: all files. */
static void settle(struct player *player, const struct handle *handle)
{
    for (struct pending *one = player->collectives; one; one = one->after_all)
        if (!handle || one->handle == handle)
            wait_for(player, one, NULL);
}

static void wait_oldest(struct player *player, struct file *file, struct handle *handle)
{
    struct pending *pending = handle->oldest;
    MPI_Status status;
    if (!pending)
        return;
    wait_for(player, pending, &status);
    forget_collective(player, pending);
    handle->oldest = pending->next;
    if (!handle->oldest)
        handle->youngest = NULL;
    moved(player, file, handle, pending, &status, pending->buffer);
    free(pending->buffer);
    free(pending);
}

static void wait_all(struct player *player, struct file *file, struct handle *handle)
{
    while (handle->oldest)
        wait_oldest(player, file, handle);
}

static struct pending *append(struct player *player, struct file *file, struct handle *handle)
{
    unsigned count = 0;
    for (const struct pending *one = handle->oldest; one; one = one->next)
        count++;
    if (count >= PENDING_MAX)
        wait_oldest(player, file, handle);
    struct pending *pending = calloc(1, sizeof *pending);
    if (!pending)
        play_fail(player, "no memory for a nonblocking request");
    return pending;
}

static int start_read(unsigned op, MPI_File file, MPI_Offset at, unsigned char *to, int count, MPI_Status *status, MPI_Request *request)
{
    switch (op) {
    case OP_MPI_READ_AT: return MPI_File_read_at(file, at, to, count, MPI_BYTE, status);
    case OP_MPI_READ_AT_ALL: return MPI_File_read_at_all(file, at, to, count, MPI_BYTE, status);
    case OP_MPI_READ0:
    case OP_MPI_READ1: return MPI_File_read(file, to, count, MPI_BYTE, status);
    case OP_MPI_READ_ALL0:
    case OP_MPI_READ_ALL1: return MPI_File_read_all(file, to, count, MPI_BYTE, status);
    case OP_MPI_READ_SHARED: return MPI_File_read_shared(file, to, count, MPI_BYTE, status);
    case OP_MPI_READ_ORDERED: return MPI_File_read_ordered(file, to, count, MPI_BYTE, status);
    case OP_MPI_IREAD_AT0:
    case OP_MPI_IREAD_AT1: return MPI_File_iread_at(file, at, to, count, MPI_BYTE, request);
    case OP_MPI_IREAD_AT_ALL0:
    case OP_MPI_IREAD_AT_ALL1: return MPI_File_iread_at_all(file, at, to, count, MPI_BYTE, request);
    default: return MPI_File_iread(file, to, count, MPI_BYTE, request);
    }
}

static int start_write(unsigned op, MPI_File file, MPI_Offset at, const unsigned char *from, int count, MPI_Status *status, MPI_Request *request)
{
    switch (op) {
    case OP_MPI_WRITE_AT: return MPI_File_write_at(file, at, from, count, MPI_BYTE, status);
    case OP_MPI_WRITE_AT_ALL: return MPI_File_write_at_all(file, at, from, count, MPI_BYTE, status);
    case OP_MPI_WRITE0:
    case OP_MPI_WRITE1: return MPI_File_write(file, from, count, MPI_BYTE, status);
    case OP_MPI_WRITE_ALL0:
    case OP_MPI_WRITE_ALL1: return MPI_File_write_all(file, from, count, MPI_BYTE, status);
    case OP_MPI_WRITE_SHARED: return MPI_File_write_shared(file, from, count, MPI_BYTE, status);
    case OP_MPI_WRITE_ORDERED: return MPI_File_write_ordered(file, from, count, MPI_BYTE, status);
    case OP_MPI_IWRITE_AT0:
    case OP_MPI_IWRITE_AT1: return MPI_File_iwrite_at(file, at, from, count, MPI_BYTE, request);
    case OP_MPI_IWRITE_AT_ALL0:
    case OP_MPI_IWRITE_AT_ALL1: return MPI_File_iwrite_at_all(file, at, from, count, MPI_BYTE, request);
    default: return MPI_File_iwrite(file, from, count, MPI_BYTE, request);
    }
}

static void transfer(struct player *player, const struct request *request, struct file *file, struct handle *handle)
{
    unsigned op = request->node->op;
    const struct op_facts *facts = &op_facts[op];
    uint64_t position = facts->position == EXPLICIT ? view_position(handle, (uint64_t)request->offset) : handle->position;
    if (facts->position == SEEK) {
        position = view_position(handle, (uint64_t)request->offset);
        play_require(player, MPI_File_seek(handle->file, (MPI_Offset)position, MPI_SEEK_SET));
        handle->position = position;
    }
    if (handle->view && !view_reaches(handle, position, request->size))
        play_fail(player, "the request goes beyond 2^62 bytes of its file in the view");
    int is_read = facts->moves == READS, is_nonblocking = op >= OP_MPI_IREAD00 && op <= OP_MPI_IWRITE_AT_ALL1;
    struct pending now = {.file = file, .handle = handle, .position = position, .bytes = request->size, .is_read = is_read};
    if (is_nonblocking && facts->collective)
        settle(player, handle);
    struct pending *pending = is_nonblocking ? append(player, file, handle) : NULL;
    MPI_Request started = MPI_REQUEST_NULL;
    MPI_Status status;
    int code, count = (int)request->size;
    if (is_read) {
        unsigned char *to = player->read_buffer;
        if (pending && !(to = now.buffer = malloc(request->size + 1)))
            play_fail(player, "no memory for a request of %d bytes", count);
        code = start_read(op, handle->file, (MPI_Offset)position, to, count, &status, &started);
    } else {
        const unsigned char *from = bytes_to_write(player, file, handle, position, request->size, &now.buffer);
        code = start_write(op, handle->file, (MPI_Offset)position, from, count, &status, &started);
    }
    play_require(player, code);
    play_ended(player);
    if (facts->position == POINTER || facts->position == SEEK)
        handle->position = position + request->size;
    if (!pending) {
        moved(player, file, handle, &now, &status, player->read_buffer);
        free(now.buffer);
        return;
    }
    *pending = now;
    pending->request = started;
    if (handle->youngest)
        handle->youngest->next = pending;
    else
        handle->oldest = pending;
    handle->youngest = pending;
    if (facts->collective) {
        pending->after_all = player->collectives;
        if (pending->after_all)
            pending->after_all->before_all = pending;
        player->collectives = pending;
    }
    if (!facts->pending)
        wait_all(player, file, handle);
}

static void set_view(struct player *player, const struct request *request, struct handle *handle)
{
    const struct path_view *view = request->node->view ? &player->path.views[request->node->view - 1] : NULL;
    MPI_Datatype type = MPI_BYTE, pieces;
    if (view) {
        play_require(player, MPI_Type_create_hvector((int)view->pieces, (int)view->piece, (MPI_Aint)view->distance, MPI_BYTE, &pieces));
        play_require(player, MPI_Type_create_resized(pieces, 0, (MPI_Aint)view->tile, &type));
        play_require(player, MPI_Type_commit(&type));
        MPI_Type_free(&pieces);
    }
    play_require(player, MPI_File_set_view(handle->file, (MPI_Offset)request->offset, MPI_BYTE, type, "native", MPI_INFO_NULL));
    if (view)
        MPI_Type_free(&type);
    handle->view = view;
    handle->displacement = (uint64_t)request->offset;
    handle->position = 0;
}

static void close_file(struct player *player, struct file *file)
{
    struct handle *handle = file->mpi;
    wait_all(player, file, handle);
    play_require(player, MPI_File_close(&handle->file));
    file->mpi = handle->below;
    free(handle);
}

void mpi_finish(struct player *player, struct file *file)
{
    for (struct handle *handle = file->mpi; handle; handle = handle->below)
        wait_all(player, file, handle);
}

void mpi_play(struct player *player, const struct request *request, struct file *file)
{
    struct handle *handle = file->mpi;
    MPI_Offset size = (MPI_Offset)request->size;
    unsigned op = request->node->op;
    if (op_facts[op].collective && !(op >= OP_MPI_IREAD00 && op <= OP_MPI_IWRITE_AT_ALL1))
        settle(player, NULL);
    if (op == OP_MPI_OPEN) {
        open_file(player, request, file);
        return;
    }
    if (op == OP_MPI_DELETE) {
        known_forget(&file->known);
        player->counts.refused += MPI_File_delete(file->name, MPI_INFO_NULL) != MPI_SUCCESS;
        return;
    }
    if (!handle)
        play_fail(player, "the file is not open; the path must open it first");
    switch (op) {
    case OP_MPI_CLOSE: close_file(player, file); break;
    case OP_MPI_WAIT: wait_oldest(player, file, handle); break;
    case OP_MPI_SEEK:
        handle->position = view_position(handle, (uint64_t)request->offset);
        play_require(player, MPI_File_seek(handle->file, (MPI_Offset)handle->position, MPI_SEEK_SET));
        break;
    case OP_MPI_VIEW:
        wait_all(player, file, handle);
        set_view(player, request, handle);
        break;
    case OP_MPI_SYNC:
        wait_all(player, file, handle);
        play_require(player, MPI_File_sync(handle->file));
        break;
    case OP_MPI_SET_SIZE:
        wait_all(player, file, handle);
        known_forget(&file->known);
        play_require(player, MPI_File_set_size(handle->file, size));
        break;
    case OP_MPI_GET_SIZE: play_require(player, MPI_File_get_size(handle->file, &size)); break;
    case OP_MPI_PREALLOCATE: play_require(player, MPI_File_preallocate(handle->file, size)); break;
    case OP_MPI_ATOMICITY: play_require(player, MPI_File_set_atomicity(handle->file, request->size != 0)); break;
    default: transfer(player, request, file, handle);
    }
}
