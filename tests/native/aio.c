/*
 * aio: POSIX asynchronous requests, each with what the submission returned, its outcome, and the notification that came.
 *
 * usage: aio A B
 * Makes both files anew. What it prints must be the same whichever of the files are managed.
 */
#define _GNU_SOURCE
#include <aio.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "sums.h"

enum { BYTES = 200000, REQUESTS = 8, NOTICE_SIGNAL = SIGUSR1, LIST_SIGNAL = SIGUSR2 };

static const char *a_path, *b_path;
static int a, b;
static char block[BYTES], into[REQUESTS][BYTES];
static sem_t noticed;
static volatile int notice_value, notice_detached;

static void reset(void)
{
    if (ftruncate(a, 0) != 0 || ftruncate(b, 0) != 0 || pwrite(a, block, BYTES, 0) != BYTES || pwrite(b, block + 5, 1000, 0) != 1000)
        perror("aio"), exit(2);
    lseek(a, 100, SEEK_SET);
    memset(into, 0, sizeof into);
}

static const char *name_of(int error)
{
    return error == 0 ? "done" : strerrorname_np(error);
}

static void say(const char *what, int submitted, int why, struct aiocb *request)
{
    const struct aiocb *list[] = {NULL, request};
    printf("%s: %d %s", what, submitted, submitted < 0 ? name_of(why) : "");
    if (request != NULL && submitted == 0) {
        while (aio_error(request) == EINPROGRESS)
            aio_suspend(list, 2, NULL);
        int error = aio_error(request);
        printf(", %s, suspended %d, cancelled %d, returned %zd", name_of(error), aio_suspend(list, 2, NULL), aio_cancel(request->aio_fildes, request), aio_return(request));
    }
    printf("; position %" PRId64 ", sums %" PRIx64 " %" PRIx64 " %" PRIx64 "\n", (int64_t)lseek(a, 0, SEEK_CUR), sum_of_file(a), sum_of_file(b), sum_of(into[0], BYTES));
    reset();
}

static int reopened(const char *path, int flags)
{
    int fd = open(path, flags);
    if (fd < 0)
        perror(path), exit(2);
    return fd;
}

static struct aiocb request(int fd, int writing, size_t bytes, off_t at)
{
    struct aiocb r;
    memset(&r, 0, sizeof r);
    r.aio_fildes = fd, r.aio_buf = writing ? block + 99 : into[0], r.aio_nbytes = bytes, r.aio_offset = at;
    r.aio_lio_opcode = writing ? LIO_WRITE : LIO_READ;
    r.aio_sigevent.sigev_notify = SIGEV_NONE;
    return r;
}

static void one(const char *what, int fd, int writing, size_t bytes, off_t at, int priority)
{
    struct aiocb r = request(fd, writing, bytes, at);
    r.aio_reqprio = priority;
    int done = writing ? aio_write(&r) : aio_read(&r), why = errno;
    say(what, done, why, &r);
}

static void requests(void)
{
    int reader = reopened(a_path, O_RDONLY), writer = reopened(a_path, O_WRONLY), appender = reopened(a_path, O_RDWR | O_APPEND);
    one("read", a, 0, 50000, 300, 0);
    one("read past the end", a, 0, 5000, BYTES - 10, 0);
    one("read at the end", a, 0, 5000, BYTES, 0);
    one("read nothing", a, 0, 0, 0, 0);
    one("read at -1", a, 0, 10, -1, 0);
    one("read of a writer", writer, 0, 10, 0, 0);
    one("read of nothing", 999, 0, 10, 0, 0);
    one("read with priority 20", a, 0, 10, 0, 20);
    one("read with priority 21", a, 0, 10, 0, 21);
    one("read with priority -1", a, 0, 10, 0, -1);
    one("write", a, 1, 70000, 150000, 0);
    one("write behind a hole", a, 1, 100, 250000, 0);
    one("write to a reader", reader, 1, 100, 0, 0);
    one("write to an appender", appender, 1, 100, 0, 0);
    one("write at -1", a, 1, 10, -1, 0);
    static const int ways[] = {O_SYNC, O_DSYNC, 77};
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        struct aiocb r = request(a, 0, 0, 0);
        int done = aio_fsync(ways[i], &r), why = errno;
        say("sync", done, why, &r);
        r = request(reader, 0, 0, 0);
        done = aio_fsync(ways[i], &r), why = errno;
        say("sync of a reader", done, why, &r);
    }
    printf("cancel all: %d, of nothing %d\n", aio_cancel(a, NULL), aio_cancel(999, NULL));
    struct aiocb other = request(a, 0, 10, 0);
    printf("cancel another's: %d\n", aio_cancel(b, &other));
    close(reader), close(writer), close(appender);
}

static void on_signal(int number, siginfo_t *info, void *context)
{
    (void)context;
    notice_value = info->si_value.sival_int + (number == LIST_SIGNAL ? 1000 : 0) + (info->si_code == SI_ASYNCIO ? 0 : 100000) + (info->si_pid == getpid() ? 0 : 1000000);
    sem_post(&noticed);
}

static void on_thread(union sigval value)
{
    pthread_attr_t attributes;
    int state = -1;
    size_t stack = 0;
    pthread_getattr_np(pthread_self(), &attributes);
    pthread_attr_getdetachstate(&attributes, &state);
    pthread_attr_getstacksize(&attributes, &stack);
    pthread_attr_destroy(&attributes);
    notice_detached = (state == PTHREAD_CREATE_DETACHED) + (stack == 256 << 10 ? 10 : 0);
    notice_value = value.sival_int;
    sem_post(&noticed);
}

static void await_notice(const char *what)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 20;
    int came;
    while ((came = sem_timedwait(&noticed, &until)) != 0 && errno == EINTR) {}
    printf("%s: %s, value %d, thread %d\n", what, came == 0 ? "notified" : "nobody said anything", notice_value, notice_detached);
    notice_value = notice_detached = 0;
}

static struct sigevent event(int how, int value, pthread_attr_t *attributes)
{
    struct sigevent e;
    memset(&e, 0, sizeof e);
    e.sigev_notify = how, e.sigev_value.sival_int = value;
    if (how == SIGEV_SIGNAL)
        e.sigev_signo = value >= 100 ? LIST_SIGNAL : NOTICE_SIGNAL;
    if (how == SIGEV_THREAD)
        e.sigev_notify_function = on_thread, e.sigev_notify_attributes = attributes;
    return e;
}

static void notifications(void)
{
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 256 << 10);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    static struct aiocb r;
    r = request(a, 0, 100, 0), r.aio_sigevent = event(SIGEV_SIGNAL, 7, NULL);
    int done = aio_read(&r);
    await_notice("a signal");
    say("read", done, 0, &r);
    r = request(a, 1, 100, 0), r.aio_sigevent = event(SIGEV_THREAD, 8, NULL);
    done = aio_write(&r);
    await_notice("a thread");
    say("write", done, 0, &r);
    r = request(a, 1, 100, -1), r.aio_sigevent = event(SIGEV_THREAD, 9, &attributes);
    done = aio_write(&r);
    await_notice("a thread with attributes after an error");
    say("write", done, 0, &r);
    r = request(a, 1, 100, 0), r.aio_sigevent = event(SIGEV_SIGNAL, 10, NULL);
    done = aio_fsync(O_SYNC, &r);
    await_notice("a signal after a sync");
    say("sync", done, 0, &r);
    pthread_attr_destroy(&attributes);
}

/* Half of the requests on a, half on b, some of them nothing at all. */
static void listed(const char *what, int mode, int count, int broken, struct sigevent *e)
{
    static struct aiocb r[REQUESTS];
    struct aiocb *list[REQUESTS];
    for (int i = 0; i < count; i++) {
        r[i] = request(i % 2 ? b : a, i % 3 == 0, 5000 + (size_t)i, i * 7000);
        r[i].aio_buf = i % 3 == 0 ? (void *)(block + i) : (void *)into[i];
        if (i == broken)
            r[i].aio_offset = -1;
        if (i == broken - 100)
            r[i].aio_reqprio = 99;
        if (i == broken - 200)
            r[i].aio_lio_opcode = 42;
        if (i == 4)
            r[i].aio_lio_opcode = LIO_NOP;
        list[i] = i == 5 ? NULL : &r[i];
    }
    errno = 0;
    int done = lio_listio(mode, list, count, e), why = errno;
    if (e != NULL && mode == LIO_NOWAIT && e->sigev_notify != SIGEV_NONE)
        await_notice(what);
    printf("%s: %d %s", what, done, done < 0 ? name_of(why) : "");
    for (int i = 0; i < count; i++) {
        if (list[i] == NULL || r[i].aio_lio_opcode == LIO_NOP)
            continue;
        while (aio_error(&r[i]) == EINPROGRESS) {
            const struct aiocb *wait_for[] = {&r[i]};
            aio_suspend(wait_for, 1, NULL);
        }
        int error = aio_error(&r[i]);
        printf(", %d (opcode %d) %s %zd %" PRIx64, i, r[i].aio_lio_opcode, name_of(error), aio_return(&r[i]), sum_of(into[i], BYTES));
    }
    puts("");
    say("after the list", 0, 0, NULL);
}

static void lists(void)
{
    struct sigevent none = event(SIGEV_NONE, 0, NULL), by_signal = event(SIGEV_SIGNAL, 100, NULL), by_thread = event(SIGEV_THREAD, 101, NULL);
    listed("wait for a list", LIO_WAIT, REQUESTS, -1, NULL);
    listed("wait for a list with an error", LIO_WAIT, REQUESTS, 2, NULL);
    listed("wait for a list with another error", LIO_WAIT, REQUESTS, 3, NULL);
    listed("wait for a list with a bad priority", LIO_WAIT, REQUESTS, 102, NULL);
    listed("wait for a list with a bad kind", LIO_WAIT, REQUESTS, 202, NULL);
    listed("wait for a list with a bad kind on b", LIO_WAIT, REQUESTS, 203, NULL);
    listed("a list that ends by itself", LIO_NOWAIT, REQUESTS, -1, NULL);
    listed("a list without notice", LIO_NOWAIT, REQUESTS, -1, &none);
    listed("a list with a signal", LIO_NOWAIT, REQUESTS, -1, &by_signal);
    listed("a list with a thread", LIO_NOWAIT, REQUESTS, -1, &by_thread);
    listed("a list with an error and a signal", LIO_NOWAIT, REQUESTS, 2, &by_signal);
    listed("a list of one with a signal", LIO_NOWAIT, 1, -1, &by_signal);
    listed("an empty list with a signal", LIO_NOWAIT, 0, -1, &by_signal);
    listed("a list of one with a bad priority", LIO_NOWAIT, 1, 100, NULL);
    listed("a list of another mode", 77, 3, -1, NULL);
}

int main(int argc, char **argv)
{
    struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_RESTART};
    if (argc != 3) {
        fputs("usage: aio A B\n", stderr);
        return 2;
    }
    a_path = argv[1], b_path = argv[2];
    a = open(a_path, O_RDWR | O_CREAT | O_TRUNC, 0644);
    b = open(b_path, O_RDWR | O_CREAT | O_TRUNC, 0644);
    if (a < 0 || b < 0 || sem_init(&noticed, 0, 0) != 0) {
        perror("aio");
        return 2;
    }
    sigaction(NOTICE_SIGNAL, &action, NULL);
    sigaction(LIST_SIGNAL, &action, NULL);
    for (size_t i = 0; i < sizeof block; i++)
        block[i] = (char)(i * 2654435761u >> 13);
    reset();
    requests();
    notifications();
    lists();
    return 0;
}
