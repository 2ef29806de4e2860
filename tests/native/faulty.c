/*
 * faulty: meets bus errors of its own while it uses another file, in every way in which a program can have asked for them.
 *
 * usage: faulty HOW OWN FILE [CUT]
 *
 * OWN is a plain file of the program's, which it maps, cuts and touches behind its end. FILE is read and written all the while; an I/O error there is
 * said and survived. Where CUT is given, `ready` is printed, a line is awaited, and only then are FILE's errors looked at: so that somebody else may cut
 * what FILE consists of. HOW is the handler: `sigaction`, `siginfo`, `signal`, `reset` (SA_RESETHAND), `stack` (on an alternate stack), `later` (set after
 * FILE was opened), `fork` (faults in a child), `thread`, `exec` (the program is executed again and sets its handler there), `mapped` (FILE itself is mapped
 * and cut by the program), `none`, `default` and `ignored` (SIG_IGN) (the program must end by SIGBUS, as without the library), `told` (what sigaction says of
 * the present action is what was set).
 *
 * Prints `ok` or `not ok` and the fact.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define BYTES (1 << 16)

static sigjmp_buf back;
static volatile sig_atomic_t faults, expected;
static void *volatile fault_at;
static volatile sig_atomic_t on_stack;
static char stack[1 << 16];
static const char *how, *own_name, *file_name;

static void fact(int holds, const char *what)
{
    printf("%s %s: %s\n", holds ? "ok" : "not ok", how, what);
    fflush(stdout);
}

static void plain_handler(int number)
{
    faults++;
    if (!expected) {
        fact(0, "the program's handler got a fault that is not its own");
        _exit(3);
    }
    on_stack = (char *)&number >= stack && (char *)&number < stack + sizeof stack;
    siglongjmp(back, 1);
}

static void handler(int number, siginfo_t *info, void *context)
{
    (void)context;
    fault_at = info->si_addr;
    plain_handler(number);
}

static int is(const char *what)
{
    return strcmp(how, what) == 0;
}

static void ask(void)
{
    struct sigaction action = {0};
    sigemptyset(&action.sa_mask);
    if (is("signal")) {
        signal(SIGBUS, plain_handler);
        return;
    }
    if (is("default") || is("ignored")) {
        signal(SIGBUS, is("default") ? SIG_DFL : SIG_IGN);
        return;
    }
    if (is("none"))
        return;
    action.sa_flags = SA_SIGINFO | SA_NODEFER;
    action.sa_sigaction = handler;
    if (is("sigaction")) {
        action.sa_flags = 0;
        action.sa_handler = plain_handler;
    }
    if (is("reset"))
        action.sa_flags |= SA_RESETHAND;
    if (is("stack")) {
        stack_t alternate = {.ss_sp = stack, .ss_size = sizeof stack};
        sigaltstack(&alternate, NULL);
        action.sa_flags |= SA_ONSTACK;
    }
    if (sigaction(SIGBUS, &action, NULL) < 0)
        perror("faulty: sigaction");
}

/* Faults behind the end of a mapped file that was cut. */
static void fault(const char *name)
{
    int fd = open(name, O_RDWR | O_CREAT, 0644);
    if (fd < 0 || ftruncate(fd, BYTES) < 0) {
        fact(0, strerror(errno));
        return;
    }
    char *map = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (map == MAP_FAILED) {
        fact(0, "mmap");
        return;
    }
    map[BYTES - 1] = 1;
    if (ftruncate(fd, 0) < 0)
        fact(0, "ftruncate");
    int before = faults;
    expected = 1;
    if (sigsetjmp(back, 1) == 0) {
        *(volatile char *)(map + BYTES / 2) = 1;
        fact(0, "a fault behind the end of a cut map was hidden");
    }
    expected = 0;
    fact(faults == before + 1, "the program's handler got its own fault");
    if (!is("sigaction") && !is("signal"))
        fact(fault_at == map + BYTES / 2, "the handler was told where");
    if (is("stack"))
        fact(on_stack, "the handler ran on the stack that was asked for");
    munmap(map, BYTES);
    close(fd);
}

static void *fault_in_thread(void *name)
{
    fault(name);
    return NULL;
}

/* Reads and writes; says what error there was. */
static int use(int fd)
{
    char bytes[4096];
    for (int i = 0; i < 50; i++) {
        if (pread(fd, bytes, sizeof bytes, i * 4096) < 0 || pwrite(fd, bytes, sizeof bytes, i * 4096) < 0 || lseek(fd, 0, SEEK_END) < 0)
            return errno;
    }
    return 0;
}

static void faults_of_its_own(void)
{
    if (is("fork")) {
        pid_t child = fork();
        if (child == 0) {
            fault(own_name);
            _exit(faults == 1 ? 0 : 1);
        }
        int status = 0;
        waitpid(child, &status, 0);
        fact(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the child survives its fault");
    } else if (is("thread")) {
        pthread_t thread;
        pthread_create(&thread, NULL, fault_in_thread, (void *)own_name);
        pthread_join(thread, NULL);
    } else
        fault(is("mapped") ? file_name : own_name);
}

static void tell(void)
{
    struct sigaction now;
    sigaction(SIGBUS, NULL, &now);
    fact(now.sa_handler == SIG_DFL, "at first SIGBUS has no handler of the program's");
    how = "siginfo";
    ask();
    how = "told";
    sigaction(SIGBUS, NULL, &now);
    fact(now.sa_sigaction == handler && now.sa_flags & SA_SIGINFO && now.sa_flags & SA_NODEFER, "sigaction tells of the program's own handler");
    fact((void (*)(int))(void *)handler == signal(SIGBUS, SIG_IGN), "signal returns the program's own handler");
    fact(signal(SIGBUS, SIG_DFL) == SIG_IGN, "and then what was set in its place");
    how = "siginfo";
    ask();
    how = "told";
}

int main(int argc, char **argv)
{
    if (argc < 4) {
        fprintf(stderr, "usage: faulty HOW OWN FILE [CUT]\n");
        return 2;
    }
    how = argv[1], own_name = argv[2], file_name = argv[3];
    if (!is("later") && !is("told"))
        ask();
    int fd = open(file_name, O_RDWR);
    if (fd < 0) {
        fact(0, strerror(errno));
        return 1;
    }
    if (is("later"))
        ask();
    if (is("told"))
        tell();
    fact(use(fd) == 0, "the file is read and written");
    if (is("exec")) {
        argv[1] = "siginfo";
        execv("/proc/self/exe", argv);
        return 1;
    }
    if (argc > 4) {
        char line[16];
        printf("ready\n");
        fflush(stdout);
        if (fgets(line, sizeof line, stdin) == NULL)
            return 1;
        int error = use(fd);
        fact(error == 0 || error == EIO, "what somebody else cuts is EIO, or nothing");
        fact(faults == 0, "the program's handler hears nothing of it");
        printf("error %d\n", error);
    }
    faults_of_its_own();
    if (is("reset")) {
        struct sigaction now;
        sigaction(SIGBUS, NULL, &now);
        fact(now.sa_handler == SIG_DFL, "a handler that was asked for once is gone after its fault");
    } else if (!is("mapped")) {
        int error = use(fd);
        fact(error == 0 || (argc > 4 && error == EIO), "after its own fault the file is as before");
        faults_of_its_own();
    }
    close(fd);
    return 0;
}
