/*
 * squatter: takes the names of other users' objects before they do.
 *
 * usage: squatter FILES TARGET...
 *
 * Watches the directory FILES, where each file of a store has a directory of its own named by its id, and at each new one makes ID.data, ID.data1 and ID.repl
 * in every TARGET, writable by everybody. Until there is a line on standard input; then it says how many it had first (`had N`), and what other users have
 * put into
 * them (`received N`, in bytes); it then goes on waiting until standard input ends.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILES_MAX = 100000 };

static int kept[FILES_MAX];
static int had;

static void squat(int target, const char *id)
{
    static const char *const endings[] = {"data", "data1", "repl"};
    char name[NAME_MAX + 8];
    for (unsigned i = 0; i < sizeof endings / sizeof *endings && had < FILES_MAX; i++) {
        snprintf(name, sizeof name, "%s.%s", id, endings[i]);
        int fd = openat(target, name, O_RDWR | O_CREAT | O_EXCL, 0666);
        if (fd >= 0)
            kept[had++] = fd;
    }
}

int main(int argc, char **argv)
{
    char events[65536] __attribute__((aligned(8)));
    struct pollfd wait[] = {{.fd = 0, .events = POLLIN}, {.fd = inotify_init1(0), .events = POLLIN}};
    int targets[16], count = argc - 2;
    if (count < 1 || count > 16 || inotify_add_watch(wait[1].fd, argv[1], IN_CREATE | IN_MOVED_TO) < 0)
        return 2;
    for (int i = 0; i < count; i++)
        targets[i] = open(argv[i + 2], O_RDONLY | O_DIRECTORY);
    umask(0);
    printf("ready\n");
    fflush(stdout);
    while (poll(wait, 2, -1) > 0 && !wait[0].revents) {
        ssize_t got = read(wait[1].fd, events, sizeof events);
        for (char *at = events; at < events + got; at += sizeof(struct inotify_event) + ((struct inotify_event *)at)->len) {
            struct inotify_event *event = (struct inotify_event *)at;
            for (int i = 0; i < count && event->len > 0; i++)
                squat(targets[i], event->name);
        }
    }
    long long received = 0;
    for (int i = 0; i < had; i++) {
        struct stat st;
        if (fstat(kept[i], &st) == 0)
            received += st.st_size;
    }
    printf("had %d\nreceived %lld\n", had, received);
    fflush(stdout);
    while (read(0, events, sizeof events) > 0) {}
    return 0;
}
