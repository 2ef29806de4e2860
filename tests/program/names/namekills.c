/*
 * The life of a small file, for one who kills it at any system call: made, written, given the name of another, removed.
 *
 *   namekills NAME OTHER
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static void must(int done, const char *what)
{
    if (done) return;
    perror(what);
    exit(1);
}

int main(int argc, char **argv)
{
    must(argc == 3, "namekills NAME OTHER");
    /* What comes before is the loader's. */
    syscall(SYS_access, "/begins", F_OK);
    int fd = open(argv[1], O_CREAT | O_EXCL | O_WRONLY, 0644);
    must(fd >= 0, argv[1]);
    must(write(fd, "new", 3) == 3, "write");
    must(close(fd) == 0, "close");
    must(rename(argv[1], argv[2]) == 0, "rename");
    must(unlink(argv[2]) == 0, "unlink");
    return 0;
}
