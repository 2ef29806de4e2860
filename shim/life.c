/* The symbols of the preloaded library by which a program becomes another one or starts one: the exec and spawn families, system and popen, and
 * _Fork. A new environment that lacks the library gets it back, and companions of descriptors that go along go along, too. */
#include "hook.h"
#include <pty.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <utmp.h>

extern char **environ;

DECLARE_REAL(int, execve, const char *, char *const[], char *const[]);
DECLARE_REAL(int, execvpe, const char *, char *const[], char *const[]);
DECLARE_REAL(int, fexecve, int, char *const[], char *const[]);
DECLARE_REAL(int, execveat, int, const char *, char *const[], char *const[], int);
DECLARE_REAL_OF("GLIBC_2.15", int, posix_spawn, pid_t *, const char *, const posix_spawn_file_actions_t *, const posix_spawnattr_t *, char *const[], char *const[]);
DECLARE_REAL_OF("GLIBC_2.15", int, posix_spawnp, pid_t *, const char *, const posix_spawn_file_actions_t *, const posix_spawnattr_t *, char *const[], char *const[]);
DECLARE_REAL(int, system, const char *);
DECLARE_REAL(FILE *, popen, const char *, const char *);
DECLARE_REAL(pid_t, _Fork, void);
DECLARE_REAL(int, daemon, int, int);
DECLARE_REAL(int, login_tty, int);
DECLARE_REAL(pid_t, forkpty, int *, char *, const struct termios *, const struct winsize *);

/* The look-ups take the loader's lock, which a child of fork may find held for ever: they are done before. */
__attribute__((constructor)) static void resolve(int argc, char **argv, char **envp)
{
    Dl_info own;
    (void)argc, (void)argv;
    REAL(execve), REAL(execvpe), REAL(fexecve), REAL(execveat), REAL(posix_spawn), REAL(posix_spawnp), REAL(system), REAL(popen), REAL(_Fork), REAL(daemon), REAL(login_tty), REAL(forkpty);
    sw_exec_start(envp, dladdr((void *)resolve, &own) ? own.dli_fname : 0);
}

/* The environment that the new program gets: the one given, or a copy on this frame's stack with what it lacks. */
#define WITH_LIBRARY(envp)                                   \
    struct sw_environment_size size_;                        \
    sw_exec_environment_size((envp), &size_);                \
    char *made_[size_.pointers + 1], text_[size_.bytes + 1]; \
    char *const *env = sw_exec_environment((envp), &size_, made_, text_)

/* An exec that comes back has failed. */
#define EXEC(name, search, call)     \
    do {                             \
        sw_exec_begin(name, search); \
        int r_ = call;               \
        sw_exec_failed();            \
        return r_;                   \
    } while (0)

EXPORT int execve(const char *path, char *const argv[], char *const envp[])
{
    WITH_LIBRARY(envp);
    EXEC(path, 0, REAL(execve)(path, argv, env));
}
EXPORT int execv(const char *path, char *const argv[]) { return execve(path, argv, environ); }
EXPORT int execvpe(const char *file, char *const argv[], char *const envp[])
{
    WITH_LIBRARY(envp);
    EXEC(file, 1, REAL(execvpe)(file, argv, env));
}
EXPORT int execvp(const char *file, char *const argv[]) { return execvpe(file, argv, environ); }
EXPORT int fexecve(int fd, char *const argv[], char *const envp[])
{
    WITH_LIBRARY(envp);
    EXEC(0, 0, REAL(fexecve)(fd, argv, env));
}
EXPORT int execveat(int dirfd, const char *path, char *const argv[], char *const envp[], int flags)
{
    WITH_LIBRARY(envp);
    EXEC(0, 0, REAL(execveat) ? REAL(execveat)(dirfd, path, argv, env, flags) : (int)syscall(SYS_execveat, dirfd, path, argv, env, flags));
}

/* The list of arguments as an array; `rest` is what follows its closing null. */
#define LISTED(first, rest)                                        \
    size_t count_ = 1;                                             \
    va_list ap;                                                    \
    va_start(ap, first);                                           \
    while (va_arg(ap, char *)) count_++;                           \
    va_end(ap);                                                    \
    char *argv[count_ + 1];                                        \
    argv[0] = (char *)first;                                       \
    va_start(ap, first);                                           \
    for (size_t i = 1; i <= count_; i++) argv[i] = va_arg(ap, char *); \
    rest;                                                          \
    va_end(ap)

EXPORT int execl(const char *path, const char *first, ...)
{
    LISTED(first, );
    return execve(path, argv, environ);
}
EXPORT int execlp(const char *file, const char *first, ...)
{
    LISTED(first, );
    return execvpe(file, argv, environ);
}
EXPORT int execle(const char *path, const char *first, ...)
{
    LISTED(first, char *const *envp = va_arg(ap, char *const *));
    return execve(path, argv, envp);
}

/* posix_spawn and posix_spawnp return the error. */
#define SPAWN(name, search, call)                   \
    do {                                            \
        sw_spawn_begin(name, search, actions != 0); \
        int r_ = call;                              \
        sw_spawn_end(actions != 0);                 \
        return r_;                                  \
    } while (0)
EXPORT int posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions, const posix_spawnattr_t *attr, char *const argv[], char *const envp[])
{
    WITH_LIBRARY(envp);
    SPAWN(path, 0, REAL(posix_spawn)(pid, path, actions, attr, argv, env));
}
EXPORT int posix_spawnp(pid_t *pid, const char *file, const posix_spawn_file_actions_t *actions, const posix_spawnattr_t *attr, char *const argv[], char *const envp[])
{
    WITH_LIBRARY(envp);
    SPAWN(file, 1, REAL(posix_spawnp)(pid, file, actions, attr, argv, env));
}

/* These spawn inside the C library with the process's own environment: where a program has cleared that, it is lent one meanwhile. */
#define LENT(call)                                             \
    do {                                                       \
        char **own_ = environ;                                 \
        WITH_LIBRARY(own_);                                    \
        sw_spawn_begin(0, 0, 0);                               \
        if (env != own_) environ = (char **)env;               \
        __typeof__(call) r_ = call;                            \
        if (env != own_ && environ == env) environ = own_;     \
        sw_spawn_end(0);                                       \
        return r_;                                             \
    } while (0)
EXPORT int system(const char *command) { LENT(REAL(system)(command)); }
EXPORT FILE *popen(const char *command, const char *mode) { LENT(REAL(popen)(command, mode)); }

/* These duplicate onto 0, 1 and 2 inside the C library. */
EXPORT int daemon(int keep_dir, int keep_open)
{
    int r = REAL(daemon)(keep_dir, keep_open);
    if (r == 0 && !keep_open) sw_rewired();
    return r;
}
EXPORT int login_tty(int fd)
{
    int r = REAL(login_tty)(fd);
    if (r == 0) sw_rewired();
    return r;
}
EXPORT pid_t forkpty(int *fd, char *name, const struct termios *mode, const struct winsize *size)
{
    pid_t child = REAL(forkpty)(fd, name, mode, size);
    if (child == 0) sw_rewired();
    return child;
}

/* The fork that runs no handlers: the child finds out by itself, the parent must know that offsets are shared. */
EXPORT pid_t _Fork(void)
{
    sw_fork_bare();
    return REAL(_Fork) ? REAL(_Fork)() : fork();
}

/* A child of vfork goes on in its parent's memory, on its parent's stack: nothing may lie there when the C library's function is entered, so it is jumped
 * to. clone takes any number of arguments and may make such a child, too. From here on the library asks whose process it is in (in_vfork_child). */
#if defined __x86_64__
#define SHARING(name)                                                                         \
    __asm__(".text\n.globl " #name "\n.type " #name ",@function\n.hidden SW_MEMORY_SHARED\n" #name ":\nendbr64\n" \
            "movb $1, SW_MEMORY_SHARED(%rip)\njmp __" #name "@PLT\n.size " #name ",.-" #name "\n")
#elif defined __aarch64__
#define SHARING(name)                                                                         \
    __asm__(".text\n.globl " #name "\n.type " #name ",@function\n.hidden SW_MEMORY_SHARED\n" #name ":\nhint #34\n" \
            "adrp x16, SW_MEMORY_SHARED\nmov w17, #1\nstrb w17, [x16, :lo12:SW_MEMORY_SHARED]\nb __" #name "\n.size " #name ",.-" #name "\n")
#else
#error "vfork and clone are hooked by a jump: write it for this architecture"
#endif
SHARING(vfork);
SHARING(clone);
