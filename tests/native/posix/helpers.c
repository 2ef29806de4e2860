/* What a case does in other processes: forked children, and this program executed anew with descriptors inherited by number. */
#include "posix.h"

enum { WORDS_MAX = 8 };

pid_t child(void (*work)(void *), void *argument)
{
    pid_t pid = need(fork());
    if (pid == 0) {
        work(argument);
        _exit(0);
    }
    return pid;
}

void finish(pid_t pid)
{
    int status;
    need(waitpid(pid, &status, 0));
    if (WIFSIGNALED(status))
        say("child ended by %s", sigabbrev_np(WTERMSIG(status)));
    else if (WEXITSTATUS(status) != 0)
        say("child exits with %d", WEXITSTATUS(status));
}

void in_child(void (*work)(void *), void *argument)
{
    finish(child(work, argument));
}

void in_new_image(const char *word, ...)
{
    const char *words[WORDS_MAX + 4] = {program_path, "--helper", word};
    va_list arguments;
    va_start(arguments, word);
    for (int i = 3; i < WORDS_MAX + 3 && (words[i] = va_arg(arguments, const char *)) != NULL; i++)
        ;
    va_end(arguments);
    int ends[2];
    need(pipe2(ends, O_CLOEXEC));
    pid_t pid = need(fork());
    if (pid == 0) {
        dup2(ends[1], STDOUT_FILENO);
        execv(program_path, (char *const *)words);
        _exit(99);
    }
    close(ends[1]);
    char text[1024];
    ssize_t length = 0, n;
    while ((n = read(ends[0], text + length, sizeof text - 1 - (size_t)length)) > 0)
        length += n;
    close(ends[0]);
    text[length] = '\0';
    while (length > 0 && text[length - 1] == '\n')
        text[--length] = '\0';
    say("%s", text);
    finish(pid);
}

static void answer(long result)
{
    if (result == -1)
        printf("%s ", error_name(errno));
    else
        printf("%ld ", result);
}

/* posix --helper WORD FD [TEXT]: one thing done with an inherited descriptor. */
int run_helper(int argc, char **argv)
{
    int fd = argc > 1 ? atoi(argv[1]) : -1;
    const char *text = argc > 2 ? argv[2] : "";
    char buffer[65];
    struct stat st;
    if (strcmp(argv[0], "read") == 0) {
        ssize_t n = read(fd, buffer, sizeof buffer - 1);
        if (n < 0)
            answer(-1);
        else
            printf("'%.*s' ", (int)n, buffer);
    } else if (strcmp(argv[0], "write") == 0) {
        answer(write(fd, text, strlen(text)));
    } else if (strcmp(argv[0], "flags") == 0) {
        long flags = fcntl(fd, F_GETFL);
        printf(flags < 0 ? "%s" : "%s%s%s", flags < 0 ? error_name(errno) : (flags & O_ACCMODE) == O_RDONLY ? "ro" : (flags & O_ACCMODE) == O_WRONLY ? "wo" : "rw",
               flags & O_APPEND ? "+append" : "", flags & O_NONBLOCK ? "+nonblock" : "");
    } else if (strcmp(argv[0], "seek") == 0) {
        answer(lseek(fd, atol(text), SEEK_SET));
    } else if (strcmp(argv[0], "tell") == 0) {
        answer(lseek(fd, 0, SEEK_CUR));
    } else if (strcmp(argv[0], "size") == 0) {
        answer(fstat(fd, &st) == 0 ? (long)st.st_size : -1);
    } else if (strcmp(argv[0], "truncate") == 0) {
        answer(ftruncate(fd, atol(text)));
    } else if (strcmp(argv[0], "trylock") == 0) {
        struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 10};
        answer(fcntl(fd, F_SETLK, &lock));
    } else if (strcmp(argv[0], "cat") == 0) {
        int opened = open(text, O_RDONLY);
        ssize_t n = opened < 0 ? -1 : read(opened, buffer, sizeof buffer - 1);
        if (n < 0)
            answer(-1);
        else
            printf("'%.*s' ", (int)n, buffer);
    } else {
        return 98;
    }
    return 0;
}
