/* The operations of a workload path; numbers, names and facts as crates/workpath/src/op.rs has them, which a test compares. */
#ifndef PLAYER_OPS_H
#define PLAYER_OPS_H

enum layer { POSIX, MPI };
enum moves { NOTHING, READS, WRITES };
/* Where the offset of a call comes from: nowhere, the call, a seek before it, the file's pointer, the pointer that all processes share. */
enum position { NONE, EXPLICIT, SEEK, POINTER, SHARED };

/* X(identifier, number, name, layer, moves, position, collective, pending) */
#define PLAYER_OPS(X)                                                \
    X(OPEN, 1, "open", POSIX, NOTHING, NONE, 0, 0)                   \
    X(CLOSE, 2, "close", POSIX, NOTHING, NONE, 0, 0)                 \
    X(READ0, 3, "read0", POSIX, READS, POINTER, 0, 0)                \
    X(READ1, 4, "read1", POSIX, READS, SEEK, 0, 0)                   \
    X(WRITE0, 5, "write0", POSIX, WRITES, POINTER, 0, 0)             \
    X(WRITE1, 6, "write1", POSIX, WRITES, SEEK, 0, 0)                \
    X(PREAD, 7, "pread", POSIX, READS, EXPLICIT, 0, 0)               \
    X(PWRITE, 8, "pwrite", POSIX, WRITES, EXPLICIT, 0, 0)            \
    X(LSEEK, 9, "seek", POSIX, NOTHING, EXPLICIT, 0, 0)              \
    X(FSYNC, 10, "fsync", POSIX, NOTHING, NONE, 0, 0)                \
    X(FDATASYNC, 11, "fdatasync", POSIX, NOTHING, NONE, 0, 0)        \
    X(FTRUNCATE, 12, "ftruncate", POSIX, NOTHING, NONE, 0, 0)        \
    X(FALLOCATE, 13, "fallocate", POSIX, NOTHING, EXPLICIT, 0, 0)    \
    X(FSTAT, 14, "fstat", POSIX, NOTHING, NONE, 0, 0)                \
    X(FCNTL, 15, "fcntl", POSIX, NOTHING, NONE, 0, 0)                \
    X(LOCK, 16, "lock", POSIX, NOTHING, EXPLICIT, 0, 0)              \
    X(MMAP, 17, "mmap", POSIX, NOTHING, EXPLICIT, 0, 0)              \
    X(MUNMAP, 18, "munmap", POSIX, NOTHING, NONE, 0, 0)              \
    X(READDIR, 19, "readdir", POSIX, NOTHING, NONE, 0, 0)            \
    X(ADVISE, 20, "advise", POSIX, NOTHING, EXPLICIT, 0, 0)          \
    X(STAT, 32, "stat", POSIX, NOTHING, NONE, 0, 0)                  \
    X(ACCESS, 33, "access", POSIX, NOTHING, NONE, 0, 0)              \
    X(STATFS, 34, "statfs", POSIX, NOTHING, NONE, 0, 0)              \
    X(UNLINK, 35, "unlink", POSIX, NOTHING, NONE, 0, 0)              \
    X(RENAME, 36, "rename", POSIX, NOTHING, NONE, 0, 0)              \
    X(LINK, 37, "link", POSIX, NOTHING, NONE, 0, 0)                  \
    X(SYMLINK, 38, "symlink", POSIX, NOTHING, NONE, 0, 0)            \
    X(READLINK, 39, "readlink", POSIX, NOTHING, NONE, 0, 0)          \
    X(MKDIR, 40, "mkdir", POSIX, NOTHING, NONE, 0, 0)                \
    X(RMDIR, 41, "rmdir", POSIX, NOTHING, NONE, 0, 0)                \
    X(MKNOD, 42, "mknod", POSIX, NOTHING, NONE, 0, 0)                \
    X(TRUNCATE, 43, "truncate", POSIX, NOTHING, NONE, 0, 0)          \
    X(SETATTR, 44, "setattr", POSIX, NOTHING, NONE, 0, 0)            \
    X(OPENDIR, 45, "opendir", POSIX, NOTHING, NONE, 0, 0)            \
    X(MPI_OPEN, 64, "mpi_open", MPI, NOTHING, NONE, 1, 0)            \
    X(MPI_CLOSE, 65, "mpi_close", MPI, NOTHING, NONE, 1, 0)          \
    X(MPI_READ_AT, 66, "mpi_read_at", MPI, READS, EXPLICIT, 0, 0)    \
    X(MPI_WRITE_AT, 67, "mpi_write_at", MPI, WRITES, EXPLICIT, 0, 0) \
    X(MPI_READ_AT_ALL, 68, "mpi_read_at_all", MPI, READS, EXPLICIT, 1, 0)       \
    X(MPI_WRITE_AT_ALL, 69, "mpi_write_at_all", MPI, WRITES, EXPLICIT, 1, 0)    \
    X(MPI_READ0, 70, "mpi_read0", MPI, READS, POINTER, 0, 0)                    \
    X(MPI_READ1, 71, "mpi_read1", MPI, READS, SEEK, 0, 0)                       \
    X(MPI_WRITE0, 72, "mpi_write0", MPI, WRITES, POINTER, 0, 0)                 \
    X(MPI_WRITE1, 73, "mpi_write1", MPI, WRITES, SEEK, 0, 0)                    \
    X(MPI_READ_ALL0, 74, "mpi_read_all0", MPI, READS, POINTER, 1, 0)            \
    X(MPI_READ_ALL1, 75, "mpi_read_all1", MPI, READS, SEEK, 1, 0)               \
    X(MPI_WRITE_ALL0, 76, "mpi_write_all0", MPI, WRITES, POINTER, 1, 0)         \
    X(MPI_WRITE_ALL1, 77, "mpi_write_all1", MPI, WRITES, SEEK, 1, 0)            \
    X(MPI_READ_SHARED, 78, "mpi_read_shared", MPI, READS, SHARED, 0, 0)         \
    X(MPI_WRITE_SHARED, 79, "mpi_write_shared", MPI, WRITES, SHARED, 0, 0)      \
    X(MPI_READ_ORDERED, 80, "mpi_read_ordered", MPI, READS, SHARED, 1, 0)       \
    X(MPI_WRITE_ORDERED, 81, "mpi_write_ordered", MPI, WRITES, SHARED, 1, 0)    \
    X(MPI_IREAD00, 82, "mpi_iread00", MPI, READS, POINTER, 0, 1)                \
    X(MPI_IREAD01, 83, "mpi_iread01", MPI, READS, POINTER, 0, 0)                \
    X(MPI_IREAD10, 84, "mpi_iread10", MPI, READS, SEEK, 0, 1)                   \
    X(MPI_IREAD11, 85, "mpi_iread11", MPI, READS, SEEK, 0, 0)                   \
    X(MPI_IWRITE00, 86, "mpi_iwrite00", MPI, WRITES, POINTER, 0, 1)             \
    X(MPI_IWRITE01, 87, "mpi_iwrite01", MPI, WRITES, POINTER, 0, 0)             \
    X(MPI_IWRITE10, 88, "mpi_iwrite10", MPI, WRITES, SEEK, 0, 1)                \
    X(MPI_IWRITE11, 89, "mpi_iwrite11", MPI, WRITES, SEEK, 0, 0)                \
    X(MPI_IREAD_AT0, 90, "mpi_iread_at0", MPI, READS, EXPLICIT, 0, 1)           \
    X(MPI_IREAD_AT1, 91, "mpi_iread_at1", MPI, READS, EXPLICIT, 0, 0)           \
    X(MPI_IWRITE_AT0, 92, "mpi_iwrite_at0", MPI, WRITES, EXPLICIT, 0, 1)        \
    X(MPI_IWRITE_AT1, 93, "mpi_iwrite_at1", MPI, WRITES, EXPLICIT, 0, 0)        \
    X(MPI_IREAD_AT_ALL0, 94, "mpi_iread_at_all0", MPI, READS, EXPLICIT, 1, 1)   \
    X(MPI_IREAD_AT_ALL1, 95, "mpi_iread_at_all1", MPI, READS, EXPLICIT, 1, 0)   \
    X(MPI_IWRITE_AT_ALL0, 96, "mpi_iwrite_at_all0", MPI, WRITES, EXPLICIT, 1, 1) \
    X(MPI_IWRITE_AT_ALL1, 97, "mpi_iwrite_at_all1", MPI, WRITES, EXPLICIT, 1, 0) \
    X(MPI_WAIT, 98, "mpi_wait", MPI, NOTHING, NONE, 0, 0)            \
    X(MPI_SEEK, 99, "mpi_seek", MPI, NOTHING, EXPLICIT, 0, 0)        \
    X(MPI_VIEW, 100, "mpi_view", MPI, NOTHING, EXPLICIT, 1, 0)       \
    X(MPI_SYNC, 101, "mpi_sync", MPI, NOTHING, NONE, 1, 0)           \
    X(MPI_SET_SIZE, 102, "mpi_set_size", MPI, NOTHING, NONE, 1, 0)   \
    X(MPI_GET_SIZE, 103, "mpi_get_size", MPI, NOTHING, NONE, 0, 0)   \
    X(MPI_PREALLOCATE, 104, "mpi_preallocate", MPI, NOTHING, NONE, 1, 0) \
    X(MPI_ATOMICITY, 105, "mpi_atomicity", MPI, NOTHING, NONE, 1, 0) \
    X(MPI_DELETE, 112, "mpi_delete", MPI, NOTHING, NONE, 0, 0)

#define X(id, number, name, layer, moves, position, collective, pending) OP_##id = number,
enum op { PLAYER_OPS(X) OPS_MAX = 128 };
#undef X

struct op_facts {
    const char *name; /* NULL: no operation has this number */
    unsigned char layer, moves, position, collective, pending;
};

extern const struct op_facts op_facts[OPS_MAX];

#endif
