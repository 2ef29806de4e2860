/*
 * failclosed: ways to a file's bytes around read and write. Those that the preloaded library does not carry must end in an error on a managed file:
 * never in zeros, never in a write to what lies behind the descriptor. Without the library all must.
 *
 * usage: failclosed [--carried | --library] (FILE | --fd N)
 * Without an option every way must fail and leave its buffer alone. With --library those that it carries must work, the others fail. With --carried,
 * on a plain file, every way must work: else this test would prove nothing. FILE must begin with bytes that are not zero. Built a second time statically:
 * then no hook is there at all.
 */
#define _GNU_SOURCE
#include "inlined.h"
#include <aio.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/fs.h>
#include <linux/io_uring.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { BYTES = 4096, UNTOUCHED = 0xaa };

static unsigned char buf[BYTES] __attribute__((aligned(4096)));
static int scratch_fd; /* a plain file of BYTES 'Z' */
static int pipe_fds[2];

/* By system call: the hooks carry the C library's own mmap. */
static void *map_by_system_call(int fd, int prot, int flags)
{
    return (void *)syscall(SYS_mmap, NULL, BYTES, prot, flags, fd, 0);
}

/* Every way returns the bytes it moved, or -1 with errno. */
static long by_mmap_read(int fd)
{
    unsigned char *map = map_by_system_call(fd, PROT_READ, MAP_PRIVATE);
    if (map == MAP_FAILED)
        return -1;
    memcpy(buf, map, 16);
    munmap(map, BYTES);
    return 16;
}

static long by_mmap_write(int fd)
{
    unsigned char *map = map_by_system_call(fd, PROT_READ | PROT_WRITE, MAP_SHARED);
    if (map == MAP_FAILED)
        return -1;
    memset(map, 'Z', 16);
    munmap(map, BYTES);
    return 16;
}

static long by_sendfile_out(int fd)
{
    off_t at = 0;
    return sendfile(scratch_fd, fd, &at, 16);
}

static long by_sendfile_in(int fd)
{
    off_t at = 0;
    return lseek(fd, 0, SEEK_SET) < 0 ? -1 : sendfile(fd, scratch_fd, &at, 16);
}

static long by_copy_out(int fd)
{
    loff_t from = 0, to = 0;
    return copy_file_range(fd, &from, scratch_fd, &to, 16, 0);
}

static long by_copy_in(int fd)
{
    loff_t from = 0, to = 0;
    return copy_file_range(scratch_fd, &from, fd, &to, 16, 0);
}

static long by_splice_out(int fd)
{
    loff_t from = 0;
    char sink[16];
    long moved = splice(fd, &from, pipe_fds[1], NULL, 16, 0);
    return moved > 0 ? read(pipe_fds[0], sink, sizeof sink) : moved;
}

static long by_splice_in(int fd)
{
    loff_t to = 0;
    char sink[16];
    if (write(pipe_fds[1], "ZZZZZZZZZZZZZZZZ", 16) != 16)
        return -1;
    long moved = splice(pipe_fds[0], NULL, fd, &to, 16, 0);
    int kept = errno;
    if (moved < 0 && read(pipe_fds[0], sink, sizeof sink) != 16)
        return -1;
    errno = kept;
    return moved;
}

static long by_system_call_read(int fd)
{
    return syscall(SYS_pread64, fd, buf, 16, 0);
}

static long by_system_call_write(int fd)
{
    return syscall(SYS_pwrite64, fd, "ZZZZZZZZZZZZZZZZ", 16, 0);
}

static long by_stdio(int fd)
{
    int copy = dup(fd);
    FILE *stream = fdopen(copy, "r");
    if (stream == NULL)
        return -1;
    rewind(stream);
    errno = 0;
    size_t got = fread(buf, 1, 16, stream);
    int kept = errno, failed = ferror(stream);
    fclose(stream);
    errno = kept;
    return failed ? -1 : (long)got;
}

static long by_glibc_aio(int fd)
{
    struct aiocb request = {.aio_fildes = fd, .aio_buf = buf, .aio_nbytes = 16};
    const struct aiocb *list[1] = {&request};
    if (aio_read(&request) != 0)
        return -1;
    while (aio_error(&request) == EINPROGRESS)
        aio_suspend(list, 1, NULL);
    int failed = aio_error(&request);
    long got = aio_return(&request);
    if (failed != 0)
        errno = failed;
    return failed != 0 ? -1 : got;
}

static long kernel_aio(int fd, int operation)
{
    aio_context_t context = 0;
    struct iocb request = {.aio_lio_opcode = (unsigned short)operation, .aio_fildes = (unsigned)fd, .aio_buf = (unsigned long)buf, .aio_nbytes = 16};
    struct iocb *list[1] = {&request};
    struct io_event event = {0};
    if (operation == IOCB_CMD_PWRITE)
        memset(buf, 'Z', 16);
    if (inlined(SYS_io_setup, 4, (long)&context) != 0)
        return -1;
    long result = syscall(SYS_io_submit, context, 1, list);
    if (result == 1) {
        result = syscall(SYS_io_getevents, context, 1, 1, &event, NULL) == 1 ? (long)event.res : -1;
        if (result < 0) {
            errno = (int)-event.res;
            result = -1;
        }
    }
    int kept = errno;
    syscall(SYS_io_destroy, context);
    if (operation == IOCB_CMD_PWRITE)
        memset(buf, UNTOUCHED, 16);
    errno = kept;
    return result;
}

static long by_libaio_read(int fd)
{
    return kernel_aio(fd, IOCB_CMD_PREAD);
}

static long by_libaio_write(int fd)
{
    return kernel_aio(fd, IOCB_CMD_PWRITE);
}

static long ring_once(int fd, int operation, const void *data)
{
    struct io_uring_params params = {0};
    int ring = (int)inlined(SYS_io_uring_setup, 2, (long)&params);
    if (ring < 0)
        return -1;
    size_t sq_bytes = params.sq_off.array + params.sq_entries * sizeof(unsigned);
    size_t cq_bytes = params.cq_off.cqes + params.cq_entries * sizeof(struct io_uring_cqe);
    size_t rings_bytes = sq_bytes > cq_bytes ? sq_bytes : cq_bytes, entries_bytes = params.sq_entries * sizeof(struct io_uring_sqe);
    char *rings = mmap(NULL, rings_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_SQ_RING);
    struct io_uring_sqe *entries = mmap(NULL, entries_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_SQES);
    long result = -1;
    if (rings != MAP_FAILED && entries != (void *)MAP_FAILED && (params.features & IORING_FEAT_SINGLE_MMAP)) {
        memset(&entries[0], 0, sizeof entries[0]);
        entries[0] = (struct io_uring_sqe){.opcode = (unsigned char)operation, .fd = fd, .addr = (unsigned long)data, .len = 16};
        ((unsigned *)(rings + params.sq_off.array))[0] = 0;
        __atomic_store_n((unsigned *)(rings + params.sq_off.tail), 1, __ATOMIC_RELEASE);
        if (syscall(SYS_io_uring_enter, ring, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0) == 1) {
            struct io_uring_cqe *done = (struct io_uring_cqe *)(rings + params.cq_off.cqes);
            result = done->res;
            if (result < 0) {
                errno = (int)-result;
                result = -1;
            }
        }
    }
    int kept = errno;
    munmap(rings, rings_bytes);
    munmap(entries, entries_bytes);
    close(ring);
    errno = kept;
    return result;
}

static long by_ring_read(int fd)
{
    return ring_once(fd, IORING_OP_READ, buf);
}

static long by_ring_write(int fd)
{
    return ring_once(fd, IORING_OP_WRITE, "ZZZZZZZZZZZZZZZZ");
}

static const struct way {
    const char *name;
    long (*move)(int fd);
    int needs_kernel; /* may be switched off in a kernel: no proof of anything then, but no harm either */
    int by_library;   /* the preloaded library carries it */
} ways[] = {
    {"mmap, read", by_mmap_read, 0, 0},
    {"mmap, write", by_mmap_write, 0, 0},
    {"sendfile from", by_sendfile_out, 0, 1},
    {"sendfile to", by_sendfile_in, 0, 1},
    {"copy_file_range from", by_copy_out, 0, 1},
    {"copy_file_range to", by_copy_in, 0, 1},
    {"splice from", by_splice_out, 0, 1},
    {"splice to", by_splice_in, 0, 1},
    {"pread by system call", by_system_call_read, 0, 0},
    {"pwrite by system call", by_system_call_write, 0, 0},
    {"stdio", by_stdio, 0, 1},
    {"glibc aio", by_glibc_aio, 0, 1},
    {"libaio read", by_libaio_read, 1, 0},
    {"libaio write", by_libaio_write, 1, 0},
    {"io_uring read", by_ring_read, 1, 0},
    {"io_uring write", by_ring_write, 1, 0},
};

enum { NONE = 0, OF_LIBRARY = 1, ALL = 2 };

static int prepare(void)
{
    char block[BYTES];
    memset(block, 'Z', sizeof block);
    FILE *scratch = tmpfile();
    if (scratch == NULL || pipe(pipe_fds) != 0)
        return -1;
    scratch_fd = fileno(scratch);
    return write(scratch_fd, block, sizeof block) == sizeof block ? 0 : -1;
}

static int untouched(void)
{
    for (int i = 0; i < 16; i++)
        if (buf[i] != UNTOUCHED)
            return 0;
    return 1;
}

static int try_all(int fd, int carried)
{
    int wrong = 0;
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        memset(buf, UNTOUCHED, sizeof buf);
        errno = 0;
        long moved = ways[i].move(fd);
        int failed = errno, off = ways[i].needs_kernel && moved < 0 && (failed == ENOSYS || failed == EPERM);
        int works = carried == ALL || (carried == OF_LIBRARY && ways[i].by_library);
        int right = off || (works ? moved == 16 : moved < 0 && untouched());
        printf("%s %s: %s\n", right ? "ok" : "not ok", ways[i].name, moved < 0 ? strerror(failed) : moved == 16 ? "carried" : "ended early");
        wrong |= !right;
    }
    return wrong;
}

int main(int argc, char **argv)
{
    int fd, carried = argc < 2 ? NONE : strcmp(argv[1], "--carried") == 0 ? ALL : strcmp(argv[1], "--library") == 0 ? OF_LIBRARY : NONE;
    argv += carried != NONE;
    argc -= carried != NONE;
    if (prepare() != 0) {
        perror("failclosed");
        return 2;
    }
    if (argc == 3 && strcmp(argv[1], "--fd") == 0) {
        fd = atoi(argv[2]);
    } else if (argc == 2) {
        fd = open(argv[1], O_RDWR);
        if (fd < 0) {
            printf("open: %s\n", strerror(errno));
            return errno == ENOENT && carried == NONE ? 0 : 1;
        }
    } else {
        fputs("usage: failclosed [--carried | --library] (FILE | --fd N)\n", stderr);
        return 2;
    }
    return try_all(fd, carried);
}
