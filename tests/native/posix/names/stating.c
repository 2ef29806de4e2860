/* stat, lstat, fstat, statx: what they say about a file, by whatever way one asks. */
#define SUBJECT "stat"
#include "posix.h"
#include <sys/sysmacros.h>

CASE(a_file_is_regular)
{
    struct stat st;
    make_file("f", "12345");
    need(stat("f", &st));
    say("%o %ld %d %d %d", st.st_mode, (long)st.st_size, (int)st.st_nlink, (int)st.st_uid, (int)st.st_gid);
    need(lstat("f", &st));
    say("%o %ld %d", st.st_mode, (long)st.st_size, (int)st.st_nlink);
}
CASE(all_ways_name_the_same_file)
{
    struct stat a, b, c, d;
    struct statx x;
    int fd = new_file("f", O_RDWR, "12345");
    need(stat("f", &a)), need(lstat("f", &b)), need(fstat(fd, &c)), need(fstatat(AT_FDCWD, "f", &d, 0));
    need(statx(AT_FDCWD, "f", 0, STATX_BASIC_STATS, &x));
    say("%d", a.st_ino == b.st_ino && b.st_ino == c.st_ino && c.st_ino == d.st_ino && d.st_ino == x.stx_ino);
    say("%d", a.st_dev == b.st_dev && b.st_dev == c.st_dev && c.st_dev == d.st_dev && minor(a.st_dev) == x.stx_dev_minor);
}
CASE(two_files_have_two_numbers)
{
    struct stat a, b;
    make_file("f", "x");
    make_file("g", "x");
    stat_file("f", &a), stat_file("g", &b);
    say("%d", a.st_ino != b.st_ino);
}
CASE(the_number_stays_over_renaming_and_opening)
{
    struct stat a, b;
    make_file("f", "x");
    stat_file("f", &a);
    need(rename("f", "g"));
    stat_fd(open_file("g", O_RDWR), &b);
    say("%d", a.st_ino == b.st_ino);
}
CASE(the_device_is_that_of_the_directory)
{
    struct stat a, b;
    make_file("f", "x");
    stat_file("f", &a), stat_file(".", &b);
    say("%d", a.st_dev == b.st_dev);
}
CASE(the_number_is_the_one_that_the_directory_lists)
{
    struct stat a;
    make_file("f", "x");
    stat_file("f", &a);
    int fd = open_file(".", O_RDONLY | O_DIRECTORY);
    struct stat at;
    need(fstatat(fd, "f", &at, AT_SYMLINK_NOFOLLOW));
    say("%d", at.st_ino == a.st_ino);
}
CASE(the_size_grows_with_writes)
{
    int fd = new_file("f", O_RDWR, "");
    say_size("f");
    ret(write(fd, "abc", 3));
    say_size("f");
    ret(pwrite(fd, "abc", 3, 1000));
    say_size("f");
    say_fd_size(fd);
}
CASE(another_process_sees_the_size_at_once)
{
    int fd = new_file("f", O_RDWR, "");
    int go[2];
    char c;
    need(pipe(go));
    pid_t pid = need(fork());
    if (pid == 0) {
        need(read(go[0], &c, 1));
        say_size("f");
        _exit(0);
    }
    ret(write(fd, "abc", 3));
    need(write(go[1], "x", 1));
    finish(pid);
}
CASE(blocks_follow_the_data)
{
    struct stat st;
    make_large("f", 1 << 20);
    int fd = open_file("f", O_RDWR);
    need(fsync(fd));
    stat_fd(fd, &st);
    say("%d", st.st_blocks >= 2048 && st.st_blocks < 4096);
}
CASE(a_hole_has_no_blocks)
{
    struct stat st;
    int fd = new_file("f", O_RDWR, "");
    need(ftruncate(fd, 1 << 24));
    stat_fd(fd, &st);
    say("%ld %ld", (long)st.st_size, (long)st.st_blocks);
}
CASE(an_empty_file_has_no_blocks)
{
    struct stat st;
    stat_fd(new_file("f", O_RDWR, ""), &st);
    say("%ld", (long)st.st_blocks);
}
CASE(the_preferred_block_is_sensible)
{
    struct stat st;
    make_file("f", "x");
    stat_file("f", &st);
    say("%d", st.st_blksize >= 512 && st.st_blksize <= 64 << 20);
}
CASE(a_missing_name_is_an_error)
{
    struct stat st;
    make_file("f", "x");
    ret(stat("none", &st));
    ret(lstat("none", &st));
    ret(stat("none/f", &st));
    ret(stat("", &st));
    ret(fstatat(AT_FDCWD, "", &st, 0));
}
CASE(below_a_file_is_an_error)
{
    struct stat st;
    make_file("f", "x");
    ret(stat("f/x", &st));
    ret(stat("f/", &st));
    ret(lstat("f/", &st));
    ret(lstat("f/x", &st));
    ret(stat("f/.", &st));
    ret(stat("f/..", &st));
    ret(stat("f/../f", &st));
}
CASE(bad_addresses_are_faults)
{
    struct stat st;
    make_file("f", "x");
    ret(fstatat(AT_FDCWD, BAD, &st, 0));
    ret(stat("f", BAD));
    ret(fstat(open_file("f", O_RDWR), BAD));
}
CASE(a_name_too_long_is_an_error)
{
    struct stat st;
    char name[300];
    memset(name, 'n', sizeof name);
    name[256] = '\0';
    ret(stat(name, &st));
    ret(lstat(name, &st));
}
CASE(links_in_a_circle_are_too_many)
{
    struct stat st;
    need(symlink("a", "a"));
    ret(stat("a", &st));
    ret(lstat("a", &st));
}
CASE(a_link_to_nowhere_has_a_status_of_its_own)
{
    struct stat st;
    need(symlink("none", "l"));
    ret(stat("l", &st));
    ret(lstat("l", &st));
    say("%o", st.st_mode);
}
CASE(an_empty_name_with_a_descriptor_is_that_file)
{
    struct stat st;
    int fd = new_file("f", O_RDWR, "12345");
    ret(fstatat(fd, "", &st, AT_EMPTY_PATH));
    say("%o %ld", st.st_mode, (long)st.st_size);
}
CASE(a_relative_name_needs_a_directory)
{
    struct stat st;
    int fd = new_file("f", O_RDWR, "12345");
    ret(fstatat(fd, "f", &st, 0));
    ret(fstatat(999, "f", &st, 0));
    ret(fstatat(AT_FDCWD, "f", &st, 1 << 25));
}
CASE(a_directory_descriptor_is_a_base)
{
    struct stat st;
    make_dir("d");
    make_file("d/f", "12345");
    int dir = open_file("d", O_RDONLY | O_DIRECTORY);
    ret(fstatat(dir, "f", &st, 0));
    say("%ld", (long)st.st_size);
    ret(fstatat(dir, "f", &st, AT_SYMLINK_NOFOLLOW));
    say("%o", st.st_mode);
}
CASE(statx_says_what_stat_says)
{
    struct statx x;
    make_file("f", "12345");
    ret(statx(AT_FDCWD, "f", 0, STATX_BASIC_STATS, &x));
    say("%o %lld %u", x.stx_mode, (long long)x.stx_size, x.stx_nlink);
    ret(statx(AT_FDCWD, "f", AT_SYMLINK_NOFOLLOW, STATX_BASIC_STATS, &x));
    say("%o %lld %d", x.stx_mode, (long long)x.stx_size, (x.stx_mask & STATX_BASIC_STATS) == STATX_BASIC_STATS);
}
CASE(statx_of_a_descriptor)
{
    struct statx x;
    int fd = new_file("f", O_RDWR, "12345");
    ret(statx(fd, "", AT_EMPTY_PATH, STATX_ALL, &x));
    say("%o %lld %u", x.stx_mode, (long long)x.stx_size, x.stx_nlink);
    need(unlink("f"));
    ret(statx(fd, "", AT_EMPTY_PATH, STATX_ALL, &x));
    say("%lld %u", (long long)x.stx_size, x.stx_nlink);
}
CASE(statx_errors)
{
    struct statx x;
    make_file("f", "12345");
    ret(statx(AT_FDCWD, "none", 0, STATX_ALL, &x));
    ret(statx(AT_FDCWD, "f/x", 0, STATX_ALL, &x));
    ret(statx(AT_FDCWD, "f", 1 << 25, STATX_ALL, &x));
    ret(statx(AT_FDCWD, "f", 0, 1u << 31, &x));
    ret(statx(AT_FDCWD, "f", 0, STATX_ALL, BAD));
    ret(statx(999, "", AT_EMPTY_PATH, STATX_ALL, &x));
}
CASE(statx_says_no_attributes_of_a_link)
{
    struct statx x;
    make_file("f", "12345");
    need(statx(AT_FDCWD, "f", AT_SYMLINK_NOFOLLOW, STATX_ALL, &x));
    say("%d", S_ISREG(x.stx_mode));
}
CASE(a_path_only_descriptor_tells_the_size)
{
    struct stat st;
    make_file("f", "12345");
    stat_fd(open_file("f", O_PATH), &st);
    say("%o %ld", st.st_mode, (long)st.st_size);
}
CASE(proc_leads_to_the_file)
{
    struct stat st;
    char path[64];
    int fd = new_file("f", O_RDWR, "12345");
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    ret(stat(path, &st));
    say("%o %ld", st.st_mode, (long)st.st_size);
    snprintf(path, sizeof path, "/dev/fd/%d", fd);
    ret(stat(path, &st));
    say("%ld", (long)st.st_size);
}
CASE(nobody_may_ask_about_what_it_cannot_read)
{
    struct stat st;
    make_file("f", "12345");
    need(chmod("f", 0));
    if (!be_nobody())
        return;
    ret(stat("f", &st));
    say("%o %ld", st.st_mode, (long)st.st_size);
}
CASE(the_type_by_other_descriptors_is_as_ever)
{
    struct stat st;
    int ends[2];
    need(pipe(ends));
    stat_fd(ends[0], &st);
    say("%o", st.st_mode & S_IFMT);
    stat_file("/dev/null", &st);
    say("%o", st.st_mode & S_IFMT);
}
