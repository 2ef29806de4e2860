/*
 * stdio: a table of small uses of the C library's streams. Each check prints what it saw; the transcript of a run in a directory of managed
 * files must be that of a run in a plain one.
 *
 * usage: stdio DIRECTORY [CHECK]
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <wchar.h>

static int transcript; /* where standard output was at the start: checks move number 1 about */

__attribute__((format(printf, 1, 2))) static void say(const char *format, ...)
{
    char line[2048];
    va_list values;
    va_start(values, format);
    int n = vsnprintf(line, sizeof line, format, values);
    va_end(values);
    if (n > (int)sizeof line - 1) n = sizeof line - 1;
    if (write(transcript, line, (size_t)n) != n) _exit(3);
}

/* What the file holds, by way of descriptors. */
static void show(const char *name)
{
    char text[600];
    int fd = open(name, O_RDONLY);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text);
    say("  %s:", name);
    if (n < 0) say(" %s", strerror(errno));
    for (ssize_t i = 0; i < n; i++) say(text[i] >= ' ' && text[i] < 127 ? "%c" : "\\%02x", (unsigned char)text[i]);
    say("\n");
    if (fd >= 0) close(fd);
}
static void make(const char *name, const char *text)
{
    int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text)) say("  cannot make %s: %s\n", name, strerror(errno));
    close(fd);
}
static long size_of(const char *name)
{
    struct stat st;
    return stat(name, &st) ? -1 : (long)st.st_size;
}
static unsigned long sum(const unsigned char *data, size_t n)
{
    unsigned long s = 5381;
    for (size_t i = 0; i < n; i++) s = s * 33 + data[i];
    return s;
}
static void see_number(long value) { say(" %ld", value); }
static void see_text(const char *value) { say(" %s", value ? value : "(null)"); }
/* Prints up to eight values on a line, made one after the other (arguments of one call would be made in any order). */
#define SEE1(x) _Generic((x), char *: see_text, const char *: see_text, default: see_number)(x);
#define SEE2(x, ...) SEE1(x) SEE1(__VA_ARGS__)
#define SEE3(x, ...) SEE1(x) SEE2(__VA_ARGS__)
#define SEE4(x, ...) SEE1(x) SEE3(__VA_ARGS__)
#define SEE5(x, ...) SEE1(x) SEE4(__VA_ARGS__)
#define SEE6(x, ...) SEE1(x) SEE5(__VA_ARGS__)
#define SEE7(x, ...) SEE1(x) SEE6(__VA_ARGS__)
#define SEE8(x, ...) SEE1(x) SEE7(__VA_ARGS__)
#define PICK(a, b, c, d, e, f, g, h, name, ...) name
#define SEE(...)                                                                        \
    do {                                                                                \
        PICK(__VA_ARGS__, SEE8, SEE7, SEE6, SEE5, SEE4, SEE3, SEE2, SEE1, )(__VA_ARGS__) \
        say("\n");                                                                      \
    } while (0)

/* Runs in a child, so that what it does to the standard streams ends with it. */
#define IN_CHILD                                                     \
    for (pid_t child_ = fork(), once_ = 1; once_; once_ = 0, wait_for(child_)) \
        if (child_ == 0)
static void wait_for(pid_t child)
{
    int status;
    waitpid(child, &status, 0);
    say("  child %d\n", WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status));
}

static void writes_and_reads(void)
{
    errno = 0;
    FILE *f = fopen("f", "w");
    SEE("errno at:", errno, ftell(f));
    int n = fprintf(f, "%d %s\n", 42, "words");
    SEE(n, fputs("line two\n", f), fputc('c', f), fwrite("1234567", 2, 3, f));
    SEE(putc_unlocked('u', f), fputs_unlocked("v\n", f), putw(0x41424344, f));
    SEE("at pending close errno:", ftell(f), __fpending(f), fclose(f), errno);
    show("f");
    f = fopen("f", "r");
    char line[64], *grown = NULL;
    size_t room = 0;
    int number;
    SEE(fscanf(f, "%d %63s", &number, line), line);
    SEE(getc(f), ungetc('Q', f));
    ssize_t length = getline(&grown, &room, f);
    SEE(length, grown);
    length = getdelim(&grown, &room, '3', f);
    SEE("at:", length, grown, ftell(f));
    SEE(fgets(line, 4, f));
    SEE(fread(line, 4, 10, f), feof(f));
    rewind(f);
    SEE(feof(f), fgets_unlocked(line, 64, f));
    SEE("close:", fclose(f));
    free(grown);
}

static void appends(void)
{
    make("f", "0123456789");
    FILE *f = fopen("f", "a");
    SEE("begins at:", ftell(f));
    fputs("ab", f);
    SEE("then:", ftell(f));
    fseek(f, 2, SEEK_SET);
    fputs("cd", f);
    fclose(f);
    show("f");
    f = fopen("f", "a+");
    SEE("a+ begins at reads:", ftell(f), getc(f));
    fseek(f, 0, SEEK_CUR);
    fputs("ef", f);
    SEE("ends at:", ftell(f));
    fseek(f, 5, SEEK_SET);
    SEE(getc(f));
    fclose(f);
    show("f");
    f = fopen("new", "a+x");
    SEE(f != NULL && fputs("n", f) >= 0 && fclose(f) == 0);
    show("new");
}

static void updates_in_place(void)
{
    make("f", "0123456789abcdefghijklmnopqrstuvwxyz");
    FILE *f = fopen("f", "r+b");
    fpos_t here;
    fseek(f, 10, SEEK_SET);
    SEE(fputs("ABC", f), ftell(f));
    fgetpos(f, &here);
    fseeko(f, -3, SEEK_END);
    SEE(getc(f), getc(f), ftell(f), fseek(f, 0, SEEK_CUR));
    fputc('Z', f);
    fsetpos(f, &here);
    SEE("at:", getc(f), ftell(f));
    errno = 0;
    SEE(fseek(f, -1, SEEK_SET), strerror(errno));
    SEE(fseek(f, 100, SEEK_SET), fputc('!', f));
    fclose(f);
    show("f");
    f = fopen("f", "w+");
    fputs("fresh", f);
    rewind(f);
    SEE(getc(f), ftell(f), fclose(f));
    show("f");
}

static void refuses(void)
{
    make("f", "text");
    static const struct { const char *name, *mode; } asked[] = {
        {"absent", "r"}, {"absent", "r+"}, {"f", "wx"}, {"f", "q"}, {"f", ""}, {"nodir/f", "w"}, {".", "w"}, {"", "w"}, {"", "r"}, {"f", "r,ccs=no-such-set"}};
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
        errno = 0;
        FILE *f = fopen(asked[i].name, asked[i].mode);
        SEE(asked[i].name, asked[i].mode, f ? "opened" : strerror(errno));
        if (f) fclose(f);
    }
    FILE *f = fopen("f", "r");
    errno = 0;
    SEE("put to r: error:", fputc('x', f), strerror(errno), ferror(f));
    clearerr(f);
    SEE("cleared close:", ferror(f), fclose(f));
    f = fopen("f", "a");
    errno = 0;
    SEE("get from a: error close:", getc(f), strerror(errno), ferror(f), fclose(f));
    f = fopen("f", "r");
    close(fileno(f));
    errno = 0;
    SEE("closed below:", getc(f), strerror(errno));
    SEE("close:", fclose(f));
    show("f");
}

enum { BIG = 3000017 };
static void moves_large_pieces(void)
{
    static unsigned char out[BIG], in[BIG + 10];
    for (size_t i = 0; i < BIG; i++) out[i] = (unsigned char)(i * 2654435761u >> 13);
    FILE *f = fopen("f", "w+");
    SEE(fwrite(out, 1, 5, f));
    SEE(fwrite(out + 5, 1, BIG - 5, f));
    SEE("at size:", ftell(f), size_of("f") / 8192);
    rewind(f);
    for (int way = 0; way < 6; way++) {
        size_t first = (size_t[]){0, 1, 4096, 8192, 100001, 7}[way], got = 0;
        memset(in, 0, sizeof in);
        rewind(f);
        if (first) got = fread(in, 1, first, f);
        if (way == 5) ungetc(in[--got], f);
        if (way == 4) fseek(f, 0, SEEK_CUR);
        got += way == 3 ? fread_unlocked(in + got, 1, sizeof in - got, f) : fread(in + got, 1, sizeof in - got, f);
        SEE("sum at:", got, feof(f), ferror(f), sum(in, BIG) == sum(out, BIG), ftell(f));
    }
    clearerr(f);
    fseek(f, 1000, SEEK_SET);
    SEE(fread(in, 1000, 2000, f));
    SEE("at next:", memcmp(in, out + 1000, 2000000), ftell(f), getc(f) == out[2001000]);
    fseek(f, -50000, SEEK_CUR);
    SEE("at records of 7000:", ftell(f), fread(in, 7000, 400, f));
    SEE("eof:", feof(f));
    fseek(f, 0, SEEK_SET);
    setvbuf(f, NULL, _IONBF, 0);
    SEE("unbuffered:", fread(in, 1, 70000, f));
    SEE("at:", memcmp(in, out, 70000), ftell(f));
    fseek(f, 70000, SEEK_SET);
    SEE("over it:", fwrite(out, 1, 300000, f));
    fseek(f, 70000 + 123456, SEEK_SET);
    SEE("close size:", getc(f) == out[123456], fclose(f), size_of("f"));
}

static void buffers_as_asked(void)
{
    static char own[777];
    for (int way = 0; way < 4; way++) {
        FILE *f = fopen("f", "w");
        int set = way < 3 ? setvbuf(f, way == 2 ? own : NULL, (int[]){_IONBF, _IOLBF, _IOFBF}[way], way == 2 ? sizeof own : 0) : 0;
        fputs("ab", f);
        SEE("after a word:", set, size_of("f"));
        fputs("c\nd", f);
        SEE("a line:", size_of("f"));
        for (int i = 0; i < 800; i++) putc('x', f);
        SEE("800 more:", way == 3 ? -1 : size_of("f"));
        SEE("flushed:", fflush(f), size_of("f"));
        SEE("closed:", fclose(f), size_of("f"));
    }
    make("f", "one\ntwo\nthree\n");
    FILE *f = fopen("f", "r");
    char line[20];
    fgets(line, 20, f);
    SEE("flush of an input stream: offset:", fflush(f), (long)lseek(fileno(f), 0, SEEK_CUR));
    fclose(f);
}

static void shares_descriptors(void)
{
    make("f", "0123456789");
    FILE *f = fopen("f", "r+");
    char bytes[4] = "";
    SEE("fileno:", fileno(f) > 2);
    SEE("pread:", pread(fileno(f), bytes, 3, 4), bytes);
    ftruncate(fileno(f), 6);
    fseek(f, 0, SEEK_END);
    SEE("end:", ftell(f));
    fclose(f);
    int fd = open("f", O_RDONLY);
    errno = 0;
    SEE("r as w:", fdopen(fd, "w") != NULL);
    SEE(strerror(errno));
    errno = 0;
    SEE("as r+:", fdopen(fd, "r+") != NULL);
    SEE("bad mode:", strerror(errno), fdopen(fd, "z") != NULL);
    lseek(fd, 3, SEEK_SET);
    f = fdopen(fd, "r");
    SEE("from 3: at:", getc(f), ftell(f));
    SEE("close:", fclose(f));
    SEE(read(fd, bytes, 1));
    fd = open("f", O_RDWR);
    f = fdopen(fd, "a");
    SEE("append set at:", (fcntl(fd, F_GETFL) & O_APPEND) != 0, ftell(f));
    fputs("+end", f);
    fclose(f);
    show("f");
    f = fopen("f", "r+");
    fgets(bytes, 4, f);
    fflush(f);
    FILE *g = fdopen(dup(fileno(f)), "r+");
    SEE("the dup goes on at:", ftell(g), getc(g));
    fseek(g, 1, SEEK_SET);
    fputs("DUP", g);
    fclose(g);
    SEE("the first is at:", (long)lseek(fileno(f), 0, SEEK_CUR));
    fclose(f);
    show("f");
    SEE("dprintf:", ({ fd = open("f", O_WRONLY | O_APPEND); dprintf(fd, "%s-%d", "dprintf", 7); }));
    close(fd);
    show("f");
}

static void leaves_no_trace_of_a_closed_descriptor(void)
{
    make("f", "kept");
    FILE *plain = fopen("/dev/null", "w");
    int fd = open("f", O_RDWR), number = fileno(plain);
    dup2(fd, number);
    fclose(plain);
    int next = open("/dev/null", O_RDWR);
    SEE("number wrote:", next == number, write(next, "lost", 4));
    close(next);
    close(fd);
    show("f");
}

static void reopens(void)
{
    make("f", "first");
    make("g", "second");
    FILE *f = fopen("f", "r"), *before = f;
    int number = fileno(f);
    SEE(getc(f));
    f = freopen("g", "r", f);
    SEE("number:", f == before, fileno(f) == number, getc(f), getc(f));
    f = freopen("g", "a", f);
    SEE("at put:", f == before, ftell(f), fputs("!", f) >= 0);
    f = freopen(NULL, "r", f);
    SEE("again:", f == before, f ? getc(f) : '?');
    f = freopen("/dev/null", "w", f);
    SEE("plain put:", f == before, fputs("gone", f) >= 0);
    f = freopen("f", "w", f);
    SEE("back put:", f == before, fputs("last", f) >= 0);
    SEE("close:", fclose(f));
    SEE("number closed:", fcntl(number, F_GETFD));
    show("f");
    show("g");
    f = fopen("f", "r");
    number = fileno(f);
    errno = 0;
    SEE("missing:", freopen("absent", "r", f) != NULL);
    SEE("number:", strerror(errno), fcntl(number, F_GETFD));
    f = fopen("/dev/null", "r");
    f = freopen("g", "r+", f);
    SEE("from plain:", f ? getc(f) : '?');
    fclose(f);
}

static void standard_streams_by_freopen(void)
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

static void standard_streams_by_dup2(void)
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

static void ends_of_processes(void)
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

static void unlocked_and_locked(void)
{
    FILE *f = fopen("f", "w+");
    flockfile(f);
    SEE(ftrylockfile(f), fwrite_unlocked("abcdef", 1, 6, f));
    SEE(fputc_unlocked('g', f), fflush_unlocked(f));
    funlockfile(f);
    funlockfile(f);
    rewind(f);
    char bytes[8] = "";
    SEE(getc_unlocked(f), fread_unlocked(bytes, 1, 7, f));
    SEE(bytes, feof_unlocked(f), fileno_unlocked(f) == fileno(f));
    fclose(f);
}

static void wide_characters(void)
{
    setlocale(LC_ALL, "C.UTF-8");
    FILE *f = fopen("f", "w");
    SEE(fputws(L"gr\u00fc\u00dfe\n", f) >= 0);
    SEE(fputwc(L'\u20ac', f) == L'\u20ac');
    SEE(fwprintf(f, L" %d %ls %s\n", 12, L"\u00e4", "b"));
    fclose(f);
    show("f");
    f = fopen("f", "r");
    wchar_t line[40];
    SEE(fgetws(line, 40, f) == line && wcscmp(line, L"gr\u00fc\u00dfe\n") == 0);
    wint_t c = fgetwc(f);
    SEE((unsigned)c, (unsigned)ungetwc(c, f), (unsigned)getwc(f));
    int number = 0;
    wchar_t word[10];
    SEE(fwscanf(f, L"%d %9ls", &number, word), number, (unsigned)word[0]);
    SEE(fgetws(line, 40, f) != NULL);
    SEE(fgetwc(f) == WEOF, feof(f));
    fclose(f);
    make("f", "a\xff");
    f = fopen("f", "r");
    SEE((unsigned)fgetwc(f));
    errno = 0;
    SEE(fgetwc(f) == WEOF);
    SEE(strerror(errno), ferror(f));
    fclose(f);
    setlocale(LC_ALL, "C");
}

static void others_are_untouched(void)
{
    char text[20] = "", *grown = NULL;
    size_t n = 0;
    FILE *f = popen("echo from a pipe; exit 3", "r");
    SEE(fgets(text, 20, f));
    SEE(WEXITSTATUS(pclose(f)));
    f = fmemopen(text, sizeof text, "w");
    fputs("memory", f);
    fclose(f);
    f = open_memstream(&grown, &n);
    fprintf(f, "%s grows", text);
    fclose(f);
    SEE(grown, n);
    free(grown);
    f = tmpfile();
    fputs("temporary", f);
    rewind(f);
    SEE(fgets(text, 20, f), fclose(f));
}

static void descriptors_by_name(void)
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

static void temporary_files(void)
{
    char names[4][24] = {"t.XXXXXX", "t.XXXXXX.c", "t.XXXXX", "nodir/t.XXXXXX"};
    for (int i = 0; i < 4; i++) {
        errno = 0;
        int fd = i == 1 ? mkostemps(names[i], 2, O_CLOEXEC | O_APPEND) : mkstemp(names[i]);
        SEE("made:", fd >= 0, strerror(errno), strcmp(names[i] + strlen(names[i]) - 2, ".c") == 0, strstr(names[i], "XXXXX") != NULL);
        if (fd < 0) continue;
        struct stat st;
        FILE *f = fdopen(fd, "w+");
        fputs("temporary", f);
        rewind(f);
        SEE("first mode flags:", getc(f), fstat(fd, &st) ? -1 : (int)st.st_mode, fcntl(fd, F_GETFL) & (O_ACCMODE | O_APPEND), fcntl(fd, F_GETFD));
        SEE("unlinked:", fclose(f), unlink(names[i]));
    }
}

#define CHECK(name) {#name, name}
static const struct {
    const char *name;
    void (*run)(void);
} checks[] = {CHECK(writes_and_reads), CHECK(appends), CHECK(updates_in_place), CHECK(refuses), CHECK(moves_large_pieces), CHECK(buffers_as_asked),
              CHECK(shares_descriptors), CHECK(leaves_no_trace_of_a_closed_descriptor), CHECK(reopens), CHECK(standard_streams_by_freopen),
              CHECK(standard_streams_by_dup2), CHECK(unlocked_and_locked), CHECK(wide_characters), CHECK(others_are_untouched),
              CHECK(descriptors_by_name), CHECK(temporary_files), CHECK(ends_of_processes)};

int main(int argc, char **argv)
{
    if (argc < 2 || chdir(argv[1]) != 0) {
        fputs("usage: stdio DIRECTORY [CHECK]\n", stderr);
        return 2;
    }
    transcript = fcntl(1, F_DUPFD, 100);
    for (size_t i = 0; i < sizeof checks / sizeof *checks; i++) {
        if (argc > 2 && strcmp(argv[2], checks[i].name) != 0) continue;
        for (const char **name = (const char *[]){"f", "g", "h", "new", NULL}; *name; name++) unlink(*name);
        say("%s\n", checks[i].name);
        checks[i].run();
    }
    return 0;
}
