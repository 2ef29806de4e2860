/* The transcript, and small files to work on. */
#include "transcript.h"

static int transcript; /* where standard output was at the start: checks move number 1 about */
void begin_transcript(void) { transcript = fcntl(1, F_DUPFD, 100); }

void say(const char *format, ...)
{
    char line[2048];
    va_list values;
    va_start(values, format);
    int n = vsnprintf(line, sizeof line, format, values);
    va_end(values);
    if (n > (int)sizeof line - 1) n = sizeof line - 1;
    if (write(transcript, line, (size_t)n) != n) _exit(3);
}

void show(const char *name)
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
void make(const char *name, const char *text)
{
    int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text)) say("  cannot make %s: %s\n", name, strerror(errno));
    close(fd);
}
long size_of(const char *name)
{
    struct stat st;
    return stat(name, &st) ? -1 : (long)st.st_size;
}
unsigned long sum(const unsigned char *data, size_t n)
{
    unsigned long s = 5381;
    for (size_t i = 0; i < n; i++) s = s * 33 + data[i];
    return s;
}
void see_number(long value) { say(" %ld", value); }
void see_text(const char *value) { say(" %s", value ? value : "(null)"); }
void wait_for(pid_t child)
{
    int status;
    waitpid(child, &status, 0);
    say("  child %d\n", WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status));
}
