/* stdio: streams on files, by name and by descriptor. */
#define SUBJECT "stdio"
#include "posix.h"
#include <wchar.h>

static FILE *stream(const char *name, const char *mode)
{
    FILE *f = fopen(name, mode);
    say("%s", f == NULL ? error_name(errno) : "stream");
    if (f == NULL)
        _exit(0);
    return f;
}

CASE(a_stream_writes_a_file)
{
    FILE *f = stream("f", "w");
    ret(fprintf(f, "%d lines\n", 12));
    ret(fputs("text", f) >= 0 ? 0 : -1);
    ret(fclose(f));
    say_content("f");
}
CASE(a_stream_reads_a_file)
{
    char line[64] = "";
    make_file("f", "one\ntwo\nthree");
    FILE *f = stream("f", "r");
    say("%.3s", fgets(line, sizeof line, f));
    say("%c", fgetc(f));
    ret((long)fread(line, 1, sizeof line, f));
    say("%d %d", feof(f) != 0, ferror(f) != 0);
    ret(fclose(f));
}
CASE(a_missing_file_has_no_stream)
{
    ret(fopen("none", "r") == NULL ? -1 : 0);
    ret(fopen("none", "r+") == NULL ? -1 : 0);
    ret(fopen("none/f", "w") == NULL ? -1 : 0);
    ret(fopen("none", "q") == NULL ? -1 : 0);
}
CASE(writing_anew_cuts)
{
    make_file("f", "old and long");
    ret(fclose(stream("f", "w")));
    say_size("f");
}
CASE(appending_goes_to_the_end)
{
    make_file("f", "old");
    FILE *f = stream("f", "a+");
    ret(fputs("new", f) >= 0 ? 0 : -1);
    ret(fflush(f));
    ret(ftell(f));
    rewind(f);
    ret(fgetc(f));
    ret(fclose(f));
    say_content("f");
}
CASE(updating_reads_and_writes)
{
    make_file("f", "0123456789");
    FILE *f = stream("f", "r+");
    ret(fseek(f, 4, SEEK_SET));
    ret(fputs("XY", f) >= 0 ? 0 : -1);
    ret(fseek(f, 0, SEEK_CUR));
    ret(fgetc(f));
    ret(ftell(f));
    ret(fclose(f));
    say_content("f");
}
CASE(exclusive_streams_refuse_an_existing_file)
{
    make_file("f", "x");
    ret(fopen("f", "wx") == NULL ? -1 : 0);
    ret(fclose(stream("g", "wx")));
}
CASE(seeking_from_the_end)
{
    make_file("f", "0123456789");
    FILE *f = stream("f", "r");
    ret(fseek(f, -3, SEEK_END));
    ret(ftell(f));
    ret(fgetc(f));
    ret(fseek(f, -100, SEEK_CUR));
    ret(fseeko(f, 1L << 33, SEEK_SET));
    ret(fgetc(f));
}
CASE(a_stream_on_a_descriptor)
{
    int fd = new_file("f", O_RDWR, "0123456789");
    FILE *f = fdopen(fd, "r+");
    say("%d", f != NULL && fileno(f) == fd);
    ret(fseek(f, 2, SEEK_SET));
    ret(fputc('X', f));
    ret(fclose(f));
    ret(close(fd));
    say_content("f");
}
CASE(a_stream_has_a_descriptor)
{
    make_file("f", "0123456789");
    FILE *f = stream("f", "r");
    struct stat st;
    need(fstat(fileno(f), &st));
    say("%ld", (long)st.st_size);
    say_fd_content(fileno(f));
}
CASE(a_stream_that_reads_cannot_write)
{
    make_file("f", "x");
    FILE *f = stream("f", "r");
    ret(fputc('y', f));
    ret(fflush(f));
    say("%d", ferror(f) != 0);
}
CASE(a_stream_is_opened_anew)
{
    make_file("f", "first");
    make_file("g", "second");
    FILE *f = stream("f", "r");
    f = freopen("g", "r", f);
    char text[16] = "";
    say("%s", f == NULL ? error_name(errno) : fgets(text, sizeof text, f));
}
CASE(a_large_file_goes_through_a_stream)
{
    FILE *f = stream("f", "w");
    for (int i = 0; i < 40000; i++)
        fprintf(f, "line %d\n", i);
    ret(fclose(f));
    say_size("f");
    f = stream("f", "r");
    char *line = NULL;
    size_t room = 0;
    long lines = 0, sum = 0, n;
    while ((n = getline(&line, &room, f)) > 0)
        lines++, sum += atol(line + 5);
    say("%ld lines, sum %ld", lines, sum);
}
CASE(an_unflushed_stream_shows_nothing)
{
    FILE *f = stream("f", "w");
    fputs("waiting", f);
    say_size("f");
    ret(fflush(f));
    say_size("f");
}
CASE(a_stream_is_flushed_at_exit)
{
    fflush(NULL);
    pid_t pid = need(fork());
    if (pid == 0) {
        fputs("at exit", stream("f", "w"));
        exit(0);
    }
    finish(pid);
    say_content("f");
}
CASE(an_unbuffered_stream_writes_at_once)
{
    FILE *f = stream("f", "w");
    ret(setvbuf(f, NULL, _IONBF, 0));
    fputs("at once", f);
    say_content("f");
}
CASE(close_on_exec_by_mode)
{
    FILE *f = stream("f", "we");
    say("%d", fcntl(fileno(f), F_GETFD));
}
CASE(a_scan_reads_numbers)
{
    int a = 0, b = 0;
    make_file("f", "12 34 rest");
    FILE *f = stream("f", "r");
    ret(fscanf(f, "%d %d", &a, &b));
    say("%d %d", a, b);
    ret(ungetc('5', f));
    ret(fscanf(f, "%d", &a));
    say("%d", a);
}
CASE(wide_characters_are_written)
{
    FILE *f = stream("f", "w");
    ret(fputws(L"wide", f) >= 0 ? 0 : -1);
    ret(fclose(f));
    say_content("f");
}
CASE(a_dump_of_a_stream_into_another)
{
    make_large("f", 200000);
    FILE *in = stream("f", "r"), *out = stream("g", "w");
    char block[5000];
    size_t n;
    while ((n = fread(block, 1, sizeof block, in)) > 0)
        fwrite(block, 1, n, out);
    ret(fclose(out));
    say_content("g");
}
