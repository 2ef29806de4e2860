/*
 * One name that several make, open, replace and remove at the same moment, and calls by name where no descriptor is left.
 */
#include "rivals.h"
#include <sys/mman.h>
#include <sys/resource.h>

enum { OPENS = 1500, IDLE = 12, LIMIT = 96 };

static char path[4096], other[4096];
/* What a child looks at, and its parent sets. */
static volatile int *ends;

/* Where the kernel says that a descriptor's file lies, past the library. */
static void place_of(int fd, char *place, size_t room)
{
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = syscall(SYS_readlink, link, place, room - 1);
    place[n > 0 ? n : 0] = 0;
}

/* Whether the directory has the name, past the library. */
static int is_there(const char *name)
{
    char text[4096];
    return syscall(SYS_readlink, name, text, sizeof text) >= 0 || errno != ENOENT;
}

static void make(const char *name)
{
    int fd = open(name, O_CREAT | O_RDWR, 0644);
    if (fd >= 0) close(fd);
}

static void remove_again(void)
{
    make(path);
    unlink(path);
}

static void replace(void)
{
    make(other);
    rename(other, path);
}

/* Every open with O_CREAT of a name works, whatever another process does to it, and on a file of the kind that the directory's files are. */
static void beside_a_process(void (*act)(void), const char *text)
{
    char place[4096], first[4096];
    int good = 0, alike = 1;
    make(path);
    int fd = must(open(path, O_RDONLY), path);
    place_of(fd, first, sizeof first);
    close(fd);
    *ends = 0;
    pid_t child = must(fork(), "fork");
    if (child == 0) {
        while (!*ends) act();
        _exit(0);
    }
    for (int i = 0; i < OPENS; i++) {
        struct stat st;
        fd = open(path, O_CREAT | O_RDWR, 0644);
        good += fd >= 0 && write(fd, "y", 1) == 1 && fstat(fd, &st) == 0;
        if (fd < 0) continue;
        place_of(fd, place, sizeof place);
        alike &= !strstr(place, "/files/") == !strstr(first, "/files/");
        close(fd);
    }
    *ends = 1;
    must(waitpid(child, NULL, 0), "waitpid");
    law(good == OPENS && alike, text);
    unlink(path);
    unlink(other);
}

static volatile int done;

static void *remove_always(void *unused)
{
    (void)unused;
    while (!done) unlink(path);
    return NULL;
}

static void beside_a_thread(void)
{
    pthread_t thread;
    int good = 0;
    pthread_create(&thread, NULL, remove_always, NULL);
    for (int i = 0; i < OPENS; i++) {
        int fd = open(path, O_CREAT | O_RDWR, 0644);
        good += fd >= 0;
        if (fd >= 0) close(fd);
    }
    done = 1;
    pthread_join(thread, NULL);
    law(good == OPENS, "a name that a thread always removes can always be made");
    unlink(path);
}

static void without_descriptors(void)
{
    struct rlimit few = {LIMIT, LIMIT};
    struct stat st;
    char name[4200];
    int fds[LIMIT], used = 0, fd;
    must(setrlimit(RLIMIT_NOFILE, &few), "setrlimit");
    for (int i = 0; i < IDLE; i++) {
        snprintf(name, sizeof name, "%s.%d", path, i);
        make(name);
    }
    /* Four are left: what the library keeps of closed files is the program's again. */
    while ((fd = open("/dev/null", O_RDONLY)) >= 0) fds[used++] = fd;
    for (int i = 0; i < 4; i++) close(fds[--used]);
    snprintf(name, sizeof name, "%s.%d", path, 0);
    law(!stat(name, &st) && !access(name, R_OK) && !chmod(name, 0600) && !truncate(name, 0), "with few descriptors left files are changed by name");
    /* None is left: a name stays, or its file goes with it. */
    while ((fd = open("/dev/null", O_RDONLY)) >= 0) fds[used++] = fd;
    int gone = 1;
    for (int i = 0; i < IDLE; i++) {
        snprintf(name, sizeof name, "%s.%d", path, i);
        int removed = !unlink(name), why = errno;
        gone &= removed ? !is_there(name) : why == EMFILE && is_there(name);
    }
    law(gone, "with none left a file is removed, or its name stays");
    while (used > 0) close(fds[--used]);
    for (int i = 0; i < IDLE; i++) {
        snprintf(name, sizeof name, "%s.%d", path, i);
        unlink(name);
    }
}

void names(void)
{
    snprintf(path, sizeof path, "%s/name", dir);
    snprintf(other, sizeof other, "%s/other", dir);
    ends = mmap(NULL, sizeof *ends, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    beside_a_process(remove_again, "a name that another process makes and removes can always be opened or made");
    beside_a_process(replace, "so can one that another process replaces");
    beside_a_thread();
    without_descriptors();
}
