/* Ways in which a process begins, splits and goes on: each subcommand does one of them around a file that it is given, says "ok" or what went
 * wrong, and knows nothing of the library. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

#define MUST(x)                                                                    \
    do {                                                                           \
        if (!(x)) {                                                                \
            dprintf(2, "%s:%d: %s: %s\n", __FILE__, __LINE__, #x, strerror(errno)); \
            _exit(1);                                                              \
        }                                                                          \
    } while (0)

static int ended(pid_t pid)
{
    int status;
    MUST(pid > 0 && waitpid(pid, &status, 0) == pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* Starts `argv` in one of the ways with the environment `envp`; those that take none get it as their own. */
static int start(const char *how, char **argv, char **envp)
{
    if (!strcmp(how, "posix_spawn") || !strcmp(how, "posix_spawnp")) {
        pid_t pid;
        int error = how[11] ? posix_spawnp(&pid, argv[0], 0, 0, argv, envp) : posix_spawn(&pid, argv[0], 0, 0, argv, envp);
        return error ? error : ended(pid);
    }
    if (!strcmp(how, "system") || !strcmp(how, "popen")) {
        char command[4096] = "";
        for (int i = 0; argv[i]; i++) strcat(strcat(command, argv[i]), " ");
        environ = envp;
        if (how[0] == 's') return WEXITSTATUS(system(command));
        FILE *pipe = popen(command, "r");
        MUST(pipe);
        return WEXITSTATUS(pclose(pipe));
    }
    pid_t pid = !strcmp(how, "vfork") ? vfork() : fork();
    if (pid) return ended(pid);
    if (!strcmp(how, "execve") || !strcmp(how, "vfork")) execve(argv[0], argv, envp);
    if (!strcmp(how, "execvpe")) execvpe(argv[0], argv, envp);
    if (!strcmp(how, "execle")) execle(argv[0], argv[0], argv[1], argv[2], argv[3], argv[4], (char *)0, envp);
    if (!strcmp(how, "fexecve")) fexecve(open(argv[0], O_RDONLY), argv, envp);
    if (!strcmp(how, "execveat")) execveat(AT_FDCWD, argv[0], argv, envp, 0);
    environ = envp;
    if (!strcmp(how, "execv")) execv(argv[0], argv);
    if (!strcmp(how, "execvp")) execvp(argv[0], argv);
    if (!strcmp(how, "execl")) execl(argv[0], argv[0], argv[1], argv[2], argv[3], argv[4], (char *)0);
    if (!strcmp(how, "execlp")) execlp(argv[0], argv[0], argv[1], argv[2], argv[3], argv[4], (char *)0);
    _exit(126);
}

/* fresh HOW OFF PROGRAM ARGS... */
static int fresh(char **args)
{
    char *none[] = {0}, *off[] = {"STRIPEWISE_OFF=1", 0}, *others[] = {"A=b", "LD_PRELOAD=libm.so.6", 0};
    char **envp = !strcmp(args[1], "off") ? off : !strcmp(args[1], "others") ? others : none;
    return start(args[0], args + 2, envp);
}

static pid_t split(const char *how)
{
    if (!strcmp(how, "fork")) return fork();
    if (!strcmp(how, "_Fork")) {
        pid_t (*quiet)(void) = (pid_t(*)(void))dlsym(RTLD_DEFAULT, "_Fork");
        return quiet ? quiet() : fork();
    }
    if (!strcmp(how, "raw-fork")) return (pid_t)syscall(SYS_fork);
    return (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
}

enum { LINES = 2000, LINE = 16 };
static void append(const char *path, int fd, char mark)
{
    char line[LINE + 1];
    for (int i = 0; i < LINES; i++) {
        snprintf(line, sizeof line, "%c%014d\n", mark, i);
        MUST(write(fd, line, LINE) == LINE);
        if (i % 500 == 0) {
            int other = open(path, O_RDONLY);
            MUST(other >= 0 && pread(other, line, LINE, 0) == LINE);
            int same = dup(other);
            MUST(close(other) == 0 && read(same, line, LINE) == LINE && close(same) == 0);
        }
    }
}

/* split HOW FILE: parent and child append by turns; the child says its number and waits while it is inside, so that it can be looked at. */
static int split_and_append(char **args)
{
    int fd = open(args[1], O_WRONLY | O_CREAT | O_APPEND, 0644);
    MUST(fd >= 0);
    MUST(write(fd, "p-00000000000000\n" + 1, LINE) == LINE);
    pid_t pid = split(args[0]);
    MUST(pid >= 0);
    append(args[1], fd, pid ? 'p' : 'c');
    if (pid == 0) {
        char go;
        dprintf(1, "%d\n", (int)syscall(SYS_getpid));
        MUST(read(0, &go, 1) == 1);
        MUST(ftruncate(fd, (off_t)(2 * LINES + 1) * LINE) == 0);
        MUST(close(fd) == 0);
        _exit(0);
    }
    MUST(ended(pid) == 0);
    char line[LINE];
    int counts[128] = {0}, back = open(args[1], O_RDONLY);
    while (read(back, line, LINE) == LINE) counts[line[0] & 127]++;
    MUST(counts['p'] == LINES && counts['c'] == LINES);
    return 0;
}

static void close_all(const char *how)
{
    if (!strcmp(how, "closefrom")) closefrom(3);
    if (!strcmp(how, "close_range")) MUST(close_range(3, ~0u, 0) == 0);
    if (!strcmp(how, "loop"))
        for (int fd = 3; fd < (int)sysconf(_SC_OPEN_MAX) && fd < 70000; fd++) close(fd);
    if (!strcmp(how, "proc")) {
        DIR *dir = opendir("/proc/self/fd");
        for (struct dirent *e; (e = readdir(dir));)
            if (atoi(e->d_name) > 2 && atoi(e->d_name) != dirfd(dir)) close(atoi(e->d_name));
        closedir(dir);
    }
    if (!strcmp(how, "over"))
        for (int fd = 3; fd < 1024; fd++) MUST(dup2(0, fd) == fd);
    if (!strcmp(how, "raw"))
        for (int fd = 3; fd < 70000; fd++) syscall(SYS_close, fd);
}

/* daemon HOW FILE: forks twice, leaves the session, closes everything, and appends by name. */
static int daemonise(char **args)
{
    int fd = open(args[1], O_RDWR | O_CREAT | O_TRUNC, 0644);
    MUST(fd >= 0 && write(fd, "before ", 7) == 7);
    pid_t pid = fork();
    if (pid) return ended(pid);
    MUST(setsid() > 0);
    pid = fork();
    if (pid) _exit(ended(pid));
    close_all(args[0]);
    if (strcmp(args[0], "over")) MUST(write(fd, "x", 1) == -1 && errno == EBADF);
    else MUST(close(fd) == 0);
    fd = open(args[1], O_RDWR | O_APPEND);
    MUST(fd >= 0 && write(fd, "after", 5) == 5);
    char text[13] = "";
    MUST(pread(fd, text, 12, 0) == 12 && !strcmp(text, "before after"));
    MUST(close(fd) == 0);
    return 0;
}

static const char *small_path;
static void *in_thread(void *unused)
{
    (void)unused;
    char text[4] = "";
    int fd = open(small_path, O_RDWR | O_CREAT, 0644);
    MUST(fd >= 0);
    MUST(pwrite(fd, "abc", 3, 0) == 3);
    MUST(pread(fd, text, 3, 0) == 3 && !strcmp(text, "abc"));
    MUST(close(fd) == 0);
    MUST(access(small_path, R_OK) == 0);
    return 0;
}
/* stack BYTES FILE: all of it on a thread with that much stack. */
static int stack(char **args)
{
    pthread_attr_t attr;
    pthread_t thread;
    small_path = args[1];
    pthread_attr_init(&attr);
    MUST(pthread_attr_setstacksize(&attr, (size_t)atol(args[0])) == 0);
    MUST(pthread_create(&thread, &attr, in_thread, 0) == 0 && pthread_join(thread, 0) == 0);
    return 0;
}

/* module dlopen|dlmopen LIBRARY FILE: opens and reads the file in a module; in a name space of its own that must fail. */
static int module(char **args)
{
    void *so = !strcmp(args[0], "dlopen") ? dlopen(args[1], RTLD_NOW) : dlmopen(LM_ID_NEWLM, args[1], RTLD_NOW);
    if (!so) return dprintf(2, "%s\n", dlerror()), 1;
    long (*slurp)(const char *) = (long (*)(const char *))dlsym(so, "slurp");
    dprintf(1, "%ld\n", slurp(args[2]));
    return 0;
}

/* few LIMIT FILE: with a small limit of descriptors, opens until that is reached; then what is open must work. */
static int few(char **args)
{
    struct rlimit limit = {(rlim_t)atol(args[0]), (rlim_t)atol(args[0])};
    MUST(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    int fds[256], n = 0;
    while (n < 256 && (fds[n] = open(args[1], O_RDWR | O_CREAT, 0644)) >= 0) n++;
    MUST(n > 0 && n < 256 && errno == EMFILE);
    MUST(close(fds[--n]) == 0);
    MUST(n > 0 && write(fds[0], "abc", 3) == 3);
    char text[4] = "";
    MUST(pread(fds[0], text, 3, 0) == 3 && !strcmp(text, "abc"));
    for (int i = 0; i < n; i++) MUST(close(fds[i]) == 0);
    return 0;
}

/* wired FILE PROGRAM ARGS...: posix_spawn with the file as standard output by dup2, opened to append and close-on-exec. */
static int wired(char **args)
{
    int fd = open(args[0], O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    posix_spawn_file_actions_t actions;
    pid_t pid;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, fd, 1);
    MUST(posix_spawn(&pid, args[1], &actions, 0, args + 1, environ) == 0);
    return ended(pid);
}

/* flags FD: access mode and status flags of a descriptor that was handed down. */
static int flags(char **args)
{
    int how = fcntl(atoi(args[0]), F_GETFL);
    dprintf(2, "%s%s%s\n", (how & O_ACCMODE) == O_RDONLY ? "r" : (how & O_ACCMODE) == O_WRONLY ? "w" : "rw", how & O_APPEND ? " append" : "",
            (how & O_SYNC) == O_SYNC ? " sync" : how & O_DSYNC ? " dsync" : "");
    return 0;
}

/* failing FILE: an exec that fails leaves the descriptor as it was. */
static int failing(char **args)
{
    int fd = open(args[0], O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    MUST(fd >= 0 && write(fd, "abc", 3) == 3);
    char *argv[] = {"/none", 0};
    MUST(execv("/none", argv) == -1 && errno == ENOENT);
    pid_t pid;
    MUST(posix_spawn(&pid, "/none", 0, 0, argv, environ) == ENOENT);
    MUST(fcntl(fd, F_GETFD) == FD_CLOEXEC && write(fd, "def", 3) == 3 && lseek(fd, 0, SEEK_END) == 6);
    return 0;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int words;
        int (*run)(char **);
    } commands[] = {{"fresh", 3, fresh}, {"split", 2, split_and_append}, {"daemon", 2, daemonise}, {"stack", 2, stack}, {"module", 3, module},
                    {"few", 2, few}, {"wired", 2, wired}, {"flags", 1, flags}, {"failing", 1, failing}};
    for (size_t i = 0; argc > 1 && i < sizeof commands / sizeof *commands; i++)
        if (!strcmp(argv[1], commands[i].name) && argc >= 2 + commands[i].words) return commands[i].run(argv + 2);
    return dprintf(2, "usage: life COMMAND ...\n"), 2;
}
