/* What programs do to MPI-IO that is odd but theirs to do: errors that they take back, jumps out of error handlers, more files and requests than are
 * followed, requests that are none of files, several threads. Prints what MPI answers, which must not depend on who watches. */
#define _GNU_SOURCE
#include <mpi.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char path[4096];
static jmp_buf back;
static int jumped;

static int class_of(int result)
{
    int class;
    MPI_Error_class(result, &class);
    return class;
}
static void jump(MPI_File *file, int *code, ...)
{
    (void)file, (void)code;
    jumped++;
    longjmp(back, 1);
}
static MPI_File open_one(const char *ending)
{
    char name[4200];
    MPI_File file;
    snprintf(name, sizeof name, "%s%s", path, ending);
    if (MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL, &file) != MPI_SUCCESS) MPI_Abort(MPI_COMM_WORLD, 3);
    return file;
}

static void errors(void)
{
    MPI_File file = open_one(".errors"), none = MPI_FILE_NULL;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    char bytes[64] = {0};
    printf("type %d\n", MPI_File_write_at(file, 0, bytes, 1, MPI_DATATYPE_NULL, MPI_STATUS_IGNORE) != 0);
    printf("count %d\n", MPI_File_write_at(file, 0, bytes, -1, MPI_BYTE, MPI_STATUS_IGNORE) != 0);
    printf("offset %d\n", MPI_File_write_at(file, -5, bytes, 1, MPI_BYTE, MPI_STATUS_IGNORE) != 0);
    printf("file %d\n", MPI_File_write_at(none, 0, bytes, 1, MPI_BYTE, MPI_STATUS_IGNORE) != 0);
    printf("missing %d\n", class_of(MPI_File_open(MPI_COMM_SELF, "/nowhere/at/all", MPI_MODE_RDONLY, MPI_INFO_NULL, &none)));
    printf("zero %d\n", MPI_File_write_at(file, 0, NULL, 0, MPI_BYTE, MPI_STATUS_IGNORE));
    MPI_File_close(&file);
}

static void jumps(void)
{
    MPI_File file = open_one(".jumps");
    MPI_Errhandler handler;
    MPI_File_create_errhandler((MPI_File_errhandler_function *)jump, &handler);
    MPI_File_set_errhandler(file, handler);
    char bytes[8] = {0};
    if (!setjmp(back)) MPI_File_write_at(file, -7, bytes, 1, MPI_BYTE, MPI_STATUS_IGNORE);
    printf("jumped %d\n", jumped);
    /* Calls from the same depth are seen again. */
    for (int i = 0; i < 3; i++) MPI_File_write_at(file, i * 8, bytes, 8, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_Errhandler_free(&handler);
    MPI_File_close(&file);
}

static void many(int count)
{
    enum { REQUESTS = 5000 };
    static MPI_File files[2000];
    static MPI_Request requests[REQUESTS];
    static MPI_Status statuses[REQUESTS];
    static char bytes[REQUESTS];
    char name[32];
    long sum = 0;
    for (int i = 0; i < count; i++) {
        snprintf(name, sizeof name, ".many%d", i % 16);
        files[i] = open_one(name);
    }
    for (int i = 0; i < count; i++) sum += MPI_File_write_at(files[i], i, "x", 1, MPI_BYTE, MPI_STATUS_IGNORE);
    for (int i = 0; i < REQUESTS; i++) sum += MPI_File_iwrite_at(files[0], i, bytes + i, 1, MPI_BYTE, &requests[i]);
    memset(statuses, 0, sizeof statuses);
    sum += MPI_Waitall(REQUESTS, requests, statuses);
    for (int i = 0; i < REQUESTS; i++) {
        int bytes_done;
        MPI_Get_count(&statuses[i], MPI_BYTE, &bytes_done);
        sum += bytes_done - 1 + (requests[i] != MPI_REQUEST_NULL);
    }
    for (int i = 0; i < REQUESTS; i++) sum += MPI_File_iwrite_at(files[1], i, bytes + i, 1, MPI_BYTE, &requests[i]);
    sum += MPI_Waitall(REQUESTS, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < count; i++) sum += MPI_File_close(&files[i]);
    printf("many %ld\n", sum);
}

static void others(void)
{
    MPI_File file = open_one(".others");
    MPI_Request requests[5] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    MPI_Status status;
    int got = 0, sent = 41, index, flag, outcount, indices[5];
    char bytes[16] = "others";
    printf("none %d", MPI_Waitany(5, requests, &index, &status));
    printf(" %d\n", index == MPI_UNDEFINED);
    MPI_Irecv(&got, 1, MPI_INT, 0, 7, MPI_COMM_SELF, &requests[1]);
    MPI_File_iwrite_at(file, 0, bytes, 6, MPI_BYTE, &requests[3]);
    MPI_Isend(&sent, 1, MPI_INT, 0, 7, MPI_COMM_SELF, &requests[4]);
    int left = 3;
    while (left > 0) {
        MPI_Waitsome(5, requests, &outcount, indices, MPI_STATUSES_IGNORE);
        left -= outcount;
    }
    MPI_Waitsome(5, requests, &outcount, indices, MPI_STATUSES_IGNORE);
    printf("mixed %d %d\n", got, outcount == MPI_UNDEFINED);
    MPI_Testany(5, requests, &index, &flag, &status);
    printf("nothing %d %d\n", flag, index == MPI_UNDEFINED);
    printf("empty %d\n", MPI_Waitall(0, NULL, MPI_STATUSES_IGNORE));
    MPI_File_close(&file);
}

static void *thread(void *number)
{
    char name[32], bytes[64];
    snprintf(name, sizeof name, ".thread%ld", (long)number);
    MPI_File file = open_one(name);
    long wrong = 0;
    for (int i = 0; i < 300; i++) {
        MPI_Request request;
        MPI_Status status;
        int count;
        memset(bytes, (int)(long)number + i, sizeof bytes);
        MPI_File_iwrite_at(file, i * 64, bytes, 64, MPI_BYTE, &request);
        MPI_Wait(&request, &status);
        MPI_Get_count(&status, MPI_BYTE, &count);
        wrong += count != 64;
        MPI_File_read_at(file, i * 64, bytes, 64, MPI_BYTE, MPI_STATUS_IGNORE);
        wrong += bytes[63] != (char)((long)number + i);
    }
    MPI_File_close(&file);
    return (void *)wrong;
}

static void deep(void)
{
    MPI_File file = open_one(".deep");
    MPI_Datatype type = MPI_BYTE, next, big;
    static int lengths[200000], at[200000];
    char bytes[64] = {0};
    for (int i = 0; i < 80; i++) {
        MPI_Type_create_resized(type, 0, 2 + i, &next);
        if (type != MPI_BYTE) MPI_Type_free(&type);
        type = next;
    }
    MPI_Type_commit(&type);
    printf("deep %d", MPI_File_set_view(file, 0, MPI_BYTE, type, "native", MPI_INFO_NULL));
    printf(" %d\n", MPI_File_write(file, bytes, 8, MPI_BYTE, MPI_STATUS_IGNORE));
    for (int i = 0; i < 200000; i++) lengths[i] = 1 + i % 3, at[i] = 5 * i + i % 2;
    MPI_Type_indexed(200000, lengths, at, MPI_BYTE, &big);
    MPI_Type_commit(&big);
    printf("long %d", MPI_File_set_view(file, 0, MPI_BYTE, big, "native", MPI_INFO_NULL));
    printf(" %d\n", MPI_File_write(file, bytes, 64, MPI_BYTE, MPI_STATUS_IGNORE));
    for (int i = 0; i < 3000; i++) MPI_File_set_view(file, i, MPI_BYTE, i % 2 ? type : MPI_BYTE, "native", MPI_INFO_NULL);
    MPI_Type_free(&type), MPI_Type_free(&big);
    MPI_File_close(&file);
}

int main(int argc, char **argv)
{
    int level;
    long wrong = 0;
    /* Usage: odd DATA FILES; with 0 files only the jump, for which MPI must hold no lock. */
    int files = argc == 3 ? atoi(argv[2]) : 1;
    strncpy(path, argv[1], sizeof path - 1);
    if (files == 0) {
        MPI_Init(&argc, &argv);
        jumps();
        printf("rank 0: done\n");
        return MPI_Finalize();
    }
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    errors();
    many(files);
    others();
    deep();
    if (level == MPI_THREAD_MULTIPLE) {
        pthread_t threads[4];
        for (long i = 0; i < 4; i++) pthread_create(&threads[i], NULL, thread, (void *)i);
        for (long i = 0; i < 4; i++) {
            void *found;
            pthread_join(threads[i], &found);
            wrong += (long)found;
        }
    }
    printf("threads %ld\nrank 0: done\n", wrong);
    MPI_Finalize();
    return 0;
}
