/* The symbols of the preloaded library for temporary files with a name: the C library opens them inside itself, so that one made beside managed
 * files (and renamed over one of them, as rsync and sed -i do) would be plain. */
#include "../hook.h"
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

DECLARE_REAL(int, mkostemps64, char *, int, int);

enum { LETTERS = 6, TRIES = 1000 };

static void fill(char *letters)
{
    static const char from[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
    uint64_t random = 0;
    if (getrandom(&random, sizeof random, GRND_NONBLOCK) != sizeof random) random = sw_ticks();
    for (int i = 0; i < LETTERS; i++, random /= sizeof from - 1) letters[i] = from[random % (sizeof from - 1)];
}

EXPORT int mkostemps64(char *name, int suffix, int flags)
{
    size_t len = strlen(name);
    if (suffix < 0 || len < LETTERS + (size_t)suffix) return REAL(mkostemps64)(name, suffix, flags);
    char *letters = name + len - (size_t)suffix - LETTERS;
    if (memcmp(letters, "XXXXXX", LETTERS) != 0) return REAL(mkostemps64)(name, suffix, flags);
    int saved = errno;
    for (int i = 0; i < TRIES; i++) {
        fill(letters);
        long fd = sw_stream_open(name, (flags & ~O_ACCMODE) | O_RDWR | O_CREAT | O_EXCL, 0600);
        if (fd == -EEXIST) continue;
        if (fd >= 0) errno = saved;
        if (fd != SW_PASS) return (int)ret(fd);
        memset(letters, 'X', LETTERS);
        return REAL(mkostemps64)(name, suffix, flags);
    }
    errno = EEXIST;
    return -1;
}
ALIAS(int, mkostemps, mkostemps64, char *, int, int);
EXPORT int mkstemps64(char *name, int suffix) { return mkostemps64(name, suffix, 0); }
EXPORT int mkostemp64(char *name, int flags) { return mkostemps64(name, 0, flags); }
EXPORT int mkstemp64(char *name) { return mkostemps64(name, 0, 0); }
ALIAS(int, mkstemps, mkstemps64, char *, int);
ALIAS(int, mkostemp, mkostemp64, char *, int);
ALIAS(int, mkstemp, mkstemp64, char *);
