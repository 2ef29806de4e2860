/* The symbols of the preloaded library for wide characters on streams. The C library refuses them on fopencookie's streams, so on ours each
 * character is converted here and moved as bytes; every other stream is the C library's. A stream of ours has no orientation to keep. */
#include "stream.h"
#include <limits.h>
#include <stdlib.h>
#include <wchar.h>

enum { FAILED = 0x20 }; /* of FILE */

#define LOCKED(type, fp, call) \
    do {                       \
        flockfile(fp);         \
        type r_ = call;        \
        funlockfile(fp);       \
        return r_;             \
    } while (0)

/* --- in --------------------------------------------------------------------------------------------------------------------- */
static wint_t get(FILE *fp)
{
    mbstate_t state = {0};
    wchar_t wide;
    for (int n = 0;; n++) {
        int c = getc_unlocked(fp);
        if (c == EOF && (n == 0 || ferror_unlocked(fp))) return WEOF;
        size_t r = c == EOF ? (size_t)-1 : mbrtowc(&wide, &(char){(char)c}, 1, &state);
        if (r == (size_t)-2) continue;
        if (r != (size_t)-1) return (wint_t)wide;
        fp->_flags |= FAILED;
        errno = EILSEQ;
        return WEOF;
    }
}

static wchar_t *get_line(wchar_t *to, int room, FILE *fp)
{
    int n = 0, failed_before = ferror_unlocked(fp);
    while (n < room - 1) {
        wint_t c = get(fp);
        if (c == WEOF) break;
        to[n++] = (wchar_t)c;
        if (c == L'\n') break;
    }
    if (room < 1 || (n == 0 && room > 1) || (!failed_before && ferror_unlocked(fp) && errno != EAGAIN)) return NULL;
    to[n] = 0;
    return to;
}

static wint_t put_back(wint_t c, FILE *fp)
{
    char bytes[MB_LEN_MAX];
    mbstate_t state = {0};
    size_t n = c == WEOF ? (size_t)-1 : wcrtomb(bytes, (wchar_t)c, &state);
    if (n == (size_t)-1) return WEOF;
    while (n > 0)
        if (ungetc((unsigned char)bytes[--n], fp) == EOF) return WEOF;
    return c;
}

DECLARE_REAL(wint_t, fgetwc, FILE *);
DECLARE_REAL(wint_t, fgetwc_unlocked, FILE *);
DECLARE_REAL(wint_t, ungetwc, wint_t, FILE *);
DECLARE_REAL(wchar_t *, fgetws, wchar_t *, int, FILE *);
DECLARE_REAL(wchar_t *, fgetws_unlocked, wchar_t *, int, FILE *);

EXPORT wint_t fgetwc_unlocked(FILE *fp) { return LIKELY(!sw_is_stream(fp)) ? REAL(fgetwc_unlocked)(fp) : get(fp); }
EXPORT wint_t fgetwc(FILE *fp)
{
    if (LIKELY(!sw_is_stream(fp))) return REAL(fgetwc)(fp);
    LOCKED(wint_t, fp, get(fp));
}
ALIAS(wint_t, getwc, fgetwc, FILE *);
ALIAS(wint_t, getwc_unlocked, fgetwc_unlocked, FILE *);
EXPORT wint_t getwchar(void) { return fgetwc(stdin); }
EXPORT wint_t getwchar_unlocked(void) { return fgetwc_unlocked(stdin); }
EXPORT wint_t ungetwc(wint_t c, FILE *fp)
{
    if (LIKELY(!sw_is_stream(fp))) return REAL(ungetwc)(c, fp);
    LOCKED(wint_t, fp, put_back(c, fp));
}
EXPORT wchar_t *fgetws_unlocked(wchar_t *to, int room, FILE *fp) { return LIKELY(!sw_is_stream(fp)) ? REAL(fgetws_unlocked)(to, room, fp) : get_line(to, room, fp); }
EXPORT wchar_t *fgetws(wchar_t *to, int room, FILE *fp)
{
    if (LIKELY(!sw_is_stream(fp))) return REAL(fgetws)(to, room, fp);
    LOCKED(wchar_t *, fp, get_line(to, room, fp));
}
static void check(int room, size_t has)
{
    if (room > 0) must_fit((size_t)room, has);
}
EXPORT wchar_t *__fgetws_chk(wchar_t *to, size_t has, int room, FILE *fp) { check(room, has); return fgetws(to, room, fp); }
EXPORT wchar_t *__fgetws_unlocked_chk(wchar_t *to, size_t has, int room, FILE *fp) { check(room, has); return fgetws_unlocked(to, room, fp); }

/* --- out -------------------------------------------------------------------------------------------------------------------- */
static wint_t put(wchar_t c, FILE *fp)
{
    char bytes[MB_LEN_MAX];
    mbstate_t state = {0};
    size_t n = wcrtomb(bytes, c, &state);
    if (n == (size_t)-1) {
        fp->_flags |= FAILED;
        return WEOF;
    }
    return fwrite_unlocked(bytes, 1, n, fp) == n ? (wint_t)c : WEOF;
}
static int put_all(const wchar_t *from, size_t n, FILE *fp)
{
    for (; n > 0; n--)
        if (put(*from++, fp) == WEOF) return -1;
    return 1;
}

DECLARE_REAL(wint_t, fputwc, wchar_t, FILE *);
DECLARE_REAL(wint_t, fputwc_unlocked, wchar_t, FILE *);
DECLARE_REAL(int, fputws, const wchar_t *, FILE *);
DECLARE_REAL(int, fputws_unlocked, const wchar_t *, FILE *);
DECLARE_REAL(int, fwide, FILE *, int);

EXPORT wint_t fputwc_unlocked(wchar_t c, FILE *fp) { return LIKELY(!sw_is_stream(fp)) ? REAL(fputwc_unlocked)(c, fp) : put(c, fp); }
EXPORT wint_t fputwc(wchar_t c, FILE *fp)
{
    if (LIKELY(!sw_is_stream(fp))) return REAL(fputwc)(c, fp);
    LOCKED(wint_t, fp, put(c, fp));
}
ALIAS(wint_t, putwc, fputwc, wchar_t, FILE *);
ALIAS(wint_t, putwc_unlocked, fputwc_unlocked, wchar_t, FILE *);
EXPORT wint_t putwchar(wchar_t c) { return fputwc(c, stdout); }
EXPORT wint_t putwchar_unlocked(wchar_t c) { return fputwc_unlocked(c, stdout); }
EXPORT int fputws_unlocked(const wchar_t *s, FILE *fp) { return LIKELY(!sw_is_stream(fp)) ? REAL(fputws_unlocked)(s, fp) : put_all(s, wcslen(s), fp); }
EXPORT int fputws(const wchar_t *s, FILE *fp)
{
    if (LIKELY(!sw_is_stream(fp))) return REAL(fputws)(s, fp);
    LOCKED(int, fp, put_all(s, wcslen(s), fp));
}
EXPORT int fwide(FILE *fp, int mode) { return LIKELY(!sw_is_stream(fp)) ? REAL(fwide)(fp, mode) : (mode > 0) - (mode < 0); }

/* --- formats ---------------------------------------------------------------------------------------------------------------- */
DECLARE_REAL(int, vfwprintf, FILE *, const wchar_t *, va_list);
DECLARE_REAL(int, __vfwprintf_chk, FILE *, int, const wchar_t *, va_list);
DECLARE_REAL(int, __isoc99_vfwscanf, FILE *, const wchar_t *, va_list);
DECLARE_REAL(int, __isoc99_vfscanf, FILE *, const char *, va_list);

/* Formatted into memory first; `level` is the fortified spellings', -1 for the others. */
static int print(FILE *fp, int level, const wchar_t *format, va_list values)
{
    wchar_t *text = NULL;
    size_t n = 0;
    FILE *memory = open_wmemstream(&text, &n);
    if (!memory) return -1;
    int done = level < 0 ? REAL(vfwprintf)(memory, format, values) : REAL(__vfwprintf_chk)(memory, level, format, values);
    if (fclose(memory) != 0) done = -1;
    if (done >= 0) {
        flockfile(fp);
        if (put_all(text, n, fp) < 0) done = -1;
        funlockfile(fp);
    }
    free(text);
    return done;
}

/* A conversion means the same in both families; only widths of non-ASCII text count bytes here. */
static int scan(FILE *fp, const wchar_t *format, va_list values)
{
    size_t room = wcslen(format) * MB_LEN_MAX + 1;
    char *text = malloc(room);
    int n = EOF;
    if (text && wcstombs(text, format, room) != (size_t)-1) n = REAL(__isoc99_vfscanf)(fp, text, values);
    free(text);
    return n;
}

EXPORT int vfwprintf(FILE *fp, const wchar_t *format, va_list values)
{
    return LIKELY(!sw_is_stream(fp)) ? REAL(vfwprintf)(fp, format, values) : print(fp, -1, format, values);
}
EXPORT int __vfwprintf_chk(FILE *fp, int level, const wchar_t *format, va_list values)
{
    return LIKELY(!sw_is_stream(fp)) ? REAL(__vfwprintf_chk)(fp, level, format, values) : print(fp, level, format, values);
}
EXPORT int __isoc99_vfwscanf(FILE *fp, const wchar_t *format, va_list values)
{
    return LIKELY(!sw_is_stream(fp)) ? REAL(__isoc99_vfwscanf)(fp, format, values) : scan(fp, format, values);
}

EXPORT int fwprintf(FILE *fp, const wchar_t *format, ...) { WITH_VALUES(vfwprintf(fp, format, values)) }
EXPORT int wprintf(const wchar_t *format, ...) { WITH_VALUES(vfwprintf(stdout, format, values)) }
EXPORT int vwprintf(const wchar_t *format, va_list values) { return vfwprintf(stdout, format, values); }
EXPORT int __fwprintf_chk(FILE *fp, int level, const wchar_t *format, ...) { WITH_VALUES(__vfwprintf_chk(fp, level, format, values)) }
EXPORT int __wprintf_chk(int level, const wchar_t *format, ...) { WITH_VALUES(__vfwprintf_chk(stdout, level, format, values)) }
EXPORT int __vwprintf_chk(int level, const wchar_t *format, va_list values) { return __vfwprintf_chk(stdout, level, format, values); }
EXPORT int __isoc99_fwscanf(FILE *fp, const wchar_t *format, ...) { WITH_VALUES(__isoc99_vfwscanf(fp, format, values)) }
EXPORT int __isoc99_wscanf(const wchar_t *format, ...) { WITH_VALUES(__isoc99_vfwscanf(stdin, format, values)) }
EXPORT int __isoc99_vwscanf(const wchar_t *format, va_list values) { return __isoc99_vfwscanf(stdin, format, values); }
