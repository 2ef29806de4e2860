/*
 * rivals: threads and processes that get into each other's way at one descriptor or at one name. A law holds on plain files, and must hold on managed ones.
 * Prints TAP; exits 1 when a law is broken.
 *
 * usage: rivals closers|names DIRECTORY (files are made and removed there)
 */
#include "rivals.h"

const char *dir;
static int test_number, broken;

void law(int holds, const char *text)
{
    printf("%s %d - %s\n", holds ? "ok" : "not ok", ++test_number, text);
    fflush(stdout);
    broken |= !holds;
}

int must(int r, const char *what)
{
    if (r < 0) {
        perror(what);
        exit(2);
    }
    return r;
}

static int change(const char *path)
{
    int fd = must(open(path, O_RDWR | O_APPEND), path);
    int failed = ftruncate(fd, 1) ? 3 : write(fd, "x", 1) != 1 ? 4 : ftruncate(fd, 0) ? 5 : fsync(fd) ? 6 : 0;
    if (failed) perror(path);
    return failed;
}

int main(int argc, char **argv)
{
    if (argc != 3) return 2;
    if (!strcmp(argv[1], "--change")) return change(argv[2]);
    dir = argv[2];
    if (!strcmp(argv[1], "closers")) closers();
    else names();
    printf("1..%d\n", test_number);
    return broken;
}
