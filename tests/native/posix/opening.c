/* open, openat, creat: flags and the errors that they end in. */
#define SUBJECT "open"
#include "posix.h"
#include <limits.h>

CASE(a_missing_name_is_not_there) { fd_ret(open("none", O_RDWR)); }
CASE(a_name_in_a_missing_directory_is_not_there) { fd_ret(open("none/f", O_CREAT | O_RDWR, 0644)); }
CASE(an_empty_name_is_not_there) { fd_ret(open("", O_CREAT | O_RDWR, 0644)); }
CASE(a_null_name_is_a_fault) { fd_ret(open(NONE, O_RDWR)); }
CASE(a_bad_address_is_a_fault) { fd_ret(open(BAD, O_RDWR)); }
CASE(a_bad_address_is_a_fault_when_creating) { fd_ret(open(BAD, O_RDWR | O_CREAT, 0644)); }
CASE(creating_makes_an_empty_file)
{
    fd_ret(open("f", O_CREAT | O_RDWR, 0640));
    say_size("f");
    say_mode("f");
}
CASE(creating_an_existing_file_keeps_its_bytes)
{
    make_file("f", "kept");
    fd_ret(open("f", O_CREAT | O_RDWR, 0600));
    say_content("f");
    say_mode("f");
}
CASE(creat_cuts_and_is_write_only)
{
    make_file("f", "gone");
    int fd = fd_ret(creat("f", 0600));
    char c;
    ret(read(fd, &c, 1));
    say_size("f");
}
CASE(exclusive_creation_refuses_an_existing_file)
{
    make_file("f", "x");
    fd_ret(open("f", O_CREAT | O_EXCL | O_RDWR, 0644));
}
CASE(exclusive_creation_makes_a_new_file) { fd_ret(open("f", O_CREAT | O_EXCL | O_RDWR, 0644)); }
CASE(exclusive_creation_refuses_a_directory)
{
    make_dir("d");
    fd_ret(open("d", O_CREAT | O_EXCL | O_RDWR, 0644));
}
CASE(exclusive_creation_refuses_a_link_to_nowhere)
{
    need(symlink("none", "l"));
    fd_ret(open("l", O_CREAT | O_EXCL | O_RDWR, 0644));
}
CASE(exclusive_without_creation_means_nothing)
{
    make_file("f", "x");
    fd_ret(open("f", O_EXCL | O_RDWR));
}
CASE(creation_through_a_link_to_nowhere_makes_its_target)
{
    need(symlink("target", "l"));
    int fd = fd_ret(open("l", O_CREAT | O_RDWR, 0644));
    ret(write(fd, "new", 3));
    say_content("target");
    say_content("l");
}
CASE(creation_through_a_link_opens_an_existing_target)
{
    make_file("f", "bytes");
    need(symlink("f", "l"));
    fd_ret(open("l", O_CREAT | O_RDWR, 0644));
    say_content("l");
}
CASE(truncation_empties)
{
    make_file("f", "long content");
    fd_ret(open("f", O_WRONLY | O_TRUNC));
    say_size("f");
}
CASE(truncation_empties_a_large_file)
{
    make_large("f", 300000);
    int fd = fd_ret(open("f", O_RDWR | O_TRUNC));
    ret(pwrite(fd, "z", 1, 200000));
    say_content("f");
}
CASE(truncation_of_a_missing_file_does_not_create) { fd_ret(open("f", O_RDWR | O_TRUNC)); }
CASE(truncation_and_creation_make_a_file) { fd_ret(open("f", O_RDWR | O_TRUNC | O_CREAT, 0644)); }
CASE(a_file_is_no_directory)
{
    make_file("f", "x");
    fd_ret(open("f", O_RDONLY | O_DIRECTORY));
}
CASE(a_missing_directory_is_not_there) { fd_ret(open("f", O_RDONLY | O_DIRECTORY)); }
CASE(directory_and_creation_contradict)
{
    fd_ret(open("f", O_RDONLY | O_DIRECTORY | O_CREAT, 0644));
    say_mode("f");
}
CASE(a_directory_opens_for_reading_only)
{
    make_dir("d");
    fd_ret(open("d", O_RDONLY));
    fd_ret(open("d", O_WRONLY));
    fd_ret(open("d", O_RDWR));
    fd_ret(open("d", O_RDONLY | O_CREAT, 0644));
}
CASE(a_name_below_a_file_is_an_error)
{
    make_file("f", "x");
    fd_ret(open("f/x", O_RDONLY));
    fd_ret(open("f/x", O_RDWR | O_CREAT, 0644));
    fd_ret(open("f/x", O_RDWR | O_CREAT | O_EXCL, 0644));
    fd_ret(open("f/x/y", O_RDONLY));
    fd_ret(open("f/.", O_RDONLY));
    fd_ret(open("f/..", O_RDONLY));
}
CASE(a_file_with_a_slash_is_an_error)
{
    make_file("f", "x");
    fd_ret(open("f/", O_RDONLY));
    fd_ret(open("f/", O_RDWR));
}
CASE(a_file_with_a_slash_and_creation_is_an_error)
{
    make_file("f", "x");
    fd_ret(open("f/", O_RDWR | O_CREAT, 0644));
}
CASE(a_new_name_with_a_slash_is_not_created)
{
    fd_ret(open("new/", O_RDWR | O_CREAT, 0644));
    say_mode("new");
}
CASE(nofollow_opens_a_plain_name)
{
    make_file("f", "x");
    fd_ret(open("f", O_RDWR | O_NOFOLLOW));
}
CASE(nofollow_refuses_a_link_to_a_file)
{
    make_file("f", "x");
    need(symlink("f", "l"));
    fd_ret(open("l", O_RDWR | O_NOFOLLOW));
}
CASE(nofollow_refuses_a_link_to_nowhere)
{
    need(symlink("none", "l"));
    fd_ret(open("l", O_RDWR | O_NOFOLLOW));
    fd_ret(open("l", O_RDWR | O_NOFOLLOW | O_CREAT, 0644));
}
CASE(nofollow_and_creation_make_a_file) { fd_ret(open("f", O_RDWR | O_NOFOLLOW | O_CREAT, 0644)); }
CASE(nofollow_and_exclusive_creation_refuse_a_file)
{
    make_file("f", "x");
    fd_ret(open("f", O_RDWR | O_NOFOLLOW | O_CREAT | O_EXCL, 0644));
}
CASE(links_in_a_circle_are_too_many)
{
    need(symlink("b", "a"));
    need(symlink("a", "b"));
    fd_ret(open("a", O_RDONLY));
    fd_ret(open("a", O_RDWR | O_CREAT, 0644));
    fd_ret(open("a/f", O_RDONLY));
}
CASE(a_chain_of_links_is_followed)
{
    make_file("f", "end of the chain");
    need(symlink("f", "l0"));
    for (int i = 0; i < 12; i++) {
        char from[8], to[8];
        snprintf(from, sizeof from, "l%d", i), snprintf(to, sizeof to, "l%d", i + 1);
        need(symlink(from, to));
    }
    say_content("l1");
    say_content("l6");
    say_content("l12");
}
CASE(a_link_through_directories_is_followed)
{
    make_dir("d");
    make_dir("d/e");
    make_file("d/f", "beside");
    need(symlink("../f", "d/e/l"));
    need(symlink("d/e", "short"));
    say_content("short/l");
}
CASE(a_name_may_have_255_bytes)
{
    char name[300];
    memset(name, 'n', sizeof name);
    name[255] = '\0';
    fd_ret(open(name, O_CREAT | O_RDWR, 0644));
    say_size(name);
}
CASE(a_name_of_256_bytes_is_too_long)
{
    char name[300];
    memset(name, 'n', sizeof name);
    name[256] = '\0';
    fd_ret(open(name, O_CREAT | O_RDWR, 0644));
    fd_ret(open(name, O_RDWR));
}
CASE(a_path_of_4096_bytes_is_too_long)
{
    char path[PATH_MAX + 8];
    for (int i = 0; i < PATH_MAX; i += 2)
        memcpy(path + i, "./", 2);
    strcpy(path + PATH_MAX, "f");
    fd_ret(open(path, O_CREAT | O_RDWR, 0644));
    fd_ret(open(path, O_RDWR));
}
CASE(a_path_of_4095_bytes_is_not)
{
    char path[PATH_MAX + 8];
    for (int i = 0; i < PATH_MAX - 2; i += 2)
        memcpy(path + i, "./", 2);
    strcpy(path + PATH_MAX - 2, "f");
    fd_ret(open(path, O_CREAT | O_RDWR, 0644));
    say_size(path);
}
CASE(dots_and_slashes_in_a_path_mean_nothing)
{
    make_dir("d");
    fd_ret(open(".//d/.././d//f", O_CREAT | O_RDWR, 0644));
    say_size("d/f");
}
CASE(a_path_only_descriptor_refuses_io)
{
    make_file("f", "x");
    char c = 0;
    int fd = fd_ret(open("f", O_PATH));
    ret(read(fd, &c, 1));
    ret(write(fd, &c, 1));
    ret(pread(fd, &c, 1, 0));
    ret(lseek(fd, 0, SEEK_SET));
    ret(ftruncate(fd, 0));
    ret(fchmod(fd, 0600));
    ret(fsync(fd));
}
CASE(a_path_only_descriptor_has_a_size)
{
    make_file("f", "four");
    int fd = fd_ret(open("f", O_PATH));
    say_fd_size(fd);
    say("%d", (fcntl(fd, F_GETFL) & O_PATH) != 0);
}
CASE(a_path_only_nofollow_descriptor_of_a_file_is_of_the_file)
{
    make_file("f", "four");
    struct stat st;
    int fd = fd_ret(open("f", O_PATH | O_NOFOLLOW));
    need(fstat(fd, &st));
    say("mode %o size %lld", st.st_mode, (long long)st.st_size);
}
CASE(a_path_only_descriptor_of_a_link_is_of_the_link)
{
    make_file("f", "x");
    need(symlink("f", "l"));
    struct stat st;
    int fd = fd_ret(open("l", O_PATH | O_NOFOLLOW));
    need(fstat(fd, &st));
    say("mode %o size %lld", st.st_mode, (long long)st.st_size);
}
CASE(a_temporary_file_has_no_name)
{
    int fd = fd_ret(open(".", O_TMPFILE | O_RDWR, 0600));
    ret(write(fd, "hidden", 6));
    say_fd_content(fd);
    struct stat st;
    need(fstat(fd, &st));
    say("links %d", (int)st.st_nlink);
}
CASE(a_temporary_file_needs_write_access) { fd_ret(open(".", O_TMPFILE | O_RDONLY, 0600)); }
CASE(a_temporary_file_in_a_file_is_an_error)
{
    make_file("f", "x");
    fd_ret(open("f", O_TMPFILE | O_RDWR, 0600));
}
CASE(a_temporary_file_gets_a_name_by_linking)
{
    int fd = fd_ret(open(".", O_TMPFILE | O_RDWR, 0600));
    ret(write(fd, "named", 5));
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    ret(linkat(AT_FDCWD, path, AT_FDCWD, "f", AT_SYMLINK_FOLLOW));
    say_content("f");
}
CASE(read_only_truncation_leaves_or_cuts_as_the_kernel_does)
{
    make_file("f", "content");
    fd_ret(open("f", O_RDONLY | O_TRUNC));
    say_size("f");
}
CASE(sync_flags_are_taken_and_shown)
{
    int fd = fd_ret(open("f", O_CREAT | O_RDWR | O_SYNC, 0644));
    ret(write(fd, "safe", 4));
    say("%d", (fcntl(fd, F_GETFL) & O_SYNC) == O_SYNC);
    fd = fd_ret(open("f", O_RDWR | O_DSYNC));
    ret(pwrite(fd, "data", 4, 2));
    say("%d %d", (fcntl(fd, F_GETFL) & O_SYNC) == O_SYNC, (fcntl(fd, F_GETFL) & O_DSYNC) != 0);
    say_content("f");
}
CASE(direct_io_works_on_aligned_blocks)
{
    make_large("f", 16384);
    int fd = fd_ret(open("f", O_RDWR | O_DIRECT));
    void *block;
    if (posix_memalign(&block, 4096, 4096) == 0) {
        ret(pread(fd, block, 4096, 4096));
        bytes(block, 4096);
        ret(pwrite(fd, block, 4096, 8192));
    }
    say_content("f");
}
CASE(close_on_exec_is_set_by_open)
{
    make_file("f", "x");
    say("%d", fcntl(open_file("f", O_RDONLY | O_CLOEXEC), F_GETFD));
    say("%d", fcntl(open_file("f", O_RDONLY), F_GETFD));
}
CASE(relative_names_count_from_a_directory_descriptor)
{
    make_dir("d");
    int dir = open_file("d", O_RDONLY | O_DIRECTORY);
    int fd = fd_ret(openat(dir, "f", O_CREAT | O_RDWR, 0644));
    ret(write(fd, "in d", 4));
    say_content("d/f");
}
CASE(absolute_names_do_not_need_the_directory)
{
    char path[PATH_MAX];
    need(getcwd(path, sizeof path - 2) == NULL ? -1 : 0);
    strcat(path, "/f");
    fd_ret(openat(-5, path, O_CREAT | O_RDWR, 0644));
    say_size("f");
}
CASE(relative_names_need_a_directory)
{
    make_file("f", "x");
    int fd = open_file("f", O_RDONLY);
    fd_ret(openat(fd, "g", O_RDONLY));
    fd_ret(openat(fd, "g", O_CREAT | O_RDWR, 0644));
    fd_ret(openat(999, "g", O_RDONLY));
    fd_ret(openat(999, "g", O_CREAT | O_RDWR, 0644));
}
CASE(a_path_only_directory_serves_as_base)
{
    make_dir("d");
    make_file("d/f", "found");
    int dir = open_file("d", O_PATH | O_DIRECTORY);
    int fd = fd_ret(openat(dir, "f", O_RDONLY));
    say_fd_content(fd);
}
CASE(the_current_directory_may_be_removed)
{
    make_dir("d");
    need(chdir("d"));
    need(rmdir("../d"));
    fd_ret(open("f", O_CREAT | O_RDWR, 0644));
}
CASE(two_opens_have_two_offsets)
{
    make_file("f", "abcdef");
    char c;
    int a = open_file("f", O_RDONLY), b = open_file("f", O_RDONLY);
    ret(read(a, &c, 1));
    say_offset(a);
    say_offset(b);
}
CASE(a_device_opens_as_ever)
{
    int fd = fd_ret(open("/dev/null", O_RDWR | O_CREAT | O_TRUNC, 0644));
    ret(write(fd, "x", 1));
    ret(read(fd, &fd, 1));
}
CASE(a_fifo_without_reader_refuses_a_writer_that_will_not_wait)
{
    need(mkfifo("p", 0600));
    fd_ret(open("p", O_WRONLY | O_NONBLOCK));
    fd_ret(open("p", O_RDONLY | O_NONBLOCK));
}
CASE(a_file_opens_anew_through_proc)
{
    make_file("f", "abcdef");
    char path[64], c = 0;
    int fd = open_file("f", O_RDWR);
    ret(lseek(fd, 3, SEEK_SET));
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    int again = fd_ret(open(path, O_RDONLY));
    ret(read(again, &c, 1));
    say("%c", c);
}
CASE(access_mode_three_is_accepted)
{
    make_file("f", "x");
    char c;
    int fd = fd_ret(open("f", 3));
    ret(read(fd, &c, 1));
    ret(write(fd, "c", 1));
    say("%d", fcntl(fd, F_GETFL) & O_ACCMODE);
}
