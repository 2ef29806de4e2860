/* link, symlink, readlink, realpath: several names for one file, and names that lead to others. */
#define SUBJECT "link"
#include "posix.h"
#include <libgen.h>
#include <limits.h>

static void say_links(const char *name)
{
    struct stat st;
    stat_file(name, &st);
    say("links %d", (int)st.st_nlink);
}

CASE(a_second_name_is_the_same_file)
{
    make_file("a", "bytes");
    ret(link("a", "b"));
    say_content("b");
    say_links("a");
    say_links("b");
    struct stat a, b;
    stat_file("a", &a), stat_file("b", &b);
    say("%d", a.st_ino == b.st_ino && a.st_dev == b.st_dev);
}
CASE(a_write_by_one_name_is_seen_by_the_other)
{
    make_file("a", "bytes");
    ret(link("a", "b"));
    int fd = open_file("b", O_RDWR);
    ret(write(fd, "BYTE", 4));
    say_content("a");
    ret(truncate("a", 2));
    say_content("b");
}
CASE(the_file_stays_until_its_last_name_goes)
{
    make_file("a", "bytes");
    ret(link("a", "b"));
    ret(unlink("a"));
    say_content("b");
    say_links("b");
    ret(unlink("b"));
    say_mode("b");
}
CASE(an_existing_name_is_refused)
{
    make_file("a", "one");
    make_file("b", "two");
    ret(link("a", "b"));
    ret(link("a", "a"));
    say_content("b");
}
CASE(a_missing_name_is_refused)
{
    ret(link("none", "b"));
    make_file("a", "one");
    ret(link("a", "none/b"));
}
CASE(a_directory_is_refused)
{
    make_dir("d");
    ret(link("d", "e"));
}
CASE(a_link_to_a_link_is_a_link)
{
    make_file("a", "target");
    need(symlink("a", "l"));
    ret(link("l", "m"));
    say_mode("m");
    ret(linkat(AT_FDCWD, "l", AT_FDCWD, "n", AT_SYMLINK_FOLLOW));
    say_mode("n");
    say_content("n");
}
CASE(below_a_file_is_refused)
{
    make_file("a", "one");
    ret(link("a/x", "b"));
    ret(link("a", "a/x"));
    ret(link("a/", "b"));
}
CASE(by_directory_descriptors)
{
    make_dir("d");
    make_file("d/a", "one");
    int dir = open_file("d", O_RDONLY | O_DIRECTORY);
    ret(linkat(dir, "a", AT_FDCWD, "b", 0));
    say_content("b");
    ret(linkat(dir, "a", dir, "c", 1 << 20));
}
CASE(an_unlinked_file_gets_no_new_name)
{
    int fd = new_file("a", O_RDWR, "x");
    char path[64];
    ret(unlink("a"));
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    ret(linkat(AT_FDCWD, path, AT_FDCWD, "b", AT_SYMLINK_FOLLOW));
    say_mode("b");
}
CASE(an_open_file_gets_a_name_through_proc)
{
    int fd = new_file("a", O_RDWR, "linked");
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    ret(linkat(AT_FDCWD, path, AT_FDCWD, "b", AT_SYMLINK_FOLLOW));
    say_content("b");
    say_links("b");
}
CASE(a_file_is_no_symbolic_link)
{
    char text[64];
    make_file("a", "x");
    ret(readlink("a", text, sizeof text));
    say_mode("a");
}
CASE(a_symbolic_link_tells_its_text)
{
    char text[64];
    ret(symlink("where/ever", "l"));
    bytes(text, readlink("l", text, sizeof text));
    bytes(text, readlink("l", text, 3));
    ret(readlink("l", text, 0));
}
CASE(readlink_of_other_things_is_an_error)
{
    char text[64];
    make_dir("d");
    make_file("f", "x");
    ret(readlink("d", text, sizeof text));
    ret(readlink("none", text, sizeof text));
    ret(readlink("f/x", text, sizeof text));
    ret(readlink("f/", text, sizeof text));
    ret(readlink("", text, sizeof text));
}
CASE(a_symbolic_link_has_the_size_of_its_text)
{
    struct stat st;
    make_file("f", "0123456789");
    ret(symlink("f", "l"));
    need(lstat("l", &st));
    say("%o %ld", st.st_mode, (long)st.st_size);
    need(stat("l", &st));
    say("%o %ld", st.st_mode, (long)st.st_size);
}
CASE(a_symbolic_link_over_an_existing_name_is_refused)
{
    make_file("f", "kept");
    ret(symlink("x", "f"));
    say_content("f");
}
CASE(a_symbolic_link_to_nothing_is_refused)
{
    ret(symlink("", "l"));
    ret(symlink("x", ""));
    ret(symlink("x", "none/l"));
}
CASE(an_absolute_link_leads_to_the_file)
{
    char path[PATH_MAX];
    make_file("f", "by absolute name");
    need(realpath("f", path) == NULL ? -1 : 0);
    ret(symlink(path, "l"));
    say_content("l");
}
CASE(realpath_of_a_file_ends_in_its_name)
{
    char path[PATH_MAX] = "", here[PATH_MAX] = "";
    make_file("f", "x");
    say("%s", realpath("./f", path) == NULL ? error_name(errno) : basename(path));
    need(getcwd(here, sizeof here) == NULL ? -1 : 0);
    say("%d", realpath("f", path) != NULL && strncmp(path, here, strlen(here)) == 0);
}
CASE(realpath_goes_through_links)
{
    char path[PATH_MAX];
    make_file("f", "x");
    need(symlink("f", "l"));
    say("%s", realpath("l", path) == NULL ? error_name(errno) : basename(path));
}
CASE(realpath_of_a_missing_name_is_an_error)
{
    char path[PATH_MAX];
    make_file("f", "x");
    ret(realpath("none", path) == NULL ? -1 : 0);
    ret(realpath("f/x", path) == NULL ? -1 : 0);
    ret(realpath("f/", path) == NULL ? -1 : 0);
}
CASE(the_canonical_name_without_a_buffer)
{
    make_file("f", "x");
    char *path = canonicalize_file_name("f");
    say("%s", path == NULL ? error_name(errno) : basename(path));
    free(path);
}
CASE(proc_tells_the_name_of_an_open_file)
{
    char path[64], text[PATH_MAX], here[PATH_MAX];
    int fd = new_file("f", O_RDWR, "x");
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(path, text, sizeof text - 1);
    need(n);
    text[n] = '\0';
    need(getcwd(here, sizeof here) == NULL ? -1 : 0);
    say("%s", strncmp(text, here, strlen(here)) == 0 && strcmp(text + strlen(here), "/f") == 0 ? "its path" : "another path");
}
CASE(nobody_may_not_link_a_file_that_it_cannot_write)
{
    make_file("a", "x");
    need(chmod("a", 0600));
    if (!be_nobody())
        return;
    long r = link("a", "b");
    say("%s", r == 0 ? "0" : error_name(errno));
}
