/* Making streams on managed descriptors, and putting them in the place of stdin, stdout and stderr. */
#include "stream.h"
#include <string.h>
#include <unistd.h>

/* Flags of a FILE (libio.h), the same since glibc 2.1. */
enum { NO_READS = 4, NO_WRITES = 8, AT_END = 0x10, FAILED = 0x20, APPENDING = 0x1000 };

/* What lies behind the public part of a stream of fopencookie's. The functions are stored scrambled, alike in all streams of a process. */
struct cookie_part {
    const void *methods;
    void *cookie;
    const void *functions[4];
};
static const void *our_methods;
static const void *our_read;

/* The C library's own, by the version that only it has: sanitizers wrap what they are given. */
#ifdef __aarch64__
#define FIRST_VERSION "GLIBC_2.17"
#else
#define FIRST_VERSION "GLIBC_2.2.5"
#endif
DECLARE_REAL_OF(FIRST_VERSION, FILE *, fopencookie, void *, const char *, cookie_io_functions_t);

static struct cookie_part *part_of(FILE *fp) { return (struct cookie_part *)((char *)fp + sizeof *fp); }

int sw_is_stream(FILE *fp)
{
    const void *methods = __atomic_load_n(&our_methods, __ATOMIC_ACQUIRE);
    return methods && part_of(fp)->methods == methods && part_of(fp)->functions[0] == __atomic_load_n(&our_read, __ATOMIC_RELAXED);
}

/* The cookie is the stream itself: its descriptor may be another one after freopen. */
static ssize_t take(void *stream, char *to, size_t n) { return read(((FILE *)stream)->_fileno, to, n); }
static ssize_t give(void *stream, const char *from, size_t n)
{
    FILE *fp = stream;
    size_t done = 0;
    while (done < n) {
        ssize_t wrote = write(fp->_fileno, from + done, n - done);
        if (wrote <= 0) break;
        done += (size_t)wrote;
    }
    /* The C library moves the place that it remembers itself for streams of its own, and forgets to for these. */
    if (fp->_offset >= 0) fp->_offset += (off64_t)done;
    return (ssize_t)done;
}
static int move(void *stream, off64_t *at, int whence)
{
    off64_t now = lseek64(((FILE *)stream)->_fileno, *at, whence);
    if (now < 0) return -1;
    *at = now;
    return 0;
}
static int end(void *stream) { return close(((FILE *)stream)->_fileno); }

int sw_mode_of(const char *text, struct sw_mode *mode)
{
    int access, extra = 0;
    switch (*text) {
    case 'r': access = O_RDONLY; break;
    case 'w': access = O_WRONLY, extra = O_CREAT | O_TRUNC; break;
    case 'a': access = O_WRONLY, extra = O_CREAT | O_APPEND; break;
    default: return 0;
    }
    memcpy(mode->kind, (char[3]){*text, 0, 0}, 3);
    const char *known = text;
    /* Six more letters count, and unknown ones are passed over, as in the C library. */
    for (int i = 1; i < 7 && text[i]; i++) {
        if (text[i] == '+') access = O_RDWR, mode->kind[1] = '+';
        if (text[i] == 'x') extra |= O_EXCL;
        if (text[i] == 'e') extra |= O_CLOEXEC;
        if (strchr("+xb", text[i])) known = text + i;
    }
    mode->flags = access | extra;
    mode->has_charset = strstr(known + 1, ",ccs=") != NULL;
    return 1;
}

static FILE *make(int fd, const char *kind)
{
    static char mark;
    cookie_io_functions_t functions = {take, give, move, end};
    FILE *fp = REAL(fopencookie)(&mark, kind, functions);
    if (!fp) return NULL;
    struct cookie_part *part = part_of(fp);
    if (part->cookie != &mark) { /* a C library that lays streams out differently: nothing that was learnt here holds */
        fp->_fileno = -1;
        fclose(fp);
        errno = ENOSYS;
        return NULL;
    }
    part->cookie = fp;
    __atomic_store_n(&our_read, part->functions[0], __ATOMIC_RELAXED);
    __atomic_store_n(&our_methods, part->methods, __ATOMIC_RELEASE);
    fp->_fileno = fd;
    return fp;
}

int sw_seek_to_append(int fd, const struct sw_mode *mode)
{
    int saved = errno;
    if (mode->kind[0] != 'a' || mode->kind[1] == '+' || lseek64(fd, 0, SEEK_END) >= 0) return 0;
    if (errno != ESPIPE) return -1;
    errno = saved;
    return 0;
}

FILE *sw_stream_on(int fd, const struct sw_mode *mode)
{
    if (mode->has_charset) {
        errno = EINVAL;
        return NULL;
    }
    return make(fd, mode->kind);
}

void sw_stream_become(FILE *fp, int fd, const struct sw_mode *mode)
{
    int barred = mode->kind[1] == '+' ? 0 : mode->kind[0] == 'r' ? NO_WRITES : NO_READS;
    fp->_flags &= ~(NO_READS | NO_WRITES | AT_END | FAILED | APPENDING);
    fp->_flags |= barred | (mode->kind[0] == 'a' ? APPENDING : 0);
    fp->_fileno = fd;
    sw_seek_to_append(fd, mode);
}

/* For standard streams (the C library's own are never freed, and programs rely on it) and for a freopen that fails. */
int sw_stream_end(FILE *fp)
{
    flockfile(fp);
    int flushed = fflush_unlocked(fp);
    __fpurge(fp);
    int closed = close(fp->_fileno);
    fp->_flags |= NO_READS | NO_WRITES;
    fp->_fileno = -1;
    funlockfile(fp);
    return flushed || closed ? EOF : 0;
}

/* What one stream still holds goes to another, as if the descriptor alone had changed. Wide characters cannot be taken out: that shows as an error. */
static void hand_over(FILE *old, FILE *fp)
{
    size_t pending = __fpending(old);
    if (old->_mode > 0) {
        fp->_flags |= pending ? FAILED : 0;
    } else {
        if (pending) fwrite(old->_IO_write_base, 1, pending, fp);
        if (__freading(old))
            for (char *c = old->_IO_read_end; c > old->_IO_read_ptr;) ungetc((unsigned char)*--c, fp);
    }
    fp->_flags |= old->_flags & (AT_END | FAILED);
    __fpurge(old);
}

/* A managed file has arrived behind a standard descriptor, or one whose calls are recorded was there from the start: the variable gets a stream that can
 * serve it (and whatever comes behind that number later), with all that the old one held. */
void sw_standard(int fd)
{
    int saved = errno;
    FILE **variable = fd == 0 ? &stdin : fd == 1 ? &stdout : &stderr, *old = *variable;
    if (entry(fd) == 0 || !old || sw_is_stream(old) || old->_fileno != fd) return;
    FILE *fp = make(fd, fd == 0 ? "r" : "w");
    if (fp) {
        if (fd == 2 || __fbufsize(old) == 1) setvbuf(fp, NULL, _IONBF, 0);
        else if (__flbf(old)) setvbuf(fp, NULL, _IOLBF, 0);
        hand_over(old, fp);
        *variable = fp;
    }
    errno = saved;
}
