/* chmod, chown, umask, access: the mode of a file, and what it forbids (as uid 65534 where the table runs as root). */
#define SUBJECT "mode"
#include "posix.h"

CASE(chmod_changes_the_mode)
{
    make_file("f", "x");
    ret(chmod("f", 0600));
    say_mode("f");
    ret(chmod("f", 0));
    say_mode("f");
    ret(chmod("f", 0777));
    say_mode("f");
}
CASE(fchmod_changes_the_mode)
{
    int fd = new_file("f", O_RDWR, "x");
    ret(fchmod(fd, 0640));
    say_mode("f");
    ret(fchmod(open_file("f", O_RDONLY), 0604));
    say_mode("f");
}
CASE(fchmodat_changes_the_mode)
{
    make_dir("d");
    make_file("d/f", "x");
    int dir = open_file("d", O_RDONLY | O_DIRECTORY);
    ret(fchmodat(dir, "f", 0640, 0));
    say_mode("d/f");
    ret(fchmodat(dir, "none", 0640, 0));
    ret(fchmodat(dir, "f", 0640, 1 << 20));
}
CASE(the_special_bits_are_kept)
{
    make_file("f", "x");
    ret(chmod("f", 07755));
    say_mode("f");
}
CASE(a_write_by_root_or_owner_clears_setuid)
{
    make_file("f", "x");
    ret(chmod("f", 06777));
    int fd = open_file("f", O_WRONLY);
    if (!be_nobody())
        return;
    ret(write(fd, "y", 1));
    say_mode("f");
}
CASE(a_truncation_by_another_clears_setuid)
{
    make_file("f", "x");
    ret(chmod("f", 06777));
    int fd = open_file("f", O_WRONLY);
    if (!be_nobody())
        return;
    ret(ftruncate(fd, 0));
    say_mode("f");
}
CASE(chmod_goes_through_a_link)
{
    make_file("f", "x");
    need(symlink("f", "l"));
    ret(chmod("l", 0600));
    say_mode("f");
    say_mode("l");
}
CASE(chmod_of_a_missing_name_is_an_error)
{
    make_file("f", "x");
    ret(chmod("none", 0600));
    ret(chmod("f/x", 0600));
    ret(chmod("f/", 0600));
    ret(chmod(BAD, 0600));
}
CASE(umask_takes_bits_from_a_new_file)
{
    umask(077);
    need(close(need(open("a", O_CREAT | O_RDWR, 0666))));
    say_mode("a");
    umask(0);
    need(close(need(open("b", O_CREAT | O_RDWR, 0666))));
    say_mode("b");
    need(close(need(open("c", O_CREAT | O_RDWR, 07777))));
    say_mode("c");
}
CASE(a_file_created_without_permissions_is_writable_by_its_creator)
{
    int fd = fd_ret(open("f", O_CREAT | O_RDWR, 0));
    ret(write(fd, "mine", 4));
    say_fd_content(fd);
    say_mode("f");
}
CASE(nobody_creates_a_file_without_permissions_and_writes_it)
{
    if (!be_nobody())
        return;
    int fd = fd_ret(open("f", O_CREAT | O_RDWR, 0));
    ret(write(fd, "mine", 4));
    say_fd_content(fd);
    fd_ret(open("f", O_RDWR));
}
CASE(nobody_creates_and_uses_a_file)
{
    if (!be_nobody())
        return;
    struct stat st;
    make_file("f", "mine");
    say_content("f");
    stat_file("f", &st);
    say("%d %d %o", (int)st.st_uid, (int)st.st_gid, st.st_mode);
    ret(chmod("f", 0400));
    fd_ret(open("f", O_RDWR));
    say_content("f");
    ret(unlink("f"));
}
CASE(nobody_reads_what_may_be_read)
{
    make_file("f", "readable");
    make_file("g", "secret");
    need(chmod("g", 0600));
    if (!be_nobody())
        return;
    say_content("f");
    say_content("g");
    fd_ret(open("f", O_WRONLY));
    fd_ret(open("f", O_RDWR));
    fd_ret(open("f", O_RDONLY | O_TRUNC));
    fd_ret(open("g", O_PATH));
    say_size("g");
}
CASE(nobody_writes_what_may_be_written)
{
    make_file("f", "0123456789");
    make_file("g", "0123456789");
    need(chmod("f", 0666));
    need(chmod("g", 0222));
    if (!be_nobody())
        return;
    int fd = fd_ret(open("f", O_RDWR));
    ret(write(fd, "abc", 3));
    say_content("f");
    fd = fd_ret(open("g", O_WRONLY));
    ret(write(fd, "abc", 3));
    fd_ret(open("g", O_RDONLY));
}
CASE(nobody_extends_what_may_be_written)
{
    make_file("f", "0123456789");
    need(chmod("f", 0666));
    if (!be_nobody())
        return;
    int fd = fd_ret(open("f", O_RDWR));
    char block[100000];
    memset(block, 'n', sizeof block);
    ret(pwrite(fd, block, sizeof block, 30000));
    ret(fsync(fd));
    ret(close(fd));
    say_content("f");
}
CASE(permissions_count_when_opening_only)
{
    make_file("f", "0123456789");
    need(chmod("f", 0666));
    int reader, writer;
    if (geteuid() != 0) {
        say("needs root");
        return;
    }
    need(seteuid(65534));
    reader = open_file("f", O_RDONLY), writer = open_file("f", O_WRONLY);
    need(seteuid(0));
    need(chmod("f", 0600));
    need(seteuid(65534));
    ret(write(writer, "abc", 3));
    say_fd_content(reader);
    fd_ret(open("f", O_RDONLY));
}
CASE(a_closed_directory_closes_its_files)
{
    make_dir("d");
    make_file("d/f", "x");
    need(chmod("d", 0700));
    if (!be_nobody())
        return;
    fd_ret(open("d/f", O_RDONLY));
    fd_ret(open("d/g", O_RDWR | O_CREAT, 0644));
    ret(unlink("d/f"));
    ret(truncate("d/f", 0));
    ret(access("d/f", F_OK));
    say_size("d/f");
}
CASE(nobody_creates_nothing_in_anothers_directory)
{
    need(chmod(".", 0755));
    if (!be_nobody())
        return;
    fd_ret(open("f", O_RDWR | O_CREAT, 0644));
    say_mode("f");
}
CASE(nobody_changes_no_mode_of_another)
{
    make_file("f", "x");
    need(chmod("f", 0666));
    int fd = open_file("f", O_RDWR);
    if (!be_nobody())
        return;
    ret(chmod("f", 0777));
    ret(fchmod(fd, 0777));
    ret(chown("f", 65534, 65534));
    ret(fchown(fd, 65534, 65534));
    say_mode("f");
}
CASE(chown_gives_the_file_away)
{
    make_file("f", "x");
    struct stat st;
    ret(chown("f", 65534, 65533));
    stat_file("f", &st);
    say("%d %d", (int)st.st_uid, (int)st.st_gid);
    ret(fchown(open_file("f", O_RDWR), (uid_t)-1, 0));
    stat_file("f", &st);
    say("%d %d", (int)st.st_uid, (int)st.st_gid);
    ret(fchownat(AT_FDCWD, "f", 0, 65533, 0));
    stat_file("f", &st);
    say("%d %d", (int)st.st_uid, (int)st.st_gid);
}
CASE(chown_lets_the_new_owner_write)
{
    make_file("f", "0123456789");
    ret(chown("f", 65534, 65534));
    if (!be_nobody())
        return;
    int fd = fd_ret(open("f", O_RDWR));
    ret(pwrite(fd, "mine", 4, 0));
    ret(ftruncate(fd, 6));
    say_content("f");
    ret(chmod("f", 0600));
    say_mode("f");
}
CASE(lchown_of_a_file_and_of_a_link)
{
    make_file("f", "x");
    need(symlink("f", "l"));
    struct stat st;
    ret(lchown("l", 65534, 65534));
    stat_file("f", &st);
    say("%d", (int)st.st_uid);
    ret(lchown("f", 65533, 65533));
    stat_file("f", &st);
    say("%d", (int)st.st_uid);
}
CASE(chown_clears_setuid)
{
    make_file("f", "x");
    need(chmod("f", 06755));
    ret(chown("f", 65534, 65534));
    say_mode("f");
}
CASE(access_asks_for_the_real_user)
{
    make_file("f", "x");
    ret(access("f", F_OK));
    ret(access("f", R_OK | W_OK));
    ret(access("f", X_OK));
    ret(access("none", F_OK));
    ret(access("f/x", F_OK));
    ret(access("f/", F_OK));
    ret(access("f", 077));
    ret(access(BAD, F_OK));
}
CASE(access_tells_nobody_what_it_may)
{
    make_file("f", "x");
    make_file("x", "x");
    need(chmod("x", 0711));
    if (!be_nobody())
        return;
    ret(access("f", R_OK));
    ret(access("f", W_OK));
    ret(access("f", R_OK | W_OK));
    ret(access("x", X_OK));
    ret(access("x", R_OK));
    ret(euidaccess("f", W_OK));
    ret(faccessat(AT_FDCWD, "f", W_OK, AT_EACCESS));
}
CASE(access_by_directory_descriptor)
{
    make_dir("d");
    make_file("d/f", "x");
    int dir = open_file("d", O_RDONLY | O_DIRECTORY);
    ret(faccessat(dir, "f", R_OK, 0));
    ret(faccessat(dir, "g", R_OK, 0));
    ret(faccessat(dir, "f", R_OK, AT_SYMLINK_NOFOLLOW));
    ret(faccessat(999, "f", R_OK, 0));
    ret(faccessat(dir, "f", R_OK, 1 << 25));
}
CASE(a_script_needs_the_execute_bit)
{
    make_file("s", "#!/bin/sh\nexit 7\n");
    need(chmod("s", 0644));
    char *words[] = {"s", NULL};
    ret(execv("./s", words));
}
CASE(a_script_runs)
{
    make_file("s", "#!/bin/sh\nexit 7\n");
    need(chmod("s", 0755));
    pid_t pid = need(fork());
    if (pid == 0) {
        char *words[] = {"s", NULL};
        execv("./s", words);
        say("%s", error_name(errno));
        _exit(1);
    }
    finish(pid);
}
