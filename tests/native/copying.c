/*
 * copying: calls that move bytes between descriptors, and calls that advise or lock, each with its result, the offsets after it and a sum of both files.
 *
 * usage: copying A B
 * Makes both files anew. What it prints must be the same whichever of the files are managed.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>
#include "sums.h"

enum { A_BYTES = 300000, B_BYTES = 5000, LONG_BYTES = 200000 };

static const char *a_path, *b_path;
static int a, b; /* both for reading and writing */
static int pipe_out, pipe_in;
static char block[A_BYTES];

static void say(const char *what, int64_t result, int64_t at)
{
    int failed = errno;
    struct stat status_a, status_b;
    printf("%s: %" PRId64 " %s, offset %" PRId64, what, result, result < 0 ? strerrorname_np(failed) : "", at);
    fstat(a, &status_a);
    fstat(b, &status_b);
    printf("; a at %" PRId64 " of %" PRId64 " sum %" PRIx64 "; b at %" PRId64 " of %" PRId64 " sum %" PRIx64 "\n", (int64_t)lseek(a, 0, SEEK_CUR), (int64_t)status_a.st_size,
           sum_of_file(a), (int64_t)lseek(b, 0, SEEK_CUR), (int64_t)status_b.st_size, sum_of_file(b));
}

static void reset(void)
{
    ftruncate(a, 0);
    ftruncate(b, 0);
    pwrite(a, block, A_BYTES, 0);
    pwrite(b, block + 7, B_BYTES, 0);
    lseek(a, 100, SEEK_SET);
    lseek(b, 200, SEEK_SET);
}

#define SAY(name, at, call)             \
    do {                                \
        errno = 0;                      \
        int64_t r_ = (call);            \
        say(name, r_, (int64_t)(at));   \
        reset();                        \
    } while (0)

static int reopened(const char *path, int flags)
{
    int fd = open(path, flags);
    if (fd < 0)
        perror(path), exit(2);
    return fd;
}

static void copies(void)
{
    off64_t in = 1000, out = 3000, minus = -5, far = INT64_MAX - 8, end = A_BYTES;
    int reader = reopened(a_path, O_RDONLY), writer = reopened(b_path, O_WRONLY), appender = reopened(b_path, O_RDWR | O_APPEND), name = reopened(b_path, O_PATH);
    int dir = reopened("/", O_RDONLY | O_DIRECTORY);
    SAY("copy at positions", 0, copy_file_range(a, NULL, b, NULL, 1234, 0));
    SAY("copy at offsets", in + out, copy_file_range(a, &in, b, &out, LONG_BYTES, 0));
    in = 1000, out = 3000;
    SAY("copy back", in + out, copy_file_range(b, &in, a, &out, LONG_BYTES, 0));
    in = 290000;
    SAY("copy past the end", in, copy_file_range(a, &in, b, NULL, LONG_BYTES, 0));
    SAY("copy at the end", end, copy_file_range(a, &end, b, NULL, 10, 0));
    SAY("copy nothing", end, copy_file_range(a, NULL, b, NULL, 0, 0));
    in = 0, out = 400000;
    SAY("copy behind a hole", out, copy_file_range(a, &in, b, &out, 5000, 0));
    in = 0, out = 200000;
    SAY("copy within a file", out, copy_file_range(a, &in, a, &out, 100000, 0));
    in = 0, out = 5000;
    SAY("copy onto itself", out, copy_file_range(a, &in, a, &out, 5001, 0));
    SAY("copy onto itself at one position", 0, copy_file_range(a, NULL, a, NULL, 50, 0));
    SAY("copy with flags", 0, copy_file_range(a, NULL, b, NULL, 10, 1));
    SAY("copy to a reader", 0, copy_file_range(b, NULL, reader, NULL, 10, 0));
    SAY("copy from a writer", 0, copy_file_range(writer, NULL, a, NULL, 10, 0));
    SAY("copy to an appender", 0, copy_file_range(a, NULL, appender, NULL, 10, 0));
    SAY("copy to a name", 0, copy_file_range(a, NULL, name, NULL, 10, 0));
    SAY("copy to nothing", 0, copy_file_range(a, NULL, 999, NULL, 10, 0));
    SAY("copy to a directory", 0, copy_file_range(a, NULL, dir, NULL, 10, 0));
    SAY("copy to a pipe", 0, copy_file_range(a, NULL, pipe_in, NULL, 10, 0));
    SAY("copy from -5", minus, copy_file_range(a, &minus, b, NULL, 3, 0));
    SAY("copy from -5 over 0", minus, copy_file_range(a, &minus, b, NULL, 30, 0));
    SAY("copy to the largest offset", far, copy_file_range(a, NULL, b, &far, 30, 0));
    SAY("copy too much", 0, copy_file_range(a, NULL, b, NULL, SIZE_MAX, 0));
    SAY("a written copy", 0, copy_file_range(reader, NULL, writer, NULL, 2000, 0));
    close(reader), close(writer), close(appender), close(name), close(dir);
}

static void sends(void)
{
    off64_t at = 50, minus = -5, far = INT64_MAX - 8, huge = INT64_MAX / 2 + 1, end = A_BYTES;
    int reader = reopened(a_path, O_RDONLY), appender = reopened(b_path, O_RDWR | O_APPEND), name = reopened(a_path, O_PATH), writer = reopened(a_path, O_WRONLY);
    SAY("send at positions", 0, sendfile(b, a, NULL, LONG_BYTES));
    SAY("send at an offset", at, sendfile(b, a, &at, LONG_BYTES));
    at = 50;
    SAY("send back", at, sendfile(a, b, &at, LONG_BYTES));
    SAY("send at the end", end, sendfile(b, a, &end, 10));
    SAY("send nothing", 0, sendfile(b, a, NULL, 0));
    at = 0;
    SAY("send onto itself", at, sendfile(a, a, &at, 50));
    SAY("send to a reader", 0, sendfile(reader, b, NULL, 10));
    SAY("send from a writer", 0, sendfile(b, writer, NULL, 10));
    SAY("send to an appender", 0, sendfile(appender, a, NULL, 10));
    SAY("send from a name", 0, sendfile(b, name, NULL, 10));
    SAY("send from nothing", 0, sendfile(b, 999, NULL, 10));
    SAY("send to nothing", 0, sendfile(999, a, NULL, 10));
    SAY("send from a pipe", 0, sendfile(b, pipe_out, NULL, 10));
    SAY("send from a pipe's offset", at, sendfile(b, pipe_out, &at, 10));
    SAY("send from -5", minus, sendfile(b, a, &minus, 10));
    SAY("send from the largest offset", far, sendfile(b, a, &far, 30));
    SAY("send from a huge offset", huge, sendfile(b, a, &huge, 30));
    close(reader), close(appender), close(name), close(writer);
}

static uint64_t emptied(int fd, size_t most)
{
    static char bytes[2 * A_BYTES];
    size_t got = 0;
    for (ssize_t n; got < most && (n = read(fd, bytes + got, most - got)) > 0;)
        got += (size_t)n;
    return sum_of(bytes, got);
}

static void streams(void)
{
    int pair[2], child;
    off64_t at = 0;
    socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
    fflush(stdout);
    if ((child = fork()) == 0) {
        close(pair[0]);
        printf("the other end has sum %" PRIx64 "\n", emptied(pair[1], A_BYTES));
        exit(0);
    }
    close(pair[1]);
    SAY("send all to a socket", 0, sendfile(pair[0], a, &at, A_BYTES));
    close(pair[0]);
    waitpid(child, NULL, 0);

    /* What a full socket does not take must not be consumed. */
    socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair);
    off64_t sent = 0;
    int rounds = 0, waited = 0;
    uint64_t sum = 0;
    while (sent < A_BYTES && rounds++ < 10000) {
        ssize_t n = sendfile(pair[0], a, &sent, A_BYTES);
        if (n < 0 && errno != EAGAIN)
            break;
        waited |= n < 0 || n < A_BYTES;
        static char bytes[1 << 20];
        for (ssize_t got; (got = read(pair[1], bytes, sizeof bytes)) > 0;)
            for (ssize_t i = 0; i < got; i++)
                sum = (sum ^ (unsigned char)bytes[i]) * 1099511628211u;
    }
    printf("a full socket: %d\n", waited);
    SAY("send to a full socket", sent, (int64_t)(sum >> 1));
    close(pair[0]), close(pair[1]);
    at = 0;
    SAY("send to a pipe that nobody reads", at, sendfile(pipe_in, a, &at, 30000));
    printf("the pipe has sum %" PRIx64 "\n", emptied(pipe_out, 30000));
}

/* All of a through a pipe that is emptied by this very thread. */
static void through_pipe(int sends_it)
{
    static char bytes[2 * A_BYTES];
    off64_t at = 0;
    size_t total = 0;
    while (at < A_BYTES) {
        ssize_t n = sends_it ? sendfile(pipe_in, a, &at, A_BYTES) : splice(a, &at, pipe_in, NULL, A_BYTES, 0);
        if (n <= 0 || total + (size_t)n > sizeof bytes || read(pipe_out, bytes + total, (size_t)n) != n)
            break;
        total += (size_t)n;
    }
    printf("through a pipe: %zu bytes, sum %" PRIx64 "\n", total, sum_of(bytes, total));
}

static void fill_pipe(size_t bytes)
{
    if (write(pipe_in, block, bytes) != (ssize_t)bytes)
        puts("the pipe took less");
}

static void splices(void)
{
    off64_t at = 77, none = 0, minus = -5;
    int reader = reopened(a_path, O_RDONLY), appender = reopened(a_path, O_RDWR | O_APPEND);
    through_pipe(0);
    through_pipe(1);
    fill_pipe(60000);
    SAY("splice from a pipe at a position", 0, splice(pipe_out, NULL, a, NULL, 100000, 0));
    fill_pipe(60000);
    SAY("splice a part from a pipe", at, splice(pipe_out, NULL, a, &at, 1000, 0));
    SAY("splice the rest", at, splice(pipe_out, NULL, a, &at, 100000, SPLICE_F_MOVE));
    SAY("splice from an empty pipe", at, splice(pipe_out, NULL, a, &at, 100, SPLICE_F_NONBLOCK));
    fill_pipe(10);
    SAY("splice to an appender", 0, splice(pipe_out, NULL, appender, NULL, 100, 0));
    SAY("splice to a reader", 0, splice(pipe_out, NULL, reader, NULL, 100, 0));
    SAY("splice with a pipe's offset", 0, splice(pipe_out, &none, a, NULL, 100, 0));
    SAY("splice with the other pipe's offset", 0, splice(a, NULL, pipe_in, &none, 100, 0));
    SAY("splice to -5", 0, splice(pipe_out, NULL, a, &minus, 100, 0));
    SAY("splice with unknown flags", 0, splice(pipe_out, NULL, a, NULL, 100, 0x80));
    SAY("splice without a pipe", 0, splice(a, NULL, b, NULL, 100, 0));
    SAY("splice nothing", 0, splice(a, NULL, b, NULL, 0, 0));
    printf("the pipe still has sum %" PRIx64 "\n", emptied(pipe_out, 10));
    SAY("splice to a pipe at a position", 0, splice(a, NULL, pipe_in, NULL, 5000, 0));
    printf("the pipe has sum %" PRIx64 "\n", emptied(pipe_out, 5000));
    at = A_BYTES;
    SAY("splice at the end", at, splice(a, &at, pipe_in, NULL, 5000, 0));
    fcntl(pipe_in, F_SETFL, O_NONBLOCK);
    for (ssize_t n = 1; n > 0;)
        n = write(pipe_in, block, 4096);
    at = 0;
    SAY("splice to a full pipe", at, splice(a, &at, pipe_in, NULL, 100, SPLICE_F_NONBLOCK));
    SAY("send to a full pipe", at, sendfile(pipe_in, a, &at, 100));
    fcntl(pipe_in, F_SETFL, 0);
    emptied(pipe_out, (size_t)fcntl(pipe_out, F_GETPIPE_SZ));
    SAY("tee to a file", 0, tee(pipe_out, a, 10, 0));
    SAY("tee from a file", 0, tee(a, pipe_in, 10, 0));
    SAY("tee to a reader", 0, tee(pipe_out, reader, 10, 0));
    close(reader), close(appender);
}

static void advice(void)
{
    int name = reopened(a_path, O_PATH), writer = reopened(a_path, O_WRONLY);
    for (int advice = -1; advice < 7; advice++)
        SAY("posix_fadvise", advice, posix_fadvise(a, 1000, 100000, advice));
    SAY("posix_fadvise to the end", 0, posix_fadvise(a, 0, 0, POSIX_FADV_DONTNEED));
    SAY("posix_fadvise of -1 bytes", 0, posix_fadvise(a, 0, -1, POSIX_FADV_DONTNEED));
    SAY("posix_fadvise of a name", 0, posix_fadvise(name, 0, 0, POSIX_FADV_WILLNEED));
    SAY("readahead", 0, readahead(a, 5000, LONG_BYTES));
    SAY("readahead past the end", 0, readahead(a, 500000, LONG_BYTES));
    SAY("readahead of a writer", 0, readahead(writer, 0, 10));
    SAY("sync_file_range", 0, sync_file_range(a, 100, 100000, SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER));
    SAY("sync_file_range to the end", 0, sync_file_range(a, 0, 0, SYNC_FILE_RANGE_WRITE));
    SAY("sync_file_range from -1", 0, sync_file_range(a, -1, 10, SYNC_FILE_RANGE_WRITE));
    SAY("sync_file_range with unknown flags", 0, sync_file_range(a, 0, 10, 64));
    SAY("sync_file_range of a name", 0, sync_file_range(name, 0, 10, 0));
    SAY("syncfs", 0, syncfs(a));
    SAY("syncfs of a name", 0, syncfs(name));
    close(name), close(writer);
}

/* As another process sees them: its own fcntl on the same ranges. */
static void seen_locks(const char *what)
{
    int status = 0;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        int fd = reopened(a_path, O_RDWR);
        lseek(fd, 150, SEEK_SET);
        int tested = lockf(fd, F_TEST, 100), why = errno, taken = lockf(fd, F_TLOCK, 100), why_not = errno;
        printf("%s: another process tests %d %s, takes %d %s\n", what, tested, tested < 0 ? strerrorname_np(why) : "", taken, taken < 0 ? strerrorname_np(why_not) : "");
        exit(0);
    }
    waitpid(child, &status, 0);
}

static void locks(void)
{
    lseek(a, 100, SEEK_SET);
    SAY("lockf F_TLOCK", 0, lockf(a, F_TLOCK, 200));
    seen_locks("locked");
    SAY("lockf F_TEST by the owner", 0, lockf(a, F_TEST, 200));
    SAY("lockf F_ULOCK", 0, lockf(a, F_ULOCK, 200));
    seen_locks("unlocked");
    SAY("lockf F_LOCK back", 0, lockf(a, F_LOCK, -50));
    SAY("lockf F_LOCK to the end", 0, lockf(a, F_LOCK, 0));
    seen_locks("locked to the end");
    SAY("lockf F_ULOCK all", 0, lockf(a, F_ULOCK, 0));
    SAY("lockf of another kind", 0, lockf(a, 9, 0));
    int reader = reopened(a_path, O_RDONLY);
    SAY("lockf of a reader", 0, lockf(reader, F_TLOCK, 10));
    close(reader);
}

static void say_direct(const char *what, int fd)
{
    printf("O_DIRECT %s: %s\n", what, fcntl(fd, F_GETFL) & O_DIRECT ? "shown" : "not shown");
}

static void flags(void)
{
    struct iovec piece = {block, 100}, empty = {block, 0};
    char into[100];
    struct iovec room = {into, sizeof into};
    int appender = reopened(a_path, O_RDWR | O_APPEND), direct = reopened(a_path, O_RDWR | O_DIRECT);
    SAY("pwritev2 RWF_DSYNC", 0, pwritev2(a, &piece, 1, 10, RWF_DSYNC));
    SAY("pwritev2 RWF_SYNC here", 0, pwritev2(a, &piece, 1, -1, RWF_SYNC));
    SAY("pwritev2 RWF_APPEND", 0, pwritev2(a, &piece, 1, 10, RWF_APPEND));
    SAY("pwritev2 RWF_APPEND here", 0, pwritev2(a, &piece, 1, -1, RWF_APPEND));
    SAY("pwritev2 appends", 0, pwritev2(appender, &piece, 1, 10, 0));
    SAY("pwritev2 0x20 (RWF_NOAPPEND)", 0, pwritev2(appender, &piece, 1, 10, 0x20));
    SAY("pwritev2 with unknown flags", 0, pwritev2(a, &piece, 1, 10, 1 << 20));
    SAY("pwritev2 of nothing", 0, pwritev2(a, &empty, 1, 10, 1 << 20));
    SAY("pwritev2 at -2", 0, pwritev2(a, &piece, 1, -2, 0));
    SAY("preadv2 RWF_NOWAIT", 0, preadv2(a, &room, 1, 0, RWF_NOWAIT));
    SAY("preadv2 here", 0, preadv2(a, &room, 1, -1, RWF_NOWAIT));
    SAY("preadv2 with unknown flags", 0, preadv2(a, &room, 1, 0, 1 << 20));
    say_direct("opened", direct);
    fcntl(direct, F_SETFL, 0);
    say_direct("cleared", direct);
    fcntl(direct, F_SETFL, O_DIRECT);
    say_direct("set", direct);
    close(appender), close(direct);
}

int main(int argc, char **argv)
{
    int ends[2];
    signal(SIGPIPE, SIG_IGN);
    if (argc != 3 || pipe(ends) != 0) {
        fputs("usage: copying A B\n", stderr);
        return 2;
    }
    pipe_out = ends[0], pipe_in = ends[1];
    a_path = argv[1], b_path = argv[2];
    a = open(a_path, O_RDWR | O_CREAT | O_TRUNC, 0644);
    b = open(b_path, O_RDWR | O_CREAT | O_TRUNC, 0644);
    if (a < 0 || b < 0) {
        perror("copying");
        return 2;
    }
    for (size_t i = 0; i < sizeof block; i++)
        block[i] = (char)(i * 2654435761u >> 13);
    reset();
    copies();
    sends();
    streams();
    splices();
    advice();
    locks();
    flags();
    return 0;
}
