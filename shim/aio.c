/* The symbols of the preloaded library for POSIX AIO. The C library's helper threads read and write inside the C library, where no hook is, so a
 * request on a managed file is carried out when it is submitted, and its outcome is put where aio_error, aio_return, aio_suspend and aio_cancel,
 * which stay the C library's own, look for it. Notifications are the C library's own too: those of an empty list. */
#include "hook.h"
#include <aio.h>

enum { AS_DSYNC = 3, AS_SYNC = 4, AS_KIND = 127 }; /* beyond LIO_READ, LIO_WRITE and LIO_NOP; bit 7 marks 64-bit spellings */

DECLARE_REAL(int, aio_read64, struct aiocb64 *);
DECLARE_REAL(int, aio_write64, struct aiocb64 *);
DECLARE_REAL(int, aio_fsync64, int, struct aiocb64 *);
DECLARE_REAL_OF("GLIBC_2.4", int, lio_listio64, int, struct aiocb64 *const *, int, struct sigevent *);

/* -1 with errno when the C library would not have queued the request; whatever else went wrong is the request's own outcome. */
static int carry(struct aiocb64 *request, int kind)
{
    struct aiocb64 *none[1] = {NULL};
    int saved = errno;
    long r = sw_aio(request->aio_fildes, kind, request->aio_reqprio, request->aio_buf, request->aio_nbytes, request->aio_offset, &request->__error_code,
                    &request->__return_value);
    if (r == 0 && request->aio_sigevent.sigev_notify != SIGEV_NONE) REAL(lio_listio64)(LIO_NOWAIT, none, 1, &request->aio_sigevent);
    errno = saved;
    return (int)ret(r);
}

/* One of a plain file whose calls are recorded: it stands in the trace from when it was submitted. */
static void record(const struct aiocb64 *request, int kind, int result, uint64_t start)
{
    if ((entry(request->aio_fildes) & SW_TRACED) && (kind == LIO_READ || kind == LIO_WRITE))
        sw_traced_aio(request->aio_fildes, kind == LIO_READ ? OP_READ : OP_WRITE, (uint64_t)request->aio_offset, request->aio_nbytes, result, start);
}
#define SUBMIT(name, kind)                                                         \
    EXPORT int name(struct aiocb64 *request)                                       \
    {                                                                              \
        if (!is_plain(request->aio_fildes)) return carry(request, kind);           \
        if (LIKELY(entry(request->aio_fildes) == 0)) return REAL(name)(request);   \
        uint64_t start = sw_ticks();                                               \
        int result = REAL(name)(request);                                          \
        record(request, kind, result, start);                                      \
        return result;                                                             \
    }
SUBMIT(aio_read64, LIO_READ)
SUBMIT(aio_write64, LIO_WRITE)
EXPORT int aio_fsync64(int op, struct aiocb64 *request)
{
    if (is_plain(request->aio_fildes)) return REAL(aio_fsync64)(op, request);
    if (op != O_SYNC && op != O_DSYNC) return (int)ret(-EINVAL);
    request->aio_reqprio = 0;
    return carry(request, op == O_SYNC ? AS_SYNC : AS_DSYNC);
}

/* Managed requests are done, and hidden from the C library as LIO_NOP while it takes the others. */
EXPORT int lio_listio64(int mode, struct aiocb64 *const list[], int count, struct sigevent *event)
{
    int ours = 0, failed = 0;
    uint64_t start = sw_tracing ? sw_ticks() : 0;
    for (int i = 0; i < count; i++)
        ours |= list[i] != NULL && !is_plain(list[i]->aio_fildes);
    for (int i = 0; start && i < count; i++)
        if (list[i] != NULL) record(list[i], list[i]->aio_lio_opcode & AS_KIND, 0, start);
    if (LIKELY(!ours) || (mode != LIO_WAIT && mode != LIO_NOWAIT)) return REAL(lio_listio64)(mode, list, count, event);
    int kinds[count];
    for (int i = 0; i < count; i++) {
        kinds[i] = LIO_NOP;
        if (list[i] == NULL || is_plain(list[i]->aio_fildes) || (list[i]->aio_lio_opcode & AS_KIND) == LIO_NOP) continue;
        kinds[i] = list[i]->aio_lio_opcode;
        failed |= carry(list[i], kinds[i] & AS_KIND) != 0 || (mode == LIO_WAIT && list[i]->__error_code != 0);
        list[i]->aio_lio_opcode = LIO_NOP;
    }
    int r = REAL(lio_listio64)(mode, list, count, event);
    for (int i = 0; i < count; i++)
        if (kinds[i] != LIO_NOP) list[i]->aio_lio_opcode = kinds[i];
    return r != 0 || !failed ? r : (int)ret(mode == LIO_WAIT ? -EIO : -EINVAL);
}

/* On LP64 both structs are the same, and so are the functions. */
ALIAS(int, aio_read, aio_read64, struct aiocb *);
ALIAS(int, aio_write, aio_write64, struct aiocb *);
ALIAS(int, aio_fsync, aio_fsync64, int, struct aiocb *);
ALIAS(int, lio_listio, lio_listio64, int, struct aiocb *const *, int, struct sigevent *);
