/* lockf: the C library's own calls fcntl from within, where no hook sees it. */
#include "hook.h"
#include <unistd.h>

DECLARE_REAL(int, lockf64, int, int, off64_t);

EXPORT int lockf64(int fd, int op, off64_t len)
{
    uint32_t e = entry(fd);
    return LIKELY(e == 0 || (e & SW_TRACED)) ? REAL(lockf64)(fd, op, len) : (int)ret(sw_lockf(fd, op, len));
}
ALIAS(int, lockf, lockf64, int, int, off_t);
