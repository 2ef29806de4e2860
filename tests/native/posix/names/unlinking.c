/* unlink, remove, rmdir: what goes, what stays while it is open, and what is refused. */
#define SUBJECT "unlink"
#include "posix.h"

CASE(the_name_goes)
{
    make_file("f", "x");
    ret(unlink("f"));
    say_mode("f");
    fd_ret(open("f", O_RDONLY));
}
CASE(an_open_file_stays)
{
    int fd = new_file("f", O_RDWR, "still here");
    struct stat st;
    ret(unlink("f"));
    say_fd_content(fd);
    ret(write(fd, " and growing", 12));
    ret(ftruncate(fd, 15));
    say_fd_content(fd);
    stat_fd(fd, &st);
    say("links %d size %ld", (int)st.st_nlink, (long)st.st_size);
}
CASE(an_open_file_stays_for_a_child)
{
    int fd = new_file("f", O_RDWR, "for both");
    ret(unlink("f"));
    pid_t pid = need(fork());
    if (pid == 0) {
        say_fd_content(fd);
        ret(pwrite(fd, "FOR", 3, 0));
        _exit(0);
    }
    finish(pid);
    say_fd_content(fd);
}
CASE(an_open_file_stays_over_exec)
{
    int fd = new_file("f", O_RDWR, "inherited");
    char number[16];
    snprintf(number, sizeof number, "%d", fd);
    ret(unlink("f"));
    need(lseek(fd, 0, SEEK_SET));
    in_new_image("read", number, NULL);
}
CASE(the_name_is_free_for_another)
{
    int fd = new_file("f", O_RDWR, "first");
    ret(unlink("f"));
    make_file("f", "second");
    say_content("f");
    say_fd_content(fd);
}
CASE(many_times_the_same_name)
{
    for (int i = 0; i < 20; i++) {
        char text[8];
        snprintf(text, sizeof text, "%d", i);
        need(close(new_file("f", O_RDWR | O_EXCL, text)));
        need(unlink("f"));
    }
    say_mode("f");
}
CASE(twice_is_an_error)
{
    make_file("f", "x");
    ret(unlink("f"));
    ret(unlink("f"));
}
CASE(a_missing_name_is_an_error)
{
    ret(unlink("none"));
    ret(unlink("none/f"));
    ret(unlink(""));
    ret(unlink(BAD));
}
CASE(a_directory_is_refused)
{
    make_dir("d");
    ret(unlink("d"));
    ret(unlinkat(AT_FDCWD, "d", AT_REMOVEDIR));
}
CASE(a_file_is_no_directory_to_remove)
{
    make_file("f", "kept");
    ret(rmdir("f"));
    ret(unlinkat(AT_FDCWD, "f", AT_REMOVEDIR));
    say_content("f");
}
CASE(a_file_with_a_slash_is_refused)
{
    make_file("f", "kept");
    ret(unlink("f/"));
    ret(unlink("f/x"));
    say_content("f");
}
CASE(a_full_directory_is_not_removed)
{
    make_dir("d");
    make_file("d/f", "kept");
    int r = rmdir("d");
    say("%d %s", r, errno == ENOTEMPTY || errno == EEXIST ? "not empty" : error_name(errno));
    ret(unlink("d/f"));
    ret(rmdir("d"));
}
CASE(a_directory_is_empty_once_an_open_file_is_unlinked)
{
    make_dir("d");
    int fd = new_file("d/f", O_RDWR, "x");
    ret(unlink("d/f"));
    ret(rmdir("d"));
    say_fd_content(fd);
}
CASE(remove_takes_files_and_directories)
{
    make_file("f", "x");
    make_dir("d");
    ret(remove("f"));
    ret(remove("d"));
    ret(remove("none"));
}
CASE(a_link_goes_and_not_its_target)
{
    make_file("f", "kept");
    need(symlink("f", "l"));
    ret(unlink("l"));
    say_content("f");
}
CASE(by_directory_descriptor)
{
    make_dir("d");
    make_file("d/f", "x");
    int dir = open_file("d", O_RDONLY | O_DIRECTORY);
    ret(unlinkat(dir, "f", 0));
    ret(unlinkat(dir, "f", 0));
    ret(unlinkat(999, "f", 0));
    ret(unlinkat(dir, "f", 0x8000));
}
CASE(a_name_too_long_is_an_error)
{
    char name[300];
    memset(name, 'n', sizeof name);
    name[256] = '\0';
    ret(unlink(name));
}
CASE(nobody_cannot_unlink_in_anothers_directory)
{
    make_file("f", "kept");
    need(chmod(".", 0755));
    if (!be_nobody())
        return;
    ret(unlink("f"));
    say_content("f");
}
CASE(nobody_unlinks_a_file_of_another_in_an_open_directory)
{
    make_file("f", "x");
    if (!be_nobody())
        return;
    ret(unlink("f"));
    say_mode("f");
}
CASE(a_file_without_permissions_can_be_unlinked)
{
    make_file("f", "x");
    need(chmod("f", 0));
    ret(unlink("f"));
    say_mode("f");
}
CASE(temporary_names_are_unique)
{
    char a[] = "tmpXXXXXX", b[] = "tmpXXXXXX", c[] = "tmpXXXXXX.txt";
    int x = fd_ret(mkstemp(a)), y = fd_ret(mkstemp(b));
    fd_ret(mkstemps(c, 4));
    say("%d", strcmp(a, b) != 0);
    ret(write(x, "one", 3));
    ret(write(y, "two", 3));
    say_content(a);
    say_content(b);
    say_mode(a);
    ret(unlink(a));
    ret(unlink(b));
}
