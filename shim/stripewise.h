/* What the C shim and the Rust runtime share: the descriptor table, the per-thread block, and the calls across. The shim holds no logic: it
 * declares the symbols that programs call, looks one array up, and hands over. */
#ifndef STRIPEWISE_H
#define STRIPEWISE_H
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#define SW_FDS (1u << 20)
#define SW_TRACED 0x40000000u   /* a plain file whose calls are recorded */
#define SW_COPIED 0x20000000u   /* beside it: its reads may be served from copies */
#define SW_INTERNAL 0x80000000u /* one of the library's own */
#define SW_BY_SHIFT 16          /* above an operation that is recorded: the number of the replica that has served it, plus one */
#define SW_COPY_SHIFT 32        /* above the bytes that a replica has given: the same */
#define SW_PASS (-4096L)        /* not ours: do the plain call */

extern uint32_t sw_fds[SW_FDS];
extern uint32_t sw_tracing;

/* Lives in initial-exec thread-local storage; all zero is its valid first state. */
struct sw_thread {
    unsigned char log[256] __attribute__((aligned(16)));
    uint64_t words[22]; /* as many as `Thread` of the runtime has, which checks it */
};
struct sw_thread *sw_thread(void);

/* The C library's own functions, for plain descriptors and for calls that are chained to other preloaded libraries. -errno on failure. */
long sw_real_openat(int dirfd, const char *path, int flags, unsigned mode);
long sw_real_close(int fd);
long sw_real_fcntl(int fd, int op, unsigned long arg);

/* The runtime. Results are those of system calls: -errno on failure; SW_PASS: do the plain call. */
void sw_start(char **envp);
void sw_fork_prepare(void);
void sw_fork_bare(void);
void sw_fork_parent(void);
void sw_fork_child(void);
void sw_thread_exit(void);
uint64_t sw_ticks(void);
void sw_traced(int fd, unsigned op, uint64_t at, uint64_t asked, long done, uint64_t start);
void sw_traced_aio(int fd, unsigned op, uint64_t at, uint64_t asked, int result, uint64_t start);
void sw_traced_path(const char *path, unsigned op, long done, uint64_t start);
void sw_traced_names(int from_dir, const char *from, int to_dir, const char *to, uint32_t op, int64_t done, uint64_t start);

long sw_openat(int dirfd, const char *path, int flags, unsigned mode);
long sw_close(int fd);
long sw_close_range(unsigned first, unsigned last, unsigned flags);
void sw_plain_written(int fd);
long sw_copied_read(int fd, void *to, size_t len);
long sw_copied_pread(int fd, void *to, size_t len, off_t at);
long sw_copied_readv(int fd, const struct iovec *iov, int count);
long sw_copied_preadv(int fd, const struct iovec *iov, int count, off_t at);
long sw_read(int fd, void *to, size_t len);
long sw_pread(int fd, void *to, size_t len, off_t at);
long sw_write(int fd, const void *from, size_t len);
long sw_pwrite(int fd, const void *from, size_t len, off_t at);
long sw_readv(int fd, const struct iovec *iov, int count);
long sw_preadv(int fd, const struct iovec *iov, int count, off_t at);
long sw_writev(int fd, const struct iovec *iov, int count);
long sw_pwritev(int fd, const struct iovec *iov, int count, off_t at);
long sw_lseek(int fd, off_t at, int whence);
long sw_ftruncate(int fd, off_t len);
long sw_truncate(const char *path, off_t len);
long sw_fallocate(int fd, int mode, off_t at, off_t len);
long sw_fsync(int fd, int data_only);
long sw_fstatat(int dirfd, const char *path, void *st, int flags);
long sw_statx(int dirfd, const char *path, int flags, unsigned mask, void *st);
long sw_statfs(const char *path, void *st);
long sw_faccessat(int dirfd, const char *path, int mode, int flags);
long sw_unlinkat(int dirfd, const char *path, int flags);
long sw_renameat2(int from_dir, const char *from, int to_dir, const char *to, unsigned flags);
long sw_dup(int fd);
long sw_dup3(int fd, int to, int flags);
long sw_fcntl(int fd, int op, unsigned long arg);
long sw_flock(int fd, int op);

/* Streams: opening a managed file by name (SW_PASS: nothing was opened), and the shim's answer to a managed descriptor behind 0, 1 or 2. */
long sw_stream_open(const char *path, int flags, unsigned mode);
void sw_standard(int fd);
/* Asynchronous requests, copies, advice. */
long sw_aio(int fd, int kind, int priority, volatile void *buf, size_t len, off_t at, int *error, ssize_t *result);
long sw_copy_file_range(int in, off_t *in_at, int out, off_t *out_at, size_t len, unsigned flags);
long sw_sendfile(int out, int in, off_t *at, size_t len);
long sw_splice(int in, off_t *in_at, int out, off_t *out_at, size_t len, unsigned flags);
long sw_tee(int in, int out, size_t len, unsigned flags);
long sw_fadvise(int fd, off_t at, off_t len, int advice);
long sw_readahead(int fd, off_t at, size_t len);
long sw_sync_file_range(int fd, off_t at, off_t len, unsigned flags);
long sw_syncfs(int fd);
long sw_lockf(int fd, int cmd, off_t len);
long sw_preadv2(int fd, const struct iovec *iov, int count, off_t at, int flags);
long sw_pwritev2(int fd, const struct iovec *iov, int count, off_t at, int flags);
/* Process life: what a new program's environment needs beyond the one given. */
struct sw_environment_size {
    size_t pointers, bytes;
};
void sw_exec_start(char *const envp[], const char *library);
void sw_exec_environment_size(char *const envp[], struct sw_environment_size *size);
char *const *sw_exec_environment(char *const envp[], const struct sw_environment_size *size, char **pointers, char *text);
void sw_exec_begin(const char *name, int search);
void sw_exec_failed(void);
void sw_spawn_begin(const char *name, int search, int rewired);
void sw_spawn_end(int rewired);
void sw_rewired(void);
void sw_process_ends(void);
/* Memory and ioctl (map.c). */
extern uintptr_t sw_map_bounds[2]; /* all maps of managed files lie between these */
long sw_mmap(uintptr_t at, size_t len, int prot, int flags, int fd, off_t offset);
long sw_munmap(uintptr_t at, size_t len);
void sw_map_covered(uintptr_t at, size_t len);
long sw_mremap(uintptr_t old, size_t old_len, size_t new_len, int flags, uintptr_t to);
long sw_msync(uintptr_t at, size_t len, int flags);
long sw_ioctl(int fd, unsigned command, unsigned long arg);
/* Names, attributes, directories. Those by name answer SW_PASS for what is not managed. */
struct timespec;
long sw_linkat(int from_dir, const char *from, int to_dir, const char *to, int flags);
long sw_not_a_directory(int dirfd, const char *path, int itself);
long sw_readlinkat(int dirfd, const char *path, char *into, size_t len);
long sw_realpath(const char *path, char *into);
int sw_head_path(int dirfd, const char *path, int follow, char *into);
int sw_is_managed(int dirfd, const char *path, int flags);
int sw_is_of_a_descriptor(const char *path);
uint64_t sw_entry_inode(int dirfd, const char *name);
void sw_entries(int dirfd, void *entries, size_t len);
long sw_fchmodat(int dirfd, const char *path, mode_t mode, int flags);
long sw_fchmod(int fd, mode_t mode);
long sw_fchownat(int dirfd, const char *path, uid_t uid, gid_t gid, int flags);
long sw_fchown(int fd, uid_t uid, gid_t gid);
long sw_utimensat(int dirfd, const char *path, const struct timespec *times, int flags);
long sw_futimens(int fd, const struct timespec *times);
long sw_setxattr(const char *path, const char *name, const void *value, size_t len, int how, int flags);
long sw_getxattr(const char *path, const char *name, void *value, size_t len, int flags);
long sw_listxattr(const char *path, char *list, size_t len, int flags);
long sw_removexattr(const char *path, const char *name, int flags);
long sw_fsetxattr(int fd, const char *name, const void *value, size_t len, int how);
long sw_fgetxattr(int fd, const char *name, void *value, size_t len);
long sw_flistxattr(int fd, char *list, size_t len);
long sw_fremovexattr(int fd, const char *name);
void sw_giving_up_rights(void);
void sw_root_moved(void);
/* SIGBUS (signals.c): 1 when the fault was in memory of ours that somebody has cut. */
int sw_guard_fault(uintptr_t address);
int sw_in_vfork_child(void);
void sw_memory_is_shared(void);
void sw_guard_install(void);
void sw_guard_exec(int goes);
void sw_limit_changed(void);

/* MPI-IO (mpi.c): whether calls are looked at, how many requests are under way, and a call from its begin to its end. `begin` and `awaited` answer 0
 * where there is nothing to do, and then nothing follows. `frame` is the stack frame of the symbol. */
extern uint32_t sw_mpi_watched, sw_mpi_pending;
struct sw_mpi_call {
    uint64_t words[12];
    unsigned char status[32] __attribute__((aligned(8)));
};
void *sw_mpi_symbol(void *scope, const char *name);
const char *sw_mpi_soname(const void *symbol);
void sw_mpi_learn(void *scope);
int sw_mpi_is_known(void);
/* As few elements of `type` as an int counts (-1: there are none): more of them are elements of a type that is made, and dropped after the call. */
int sw_mpi_narrow(long long n, uintptr_t *type, uintptr_t *made);
void sw_mpi_drop(uintptr_t made);
int sw_mpi_begin(struct sw_mpi_call *call, const void *frame, uintptr_t file, unsigned op, unsigned flags, long long at);
/* Whether files that are opened may have copies, or new ones stripes that they are asked for; and what an open asks for. */
int sw_mpi_may_serve(void);
void sw_mpi_opening(const char *name, uintptr_t info);
/* Has this process take part where those of the file decide how collective calls are made, and how one is: `next`, or what makes it independently. */
void sw_mpi_arrive(struct sw_mpi_call *call, uintptr_t comm, const char *name, int mode);
void sw_mpi_viewing(struct sw_mpi_call *call, uintptr_t filetype, uintptr_t info);
void *sw_mpi_chosen(struct sw_mpi_call *call, void *next, size_t count_bytes, long long n, uintptr_t type);
/* Whether copies have given all bytes that a read asks for: then `moved` fills the status in. Or MPI refuses the call, with `result`. */
enum { SW_MPI_PASSED, SW_MPI_SERVED, SW_MPI_REFUSED };
int sw_mpi_serve(struct sw_mpi_call *call, void *buffer, long long n, uintptr_t type, int *result);
/* The status that is given on: the program's, or ours where it ignores it. */
void *sw_mpi_status(struct sw_mpi_call *call, void *status);
void *sw_mpi_statuses(struct sw_mpi_call *call, void *statuses, void *own);
void sw_mpi_moved(struct sw_mpi_call *call, int result, long long n, uintptr_t type, const void *request);
void sw_mpi_split_ended(struct sw_mpi_call *call, int result);
void sw_mpi_opened(struct sw_mpi_call *call, int result, uintptr_t comm, const char *name, uintptr_t info, const void *file);
void sw_mpi_closed(struct sw_mpi_call *call, int result);
void sw_mpi_deleted(struct sw_mpi_call *call, int result, const char *name);
void sw_mpi_viewed(struct sw_mpi_call *call, int result, uintptr_t etype, uintptr_t filetype, const char *representation, uintptr_t info);
void sw_mpi_informed(struct sw_mpi_call *call, int result, uintptr_t info);
void sw_mpi_sought(struct sw_mpi_call *call, int result, int whence);
void sw_mpi_did(struct sw_mpi_call *call, int result);
int sw_mpi_awaited(struct sw_mpi_call *call, const void *frame, int n, const void *requests);
void sw_mpi_waited(struct sw_mpi_call *call, int result, const void *requests, const void *statuses, const int *indices, int n);

/* Whether setting up a ring of io_uring, or a context of libaio, is refused; null: asked in passing. */
int sw_rings_refused(const char *name);
#endif
