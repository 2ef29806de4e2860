/*
 * stepper: runs a program and stops it at a chosen system call, so that a test can leave it there, let it go on, or kill it, at every step of what it does.
 *
 * usage: stepper STEP COMMAND [ARGUMENT...]
 *
 * COMMAND sends itself SIGUSR1 where the counting begins, and again where it ends. Every entry and every return of a system call between is a step. When step
 * STEP is reached the program stays stopped, and "stopped STEP NUMBER entry|return" (NUMBER: of the system call) is printed; then a line is awaited on
 * standard input: "go" lets the program run on by itself, anything else kills it. A program that has fewer steps runs to its end, and "steps N" is printed.
 * Exit code: the program's; 137 when it was killed.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

static int fail(const char *what)
{
    fprintf(stderr, "stepper: %s: %s\n", what, strerror(errno));
    return 125;
}

static int code_of(int status)
{
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* The program stands at the step: what becomes of it is said on standard input. */
static int at_the_step(pid_t child, long step)
{
    struct __ptrace_syscall_info info = {0};
    char answer[16] = "";
    int status;
    if (ptrace(PTRACE_GET_SYSCALL_INFO, child, sizeof info, &info) < 0)
        return fail("PTRACE_GET_SYSCALL_INFO");
    int enters = info.op == PTRACE_SYSCALL_INFO_ENTRY;
    printf("stopped %ld %lld %s\n", step, enters ? (long long)info.entry.nr : -1LL, enters ? "entry" : "return");
    fflush(stdout);
    if (fgets(answer, sizeof answer, stdin) == NULL || strcmp(answer, "go\n") != 0)
        kill(child, SIGKILL);
    else if (ptrace(PTRACE_SETOPTIONS, child, NULL, 0) < 0 || ptrace(PTRACE_CONT, child, NULL, NULL) < 0)
        return fail("PTRACE_CONT");
    for (;;) {
        if (waitpid(child, &status, 0) < 0)
            return fail("waitpid");
        if (!WIFSTOPPED(status))
            return code_of(status);
        int signal = WSTOPSIG(status);
        ptrace(PTRACE_CONT, child, NULL, (void *)(long)(signal == SIGUSR1 ? 0 : signal));
    }
}

static int run(pid_t child, long wanted)
{
    int status, counting = 0;
    long steps = 0;
    if (waitpid(child, &status, 0) < 0 || !WIFSTOPPED(status))
        return fail("the program does not start");
    if (ptrace(PTRACE_SETOPTIONS, child, NULL, PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL) < 0)
        return fail("PTRACE_SETOPTIONS");
    for (long deliver = 0;; deliver = 0) {
        if (ptrace(counting ? PTRACE_SYSCALL : PTRACE_CONT, child, NULL, (void *)deliver) < 0 || waitpid(child, &status, 0) < 0)
            return fail("PTRACE_SYSCALL");
        if (!WIFSTOPPED(status)) {
            printf("steps %ld\n", steps);
            return code_of(status);
        }
        if (status >> 8 == (SIGTRAP | PTRACE_EVENT_EXEC << 8))
            continue;
        if (WSTOPSIG(status) == SIGUSR1)
            counting = !counting;
        else if (WSTOPSIG(status) != (SIGTRAP | 0x80))
            deliver = WSTOPSIG(status);
        else if (++steps == wanted)
            return at_the_step(child, steps);
    }
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        fputs("usage: stepper STEP COMMAND [ARGUMENT...]\n", stderr);
        return 2;
    }
    pid_t child = fork();
    if (child < 0)
        return fail("fork");
    if (child == 0) {
        if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0)
            _exit(fail("PTRACE_TRACEME"));
        raise(SIGSTOP);
        execvp(argv[2], argv + 2);
        _exit(fail(argv[2]));
    }
    return run(child, strtol(argv[1], NULL, 10));
}
