/* Mapping and checking a path: see path.h. */
#define _GNU_SOURCE
#include "path.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "ops.h"

_Static_assert(sizeof(struct path_header) == 128 && sizeof(struct path_node) == 64 && sizeof(struct path_file) == 32, "as in the file");
_Static_assert(sizeof(struct path_group) == 16 && sizeof(struct path_distribution) == 16 && sizeof(struct path_view) == 32, "as in the file");

enum { PAGE_BYTES = 4096 };
/* A path of so many bytes is copied, so that nobody changes it behind the checks; less than what path_drop gives back at a time. */
enum { COPIED_MAX = PATH_WINDOW * sizeof(struct path_node) };
static const uint64_t SLACK_MAX_NS = (uint64_t)1 << 62;

static int wrong(char *error, const char *name, const char *form, ...)
{
    va_list arguments;
    int used = snprintf(error, PATH_ERROR_BYTES, "%.200s: ", name);
    va_start(arguments, form);
    vsnprintf(error + used, PATH_ERROR_BYTES - (size_t)used, form, arguments);
    va_end(arguments);
    return -1;
}

/* The file's bytes in memory of our own; -1 where it has become shorter. */
static long copy_file(int fd, size_t bytes)
{
    long copied = syscall(SYS_mmap, NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (size_t done = 0; copied != -1 && done < bytes;) {
        long got = syscall(SYS_read, fd, (char *)copied + done, bytes - done);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0) {
            syscall(SYS_munmap, copied, bytes);
            return -1;
        }
        done += (size_t)got;
    }
    return copied;
}

/* By number: what maps the path is no part of the workload, and must not stand in a trace of it. */
static const void *map_file(const char *name, size_t *bytes, char *error)
{
    struct stat about;
    int fd = (int)syscall(SYS_openat, AT_FDCWD, name, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || syscall(SYS_fstat, fd, &about) != 0 || !S_ISREG(about.st_mode)) {
        wrong(error, name, "cannot be read (%s); give a path that 'stripewise synth' wrote", fd < 0 ? strerror(errno) : "not a file");
        if (fd >= 0)
            syscall(SYS_close, fd);
        return NULL;
    }
    *bytes = (size_t)about.st_size;
    long mapped = *bytes < sizeof(struct path_header) ? -1
                  : *bytes <= COPIED_MAX             ? copy_file(fd, *bytes)
                                                     : syscall(SYS_mmap, NULL, *bytes, PROT_READ, MAP_PRIVATE, fd, 0);
    syscall(SYS_close, fd);
    if (mapped == -1) {
        wrong(error, name, *bytes < sizeof(struct path_header) ? "this is no workload path, or is cut" : "cannot be mapped");
        return NULL;
    }
    return (const void *)mapped;
}

struct layout {
    uint64_t at;
    int overflows;
};

static uint64_t place(struct layout *layout, uint64_t count, uint64_t bytes)
{
    uint64_t at = layout->at, length = 0;
    layout->overflows |= __builtin_mul_overflow(count, bytes, &length) || __builtin_add_overflow(at, length, &layout->at);
    return at;
}

static int find_tables(struct path *path, const char *name, char *error)
{
    const struct path_header *head = path->header;
    const char *base = (const char *)head;
    struct layout layout = {sizeof *head, 0};
    uint64_t per_rank = head->processes;
    uint64_t nodes = place(&layout, head->nodes, sizeof *path->nodes), files = place(&layout, head->files, sizeof *path->files);
    uint64_t comms = place(&layout, head->comms, sizeof *path->comms), groups = place(&layout, head->groups, sizeof *path->groups);
    uint64_t distributions = place(&layout, head->distributions, sizeof *path->distributions), words = place(&layout, head->words, 8);
    uint64_t views = place(&layout, head->views, sizeof *path->views);
    uint64_t numbers = place(&layout, per_rank * head->numbers, sizeof *path->numbers), names = place(&layout, head->names, 1);
    if (layout.overflows || layout.at != head->file_bytes || layout.at != path->mapped_bytes)
        return wrong(error, name, "the file has %zu bytes where its header says %" PRIu64 "; make the path again with 'stripewise synth'", path->mapped_bytes,
                     layout.at);
    path->nodes = (const void *)(base + nodes);
    path->files = (const void *)(base + files);
    path->comms = (const void *)(base + comms);
    path->groups = (const void *)(base + groups);
    path->distributions = (const void *)(base + distributions);
    path->words = (const void *)(base + words);
    path->views = (const void *)(base + views);
    path->numbers = (const void *)(base + numbers);
    path->names = base + names;
    return 0;
}

/* Bytes of the character that begins here; 0: this is no UTF-8. */
static uint32_t character_bytes(const unsigned char *at, uint32_t left)
{
    uint32_t bytes = at[0] < 0x80 ? 1 : at[0] >= 0xc2 && at[0] < 0xe0 ? 2 : at[0] >= 0xe0 && at[0] < 0xf0 ? 3 : at[0] >= 0xf0 && at[0] < 0xf5 ? 4 : 0;
    if (bytes == 0 || bytes > left)
        return 0;
    for (uint32_t i = 1; i < bytes; i++)
        if ((at[i] & 0xc0) != 0x80)
            return 0;
    /* Longer than need be, surrogates, beyond the last character. */
    if ((at[0] == 0xe0 && at[1] < 0xa0) || (at[0] == 0xed && at[1] > 0x9f) || (at[0] == 0xf0 && at[1] < 0x90) || (at[0] == 0xf4 && at[1] > 0x8f))
        return 0;
    return bytes;
}

static int is_utf8(const char *name, uint32_t bytes)
{
    for (uint32_t i = 0, length; i < bytes; i += length)
        if (!(length = character_bytes((const unsigned char *)name + i, bytes - i)))
            return 0;
    return 1;
}

static int name_stays_below(const char *name, uint32_t bytes)
{
    uint32_t part = 0;
    if (bytes == 0 || bytes >= PAGE_BYTES)
        return 0;
    for (uint32_t i = 0; i <= bytes; i++) {
        if (i < bytes && name[i] == '\0')
            return 0;
        if (i < bytes && name[i] != '/')
            continue;
        uint32_t length = i - part;
        if (length == 0 || (length == 1 && name[part] == '.') || (length == 2 && name[part] == '.' && name[part + 1] == '.'))
            return 0;
        part = i + 1;
    }
    return 1;
}

static const char *file_fault(const struct path *path, const struct path_file *file)
{
    const char *name = path->names + file->name_at;
    if (file->name_at > path->header->names || file->name_bytes > path->header->names - file->name_at || !name_stays_below(name, file->name_bytes)
        || !is_utf8(name, file->name_bytes))
        return "has no sound name";
    if (file->class > CLASS_PRIVATE || file->flags > (FILE_PRESENT | FILE_DIRECTORY))
        return "is of no class";
    if (file->class == CLASS_PRIVATE && !memmem(name, file->name_bytes, "{rank}", 6))
        return "is private, but its name has no {rank}";
    if (file->bytes > INT64_MAX || (file->flags & FILE_DIRECTORY && file->bytes))
        return "cannot have so many bytes before the run";
    return NULL;
}

static const char *distribution_fault(const struct path *path, const struct path_distribution *distribution)
{
    uint64_t width = distribution->kind == 0 ? 2 : 1, have = path->header->words, sum = 0, last = 0;
    if (distribution->kind > 1 || distribution->count == 0 || distribution->first > have || distribution->count * width > have - distribution->first)
        return "has no sound numbers";
    const uint64_t *own = path->words + distribution->first;
    for (uint32_t i = 0; i < distribution->count; i++) {
        uint64_t value = own[i * width];
        if (value > SLACK_MAX_NS || (width == 1 && value < last) || (width == 2 && own[2 * i + 1] <= sum))
            return "has no sound numbers";
        last = value;
        sum = width == 2 ? own[2 * i + 1] : 0;
    }
    return NULL;
}

static int view_is_sound(const struct path_view *view)
{
    uint64_t spanned, bytes;
    if (view->piece < 1 || view->piece > INT32_MAX || view->pieces < 1 || view->pieces > INT32_MAX || view->distance < view->piece || view->tile > INT64_MAX)
        return 0;
    if (__builtin_mul_overflow(view->pieces - 1, view->distance, &spanned) || __builtin_add_overflow(spanned, view->piece, &spanned))
        return 0;
    return spanned <= view->tile && !__builtin_mul_overflow(view->piece, view->pieces, &bytes) && bytes <= INT32_MAX;
}

static int check_tables(const struct path *path, const char *name, char *error)
{
    const struct path_header *head = path->header;
    const char *fault;
    if (head->processes > PATH_PROCESSES_MAX || head->groups > 256 - PATH_FIRST_GROUP || head->comms > UINT16_MAX || head->views > UINT16_MAX - 1)
        return wrong(error, name, "has more processes, groups, communicators or views than a path can have");
    if (head->numbers && !head->processes)
        return wrong(error, name, "has numbers for each rank, but is for any number of processes");
    for (uint32_t i = 0; i < head->files; i++)
        if ((fault = file_fault(path, &path->files[i])))
            return wrong(error, name, "file %u %s", i, fault);
    for (uint32_t i = 0; i < head->comms; i++)
        if (path->comms[i].kind > COMM_CONGRUENT || (path->comms[i].kind >= COMM_BLOCKS && path->comms[i].ranks == 0))
            return wrong(error, name, "communicator %u is of no kind", i);
    for (uint32_t i = 0; i < head->groups; i++)
        if (path->groups[i].kind > 1 || (path->groups[i].kind == 1 && path->groups[i].a == 0))
            return wrong(error, name, "group %u is of no kind", i);
    for (uint32_t i = 0; i < head->distributions; i++)
        if ((fault = distribution_fault(path, &path->distributions[i])))
            return wrong(error, name, "distribution %u %s", i, fault);
    for (uint32_t i = 0; i < head->views; i++)
        if (!view_is_sound(&path->views[i]))
            return wrong(error, name, "the pieces of view %u overlap, or there are none", i);
    return 0;
}

static uint64_t size_limit(const struct path *path, unsigned op)
{
    switch (op) {
    case OP_OPEN:
    case OP_MPI_OPEN: return MODE_KNOWN;
    case OP_RENAME:
    case OP_LINK:
    case OP_SYMLINK: return path->header->files;
    case OP_FTRUNCATE:
    case OP_TRUNCATE:
    case OP_MPI_SET_SIZE:
    case OP_MPI_PREALLOCATE:
    case OP_FALLOCATE:
    case OP_MMAP:
    case OP_LOCK:
    case OP_ADVISE: return INT64_MAX;
    default: return op_facts[op].moves != NOTHING ? INT32_MAX : UINT64_MAX;
    }
}

static int is_on_directories(unsigned op)
{
    switch (op) {
    case OP_MKDIR:
    case OP_RMDIR:
    case OP_OPENDIR:
    case OP_READDIR:
    case OP_CLOSE:
    case OP_FSTAT:
    case OP_FCNTL:
    case OP_FSYNC:
    case OP_FDATASYNC:
    case OP_STAT:
    case OP_ACCESS:
    case OP_STATFS:
    case OP_READLINK:
    case OP_SETATTR: return 1;
    default: return 0;
    }
}

static int names_directory(const struct path *path, const struct path_node *node)
{
    int names = node->size && path->files[node->size - 1].flags & FILE_DIRECTORY;
    for (uint32_t rank = 0; node->table && rank < path->header->processes; rank++) {
        uint64_t size = path_numbers_of(path, node, rank).size;
        names |= size && path->files[size - 1].flags & FILE_DIRECTORY;
    }
    return names;
}

/* What is marked as a directory is protected as one, so nothing may treat it as a file. Only a directory that the path makes may be renamed. */
static const char *use_fault(const struct path *path, const struct path_node *node, unsigned char *is_made)
{
    if (!node->is_request)
        return NULL;
    if (path->files[node->link].flags & FILE_DIRECTORY) {
        if (node->op == OP_RENAME)
            return is_made[node->link] ? NULL : "renames a directory that the path does not make";
        is_made[node->link] |= node->op == OP_MKDIR;
        return is_on_directories(node->op) ? NULL : "is an operation on files, but its file is marked as a directory";
    }
    int takes_two = node->op == OP_RENAME || node->op == OP_LINK || node->op == OP_SYMLINK;
    return takes_two && names_directory(path, node) ? "gives a file the name of a directory" : NULL;
}

/* The largest request of MPI that a node is for any rank. */
static uint64_t largest_of(const struct path *path, const struct path_node *node)
{
    if (!node->is_request || op_facts[node->op].layer != MPI || op_facts[node->op].moves == NOTHING)
        return 0;
    uint64_t largest = node->size;
    for (uint32_t rank = 0; node->table && rank < path->header->processes; rank++) {
        uint64_t size = path_numbers_of(path, node, rank).size;
        largest = size > largest ? size : largest;
    }
    return largest;
}

static int check_reach(const struct path *path, uint64_t bytes, const char *name, char *error)
{
    for (uint32_t i = 0; i < path->header->views; i++) {
        const struct path_view *view = &path->views[i];
        uint64_t reach;
        if (__builtin_mul_overflow(view->tile, bytes / (view->piece * view->pieces) + 2, &reach) || reach > PATH_REACH_MAX)
            return wrong(error, name, "view %u spreads a request of %" PRIu64 " bytes over more than 2^62 bytes of its file", i, bytes);
    }
    return 0;
}

static const char *node_fault(const struct path *path, const struct path_node *node)
{
    const struct path_header *head = path->header;
    if (node->is_request > 1 || node->op >= OPS_MAX || (node->is_request ? !op_facts[node->op].name : node->op != 0))
        return "is of no known kind";
    if (node->who > WHO_ALL_BUT_LAST && (node->who < PATH_FIRST_GROUP || (uint32_t)(node->who - PATH_FIRST_GROUP) >= head->groups))
        return "is for a group that there is not";
    if (node->table > head->numbers)
        return "has numbers for each rank that there are not";
    if (node->slack_first > head->distributions || node->slack_rest > head->distributions || node->slack_ns > SLACK_MAX_NS)
        return "has a slack that there is not";
    if (node->flags & ~(FLAG_ALONE | FLAG_APART | FLAG_TOGETHER | FLAG_TOGETHER_REST) || (node->flags & FLAG_ALONE && node->op != OP_OPENDIR)
        || (node->flags && !node->is_request))
        return "has flags that are not known";
    if (!node->is_request)
        return NULL;
    if (node->flags & (FLAG_TOGETHER | FLAG_TOGETHER_REST) && node->who != WHO_ALL)
        return "waits for all ranks, but not all make it";
    if (node->link >= head->files)
        return "is on a file that there is not";
    if (op_facts[node->op].layer == MPI && node->comm >= (head->comms ? head->comms : 1))
        return "is on a communicator that there is not";
    if (node->view > (node->op == OP_MPI_VIEW ? head->views : 0))
        return "has a view that there is not";
    uint64_t limit = size_limit(path, node->op);
    int beyond = node->size > limit;
    for (uint32_t rank = 0; node->table && rank < head->processes; rank++)
        beyond |= path_numbers_of(path, node, rank).size > limit;
    return beyond ? "has a size beyond the limit of its operation" : NULL;
}

static int check_nodes(const struct path *path, unsigned char *is_made, const char *name, char *error)
{
    uint64_t ends[PATH_DEPTH_MAX], largest = 0;
    unsigned depth = 0;
    uint32_t nodes = path->header->nodes, dropped = 0;
    for (uint32_t i = 0; i < nodes; i++) {
        const struct path_node *node = &path->nodes[i];
        while (depth && ends[depth - 1] == i)
            depth--;
        const char *fault = node_fault(path, node);
        if (!fault)
            fault = use_fault(path, node, is_made);
        if (!fault && !node->is_request) {
            uint64_t end = (uint64_t)i + 1 + node->link;
            if (node->link == 0 || end > (depth ? ends[depth - 1] : nodes))
                fault = "is a loop whose body is not within its path";
            else if (depth == PATH_DEPTH_MAX)
                fault = "is in too many loops";
            else
                ends[depth++] = end;
        }
        if (fault)
            return wrong(error, name, "node %u %s; make the path again with 'stripewise synth'", i, fault);
        uint64_t own = largest_of(path, node);
        largest = own > largest ? own : largest;
        if (i - dropped >= PATH_WINDOW) {
            path_drop(path, dropped, i);
            dropped = i;
        }
    }
    return check_reach(path, largest, name, error);
}

static int check_tree(const struct path *path, const char *name, char *error)
{
    unsigned char *is_made = calloc(path->header->files + 1u, 1);
    if (!is_made)
        return wrong(error, name, "no memory to check it with");
    int status = check_nodes(path, is_made, name, error);
    free(is_made);
    return status;
}

int path_open(struct path *path, const char *name, char *error)
{
    const struct path_header *head = map_file(name, &path->mapped_bytes, error);
    path->header = head;
    if (!head)
        return -1;
    (void)madvise((void *)(uintptr_t)head, path->mapped_bytes, MADV_SEQUENTIAL);
    int is_sound = 0;
    if (__BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__)
        wrong(error, name, "paths are little-endian, this machine is not");
    else if (memcmp(head->magic, "SWPATH1", sizeof head->magic) != 0)
        wrong(error, name, "this is no workload path; give one that 'stripewise synth' wrote");
    else if (head->version != PATH_VERSION)
        wrong(error, name, "a path of version %u, this player is for version %d; use a newer Stripewise", head->version, PATH_VERSION);
    else if (head->header_bytes != sizeof *head)
        wrong(error, name, "the header has a wrong length; make the path again with 'stripewise synth'");
    else
        is_sound = find_tables(path, name, error) == 0 && check_tables(path, name, error) == 0 && check_tree(path, name, error) == 0;
    if (!is_sound) {
        path_close(path);
        return -1;
    }
    return 0;
}

void path_close(struct path *path)
{
    if (path->header)
        syscall(SYS_munmap, path->header, path->mapped_bytes);
    path->header = NULL;
}

uint64_t path_sum(const struct path *path)
{
    const char *base = (const char *)path->header;
    uint64_t sum = path->mapped_bytes;
    for (size_t at = 0; at < path->mapped_bytes; at += sizeof sum) {
        uint64_t word = 0;
        memcpy(&word, base + at, path->mapped_bytes - at < sizeof word ? path->mapped_bytes - at : sizeof word);
        sum = (sum ^ word) * 0x9e3779b97f4a7c15u;
        sum ^= sum >> 29;
        if (path->mapped_bytes > COPIED_MAX && at % COPIED_MAX == 0 && at)
            (void)madvise((void *)(uintptr_t)(base + at - COPIED_MAX), COPIED_MAX, MADV_DONTNEED);
    }
    return sum;
}

void path_drop(const struct path *path, uint32_t from, uint32_t to)
{
    uintptr_t begin = ((uintptr_t)&path->nodes[from] + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
    uintptr_t end = (uintptr_t)&path->nodes[to] / PAGE_BYTES * PAGE_BYTES;
    if (end > begin)
        (void)madvise((void *)begin, end - begin, MADV_DONTNEED);
}
