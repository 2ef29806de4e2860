/* The symbols of the preloaded library for limits: the one of a file's size is counted on managed files by the runtime, which must hear of it. */
#include "hook.h"
#include <sys/resource.h>
#include <ulimit.h>

DECLARE_REAL(int, setrlimit64, __rlimit_resource_t, const struct rlimit64 *);
DECLARE_REAL(int, prlimit64, pid_t, __rlimit_resource_t, const struct rlimit64 *, struct rlimit64 *);
DECLARE_REAL(long, ulimit, int, ...);

EXPORT int setrlimit64(__rlimit_resource_t which, const struct rlimit64 *limit)
{
    int r = REAL(setrlimit64)(which, limit);
    sw_limit_changed();
    return r;
}
ALIAS(int, setrlimit, setrlimit64, __rlimit_resource_t, const struct rlimit *);
EXPORT int prlimit64(pid_t pid, __rlimit_resource_t which, const struct rlimit64 *limit, struct rlimit64 *before)
{
    int r = REAL(prlimit64)(pid, which, limit, before);
    if (limit) sw_limit_changed();
    return r;
}
ALIAS(int, prlimit, prlimit64, pid_t, __rlimit_resource_t, const struct rlimit *, struct rlimit *);
EXPORT long ulimit(int command, ...)
{
    va_list ap;
    va_start(ap, command);
    long arg = va_arg(ap, long);
    va_end(ap);
    long r = REAL(ulimit)(command, arg);
    sw_limit_changed();
    return r;
}
