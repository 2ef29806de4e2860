/* What cases are written with: results in words, files to begin with, and comparisons of times. See posix.h. */
#include "posix.h"
#include <grp.h>
#include <time.h>

enum { NOBODY = 65534 };

const char *error_name(int number)
{
    const char *name = strerrorname_np(number);
    return name != NULL ? name : "?";
}

long ret(long result)
{
    if (result == -1)
        say("%s", error_name(errno));
    else
        say("%ld", result);
    return result;
}

int err(int number)
{
    say("%s", number == 0 ? "0" : error_name(number));
    return number;
}

int fd_ret(int fd)
{
    say("%s", fd >= 0 ? "fd" : error_name(errno));
    return fd;
}

void bytes(const void *data, long length)
{
    const unsigned char *at = data;
    int text = length >= 0 && length <= 64;
    unsigned sum = 0;
    if (length < 0) {
        ret(length);
        return;
    }
    for (long i = 0; i < length; i++) {
        sum = (sum ^ at[i]) * 16777619u + 1;
        text = text && at[i] >= ' ' && at[i] < 127 && at[i] != ',';
    }
    if (text)
        say("'%.*s'", (int)length, (const char *)data);
    else
        say("%ld bytes of sum %08x", length, sum);
}

void say_fd_content(int fd)
{
    static char buffer[4 << 20];
    long length = 0, n;
    while (length < (long)sizeof buffer && (n = pread(fd, buffer + length, sizeof buffer - (size_t)length, length)) > 0)
        length += n;
    if (length == 0 && n < 0)
        ret(-1);
    else
        bytes(buffer, length);
}

void say_content(const char *name)
{
    int fd = open(name, O_RDONLY);
    if (fd < 0) {
        ret(-1);
        return;
    }
    say_fd_content(fd);
    close(fd);
}

void say_size(const char *name)
{
    struct stat st;
    if (stat(name, &st) != 0)
        ret(-1);
    else
        say("size %lld", (long long)st.st_size);
}

void say_fd_size(int fd)
{
    struct stat st;
    if (fstat(fd, &st) != 0)
        ret(-1);
    else
        say("size %lld", (long long)st.st_size);
}

void say_mode(const char *name)
{
    struct stat st;
    if (lstat(name, &st) != 0)
        ret(-1);
    else
        say("mode %o", st.st_mode);
}

void say_offset(int fd)
{
    long at = lseek(fd, 0, SEEK_CUR);
    if (at < 0)
        ret(-1);
    else
        say("at %ld", at);
}

long hidden(long value)
{
    return value;
}

int need(long result)
{
    if (result == -1) {
        say("cannot begin: %s", error_name(errno));
        _exit(0);
    }
    return (int)result;
}

int new_file(const char *name, int flags, const char *content)
{
    int fd = need(open(name, O_CREAT | flags, 0644));
    if (content[0] != '\0')
        need(write(fd, content, strlen(content)));
    return fd;
}

void make_file(const char *name, const char *content)
{
    need(close(new_file(name, O_WRONLY | O_TRUNC, content)));
}

void make_large(const char *name, long length)
{
    unsigned char *data = malloc((size_t)length);
    for (long i = 0; i < length; i++)
        data[i] = (unsigned char)((i / 7 + i) % 251);
    int fd = need(open(name, O_CREAT | O_WRONLY | O_TRUNC, 0644));
    for (long done = 0; done < length;)
        done += need(write(fd, data + done, (size_t)(length - done)));
    free(data);
    need(close(fd));
}

void make_dir(const char *name)
{
    need(mkdir(name, 0777));
}

int open_file(const char *name, int flags)
{
    return need(open(name, flags));
}

int ten(int flags)
{
    make_file("f", "0123456789");
    return open_file("f", flags);
}

void stat_file(const char *name, struct stat *st)
{
    need(stat(name, st));
}

void stat_fd(int fd, struct stat *st)
{
    need(fstat(fd, st));
}

void settle(void)
{
    struct timespec wait = {0, 12000000};
    nanosleep(&wait, NULL);
}

static int differ(struct timespec a, struct timespec b)
{
    return a.tv_sec != b.tv_sec || a.tv_nsec != b.tv_nsec;
}

void say_times(const struct stat *before, const struct stat *after)
{
    say("m%c c%c", differ(before->st_mtim, after->st_mtim) ? '+' : '=', differ(before->st_ctim, after->st_ctim) ? '+' : '=');
}

int be_nobody(void)
{
    if (geteuid() != 0) {
        say("needs root");
        return 0;
    }
    need(setgroups(0, NULL));
    need(setresgid(NOBODY, NOBODY, NOBODY));
    need(setresuid(NOBODY, NOBODY, NOBODY));
    return 1;
}
