/* Standard input, output and error, and what a process leaves in its streams when it ends. */
#include "transcript.h"

void standard_streams_by_freopen(void)
{
    make("f", "17 in\nrest\n");
    IN_CHILD
    {
        FILE *out = freopen("g", "w", stdout);
        SEE(out == stdout, fileno(stdout));
        printf("printed %d\n", 1);
        puts("put");
        putchar('c');
        int number;
        char word[20];
        SEE("in:", freopen("f", "r", stdin) == stdin, fileno(stdin));
        SEE(scanf("%d %19s", &number, word));
        printf("%d %s %d", number, word, getchar());
        freopen("h", "w", stderr);
        fprintf(stderr, "unbuffered");
        SEE(fflush(stderr), size_of("h"));
        errno = ENOSPC;
        perror("said");
        exit(5);
    }
    show("g");
    show("h");
    IN_CHILD
    {
        freopen("g", "a", stdout);
        SEE("at:", ftell(stdout));
        printf("+");
        SEE("fclose:", fclose(stdout));
        SEE("number:", fcntl(1, F_GETFD));
        exit(6);
    }
    show("g");
}

void standard_streams_by_dup2(void)
{
    make("f", "one\ntwo\nthree\n");
    IN_CHILD
    {
        dup2(open("/dev/null", O_WRONLY), 1);
        int kept = dup(1), fd = open("g", O_WRONLY | O_CREAT | O_TRUNC, 0644);
        printf("to null");
        fflush(stdout);
        dup2(fd, 1);
        printf("to g,");
        fflush(stdout);
        puts("to g too");
        fflush(stdout);
        dup2(kept, 1);
        puts("to null again");
        fflush(stdout);
        printf("late,");
        dup2(fd, 1);
        exit(0);
    }
    show("g");
    IN_CHILD
    {
        char line[20];
        close(0);
        open("f", O_RDONLY);
        SEE(fgets(line, 20, stdin));
        int fd = open("/dev/null", O_RDONLY);
        dup2(fd, 0);
        SEE("rest:", fgets(line, 20, stdin));
        SEE(fgets(line, 20, stdin));
        SEE("end:", getchar());
        clearerr(stdin);
        dup2(open("f", O_RDONLY), 0);
        SEE("anew:", fgets(line, 20, stdin));
        exit(0);
    }
    IN_CHILD
    {
        int ends[2];
        char line[20];
        pipe(ends);
        write(ends[1], "piped 1\npiped 2\n", 16);
        dup2(ends[0], 0);
        SEE(fgets(line, 20, stdin));
        dup2(open("f", O_RDONLY), 0);
        SEE("read before:", fgets(line, 20, stdin));
        SEE("then:", fgets(line, 20, stdin));
        exit(0);
    }
    IN_CHILD
    {
        close(2);
        open("h", O_WRONLY | O_CREAT | O_TRUNC, 0644);
        fputs("error", stderr);
        SEE(size_of("h"));
        _exit(0);
    }
}

void ends_of_processes(void)
{
    IN_CHILD
    {
        fputs("flushed at exit", fopen("f", "w"));
        exit(0);
    }
    show("f");
    IN_CHILD
    {
        fputs("lost", fopen("f", "w"));
        _exit(0);
    }
    show("f");
    FILE *f = fopen("f", "w");
    fputs("twice ", f);
    IN_CHILD
    {
        fputs("child ", f);
        exit(0);
    }
    fputs("parent", f);
    fclose(f);
    show("f");
    make("f", "one\ntwo\nthree\n");
    dup2(open("f", O_RDONLY), 0);
    IN_CHILD
    {
        char line[20];
        SEE(fgets(line, 20, stdin));
        exit(0);
    }
    SEE("left at:", (long)lseek(0, 0, SEEK_CUR));
}

void descriptors_by_name(void)
{
    make("f", "by number");
    int fd = open("f", O_RDWR);
    char name[40], text[20];
    for (int way = 0; way < 2; way++) {
        snprintf(name, sizeof name, way ? "/proc/self/fd/%d" : "/dev/fd/%d", fd);
        FILE *f = fopen(name, "r");
        SEE(f ? fgets(text, 20, f) : strerror(errno));
        if (f) fclose(f);
    }
    IN_CHILD
    {
        dup2(fd, 0);
        dup2(open("g", O_WRONLY | O_CREAT | O_TRUNC, 0644), 1);
        FILE *f = fopen("/dev/stdin", "r"), *g = fopen("/dev/stdout", "w");
        SEE(fgets(text, 20, f));
        fprintf(g, "to number 1");
        exit(0);
    }
    show("g");
    close(fd);
}
