/* The files of a path: their names below the directory, what the path does to them, and what must be there before it is played. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "content.h"
#include "play.h"

enum { CHUNK_BYTES = 1 << 20 };

static int is_own(const struct player *player, const struct path_file *is)
{
    return is->class == CLASS_PRIVATE || player->rank == 0;
}

/* The name with the rank in the place of {rank}. */
static char *name_of(const struct player *player, const struct path_file *is)
{
    const char *rest = player->path.names + is->name_at, *end = rest + is->name_bytes, *hole;
    size_t directory = strlen(player->directory), ranks = 0;
    for (const char *at = rest; (hole = memmem(at, (size_t)(end - at), "{rank}", 6)); at = hole + 6)
        ranks++;
    char *name = malloc(directory + is->name_bytes + 2 + ranks * 12), *to;
    if (!name)
        return NULL;
    to = stpcpy(stpcpy(name, player->directory), "/");
    while (is->class == CLASS_PRIVATE && (hole = memmem(rest, (size_t)(end - rest), "{rank}", 6))) {
        to = mempcpy(to, rest, (size_t)(hole - rest));
        to += sprintf(to, "%d", player->rank);
        rest = hole + 6;
    }
    to = mempcpy(to, rest, (size_t)(end - rest));
    *to = '\0';
    return name;
}

/* The mode of an open, of whichever ranks. */
static uint64_t modes(const struct path *path, const struct path_node *node)
{
    uint64_t all = node->table ? 0 : node->size;
    for (uint32_t rank = 0; node->table && rank < path->header->processes; rank++)
        all |= path_numbers_of(path, node, rank).size;
    return all;
}

static int shrinks(const struct path *path, const struct path_node *node)
{
    switch (node->op) {
    case OP_FTRUNCATE:
    case OP_TRUNCATE:
    case OP_UNLINK:
    case OP_RENAME:
    case OP_LINK:
    case OP_SYMLINK:
    case OP_MPI_SET_SIZE:
    case OP_MPI_DELETE: return 1;
    case OP_OPEN:
    case OP_MPI_OPEN: return (modes(path, node) & MODE_TRUNCATE) != 0;
    default: return 0;
    }
}

/* Whether an operation on a directory makes, takes or alters it: then it must not be the user's. */
static int alters_directory(const struct path_node *node)
{
    return node->op == OP_MKDIR || node->op == OP_RMDIR || node->op == OP_RENAME || node->op == OP_SETATTR;
}

/* Files that are renamed or linked to each other have one content. */
static uint32_t same_as(uint32_t *same, uint32_t file)
{
    while (same[file] != file)
        file = same[file] = same[same[file]];
    return file;
}

/* A name is given to what another one leads to. */
static void join(struct player *player, uint32_t from, uint32_t to, uint32_t *same, unsigned char *is_everywhere)
{
    uint32_t one = same_as(same, from), other = same_as(same, to);
    /* Names of private files differ by rank, content must not where all read it. */
    if (player->path.files[one].class == CLASS_PRIVATE) {
        uint32_t private = one;
        one = other;
        other = private;
    }
    is_everywhere[one] |= is_everywhere[other];
    same[other] = one;
    player->files[to].is_strict = 0;
    player->files[to].is_altered = 1;
    player->files[from].is_strict = 0;
}

static void note(struct player *player, const struct path_node *node, uint32_t *same, unsigned char *is_everywhere, size_t *largest)
{
    struct file *file = &player->files[node->link];
    const struct op_facts *facts = &op_facts[node->op];
    uint64_t size = path_numbers_of(&player->path, node, (uint32_t)player->rank).size;
    if (facts->position == SHARED || ((node->op == OP_OPEN || node->op == OP_MPI_OPEN) && modes(&player->path, node) & MODE_APPEND))
        is_everywhere[same_as(same, node->link)] = 1;
    if (facts->moves != NOTHING && size > *largest)
        *largest = size;
    if (facts->moves == READS && size > player->read_bytes_max)
        player->read_bytes_max = size;
    unsigned class = player->path.files[node->link].class;
    if (class != CLASS_PRIVATE && !(class == CLASS_ROOT && node->who == WHO_ROOT) && shrinks(&player->path, node))
        file->is_strict = 0;
    file->is_made |= node->op == OP_MKDIR;
    file->is_altered |= alters_directory(node);
    file->has_gaps |= node->view != 0;
    if (node->op != OP_RENAME && node->op != OP_LINK && node->op != OP_SYMLINK)
        return;
    for (uint32_t rank = 0; rank < (node->table ? player->path.header->processes : 1); rank++) {
        uint64_t other = path_numbers_of(&player->path, node, rank).size;
        if (other)
            join(player, node->link, (uint32_t)other - 1, same, is_everywhere);
    }
}

void files_begin(struct player *player, char *error)
{
    const struct path_header *head = player->path.header;
    uint32_t *same = malloc((head->files + 1u) * sizeof *same), dropped = 0;
    unsigned char *is_everywhere = calloc(head->files + 1u, 1);
    size_t largest = CHUNK_BYTES;
    player->files = calloc(head->files + 1u, sizeof *player->files);
    int is_short = !same || !is_everywhere || !player->files;
    for (uint32_t i = 0; !is_short && i < head->files; i++) {
        same[i] = i;
        player->files[i].is_strict = 1;
        is_short = !(player->files[i].name = name_of(player, &player->path.files[i]));
    }
    for (uint32_t i = 0; !is_short && i < head->nodes; i++) {
        if (player->path.nodes[i].is_request)
            note(player, &player->path.nodes[i], same, is_everywhere, &largest);
        if (i - dropped >= PATH_WINDOW) {
            path_drop(&player->path, dropped, i);
            dropped = i;
        }
    }
    size_t skipped = strlen(player->directory) + 1;
    for (uint32_t i = 0; !is_short && i < head->files; i++) {
        uint32_t one = same_as(same, i);
        player->files[i].key = is_everywhere[one] ? CONTENT_EVERYWHERE : content_key(player->files[one].name + skipped);
    }
    free(same);
    free(is_everywhere);
    if (!is_short)
        is_short = content_begin(largest) != 0 || !(player->read_buffer = malloc(player->read_bytes_max + 1));
    if (is_short)
        snprintf(error, PATH_ERROR_BYTES, "no memory for the files of the path and requests of %zu bytes", largest);
}

/* Links are not followed. By number where a trace may be written: no part of the workload. Else by name, since a store's files are links to all but its
 * library. */
static int look_at(const struct player *player, const char *name, struct stat *about)
{
    return player->is_prepared ? (int)syscall(SYS_newfstatat, AT_FDCWD, name, about, AT_SYMLINK_NOFOLLOW) : lstat(name, about);
}

/* The first part of a name below the directory that is a symbolic link, which may lead anywhere: its end; NULL: none is. */
static char *find_link(const struct player *player, char *name)
{
    struct stat about;
    for (char *end = name + strlen(player->directory) + 1; *end;) {
        end += strcspn(end + 1, "/") + 1;
        char was = *end;
        *end = '\0';
        int is_there = look_at(player, name, &about) == 0;
        *end = was;
        if (!is_there)
            return NULL;
        if (S_ISLNK(about.st_mode))
            return end;
    }
    return NULL;
}

int files_check(struct player *player, const char *path_name, int may_exist, char *error)
{
    struct stat about, played;
    if (player->is_prepared && getenv("STRIPEWISE_STORE"))
        return 0;
    int is_known = syscall(SYS_newfstatat, AT_FDCWD, path_name, &played, 0) == 0;
    for (uint32_t i = 0; i < player->path.header->files; i++) {
        const struct path_file *is = &player->path.files[i];
        const struct file *file = &player->files[i];
        if (!is_own(player, is))
            continue;
        const char *link = find_link(player, file->name);
        if (link) {
            snprintf(error, PATH_ERROR_BYTES, "%.*s is a link, which may lead to another directory; remove it, or give another directory",
                     (int)(link - file->name < 300 ? link - file->name : 300), file->name);
            return -1;
        }
        if (look_at(player, file->name, &about) != 0)
            continue;
        if (is_known && about.st_dev == played.st_dev && about.st_ino == played.st_ino)
            snprintf(error, PATH_ERROR_BYTES, "%.300s is the path itself; give another directory", file->name);
        else if (is->flags & FILE_DIRECTORY && !S_ISDIR(about.st_mode))
            snprintf(error, PATH_ERROR_BYTES, "%.300s is no directory, as the path has it; remove it, or give another directory", file->name);
        else if (!may_exist && (!(is->flags & FILE_DIRECTORY) || file->is_altered))
            snprintf(error, PATH_ERROR_BYTES, "%.300s is there already; give --replace to remove it first, or another directory", file->name);
        else
            continue;
        return -1;
    }
    return 0;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Makes the directories above a file that no mkdir of the path makes. */
static int make_parents(const struct player *player, char *name, const char **made, size_t made_count)
{
    for (char *slash = strchr(name + strlen(player->directory) + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        const char *key = name;
        int is_made = made_count && bsearch(&key, made, made_count, sizeof *made, by_name) != NULL;
        int failed = !is_made && mkdir(name, 0777) != 0 && errno != EEXIST;
        *slash = '/';
        if (failed)
            return -1;
        if (is_made)
            return 0;
    }
    return 0;
}

static int fill(struct file *file, uint64_t bytes)
{
    int fd = open(file->name, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0)
        return -1;
    for (uint64_t at = 0; at < bytes;) {
        uint64_t length = bytes - at < CHUNK_BYTES ? bytes - at : CHUNK_BYTES;
        ssize_t done = pwrite(fd, content_at(file->key, at), length, (off_t)at);
        if (done <= 0) {
            int failed = done < 0 ? errno : ENOSPC;
            close(fd);
            errno = failed;
            return -1;
        }
        at += (uint64_t)done;
    }
    return close(fd);
}

static int is_below_first(const void *a, const void *b)
{
    const struct file *const *one = a, *const *other = b;
    return strcmp((*other)->name, (*one)->name);
}

/* What is there of the path's names, apart from directories that it leaves as they are. A directory with anything else in it is the user's, and an error. */
static int remove_old(struct player *player, char *error)
{
    const struct path *path = &player->path;
    uint32_t files = path->header->files, altered = 0;
    const struct file **directories = malloc((files + 1u) * sizeof(const struct file *));
    struct stat about;
    for (uint32_t i = 0; i < files; i++) {
        if (!is_own(player, &path->files[i]))
            continue;
        if (!(path->files[i].flags & FILE_DIRECTORY))
            (void)unlink(player->files[i].name);
        if (directories && player->files[i].is_altered)
            directories[altered++] = &player->files[i];
    }
    if (directories)
        qsort(directories, altered, sizeof *directories, is_below_first);
    /* Directories of one rank may be in those of all, and files of any rank in both. */
    for (int is_shared = 0; is_shared <= 1; is_shared++) {
        MPI_Barrier(MPI_COMM_WORLD);
        for (uint32_t i = 0; directories && i < altered; i++)
            if ((path->files[directories[i] - player->files].class != CLASS_PRIVATE) == is_shared)
                (void)rmdir(directories[i]->name);
    }
    for (uint32_t i = 0; directories && i < altered && !error[0]; i++)
        if (look_at(player, directories[i]->name, &about) == 0)
            snprintf(error, PATH_ERROR_BYTES, "%.300s cannot be removed, there is something else in it; remove it, or give another directory",
                     directories[i]->name);
    if (!directories)
        snprintf(error, PATH_ERROR_BYTES, "no memory to remove files with");
    free(directories);
    return error[0] ? -1 : 0;
}

int files_prepare(struct player *player, int replace, char *error)
{
    uint32_t files = player->path.header->files;
    const char **made = malloc((files + 1u) * sizeof *made);
    size_t made_count = 0;
    int status = made ? 0 : -1;
    if (!made)
        snprintf(error, PATH_ERROR_BYTES, "no memory to prepare files with");
    if (replace && remove_old(player, error) != 0)
        status = -1;
    for (uint32_t i = 0; made && i < files; i++)
        if (player->files[i].is_made && !(player->path.files[i].flags & FILE_PRESENT))
            made[made_count++] = player->files[i].name;
    if (made)
        qsort(made, made_count, sizeof *made, by_name);
    for (uint32_t i = 0; status == 0 && i < files; i++) {
        const struct path_file *is = &player->path.files[i];
        struct file *file = &player->files[i];
        if (!is_own(player, is))
            continue;
        status = make_parents(player, file->name, made, made_count);
        if (status == 0 && is->flags & FILE_DIRECTORY && is->flags & FILE_PRESENT)
            status = mkdir(file->name, 0777) != 0 && errno != EEXIST ? -1 : 0;
        else if (status == 0 && !(is->flags & FILE_DIRECTORY) && (is->bytes || is->flags & FILE_PRESENT))
            status = fill(file, is->bytes);
        if (status != 0)
            snprintf(error, PATH_ERROR_BYTES, "%.300s cannot be prepared (%s)", file->name, strerror(errno));
    }
    free(made);
    return status;
}
