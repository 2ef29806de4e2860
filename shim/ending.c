/* The symbols of the preloaded library by which a process ends in good order. What has no name any more, and was left open, is freed as at its last
 * close. */
#include "hook.h"
#include <stdlib.h>
#include <unistd.h>

DECLARE_REAL(void, _exit, int);

/* A child of fork may find the loader's lock held for ever: the look-up is done before. */
__attribute__((constructor)) static void resolve(void) { REAL(_exit); }

/* After return from main and exit. */
__attribute__((destructor)) static void finish(void)
{
    int saved = errno;
    sw_process_ends();
    errno = saved;
}

EXPORT _Noreturn void _exit(int status)
{
    sw_process_ends();
    REAL(_exit)(status);
    __builtin_unreachable();
}
EXPORT _Noreturn void _Exit(int status) { _exit(status); }
