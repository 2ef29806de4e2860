/* syscall(): programs and runtimes that call the kernel by number where the C library of their day had no function (libuv copies files so).
 * Calls that the hooks carry under a name of their own go there; all others go to the kernel, which refuses what would move bytes of a managed file. */
#include "hook.h"
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

DECLARE_REAL(long, syscall, long, ...);

EXPORT long syscall(long number, ...)
{
    va_list ap;
    va_start(ap, number);
    long a = va_arg(ap, long), b = va_arg(ap, long), c = va_arg(ap, long), d = va_arg(ap, long), e = va_arg(ap, long), f = va_arg(ap, long);
    va_end(ap);
    switch (number) {
    case SYS_copy_file_range: return copy_file_range((int)a, (off64_t *)b, (int)c, (off64_t *)d, (size_t)e, (unsigned)f);
    case SYS_statx: return statx((int)a, (const char *)b, (int)c, (unsigned)d, (struct statx *)e);
    case SYS_renameat2: return renameat2((int)a, (const char *)b, (int)c, (const char *)d, (unsigned)e);
#ifdef SYS_close_range
    case SYS_close_range: return ret(sw_close_range((unsigned)a, (unsigned)b, (unsigned)c));
#endif
    case SYS_clone:
#ifdef SYS_clone3
    case SYS_clone3:
#endif
        sw_memory_is_shared();
        return REAL(syscall)(number, a, b, c, d, e, f);
    /* A program that calls by number looks whether the kernel can, and goes on without: nothing that the log need say. */
    case SYS_io_uring_setup:
    case SYS_io_setup:
        if (sw_rings_refused(0)) return ret(-ENOSYS);
        return REAL(syscall)(number, a, b, c, d, e, f);
    default: return REAL(syscall)(number, a, b, c, d, e, f);
    }
}
