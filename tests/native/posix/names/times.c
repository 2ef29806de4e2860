/* Times: which calls move the times of modification and of status change, and setting them. Only relations are said, never times. */
#define SUBJECT "time"
#include "posix.h"
#include <sys/time.h>
#include <utime.h>

enum { YEAR_2016 = 1451606400 };

static struct stat before;

/* A file that was left alone for a moment. */
static int settled(int flags)
{
    make_file("f", "0123456789");
    int fd = open_file("f", flags);
    stat_fd(fd, &before);
    settle();
    return fd;
}

static void say_moved(void)
{
    struct stat after;
    stat_file("f", &after);
    say_times(&before, &after);
}

static void say_seconds(const char *name)
{
    struct stat st;
    stat_file(name, &st);
    if (st.st_mtim.tv_sec > YEAR_2016)
        say("modified now");
    else
        say("%ld.%09ld %ld.%09ld", (long)st.st_atim.tv_sec, st.st_atim.tv_nsec, (long)st.st_mtim.tv_sec, st.st_mtim.tv_nsec);
}

CASE(a_write_moves_both)
{
    ret(write(settled(O_RDWR), "x", 1));
    say_moved();
}
CASE(a_write_at_an_offset_moves_both)
{
    ret(pwrite(settled(O_RDWR), "x", 1, 100000));
    say_moved();
}
CASE(a_write_moves_both_as_the_descriptor_sees_it)
{
    struct stat after;
    int fd = settled(O_RDWR);
    ret(write(fd, "x", 1));
    stat_fd(fd, &after);
    say_times(&before, &after);
}
CASE(a_write_of_nothing_moves_none)
{
    ret(write(settled(O_RDWR), "x", 0));
    say_moved();
}
CASE(an_appending_write_moves_both)
{
    ret(write(settled(O_RDWR | O_APPEND), "x", 1));
    say_moved();
}
CASE(a_read_moves_none)
{
    char c;
    ret(read(settled(O_RDWR), &c, 1));
    say_moved();
}
CASE(a_seek_moves_none)
{
    ret(lseek(settled(O_RDWR), 3, SEEK_SET));
    say_moved();
}
CASE(opening_and_closing_moves_none)
{
    settled(O_RDWR);
    need(close(open_file("f", O_RDWR)));
    need(close(open_file("f", O_RDONLY)));
    say_moved();
}
CASE(closing_after_a_write_moves_nothing_more)
{
    int fd = settled(O_RDWR);
    ret(write(fd, "longer than it was", 18));
    stat_file("f", &before);
    settle();
    need(close(fd));
    say_moved();
}
CASE(syncing_moves_nothing_more)
{
    int fd = settled(O_RDWR);
    ret(write(fd, "longer than it was", 18));
    stat_file("f", &before);
    settle();
    ret(fsync(fd));
    say_moved();
}
CASE(opening_with_truncation_moves_both)
{
    settled(O_RDWR);
    need(close(open_file("f", O_RDWR | O_TRUNC)));
    say_moved();
}
CASE(opening_an_empty_file_with_truncation_moves_both)
{
    need(close(new_file("f", O_RDWR, "")));
    stat_file("f", &before);
    settle();
    need(close(open_file("f", O_RDWR | O_TRUNC)));
    say_moved();
}
CASE(cutting_moves_both)
{
    ret(ftruncate(settled(O_RDWR), 3));
    say_moved();
}
CASE(growing_moves_both)
{
    ret(ftruncate(settled(O_RDWR), 30000));
    say_moved();
}
CASE(truncation_to_the_same_size_by_descriptor)
{
    ret(ftruncate(settled(O_RDWR), 10));
    say_moved();
}
CASE(truncation_to_the_same_size_by_name)
{
    settled(O_RDWR);
    ret(truncate("f", 10));
    say_moved();
}
CASE(cutting_by_name_moves_both)
{
    settled(O_RDWR);
    ret(truncate("f", 3));
    say_moved();
}
CASE(a_failed_truncation_moves_none)
{
    ret(ftruncate(settled(O_RDWR), -1));
    say_moved();
}
CASE(allocating_inside_the_file)
{
    ret(fallocate(settled(O_RDWR), 0, 0, 5));
    say_moved();
}
CASE(allocating_over_the_end_moves_both)
{
    ret(fallocate(settled(O_RDWR), 0, 0, 50000));
    say_moved();
}
CASE(punching_moves_both)
{
    ret(fallocate(settled(O_RDWR), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 5));
    say_moved();
}
CASE(chmod_moves_the_status_change)
{
    settled(O_RDWR);
    ret(chmod("f", 0600));
    say_moved();
}
CASE(fchmod_moves_the_status_change)
{
    ret(fchmod(settled(O_RDWR), 0600));
    say_moved();
}
CASE(chown_moves_the_status_change)
{
    settled(O_RDWR);
    ret(chown("f", geteuid(), getegid()));
    say_moved();
}
CASE(a_link_moves_the_status_change)
{
    settled(O_RDWR);
    ret(link("f", "g"));
    say_moved();
}
CASE(unlinking_a_second_name_moves_the_status_change)
{
    settled(O_RDWR);
    ret(link("f", "g"));
    stat_file("f", &before);
    settle();
    ret(unlink("g"));
    say_moved();
}
CASE(unlinking_moves_the_status_change)
{
    struct stat after;
    int fd = settled(O_RDWR);
    ret(unlink("f"));
    stat_fd(fd, &after);
    say_times(&before, &after);
}
CASE(renaming_moves_the_status_change)
{
    struct stat after;
    settled(O_RDWR);
    ret(rename("f", "g"));
    stat_file("g", &after);
    say_times(&before, &after);
}
CASE(being_replaced_moves_the_status_change)
{
    struct stat after;
    int fd = settled(O_RDWR);
    make_file("g", "new");
    ret(rename("g", "f"));
    stat_fd(fd, &after);
    say_times(&before, &after);
}
static void say_directory_moved(const struct stat *old)
{
    struct stat now;
    stat_file(".", &now);
    say_times(old, &now);
}
CASE(creating_a_file_moves_its_directory)
{
    struct stat dir;
    stat_file(".", &dir);
    settle();
    need(close(new_file("f", O_RDWR, "x")));
    say_directory_moved(&dir);
}
CASE(writing_a_file_does_not_move_its_directory)
{
    struct stat dir;
    int fd = settled(O_RDWR);
    stat_file(".", &dir);
    settle();
    ret(write(fd, "x", 1));
    ret(ftruncate(fd, 3));
    ret(fsync(fd));
    ret(close(fd));
    say_directory_moved(&dir);
}
CASE(unlinking_a_file_moves_its_directory)
{
    struct stat dir;
    settled(O_RDWR);
    stat_file(".", &dir);
    settle();
    ret(unlink("f"));
    say_directory_moved(&dir);
}
CASE(renaming_a_file_moves_its_directory)
{
    struct stat dir;
    settled(O_RDWR);
    stat_file(".", &dir);
    settle();
    ret(rename("f", "g"));
    say_directory_moved(&dir);
}
CASE(opening_an_existing_file_with_creation_does_not_move_its_directory)
{
    struct stat dir;
    settled(O_RDWR);
    stat_file(".", &dir);
    settle();
    need(close(need(open("f", O_CREAT | O_RDWR, 0644))));
    say_directory_moved(&dir);
}
CASE(a_new_file_is_as_new_as_now)
{
    struct stat st, other;
    need(close(new_file("f", O_RDWR, "")));
    stat_file("f", &st);
    settle();
    make_file("g", "");
    stat_file("g", &other);
    say("%d", st.st_mtime <= other.st_mtime && other.st_mtime - st.st_mtime < 60);
}
CASE(times_are_set_to_the_nanosecond)
{
    settled(O_RDWR);
    struct timespec times[2] = {{1000000000, 123456789}, {1100000000, 987654321}};
    ret(utimensat(AT_FDCWD, "f", times, 0));
    say_seconds("f");
    say_moved();
}
CASE(times_are_set_by_descriptor)
{
    int fd = settled(O_RDWR);
    struct timespec times[2] = {{1000000000, 5}, {1100000000, 6}};
    ret(futimens(fd, times));
    say_seconds("f");
    ret(futimens(open_file("f", O_RDONLY), (struct timespec[2]){{7, 0}, {8, 0}}));
    say_seconds("f");
}
CASE(times_are_left_out)
{
    settled(O_RDWR);
    ret(utimensat(AT_FDCWD, "f", (struct timespec[2]){{1000000000, 1}, {1100000000, 2}}, 0));
    ret(utimensat(AT_FDCWD, "f", (struct timespec[2]){{5, UTIME_OMIT}, {1200000000, 3}}, 0));
    say_seconds("f");
    ret(utimensat(AT_FDCWD, "f", (struct timespec[2]){{1300000000, 4}, {5, UTIME_OMIT}}, 0));
    say_seconds("f");
}
CASE(times_are_set_to_now)
{
    struct stat st;
    settled(O_RDWR);
    ret(utimensat(AT_FDCWD, "f", (struct timespec[2]){{1000000000, 1}, {1100000000, 2}}, 0));
    ret(utimensat(AT_FDCWD, "f", (struct timespec[2]){{0, UTIME_OMIT}, {0, UTIME_NOW}}, 0));
    stat_file("f", &st);
    say("%ld %d", (long)st.st_atime, st.st_mtime > 1100000000);
    ret(utimensat(AT_FDCWD, "f", NULL, 0));
    stat_file("f", &st);
    say("%d", st.st_atime > 1100000000);
}
CASE(a_bad_nanosecond_is_invalid)
{
    settled(O_RDWR);
    ret(utimensat(AT_FDCWD, "f", (struct timespec[2]){{1, 1000000000}, {1, 0}}, 0));
    ret(utimensat(AT_FDCWD, "f", (struct timespec[2]){{1, 0}, {1, -7}}, 0));
}
CASE(setting_times_moves_the_status_change)
{
    settled(O_RDWR);
    ret(utimensat(AT_FDCWD, "f", NULL, 0));
    say_moved();
}
CASE(leaving_both_times_out_moves_none)
{
    settled(O_RDWR);
    ret(utimensat(AT_FDCWD, "f", (struct timespec[2]){{0, UTIME_OMIT}, {0, UTIME_OMIT}}, 0));
    say_moved();
}
CASE(times_of_a_missing_name_are_an_error)
{
    make_file("f", "x");
    ret(utimensat(AT_FDCWD, "none", NULL, 0));
    ret(utimensat(AT_FDCWD, "f/x", NULL, 0));
    ret(utimensat(AT_FDCWD, "f", NULL, 1 << 20));
    ret(futimens(999, NULL));
}
CASE(the_old_calls_set_times_too)
{
    settled(O_RDWR);
    struct utimbuf seconds = {1000000000, 1100000000};
    ret(utime("f", &seconds));
    say_seconds("f");
    struct timeval micros[2] = {{1000000001, 5}, {1100000001, 6}};
    ret(utimes("f", micros));
    say_seconds("f");
    ret(futimes(open_file("f", O_RDWR), (struct timeval[2]){{9, 9}, {10, 10}}));
    say_seconds("f");
    ret(lutimes("f", micros));
    say_seconds("f");
}
CASE(a_write_right_after_setting_times_moves_them)
{
    struct timespec old[2] = {{1000, 0}, {1000, 0}};
    struct stat st;
    int fd = new_file("f", O_RDWR, "x");
    for (int i = 0; i < 3; i++) {
        need(i == 1 ? utimensat(AT_FDCWD, "f", old, 0) : futimens(fd, old));
        ret(write(fd, "y", 1));
        stat_fd(fd, &st);
        say("%d", st.st_mtim.tv_sec == 1000);
    }
}
CASE(times_set_stay_over_reading_and_closing)
{
    char c;
    int fd = settled(O_RDWR);
    ret(futimens(fd, (struct timespec[2]){{2000000000, 1}, {1100000000, 2}}));
    ret(read(fd, &c, 1));
    ret(close(fd));
    say_seconds("f");
}
CASE(times_set_after_a_write_stay_over_closing)
{
    int fd = settled(O_RDWR);
    ret(write(fd, "as an archiver writes it", 24));
    ret(futimens(fd, (struct timespec[2]){{1000000000, 1}, {1100000000, 2}}));
    ret(close(fd));
    say_seconds("f");
    say_size("f");
}
CASE(times_set_by_name_after_a_write_stay_over_closing_and_syncing)
{
    int fd = settled(O_RDWR);
    ret(write(fd, "as an archiver writes it", 24));
    ret(utimensat(AT_FDCWD, "f", (struct timespec[2]){{1000000000, 1}, {1100000000, 2}}, 0));
    ret(fsync(fd));
    ret(close(fd));
    say_seconds("f");
}
CASE(times_go_through_a_link_unless_told_not_to)
{
    settled(O_RDWR);
    need(symlink("f", "l"));
    ret(utimensat(AT_FDCWD, "l", (struct timespec[2]){{1000000000, 1}, {1100000000, 2}}, 0));
    say_seconds("f");
    ret(utimensat(AT_FDCWD, "l", (struct timespec[2]){{5, 0}, {6, 0}}, AT_SYMLINK_NOFOLLOW));
    say_seconds("f");
    ret(utimensat(AT_FDCWD, "f", (struct timespec[2]){{7, 0}, {8, 0}}, AT_SYMLINK_NOFOLLOW));
    say_seconds("f");
}
CASE(nobody_sets_times_of_another_only_to_now)
{
    make_file("f", "x");
    need(chmod("f", 0666));
    make_file("g", "x");
    if (!be_nobody())
        return;
    ret(utimensat(AT_FDCWD, "f", NULL, 0));
    ret(utimensat(AT_FDCWD, "f", (struct timespec[2]){{1, 0}, {1, 0}}, 0));
    ret(utimensat(AT_FDCWD, "g", NULL, 0));
}
CASE(each_of_several_writes_moves_both)
{
    int fd = settled(O_RDWR);
    for (int i = 0; i < 3; i++) {
        ret(write(fd, "x", 1));
        say_moved();
        stat_file("f", &before);
        settle();
    }
}
