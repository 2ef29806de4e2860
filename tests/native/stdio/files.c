/* Streams that are opened by name or on a descriptor. */
#include "transcript.h"

void writes_and_reads(void)
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

void appends(void)
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

void updates_in_place(void)
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

void refuses(void)
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
void moves_large_pieces(void)
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

void buffers_as_asked(void)
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

void shares_descriptors(void)
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

void leaves_no_trace_of_a_closed_descriptor(void)
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

void reopens(void)
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

void unlocked_and_locked(void)
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

void wide_characters(void)
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

void others_are_untouched(void)
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

void temporary_files(void)
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
