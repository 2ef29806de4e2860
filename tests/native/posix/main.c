/* The runner: every case in a child of its own and in a fresh directory; its outcome is kept in shared memory, so that a crash or a hang loses nothing
 * that was said before it. See posix.h. */
#include "posix.h"
#include <ftw.h>
#include <limits.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>

enum { OUTCOME_BYTES = 16384, SECONDS_MAX = 10 };

struct outcome {
    unsigned used;
    char text[OUTCOME_BYTES];
};

extern const struct test *const __start_posix_tests[], *const __stop_posix_tests[];
static struct outcome *outcome;
const char *program_path;

void say(const char *form, ...)
{
    char text[2048];
    int saved = errno;
    va_list arguments;
    va_start(arguments, form);
    int length = vsnprintf(text, sizeof text, form, arguments);
    va_end(arguments);
    if (length >= (int)sizeof text)
        length = sizeof text - 1;
    unsigned need = (unsigned)length + 2, at = __atomic_fetch_add(&outcome->used, need, __ATOMIC_ACQ_REL);
    if (at + need < OUTCOME_BYTES) {
        memcpy(outcome->text + at, text, (size_t)length);
        memcpy(outcome->text + at + length, ", ", 2);
    }
    errno = saved;
}

static int remove_entry(const char *path, const struct stat *st, int flag, struct FTW *walk)
{
    (void)st, (void)walk;
    if (flag == FTW_DP || flag == FTW_DNR || flag == FTW_D)
        chmod(path, 0700);
    return remove(path);
}

static void run_child(const struct test *test, const char *dir)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setpgid(0, 0);
    struct rlimit no_core = {0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    umask(022);
    if (chdir(dir) != 0) {
        say("no directory: %s", error_name(errno));
        _exit(0);
    }
    alarm(SECONDS_MAX);
    errno = 0;
    test->run();
    _exit(0);
}

static void run_test(const struct test *test, const char *root)
{
    char dir[PATH_MAX + 8];
    snprintf(dir, sizeof dir, "%s/case", root);
    nftw(dir, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    if (mkdir(dir, 0777) != 0 || chmod(dir, 0777) != 0) {
        printf("%s.%s: cannot make a directory: %s\n", test->subject, test->name, strerror(errno));
        return;
    }
    outcome->used = 0;
    memset(outcome->text, 0, sizeof outcome->text);
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0)
        run_child(test, dir);
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    kill(-pid, SIGKILL); /* what a case left running */
    unsigned used = outcome->used < OUTCOME_BYTES ? outcome->used : OUTCOME_BYTES - 1;
    if (used >= 2)
        outcome->text[used - 2] = '\0';
    printf("%s.%s: %s", test->subject, test->name, outcome->text);
    if (WIFSIGNALED(status))
        printf(" [ended by %s]", WTERMSIG(status) == SIGALRM ? "the time limit" : sigabbrev_np(WTERMSIG(status)));
    else if (WEXITSTATUS(status) != 0)
        printf(" [exit %d]", WEXITSTATUS(status));
    putchar('\n');
    nftw(dir, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

static int by_place(const void *a, const void *b)
{
    const struct test *x = *(const struct test *const *)a, *y = *(const struct test *const *)b;
    int subjects = strcmp(x->subject, y->subject);
    return subjects != 0 ? subjects : x->line - y->line;
}

int main(int argc, char **argv)
{
    if (argc > 2 && strcmp(argv[1], "--helper") == 0)
        return run_helper(argc - 2, argv + 2);
    if (argc < 2 || argc > 4 || argv[1][0] == '-') {
        fputs("usage: posix DIR [SUBJECT [CASE]]\nDoes small cases in DIR and prints what each observed.\n", stderr);
        return 2;
    }
    static char self[PATH_MAX], root[PATH_MAX];
    if (realpath(argv[0], self) == NULL || realpath(argv[1], root) == NULL) {
        fprintf(stderr, "posix: %s: %s\n", argv[1], strerror(errno));
        return 2;
    }
    program_path = self;
    outcome = mmap(NULL, sizeof *outcome, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    size_t count = (size_t)(__stop_posix_tests - __start_posix_tests);
    const struct test **tests = malloc(count * sizeof *tests);
    if (outcome == MAP_FAILED || tests == NULL)
        return 2;
    memcpy(tests, __start_posix_tests, count * sizeof *tests);
    qsort(tests, count, sizeof *tests, by_place);
    for (size_t i = 0; i < count; i++)
        if ((argc < 3 || strcmp(argv[2], tests[i]->subject) == 0) && (argc < 4 || strcmp(argv[3], tests[i]->name) == 0))
            run_test(tests[i], root);
    free(tests);
    return 0;
}
