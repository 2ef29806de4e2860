/*
 * stepper: runs a program and stops it at a chosen system call, so that a test can leave it there, let it go on, or kill it, at every step of what it does.
 *
 * usage: stepper PHASE STEP CTL COMMAND [ARGUMENT...]
 *
 * What COMMAND prints goes to standard error. It sends itself SIGUSR1 where the counting begins, and again where it ends. Every entry and every return of a
 * system call between, while the move of
 * the file whose control words are CTL is in PHASE (any, before, copying, frozen, publishing, after), is a step. When step STEP is reached the program stays
 * stopped, and "stopped STEP NUMBER entry|return" (NUMBER: of the system call) is printed; then a line is awaited on standard input: "go" lets the program
 * run on by itself, anything else kills it. A program that has fewer steps runs to its end, and "steps N" is printed. Exit code: the program's; 137 when it
 * was killed.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
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

/* Where a move stands: its state (the low bits of the move word at byte 128 of the control words), or 5 when it has been under way and is no more. */
enum { BEFORE, COPYING, FROZEN, PUBLISHING, ABORTED, AFTER, ANY };
static const char *const phases[] = {"before", "copying", "frozen", "publishing", "aborted", "after", "any"};

static int phase_of(const unsigned char *ctl)
{
    static int begun;
    int state = ctl[128] & 7;
    begun |= state != BEFORE;
    return state == BEFORE && begun ? AFTER : state;
}

/* The program stands at the step: what becomes of it is said on standard input. */
static int at_the_step(pid_t child, long step, long call, int enters)
{
    char answer[16] = "";
    int status;
    printf("stopped %ld %ld %s\n", step, call, enters ? "entry" : "return");
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

static int run(pid_t child, int phase, long wanted, const unsigned char *ctl)
{
    struct __ptrace_syscall_info info = {0};
    int status, counting = 0;
    long steps = 0, call = -1;
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
        else {
            if (ptrace(PTRACE_GET_SYSCALL_INFO, child, sizeof info, &info) < 0)
                return fail("PTRACE_GET_SYSCALL_INFO");
            int enters = info.op == PTRACE_SYSCALL_INFO_ENTRY;
            if (enters)
                call = (long)info.entry.nr;
            int now = phase_of(ctl);
            if ((phase == ANY || phase == now) && ++steps == wanted)
                return at_the_step(child, steps, call, enters);
        }
    }
}

int main(int argc, char **argv)
{
    int phase = 0, fd = argc < 5 ? -1 : open(argv[3], O_RDONLY);
    while (argc >= 5 && phase <= ANY && strcmp(argv[1], phases[phase]) != 0)
        phase++;
    if (fd < 0 || phase > ANY) {
        fputs("usage: stepper PHASE STEP CTL COMMAND [ARGUMENT...]\n", stderr);
        return 2;
    }
    const unsigned char *ctl = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
    if (ctl == MAP_FAILED)
        return fail(argv[3]);
    pid_t child = fork();
    if (child < 0)
        return fail("fork");
    if (child == 0) {
        if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0)
            _exit(fail("PTRACE_TRACEME"));
        dup2(STDERR_FILENO, STDOUT_FILENO);
        raise(SIGSTOP);
        execvp(argv[4], argv + 4);
        _exit(fail(argv[4]));
    }
    return run(child, phase, strtol(argv[2], NULL, 10), ctl);
}
