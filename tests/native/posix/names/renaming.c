/* rename and its kin: over existing names, over directories, onto itself, exchanged, and refused. */
#define SUBJECT "rename"
#include "posix.h"

CASE(a_file_gets_another_name)
{
    make_file("a", "bytes");
    ret(rename("a", "b"));
    say_mode("a");
    say_content("b");
}
CASE(an_existing_file_is_replaced)
{
    make_file("a", "new");
    make_file("b", "old and longer");
    ret(rename("a", "b"));
    say_content("a");
    say_content("b");
}
CASE(a_replaced_file_lives_on_while_open)
{
    make_file("a", "new");
    make_file("b", "old");
    struct stat st;
    int fd = open_file("b", O_RDWR);
    ret(rename("a", "b"));
    say_fd_content(fd);
    ret(write(fd, "OLD", 3));
    say_fd_content(fd);
    say_content("b");
    stat_fd(fd, &st);
    say("links %d", (int)st.st_nlink);
}
CASE(an_open_file_follows_its_name)
{
    make_file("a", "bytes");
    int fd = open_file("a", O_RDWR);
    ret(rename("a", "b"));
    ret(write(fd, "BYT", 3));
    say_content("b");
}
CASE(onto_itself_does_nothing)
{
    make_file("a", "bytes");
    ret(rename("a", "a"));
    ret(rename("a", "./a"));
    say_content("a");
}
CASE(onto_a_second_name_of_the_same_file_does_nothing)
{
    make_file("a", "bytes");
    ret(link("a", "b"));
    ret(rename("a", "b"));
    say_mode("a");
    say_mode("b");
}
CASE(a_missing_name_cannot_be_renamed)
{
    make_file("b", "kept");
    ret(rename("a", "b"));
    ret(rename("", "b"));
    ret(rename("b", ""));
    say_content("b");
}
CASE(into_a_missing_directory_is_an_error)
{
    make_file("a", "kept");
    ret(rename("a", "none/a"));
    say_content("a");
}
CASE(into_another_directory)
{
    make_dir("d");
    make_file("a", "moved");
    ret(rename("a", "d/b"));
    say_content("d/b");
    say_mode("a");
}
CASE(a_file_cannot_replace_a_directory)
{
    make_dir("d");
    make_file("a", "kept");
    ret(rename("a", "d"));
    say_content("a");
}
CASE(a_directory_cannot_replace_a_file)
{
    make_dir("d");
    make_file("a", "kept");
    ret(rename("d", "a"));
    say_content("a");
    say_mode("d");
}
CASE(a_directory_replaces_an_empty_one)
{
    make_dir("d");
    make_dir("e");
    make_file("d/f", "inside");
    ret(rename("d", "e"));
    say_content("e/f");
}
CASE(a_directory_does_not_replace_a_full_one)
{
    make_dir("d");
    make_dir("e");
    make_file("e/f", "inside");
    int r = rename("d", "e");
    say("%d %s", r, errno == ENOTEMPTY || errno == EEXIST ? "not empty" : error_name(errno));
    say_content("e/f");
}
CASE(a_directory_cannot_go_into_itself)
{
    make_dir("d");
    ret(rename("d", "d/e"));
}
CASE(a_directory_with_files_moves)
{
    make_dir("d");
    make_dir("d/e");
    make_file("d/e/f", "deep");
    int fd = open_file("d/e/f", O_RDWR);
    ret(rename("d", "moved"));
    say_content("moved/e/f");
    ret(pwrite(fd, "DEEP", 4, 0));
    say_content("moved/e/f");
}
CASE(dots_cannot_be_renamed)
{
    make_dir("d");
    ret(rename(".", "e"));
    ret(rename("d/..", "e"));
    ret(rename("d", "."));
}
CASE(a_file_with_a_slash_is_no_directory)
{
    make_file("a", "kept");
    ret(rename("a/", "b"));
    ret(rename("a", "b/"));
    say_content("a");
}
CASE(below_a_file_is_an_error)
{
    make_file("a", "kept");
    make_file("b", "kept too");
    ret(rename("a/x", "c"));
    ret(rename("b", "a/x"));
}
CASE(a_name_too_long_is_an_error)
{
    char name[300];
    memset(name, 'n', sizeof name);
    name[256] = '\0';
    make_file("a", "kept");
    ret(rename("a", name));
    ret(rename(name, "a"));
    say_content("a");
}
CASE(a_link_is_renamed_and_not_its_target)
{
    make_file("a", "target");
    need(symlink("a", "l"));
    ret(rename("l", "m"));
    say_mode("m");
    say_content("m");
}
CASE(a_link_is_replaced_and_not_its_target)
{
    make_file("a", "target");
    make_file("b", "new");
    need(symlink("a", "l"));
    ret(rename("b", "l"));
    say_content("a");
    say_content("l");
    say_mode("l");
}
CASE(without_replacing_refuses_an_existing_name)
{
    make_file("a", "one");
    make_file("b", "two");
    ret(renameat2(AT_FDCWD, "a", AT_FDCWD, "b", RENAME_NOREPLACE));
    say_content("a");
    say_content("b");
}
CASE(without_replacing_takes_a_free_name)
{
    make_file("a", "one");
    ret(renameat2(AT_FDCWD, "a", AT_FDCWD, "b", RENAME_NOREPLACE));
    say_content("b");
}
CASE(exchanging_two_files)
{
    make_file("a", "one");
    make_file("b", "two");
    int fd = open_file("a", O_RDWR);
    ret(renameat2(AT_FDCWD, "a", AT_FDCWD, "b", RENAME_EXCHANGE));
    say_content("a");
    say_content("b");
    say_fd_content(fd);
}
CASE(exchanging_a_file_and_a_directory)
{
    make_file("a", "one");
    make_dir("d");
    make_file("d/f", "inside");
    ret(renameat2(AT_FDCWD, "a", AT_FDCWD, "d", RENAME_EXCHANGE));
    say_content("d");
    say_content("a/f");
}
CASE(exchanging_with_nothing_is_an_error)
{
    make_file("a", "one");
    ret(renameat2(AT_FDCWD, "a", AT_FDCWD, "b", RENAME_EXCHANGE));
    say_content("a");
}
CASE(flags_that_contradict_are_invalid)
{
    make_file("a", "one");
    ret(renameat2(AT_FDCWD, "a", AT_FDCWD, "b", RENAME_EXCHANGE | RENAME_NOREPLACE));
    ret(renameat2(AT_FDCWD, "a", AT_FDCWD, "b", 1 << 20));
}
CASE(between_directory_descriptors)
{
    make_dir("d");
    make_dir("e");
    make_file("d/f", "moved");
    int d = open_file("d", O_RDONLY | O_DIRECTORY), e = open_file("e", O_RDONLY | O_DIRECTORY);
    ret(renameat(d, "f", e, "g"));
    say_content("e/g");
    ret(renameat(d, "f", e, "g"));
    ret(renameat(999, "f", e, "g"));
}
CASE(a_bad_name_is_a_fault)
{
    make_file("a", "one");
    ret(rename(BAD, "b"));
    ret(rename("a", BAD));
}
CASE(from_another_file_system_is_refused)
{
    make_file("a", "one");
    ret(rename("a", "/dev/shm/posix-case-that-must-not-be"));
    say_content("a");
}
CASE(nobody_cannot_rename_in_anothers_directory)
{
    make_file("a", "one");
    need(chmod(".", 0755));
    if (!be_nobody())
        return;
    ret(rename("a", "b"));
}
CASE(a_sticky_directory_protects_the_files_of_others)
{
    make_file("a", "one");
    need(chmod(".", 01777));
    if (!be_nobody())
        return;
    ret(rename("a", "b"));
    ret(unlink("a"));
    say_content("a");
}
CASE(the_new_name_survives_a_second_process)
{
    make_file("a", "bytes");
    ret(rename("a", "b"));
    in_new_image("cat", "0", "b", NULL);
}
CASE(a_temporary_file_replaces_as_editors_do)
{
    make_file("f", "version 1");
    for (int i = 2; i < 6; i++) {
        char text[16];
        snprintf(text, sizeof text, "version %d", i);
        int fd = new_file("f.tmp", O_WRONLY | O_EXCL, text);
        need(fsync(fd));
        need(close(fd));
        need(rename("f.tmp", "f"));
    }
    say_content("f");
    say_mode("f.tmp");
}
