/* Bytes that go to files and come from them, piece by piece of a view: made, remembered, compared. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "content.h"
#include "play.h"

uint64_t view_position(const struct handle *handle, uint64_t offset)
{
    const struct path_view *view = handle->view;
    uint64_t from = offset > handle->displacement ? offset - handle->displacement : 0;
    if (!view)
        return from;
    uint64_t rest = from % view->tile, piece = rest / view->distance;
    uint64_t whole = from / view->tile * view->pieces;
    if (piece >= view->pieces)
        return (whole + view->pieces) * view->piece;
    uint64_t within = rest - piece * view->distance;
    return (whole + piece) * view->piece + (within < view->piece ? within : view->piece);
}

uint64_t view_offset(const struct handle *handle, uint64_t position)
{
    const struct path_view *view = handle->view;
    if (!view)
        return handle->displacement + position;
    uint64_t piece = position / view->piece;
    return handle->displacement + piece / view->pieces * view->tile + piece % view->pieces * view->distance + position % view->piece;
}

int view_reaches(const struct handle *handle, uint64_t position, uint64_t bytes)
{
    const struct path_view *view = handle->view;
    unsigned __int128 tiles = ((unsigned __int128)position + bytes) / (view->piece * view->pieces) + 1;
    return handle->displacement + tiles * view->tile <= PATH_REACH_MAX;
}

/* Bytes from a place in the view on that lie together in the file. */
static uint64_t together(const struct handle *handle, uint64_t position, uint64_t bytes)
{
    if (!handle->view)
        return bytes;
    uint64_t left = handle->view->piece - position % handle->view->piece;
    return left < bytes ? left : bytes;
}

const unsigned char *bytes_to_write(struct player *player, struct file *file, const struct handle *handle, uint64_t position, uint64_t bytes,
                                    unsigned char **made)
{
    *made = NULL;
    if (file->key == CONTENT_EVERYWHERE || together(handle, position, bytes) == bytes)
        return content_at(file->key, view_offset(handle, position));
    unsigned char *buffer = malloc(bytes);
    if (!buffer)
        play_fail(player, "no memory for a request of %" PRIu64 " bytes", bytes);
    for (uint64_t at = 0; at < bytes;) {
        uint64_t length = together(handle, position + at, bytes - at);
        memcpy(buffer + at, content_at(file->key, view_offset(handle, position + at)), length);
        at += length;
    }
    return *made = buffer;
}

void bytes_written(struct player *player, struct file *file, const struct handle *handle, uint64_t position, uint64_t bytes)
{
    play_ended(player);
    player->counts.bytes_written += bytes;
    if (file->key == CONTENT_EVERYWHERE || !file->is_strict)
        return;
    for (uint64_t at = 0; at < bytes;) {
        uint64_t length = together(handle, position + at, bytes - at), offset = view_offset(handle, position + at);
        known_add(&file->known, offset, offset + length);
        at += length;
    }
}

static void note_wrong(struct player *player, const struct file *file, uint64_t offset, uint64_t bytes)
{
    if (bytes && !player->first_wrong[0])
        snprintf(player->first_wrong, sizeof player->first_wrong, "rank %d, %.160s at offset %" PRIu64, player->rank, file->name, offset);
    player->counts.wrong_bytes += bytes;
}

/* Bytes that lie together in the file; those that are known to be written must be there, whatever is around them. */
static void compare(struct player *player, const struct file *file, uint64_t offset, const unsigned char *found, uint64_t bytes)
{
    struct counts *counts = &player->counts;
    for (uint64_t at = offset, end; at < offset + bytes; at = end) {
        int is_known = known_at(&file->known, at, offset + bytes, &end);
        enum content_rule rule = is_known ? CONTENT_ONLY : file->has_gaps ? CONTENT_OR_ANYTHING : CONTENT_OR_ZEROS;
        struct content_found result = content_compare(file->key, at, found + (at - offset), end - at, rule);
        counts->verified_bytes += result.right;
        counts->unwritten_bytes += result.unwritten;
        note_wrong(player, file, result.first_wrong, result.wrong);
    }
}

/* Bytes that were asked for and did not come: the file ended. Where they are known to be written, they are lost. */
static void miss(struct player *player, const struct file *file, uint64_t offset, uint64_t bytes)
{
    for (uint64_t at = offset, end; at < offset + bytes; at = end)
        if (known_at(&file->known, at, offset + bytes, &end))
            note_wrong(player, file, at, end - at);
}

void bytes_read(struct player *player, struct file *file, const struct handle *handle, uint64_t position, const unsigned char *buffer, uint64_t asked,
                uint64_t bytes)
{
    play_ended(player);
    player->counts.bytes_read += bytes;
    player->counts.short_bytes += asked - bytes;
    for (uint64_t at = 0, length; at < bytes; at += length) {
        length = together(handle, position + at, bytes - at);
        compare(player, file, view_offset(handle, position + at), buffer + at, length);
    }
    for (uint64_t at = bytes, length; at < asked && file->known.count; at += length) {
        length = together(handle, position + at, asked - at);
        miss(player, file, view_offset(handle, position + at), length);
    }
}
