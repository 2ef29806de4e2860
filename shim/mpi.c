/* The symbols of the preloaded library for MPI-IO, of any MPI: handles go through as machine words, and nothing here is compiled against one. Fortran
 * and other tools call the PMPI_ names, so both are here; each goes on to the next symbol of its own name, and the outermost call is recorded. What a
 * call was, the runtime knows (crates/runtime/src/mpi). */
#include "hook.h"
#include <link.h>
#include <string.h>

typedef uintptr_t handle;
typedef long long offset;

/* What a call answers where there is no MPI behind it: MPI_ERR_OTHER, of MPICH and Open MPI. */
#define NO_MPI 15
#define NONE ((void *)-1)

enum { OP_MPI_OPEN = 100, OP_MPI_CLOSE, OP_MPI_READ, OP_MPI_WRITE, OP_MPI_SEEK, OP_VIEW, OP_MPI_SET_SIZE, OP_MPI_PREALLOCATE, OP_MPI_SYNC, OP_MPI_DELETE,
       OP_MPI_GET_SIZE, OP_MPI_WAIT, OP_MPI_ATOMICITY,
       /* Of which no record is kept. */
       OP_MPI_SET_INFO };
/* Flags of the trace. */
enum { COLLECTIVE = 1 << 2, NONBLOCKING = 1 << 3, INDIVIDUAL = 1 << 4, SHARED = 1 << 11 };

/* --- the MPI behind us ------------------------------------------------------------------------------------------------------- */
void *sw_mpi_symbol(void *scope, const char *name) { return dlsym(scope, name); }

/* The soname of the library that has `symbol`. */
const char *sw_mpi_soname(const void *symbol)
{
    Dl_info info;
    struct link_map *map = 0;
    const char *strings = 0;
    ElfW(Xword) at = 0;
    if (!symbol || !dladdr1(symbol, &info, (void **)&map, RTLD_DL_LINKMAP) || !map) return 0;
    for (const ElfW(Dyn) *d = map->l_ld; d && d->d_tag != DT_NULL; d++) {
        if (d->d_tag == DT_STRTAB) strings = (const char *)(d->d_un.d_ptr < map->l_addr ? map->l_addr + d->d_un.d_ptr : d->d_un.d_ptr);
        if (d->d_tag == DT_SONAME) at = d->d_un.d_val;
    }
    return strings && at ? strings + at : 0;
}

/* The object through which the program's MPI was found first, held from then on; null: not yet, or in the program's own scope. */
static void *holder;

/* The function that the caller would have called without us: the next one in the program's own scope, or what the object that calls is linked with,
 * which may have been loaded for itself alone (Python's modules are). Calls of our own go where the first one went. */
__attribute__((noinline, cold)) static void *look_up(const char *name, void *caller, void **found)
{
    int saved = errno;
    Dl_info info, own;
    struct link_map *map = 0;
    void *object = 0, *next = dlsym(RTLD_NEXT, name);
    if (!next && dladdr1(caller, &info, (void **)&map, RTLD_DL_LINKMAP) && dladdr((void *)look_up, &own) && info.dli_fbase != own.dli_fbase && map
        && map->l_name[0] && (object = dlopen(map->l_name, RTLD_LAZY | RTLD_NOLOAD)))
        next = dlsym(object, name);
    if (!next && __atomic_load_n(&holder, __ATOMIC_ACQUIRE)) next = dlsym(holder, name);
    if (next) sw_mpi_learn(object ? object : RTLD_NEXT);
    if (object) {
        void *none = 0;
        if (!next || !__atomic_compare_exchange_n(&holder, &none, object, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) dlclose(object);
    }
    errno = saved;
    /* Not before there is an MPI: it may come later. */
    if (next || sw_mpi_is_known()) __atomic_store_n(found, next ? next : NONE, __ATOMIC_RELEASE);
    return next ? next : NONE;
}

/* As the function's first lines: what comes next, or `missing` where there is no such function. */
#define NEXT_OR(missing, symbol, ...)                                                               \
    static void *found_;                                                                            \
    void *next_ = __atomic_load_n(&found_, __ATOMIC_ACQUIRE);                                       \
    if (__builtin_expect(!next_, 0)) next_ = look_up(#symbol, __builtin_return_address(0), &found_); \
    if (__builtin_expect(next_ == NONE, 0)) missing;                                                \
    int (*next)(__VA_ARGS__) = (int (*)(__VA_ARGS__))next_
#define NEXT(symbol, ...) NEXT_OR(return NO_MPI, symbol, __VA_ARGS__)
/* The functions with large counts are here for every MPI, and programs that ask whether there are any find ours: where the MPI has none, its plain one
 * does the work, on fewer and larger elements where there are more than an int counts. */
#define MISSING_int(plain) return NO_MPI
#define MISSING_offset(plain)                         \
    do {                                              \
        handle made_ = 0;                             \
        int few_ = sw_mpi_narrow(n, &type, &made_);   \
        int result_ = few_ < 0 ? NO_MPI : plain;      \
        sw_mpi_drop(made_);                           \
        return result_;                               \
    } while (0)
#define UNWATCHED (LIKELY(!__atomic_load_n(&sw_mpi_watched, __ATOMIC_RELAXED)))
#define HERE __builtin_frame_address(0)
#define BOTH(define, name, ...) define(MPI_File_##name, __VA_ARGS__) define(PMPI_File_##name, __VA_ARGS__)
/* Large counts have functions of their own. */
#define SIZES(define, name, ...)                                                                                 \
    define(MPI_File_##name, MPI_File_##name, int, __VA_ARGS__) define(PMPI_File_##name, PMPI_File_##name, int, __VA_ARGS__) \
    define(MPI_File_##name##_c, MPI_File_##name, offset, __VA_ARGS__) define(PMPI_File_##name##_c, PMPI_File_##name, offset, __VA_ARGS__)

/* --- calls that move bytes ---------------------------------------------------------------------------------------------------- */
/* Whether a read is served by copies of the file: then it is not made. In a collective one the others wait for this process, which asks for nothing there. */
#define SERVE(op, flags) ((op) == OP_MPI_READ && !((flags) & SHARED) ? sw_mpi_serve(&call, buffer, n, type, &result) : SW_MPI_PASSED)
#define IS_MADE(how, flags) ((how) == SW_MPI_PASSED || ((how) == SW_MPI_SERVED && ((flags) & COLLECTIVE)))
/* A collective call may be made independently, if all processes of the file do the same. */
#define CHOOSE(flags, n) \
    if (((flags) & (COLLECTIVE | SHARED)) == COLLECTIVE) next = (__typeof__(next))sw_mpi_chosen(&call, (void *)next, sizeof(n), n, type)
/* At an offset of its own, or at a file pointer; with a status, a request, or neither (split collective calls). */
#define AT_STATUS(symbol, plain, count, op, flags)                                                                \
    EXPORT int symbol(handle file, offset at, void *buffer, count n, handle type, void *status)                   \
    {                                                                                                             \
        NEXT_OR(MISSING_##count(plain(file, at, buffer, few_, type, status)), symbol, handle, offset, void *, count, handle, void *);\
        struct sw_mpi_call call;                                                                                  \
        if (UNWATCHED || !sw_mpi_begin(&call, HERE, file, op, flags, at)) return next(file, at, buffer, n, type, status); \
        status = sw_mpi_status(&call, status);                                                                    \
        CHOOSE(flags, n);                                                                                         \
        int result = 0, how = SERVE(op, flags);                                                                   \
        if (IS_MADE(how, flags)) result = next(file, at, buffer, how == SW_MPI_SERVED ? 0 : n, type, status);     \
        sw_mpi_moved(&call, result, n, type, 0);                                                                  \
        return result;                                                                                            \
    }
#define AT_REQUEST(symbol, plain, count, op, flags)                                                               \
    EXPORT int symbol(handle file, offset at, void *buffer, count n, handle type, void *request)                  \
    {                                                                                                             \
        NEXT_OR(MISSING_##count(plain(file, at, buffer, few_, type, request)), symbol, handle, offset, void *, count, handle, void *);\
        struct sw_mpi_call call;                                                                                  \
        if (UNWATCHED || !sw_mpi_begin(&call, HERE, file, op, (flags) | NONBLOCKING, at)) return next(file, at, buffer, n, type, request); \
        int result = next(file, at, buffer, n, type, request);                                                    \
        sw_mpi_moved(&call, result, n, type, request);                                                            \
        return result;                                                                                            \
    }
#define AT_BEGIN(symbol, plain, count, op, flags)                                                                 \
    EXPORT int symbol(handle file, offset at, void *buffer, count n, handle type)                                 \
    {                                                                                                             \
        NEXT_OR(MISSING_##count(plain(file, at, buffer, few_, type)), symbol, handle, offset, void *, count, handle);\
        struct sw_mpi_call call;                                                                                  \
        if (UNWATCHED || !sw_mpi_begin(&call, HERE, file, op, (flags) | NONBLOCKING, at)) return next(file, at, buffer, n, type); \
        int result = next(file, at, buffer, n, type);                                                             \
        sw_mpi_moved(&call, result, n, type, 0);                                                                  \
        return result;                                                                                            \
    }
#define HERE_STATUS(symbol, plain, count, op, flags)                                                              \
    EXPORT int symbol(handle file, void *buffer, count n, handle type, void *status)                              \
    {                                                                                                             \
        NEXT_OR(MISSING_##count(plain(file, buffer, few_, type, status)), symbol, handle, void *, count, handle, void *);\
        struct sw_mpi_call call;                                                                                  \
        if (UNWATCHED || !sw_mpi_begin(&call, HERE, file, op, flags, 0)) return next(file, buffer, n, type, status); \
        status = sw_mpi_status(&call, status);                                                                    \
        CHOOSE(flags, n);                                                                                         \
        int result = 0, how = SERVE(op, flags);                                                                   \
        if (IS_MADE(how, flags)) result = next(file, buffer, how == SW_MPI_SERVED ? 0 : n, type, status);         \
        sw_mpi_moved(&call, result, n, type, 0);                                                                  \
        return result;                                                                                            \
    }
#define HERE_REQUEST(symbol, plain, count, op, flags)                                                             \
    EXPORT int symbol(handle file, void *buffer, count n, handle type, void *request)                             \
    {                                                                                                             \
        NEXT_OR(MISSING_##count(plain(file, buffer, few_, type, request)), symbol, handle, void *, count, handle, void *);\
        struct sw_mpi_call call;                                                                                  \
        if (UNWATCHED || !sw_mpi_begin(&call, HERE, file, op, (flags) | NONBLOCKING, 0)) return next(file, buffer, n, type, request); \
        int result = next(file, buffer, n, type, request);                                                        \
        sw_mpi_moved(&call, result, n, type, request);                                                            \
        return result;                                                                                            \
    }
#define HERE_BEGIN(symbol, plain, count, op, flags)                                                               \
    EXPORT int symbol(handle file, void *buffer, count n, handle type)                                            \
    {                                                                                                             \
        NEXT_OR(MISSING_##count(plain(file, buffer, few_, type)), symbol, handle, void *, count, handle);         \
        struct sw_mpi_call call;                                                                                  \
        if (UNWATCHED || !sw_mpi_begin(&call, HERE, file, op, (flags) | NONBLOCKING, 0)) return next(file, buffer, n, type); \
        int result = next(file, buffer, n, type);                                                                 \
        sw_mpi_moved(&call, result, n, type, 0);                                                                  \
        return result;                                                                                            \
    }
#define SPLIT_END(symbol)                                                                                         \
    EXPORT int symbol(handle file, void *buffer, void *status)                                                    \
    {                                                                                                             \
        NEXT(symbol, handle, void *, void *);                                                                     \
        struct sw_mpi_call call;                                                                                  \
        if (UNWATCHED || !sw_mpi_begin(&call, HERE, file, OP_MPI_WAIT, COLLECTIVE, 0)) return next(file, buffer, status); \
        int result = next(file, buffer, sw_mpi_status(&call, status));                                            \
        sw_mpi_split_ended(&call, result);                                                                        \
        return result;                                                                                            \
    }
#define ONLY(define, name) define(MPI_File_##name) define(PMPI_File_##name)

SIZES(AT_STATUS, read_at, OP_MPI_READ, 0)
SIZES(AT_STATUS, write_at, OP_MPI_WRITE, 0)
SIZES(AT_STATUS, read_at_all, OP_MPI_READ, COLLECTIVE)
SIZES(AT_STATUS, write_at_all, OP_MPI_WRITE, COLLECTIVE)
SIZES(AT_REQUEST, iread_at, OP_MPI_READ, 0)
SIZES(AT_REQUEST, iwrite_at, OP_MPI_WRITE, 0)
SIZES(AT_REQUEST, iread_at_all, OP_MPI_READ, COLLECTIVE)
SIZES(AT_REQUEST, iwrite_at_all, OP_MPI_WRITE, COLLECTIVE)
SIZES(AT_BEGIN, read_at_all_begin, OP_MPI_READ, COLLECTIVE)
SIZES(AT_BEGIN, write_at_all_begin, OP_MPI_WRITE, COLLECTIVE)
SIZES(HERE_STATUS, read, OP_MPI_READ, INDIVIDUAL)
SIZES(HERE_STATUS, write, OP_MPI_WRITE, INDIVIDUAL)
SIZES(HERE_STATUS, read_all, OP_MPI_READ, INDIVIDUAL | COLLECTIVE)
SIZES(HERE_STATUS, write_all, OP_MPI_WRITE, INDIVIDUAL | COLLECTIVE)
SIZES(HERE_REQUEST, iread, OP_MPI_READ, INDIVIDUAL)
SIZES(HERE_REQUEST, iwrite, OP_MPI_WRITE, INDIVIDUAL)
SIZES(HERE_REQUEST, iread_all, OP_MPI_READ, INDIVIDUAL | COLLECTIVE)
SIZES(HERE_REQUEST, iwrite_all, OP_MPI_WRITE, INDIVIDUAL | COLLECTIVE)
SIZES(HERE_BEGIN, read_all_begin, OP_MPI_READ, INDIVIDUAL | COLLECTIVE)
SIZES(HERE_BEGIN, write_all_begin, OP_MPI_WRITE, INDIVIDUAL | COLLECTIVE)
SIZES(HERE_STATUS, read_shared, OP_MPI_READ, SHARED)
SIZES(HERE_STATUS, write_shared, OP_MPI_WRITE, SHARED)
SIZES(HERE_REQUEST, iread_shared, OP_MPI_READ, SHARED)
SIZES(HERE_REQUEST, iwrite_shared, OP_MPI_WRITE, SHARED)
SIZES(HERE_STATUS, read_ordered, OP_MPI_READ, SHARED | COLLECTIVE)
SIZES(HERE_STATUS, write_ordered, OP_MPI_WRITE, SHARED | COLLECTIVE)
SIZES(HERE_BEGIN, read_ordered_begin, OP_MPI_READ, SHARED | COLLECTIVE)
SIZES(HERE_BEGIN, write_ordered_begin, OP_MPI_WRITE, SHARED | COLLECTIVE)
ONLY(SPLIT_END, read_at_all_end)
ONLY(SPLIT_END, write_at_all_end)
ONLY(SPLIT_END, read_all_end)
ONLY(SPLIT_END, write_all_end)
ONLY(SPLIT_END, read_ordered_end)
ONLY(SPLIT_END, write_ordered_end)

/* --- calls about the file ------------------------------------------------------------------------------------------------------ */
#define OPEN(symbol)                                                                                              \
    EXPORT int symbol(handle comm, const char *name, int mode, handle info, void *file)                           \
    {                                                                                                             \
        NEXT(symbol, handle, const char *, int, handle, void *);                                                  \
        struct sw_mpi_call call;                                                                                  \
        if (UNWATCHED && !sw_mpi_may_serve()) return next(comm, name, mode, info, file);                          \
        sw_mpi_opening(name, info);                                                                               \
        if (!sw_mpi_begin(&call, HERE, 0, OP_MPI_OPEN, COLLECTIVE, mode)) return next(comm, name, mode, info, file); \
        sw_mpi_arrive(&call, comm, name, mode);                                                                   \
        int result = next(comm, name, mode, info, file);                                                          \
        sw_mpi_opened(&call, result, comm, name, info, file);                                                     \
        return result;                                                                                            \
    }
#define CLOSE(symbol)                                                                                             \
    EXPORT int symbol(handle *file)                                                                               \
    {                                                                                                             \
        NEXT(symbol, handle *);                                                                                   \
        struct sw_mpi_call call;                                                                                  \
        if (UNWATCHED || !sw_mpi_begin(&call, HERE, *file, OP_MPI_CLOSE, COLLECTIVE, 0)) return next(file);      \
        int result = next(file);                                                                                  \
        sw_mpi_closed(&call, result);                                                                             \
        return result;                                                                                            \
    }
#define DELETE(symbol)                                                                                            \
    EXPORT int symbol(const char *name, handle info)                                                              \
    {                                                                                                             \
        NEXT(symbol, const char *, handle);                                                                       \
        struct sw_mpi_call call;                                                                                  \
        if (UNWATCHED || !sw_mpi_begin(&call, HERE, 0, OP_MPI_DELETE, 0, 0)) return next(name, info);            \
        int result = next(name, info);                                                                            \
        sw_mpi_deleted(&call, result, name);                                                                      \
        return result;                                                                                            \
    }
#define VIEW(symbol)                                                                                              \
    EXPORT int symbol(handle file, offset displacement, handle etype, handle filetype, const char *representation, handle info) \
    {                                                                                                             \
        NEXT(symbol, handle, offset, handle, handle, const char *, handle);                                       \
        struct sw_mpi_call call;                                                                                  \
        if (UNWATCHED || !sw_mpi_begin(&call, HERE, file, OP_VIEW, COLLECTIVE, displacement))                    \
            return next(file, displacement, etype, filetype, representation, info);                               \
        sw_mpi_viewing(&call, filetype, info);                                                                    \
        int result = next(file, displacement, etype, filetype, representation, info);                             \
        sw_mpi_viewed(&call, result, etype, filetype, representation, info);                                      \
        return result;                                                                                            \
    }
#define INFORM(symbol)                                                                                            \
    EXPORT int symbol(handle file, handle info)                                                                   \
    {                                                                                                             \
        NEXT(symbol, handle, handle);                                                                             \
        struct sw_mpi_call call;                                                                                  \
        if (UNWATCHED || !sw_mpi_begin(&call, HERE, file, OP_MPI_SET_INFO, COLLECTIVE, 0)) return next(file, info); \
        int result = next(file, info);                                                                            \
        sw_mpi_informed(&call, result, info);                                                                     \
        return result;                                                                                            \
    }
#define SEEK(symbol, flags)                                                                                       \
    EXPORT int symbol(handle file, offset to, int whence)                                                         \
    {                                                                                                             \
        NEXT(symbol, handle, offset, int);                                                                        \
        struct sw_mpi_call call;                                                                                  \
        if (UNWATCHED || !sw_mpi_begin(&call, HERE, file, OP_MPI_SEEK, flags, to)) return next(file, to, whence); \
        int result = next(file, to, whence);                                                                      \
        sw_mpi_sought(&call, result, whence);                                                                     \
        return result;                                                                                            \
    }
/* The rest has a file and at most one argument. */
#define WITH(symbol, type, op, flags, at)                                                                         \
    EXPORT int symbol(handle file, type value)                                                                    \
    {                                                                                                             \
        NEXT(symbol, handle, type);                                                                               \
        struct sw_mpi_call call;                                                                                  \
        if (UNWATCHED || !sw_mpi_begin(&call, HERE, file, op, flags, at)) return next(file, value);              \
        int result = next(file, value);                                                                           \
        sw_mpi_did(&call, result);                                                                                \
        return result;                                                                                            \
    }
#define SYNC(symbol)                                                                                              \
    EXPORT int symbol(handle file)                                                                                \
    {                                                                                                             \
        NEXT(symbol, handle);                                                                                     \
        struct sw_mpi_call call;                                                                                  \
        if (UNWATCHED || !sw_mpi_begin(&call, HERE, file, OP_MPI_SYNC, COLLECTIVE, 0)) return next(file);        \
        int result = next(file);                                                                                  \
        sw_mpi_did(&call, result);                                                                                \
        return result;                                                                                            \
    }

ONLY(OPEN, open)
ONLY(CLOSE, close)
ONLY(DELETE, delete)
ONLY(VIEW, set_view)
ONLY(INFORM, set_info)
BOTH(SEEK, seek, INDIVIDUAL)
BOTH(SEEK, seek_shared, SHARED | COLLECTIVE)
BOTH(WITH, set_size, offset, OP_MPI_SET_SIZE, COLLECTIVE, value)
BOTH(WITH, preallocate, offset, OP_MPI_PREALLOCATE, COLLECTIVE, value)
BOTH(WITH, get_size, offset *, OP_MPI_GET_SIZE, 0, 0)
BOTH(WITH, set_atomicity, int, OP_MPI_ATOMICITY, COLLECTIVE, value)
ONLY(SYNC, sync)

/* --- completion: looked at only while a call of the above kind is under way ------------------------------------------------------ */
#define UNAWAITED (LIKELY(!__atomic_load_n(&sw_mpi_pending, __ATOMIC_RELAXED)))
#define BOTH_WAITS(define, name) define(MPI_##name) define(PMPI_##name)
/* Statuses of `n` requests where the program ignores its own; beyond 128 what was asked for passes for what was done. */
#define STATUSES_MAX 128
#define STATUSES(n) unsigned char statuses_[(n) > 0 && (n) <= STATUSES_MAX ? (n) * sizeof call.status : 1] __attribute__((aligned(8)))
#define OWN_STATUSES(n) ((n) > 0 && (n) <= STATUSES_MAX ? memset(statuses_, 0, sizeof statuses_) : 0)

#define WAIT(symbol)                                                                                              \
    EXPORT int symbol(void *request, void *status)                                                                \
    {                                                                                                             \
        NEXT(symbol, void *, void *);                                                                             \
        struct sw_mpi_call call;                                                                                  \
        if (UNAWAITED || !sw_mpi_awaited(&call, HERE, 1, request)) return next(request, status);                  \
        status = sw_mpi_status(&call, status);                                                                    \
        int result = next(request, status);                                                                       \
        sw_mpi_waited(&call, result, request, status, 0, 1);                                                      \
        return result;                                                                                            \
    }
#define TEST(symbol)                                                                                              \
    EXPORT int symbol(void *request, int *flag, void *status)                                                     \
    {                                                                                                             \
        NEXT(symbol, void *, int *, void *);                                                                      \
        struct sw_mpi_call call;                                                                                  \
        if (UNAWAITED || !sw_mpi_awaited(&call, HERE, 1, request)) return next(request, flag, status);            \
        status = sw_mpi_status(&call, status);                                                                    \
        int result = next(request, flag, status);                                                                 \
        sw_mpi_waited(&call, result, request, status, 0, 1);                                                      \
        return result;                                                                                            \
    }
#define WAITALL(symbol)                                                                                           \
    EXPORT int symbol(int n, void *requests, void *statuses)                                                      \
    {                                                                                                             \
        NEXT(symbol, int, void *, void *);                                                                        \
        struct sw_mpi_call call;                                                                                  \
        if (UNAWAITED || !sw_mpi_awaited(&call, HERE, n, requests)) return next(n, requests, statuses);           \
        STATUSES(n);                                                                                              \
        statuses = sw_mpi_statuses(&call, statuses, OWN_STATUSES(n));                                             \
        int result = next(n, requests, statuses);                                                                 \
        sw_mpi_waited(&call, result, requests, statuses, 0, n);                                                   \
        return result;                                                                                            \
    }
#define TESTALL(symbol)                                                                                           \
    EXPORT int symbol(int n, void *requests, int *flag, void *statuses)                                           \
    {                                                                                                             \
        NEXT(symbol, int, void *, int *, void *);                                                                 \
        struct sw_mpi_call call;                                                                                  \
        if (UNAWAITED || !sw_mpi_awaited(&call, HERE, n, requests)) return next(n, requests, flag, statuses);     \
        STATUSES(n);                                                                                              \
        statuses = sw_mpi_statuses(&call, statuses, OWN_STATUSES(n));                                             \
        int result = next(n, requests, flag, statuses);                                                           \
        sw_mpi_waited(&call, result, requests, statuses, 0, n);                                                   \
        return result;                                                                                            \
    }
/* One of several: its place is in `index`, its status the only one. */
#define WAITANY(symbol)                                                                                           \
    EXPORT int symbol(int n, void *requests, int *index, void *status)                                            \
    {                                                                                                             \
        NEXT(symbol, int, void *, int *, void *);                                                                 \
        struct sw_mpi_call call;                                                                                  \
        if (UNAWAITED || !sw_mpi_awaited(&call, HERE, n, requests)) return next(n, requests, index, status);      \
        status = sw_mpi_status(&call, status);                                                                    \
        int result = next(n, requests, index, status);                                                            \
        sw_mpi_waited(&call, result, requests, status, index, 1);                                                 \
        return result;                                                                                            \
    }
#define TESTANY(symbol)                                                                                           \
    EXPORT int symbol(int n, void *requests, int *index, int *flag, void *status)                                 \
    {                                                                                                             \
        NEXT(symbol, int, void *, int *, int *, void *);                                                          \
        struct sw_mpi_call call;                                                                                  \
        if (UNAWAITED || !sw_mpi_awaited(&call, HERE, n, requests)) return next(n, requests, index, flag, status); \
        status = sw_mpi_status(&call, status);                                                                    \
        int result = next(n, requests, index, flag, status);                                                      \
        sw_mpi_waited(&call, result, requests, status, index, 1);                                                 \
        return result;                                                                                            \
    }
/* Some of several: their places are in `indices`, their statuses in that order. */
#define SOME(symbol)                                                                                              \
    EXPORT int symbol(int n, void *requests, int *count, int *indices, void *statuses)                            \
    {                                                                                                             \
        NEXT(symbol, int, void *, int *, int *, void *);                                                          \
        struct sw_mpi_call call;                                                                                  \
        if (UNAWAITED || !sw_mpi_awaited(&call, HERE, n, requests)) return next(n, requests, count, indices, statuses); \
        STATUSES(n);                                                                                              \
        statuses = sw_mpi_statuses(&call, statuses, OWN_STATUSES(n));                                             \
        int result = next(n, requests, count, indices, statuses);                                                 \
        sw_mpi_waited(&call, result, requests, statuses, indices, *count);                                        \
        return result;                                                                                            \
    }

BOTH_WAITS(WAIT, Wait)
BOTH_WAITS(TEST, Test)
BOTH_WAITS(WAITALL, Waitall)
BOTH_WAITS(TESTALL, Testall)
BOTH_WAITS(WAITANY, Waitany)
BOTH_WAITS(TESTANY, Testany)
BOTH_WAITS(SOME, Waitsome)
BOTH_WAITS(SOME, Testsome)
