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
#define SW_INTERNAL 0x80000000u /* one of the library's own */
#define SW_PASS (-4096L)        /* not ours: do the plain call */

extern uint32_t sw_fds[SW_FDS];
extern uint32_t sw_tracing;

/* Lives in initial-exec thread-local storage; all zero is its valid first state. */
struct sw_thread {
    unsigned char log[256] __attribute__((aligned(16)));
    uint64_t words[8];
};
struct sw_thread *sw_thread(void);

/* The C library's own functions, for plain descriptors and for calls that are chained to other preloaded libraries. -errno on failure. */
long sw_real_openat(int dirfd, const char *path, int flags, unsigned mode);
long sw_real_close(int fd);
long sw_real_fcntl(int fd, int op, unsigned long arg);

/* The runtime. Results are those of system calls: -errno on failure; SW_PASS: do the plain call. */
void sw_start(char **envp);
void sw_fork_prepare(void);
void sw_fork_parent(void);
void sw_fork_child(void);
void sw_thread_exit(void);
uint64_t sw_ticks(void);
void sw_traced(int fd, unsigned op, uint64_t at, uint64_t asked, long done, uint64_t start);
void sw_traced_path(const char *path, unsigned op, long done, uint64_t start);

long sw_openat(int dirfd, const char *path, int flags, unsigned mode);
long sw_close(int fd);
long sw_close_range(unsigned first, unsigned last, unsigned flags);
long sw_read(int fd, void *to, size_t len);
long sw_pread(int fd, void *to, size_t len, off_t at);
long sw_write(int fd, const void *from, size_t len);
long sw_pwrite(int fd, const void *from, size_t len, off_t at);
long sw_readv(int fd, const struct iovec *iov, int count, int flags);
long sw_preadv(int fd, const struct iovec *iov, int count, off_t at, int flags);
long sw_writev(int fd, const struct iovec *iov, int count, int flags);
long sw_pwritev(int fd, const struct iovec *iov, int count, off_t at, int flags);
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
long sw_lockf(int fd, int op, off_t len);
#endif
