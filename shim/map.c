/* The symbols of the preloaded library for memory and ioctl. A map of a plain file is one look-up away from the C library's; calls on memory
 * compare it with the bounds of all maps of managed files. */
#include "hook.h"
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

enum { OP_MMAP = 19 };
DECLARE_REAL(void *, mmap64, void *, size_t, int, int, int, off64_t);
DECLARE_REAL(int, munmap, void *, size_t);
DECLARE_REAL(void *, mremap, void *, size_t, size_t, int, ...);
DECLARE_REAL(int, msync, void *, size_t, int);
DECLARE_REAL(int, ioctl, int, unsigned long, ...);

/* Whether memory may hold a map of a managed file. */
static inline int near_ours(const void *at, size_t len)
{
    uintptr_t from = (uintptr_t)at;
    return from < __atomic_load_n(&sw_map_bounds[1], __ATOMIC_ACQUIRE) && from + len > __atomic_load_n(&sw_map_bounds[0], __ATOMIC_ACQUIRE);
}

static void *plain_map(void *at, size_t len, int prot, int flags, int fd, off64_t offset)
{
    void *to = REAL(mmap64)(at, len, prot, flags, fd, offset);
    if (!LIKELY(!(flags & MAP_FIXED) || !near_ours(at, len)) && to != MAP_FAILED) sw_map_covered((uintptr_t)to, len);
    return to;
}

EXPORT void *mmap64(void *at, size_t len, int prot, int flags, int fd, off64_t offset)
{
    uint32_t e = flags & MAP_ANONYMOUS ? 0 : entry(fd);
    if (LIKELY(e == 0)) return plain_map(at, len, prot, flags, fd, offset);
    if (e & SW_TRACED) {
        uint64_t t = sw_ticks();
        void *to = plain_map(at, len, prot, flags, fd, offset);
        sw_traced(fd, OP_MMAP, (uint64_t)offset, len, to == MAP_FAILED ? -1 : (long)len, t);
        return to;
    }
    long to = sw_mmap((uintptr_t)at, len, prot, flags, fd, offset);
    return to == SW_PASS ? plain_map(at, len, prot, flags, fd, offset) : (void *)ret(to);
}
ALIAS(void *, mmap, mmap64, void *, size_t, int, int, int, off_t);

EXPORT int munmap(void *at, size_t len)
{
    if (LIKELY(!near_ours(at, len))) return REAL(munmap)(at, len);
    return (int)ret(sw_munmap((uintptr_t)at, len));
}

EXPORT void *mremap(void *old, size_t old_len, size_t new_len, int flags, ...)
{
    va_list ap;
    va_start(ap, flags);
    void *to = flags & MREMAP_FIXED ? va_arg(ap, void *) : NULL;
    va_end(ap);
    if (!LIKELY(!near_ours(old, old_len + !old_len))) {
        long r = sw_mremap((uintptr_t)old, old_len, new_len, flags, (uintptr_t)to);
        if (r != SW_PASS) return (void *)ret(r);
    }
    void *at = REAL(mremap)(old, old_len, new_len, flags, to);
    if (!LIKELY(!(flags & MREMAP_FIXED) || !near_ours(to, new_len)) && at != MAP_FAILED) sw_map_covered((uintptr_t)to, new_len);
    return at;
}

EXPORT int msync(void *at, size_t len, int flags)
{
    if (LIKELY(!near_ours(at, len))) return REAL(msync)(at, len, flags);
    return (int)ret(sw_msync((uintptr_t)at, len, flags));
}

/* The clone commands name a second descriptor, which may be a managed one. */
static inline int names_another(unsigned long command)
{
    return (unsigned)command == FICLONE || (unsigned)command == FICLONERANGE || (unsigned)command == FIDEDUPERANGE;
}
EXPORT int ioctl(int fd, unsigned long command, ...)
{
    va_list ap;
    va_start(ap, command);
    unsigned long arg = va_arg(ap, unsigned long);
    va_end(ap);
    if (LIKELY(entry(fd) == 0 && !names_another(command))) return REAL(ioctl)(fd, command, arg);
    long r = sw_ioctl(fd, (unsigned)command, arg);
    return r == SW_PASS ? REAL(ioctl)(fd, command, arg) : (int)ret(r);
}
