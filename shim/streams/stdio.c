/* The symbols of the preloaded library for streams: those that open, reopen and close them, and the two that move bytes other than through a
 * stream's own functions (fread in one piece, dprintf). All others of the C library work on the streams that are made here. */
#include "stream.h"
#include <stdlib.h>
#include <unistd.h>
#undef fread_unlocked

DECLARE_REAL(FILE *, fopen64, const char *, const char *);
DECLARE_REAL(FILE *, fdopen, int, const char *);
DECLARE_REAL(FILE *, freopen64, const char *, const char *, FILE *);
DECLARE_REAL(int, fclose, FILE *);
DECLARE_REAL(int, fcntl, int, int, ...);
DECLARE_REAL(int, close, int);
DECLARE_REAL(size_t, fread, void *, size_t, size_t, FILE *);
DECLARE_REAL(size_t, fread_unlocked, void *, size_t, size_t, FILE *);
DECLARE_REAL(int, vdprintf, int, const char *, va_list);
DECLARE_REAL(int, __vdprintf_chk, int, int, const char *, va_list);
DECLARE_REAL(int, __vasprintf_chk, char **, int, const char *, va_list);

/* A stream takes the descriptor of a file that was just opened over, or the descriptor is closed. */
static FILE *stream_or_close(int fd, const struct sw_mode *mode)
{
    int saved = errno;
    FILE *fp = sw_seek_to_append(fd, mode) ? NULL : entry(fd) != 0 ? sw_stream_on(fd, mode) : REAL(fdopen)(fd, mode->kind);
    if (!fp) {
        saved = errno;
        close(fd);
    }
    errno = saved;
    return fp;
}

/* --- open ------------------------------------------------------------------------------------------------------------------- */
static long open_managed(const char *path, const struct sw_mode *mode)
{
    return sw_stream_open(path, mode->has_charset ? mode->flags & ~O_TRUNC : mode->flags, 0666);
}

EXPORT FILE *fopen64(const char *path, const char *text)
{
    struct sw_mode mode;
    if (!sw_mode_of(text, &mode)) return REAL(fopen64)(path, text);
    FILE *plain = NULL;
    if (LIKELY(!sw_tracing) && !(mode.flags & O_CREAT)) {
        int saved = errno;
        plain = REAL(fopen64)(path, text);
        /* A descriptor's name may have led the kernel to head. */
        if (plain ? !sw_is_of_a_descriptor(path) : errno != ENOENT) {
            if (plain && (mode.flags & O_ACCMODE) != O_RDONLY) sw_plain_written(plain->_fileno);
            return plain;
        }
        errno = saved;
    }
    long fd = open_managed(path, &mode);
    if (plain && fd == SW_PASS) return plain;
    if (plain) REAL(fclose)(plain);
    if (fd == SW_PASS) {
        if (LIKELY(!sw_tracing) || mode.has_charset) return REAL(fopen64)(path, text);
        /* What is recorded must pass the hooks, plain or not. */
        fd = open64(path, mode.flags, 0666);
        if (fd < 0) return NULL;
    }
    return ret(fd) < 0 ? NULL : stream_or_close((int)fd, &mode);
}
EXPORT FILE *fopen(const char *path, const char *text) { return fopen64(path, text); }

EXPORT FILE *fdopen(int fd, const char *text)
{
    struct sw_mode mode;
    if (LIKELY(entry(fd) == 0) || !sw_mode_of(text, &mode) || (mode.has_charset && !is_managed(fd))) return REAL(fdopen)(fd, text);
    int saved = errno, flags = fcntl(fd, F_GETFL);
    if (flags < 0) return NULL;
    int has = flags & O_ACCMODE, wants = mode.flags & O_ACCMODE;
    if (flags & O_PATH || (has != O_RDWR && has != wants)) {
        errno = EINVAL;
        return NULL;
    }
    /* Only a descriptor that did not append yet is sent to the end, as in the C library. */
    if (mode.flags & O_APPEND && !(flags & O_APPEND) && (fcntl(fd, F_SETFL, (long)(flags | O_APPEND)) < 0 || sw_seek_to_append(fd, &mode))) return NULL;
    FILE *fp = sw_stream_on(fd, &mode);
    if (fp) errno = saved;
    return fp;
}

/* --- close, reopen ---------------------------------------------------------------------------------------------------------- */
/* The C library closes a stream's descriptor past the hooks: whatever the table says of it ends before. The number itself stays taken. */
static void forget(int fd)
{
    int saved = errno, raw = REAL(fcntl)(fd, F_DUPFD_CLOEXEC, 3);
    if (raw >= 0) {
        dup2(raw, fd);
        REAL(close)(raw);
    }
    errno = saved;
}

static int is_standard(FILE *fp) { return fp == stdin || fp == stdout || fp == stderr; }

EXPORT int fclose(FILE *fp)
{
    if (!LIKELY(!sw_is_stream(fp))) {
        if (is_standard(fp)) return sw_stream_end(fp);
    } else if (!LIKELY(entry(fp->_fileno) == 0)) {
        fflush(fp);
        forget(fp->_fileno);
    }
    return REAL(fclose)(fp);
}

/* The C library's way of failing: the stream is closed, and stays for whoever still holds it. */
static FILE *reopen_failed(FILE *fp, int error)
{
    if (sw_is_stream(fp)) {
        sw_stream_end(fp);
    } else {
        if (entry(fp->_fileno) != 0) forget(fp->_fileno);
        REAL(freopen64)("", "r", fp);
    }
    errno = error;
    return NULL;
}

/* Puts the new file behind the stream's own number, as freopen does: programs count on fileno(stdout) being 1. */
static int into_place(int fd, int place, int flags)
{
    if (place < 0 || fd == place) return fd;
    int error = dup3(fd, place, flags & O_CLOEXEC) < 0 ? errno : 0;
    close(fd);
    errno = error ? error : errno;
    return error ? -1 : place;
}

static FILE *reopen(const char *path, const struct sw_mode *mode, FILE *fp, long fd)
{
    int saved = errno, standard = fp == stdin ? 0 : fp == stdout ? 1 : fp == stderr ? 2 : -1;
    int ours = sw_is_stream(fp), place = fp->_fileno;
    __fpurge(fp);
    if (fd == SW_PASS) {
        fd = open64(path, mode->flags, 0666);
        fd = fd < 0 ? -errno : fd;
    }
    if (fd >= 0 && mode->has_charset) {
        close((int)fd);
        fd = -EINVAL;
    }
    if (fd < 0) return reopen_failed(fp, (int)-fd);
    int number = into_place((int)fd, place, mode->flags);
    if (number < 0) return reopen_failed(fp, errno);
    if (!ours && standard >= 0 && number == standard) /* the arrival has changed the variable */
        fp = standard == 0 ? stdin : standard == 1 ? stdout : stderr;
    if (sw_is_stream(fp)) {
        sw_stream_become(fp, number, mode);
        errno = saved;
        return fp;
    }
    return stream_or_close(number, mode);
}

EXPORT FILE *freopen64(const char *path, const char *text, FILE *fp)
{
    struct sw_mode mode;
    char self[32];
    int ours = sw_is_stream(fp), known = sw_mode_of(text, &mode);
    const char *name = path;
    if (!known && ours) return reopen_failed(fp, EINVAL);
    if (!path && (ours || is_managed(fp->_fileno))) {
        snprintf(self, sizeof self, "/proc/self/fd/%d", fp->_fileno);
        name = self;
    }
    /* Before the new file is opened, and cut: it may be the same one. */
    if (known && name && __fwriting(fp)) fflush(fp);
    long fd = known && name ? open_managed(name, &mode) : SW_PASS;
    if (ours || fd != SW_PASS) return reopen(name, &mode, fp, fd);
    if (entry(fp->_fileno) != 0) forget(fp->_fileno);
    FILE *plain = REAL(freopen64)(path, text, fp);
    if (plain && (!known || (mode.flags & O_ACCMODE) != O_RDONLY)) sw_plain_written(plain->_fileno);
    return plain;
}
ALIAS(FILE *, freopen, freopen64, const char *, const char *, FILE *);

/* --- large reads ------------------------------------------------------------------------------------------------------------ */
/* fopencookie's streams fill their buffer again and again for a large fread; the C library's own read into the program's memory, and so do ours:
 * what is buffered first, then whole buffers' worth at once, the rest (and the end, and errors) in the stream's way. */
static size_t read_large(char *to, size_t n, FILE *fp)
{
    enum { IN_BACKUP = 0x100 }; /* of FILE: characters that were put back are being read */
    size_t room = __fbufsize(fp), done = 0;
    room = room ? room : BUFSIZ;
    if (n < room || !__freadable(fp) || __fwriting(fp) || feof_unlocked(fp) || fp->_flags & IN_BACKUP || entry(fp->_fileno) == 0)
        return REAL(fread_unlocked)(to, 1, n, fp);
    size_t buffered = (size_t)(fp->_IO_read_end - fp->_IO_read_ptr);
    if (buffered) done = REAL(fread_unlocked)(to, 1, buffered < n ? buffered : n, fp);
    while (n - done >= room) {
        ssize_t got = read(fp->_fileno, to + done, n - done);
        if (got <= 0) break;
        done += (size_t)got;
    }
    return done < n ? done + REAL(fread_unlocked)(to + done, 1, n - done, fp) : done;
}

EXPORT size_t fread_unlocked(void *to, size_t size, size_t count, FILE *fp)
{
    if (LIKELY(!sw_is_stream(fp)) || size == 0) return REAL(fread_unlocked)(to, size, count, fp);
    size_t done = read_large(to, size * count, fp);
    return done == size * count ? count : done / size;
}
EXPORT size_t fread(void *to, size_t size, size_t count, FILE *fp)
{
    if (LIKELY(!sw_is_stream(fp))) return REAL(fread)(to, size, count, fp);
    flockfile(fp);
    size_t done = fread_unlocked(to, size, count, fp);
    funlockfile(fp);
    return done;
}

static void check(size_t size, size_t count, size_t room)
{
    size_t bytes;
    must_fit(__builtin_mul_overflow(size, count, &bytes) ? SIZE_MAX : bytes, room);
}
EXPORT size_t __fread_chk(void *to, size_t room, size_t size, size_t count, FILE *fp) { check(size, count, room); return fread(to, size, count, fp); }
EXPORT size_t __fread_unlocked_chk(void *to, size_t room, size_t size, size_t count, FILE *fp)
{
    check(size, count, room);
    return fread_unlocked(to, size, count, fp);
}

/* --- printing to a descriptor ----------------------------------------------------------------------------------------------- */
static int write_text(int fd, char *text, int n)
{
    if (n < 0) return n;
    int done = 0, saved = errno;
    while (done < n) {
        ssize_t wrote = write(fd, text + done, (size_t)(n - done));
        if (wrote <= 0) break;
        done += (int)wrote;
    }
    saved = done < n ? errno : saved;
    free(text);
    errno = saved;
    return done < n ? -1 : n;
}
EXPORT int vdprintf(int fd, const char *format, va_list values)
{
    if (is_plain(fd)) return REAL(vdprintf)(fd, format, values);
    char *text = NULL;
    int n = vasprintf(&text, format, values);
    return write_text(fd, text, n);
}
EXPORT int __vdprintf_chk(int fd, int level, const char *format, va_list values)
{
    if (is_plain(fd)) return REAL(__vdprintf_chk)(fd, level, format, values);
    char *text = NULL;
    int n = REAL(__vasprintf_chk)(&text, level, format, values);
    return write_text(fd, text, n);
}
EXPORT int dprintf(int fd, const char *format, ...) { WITH_VALUES(vdprintf(fd, format, values)) }
EXPORT int __dprintf_chk(int fd, int level, const char *format, ...) { WITH_VALUES(__vdprintf_chk(fd, level, format, values)) }
