/* fork, exec, threads: what is shared, what is inherited, and appending from two processes. */
#define SUBJECT "process"
#include "posix.h"
#include <pthread.h>
#include <spawn.h>

extern char **environ;
static int fd;
static char number[16];

static int numbered(int flags)
{
    fd = ten(flags);
    snprintf(number, sizeof number, "%d", fd);
    return fd;
}

static void read_three(void *unused)
{
    char three[3];
    (void)unused;
    bytes(three, read(fd, three, 3));
}
CASE(an_offset_is_shared_with_a_child)
{
    numbered(O_RDONLY);
    in_child(read_three, NULL);
    say_offset(fd);
    read_three(NULL);
}
static void seek_seven(void *unused) { (void)unused, ret(lseek(fd, 7, SEEK_SET)); }
CASE(a_child_moves_the_offset_of_its_parent)
{
    numbered(O_RDONLY);
    in_child(seek_seven, NULL);
    say_offset(fd);
}
static void open_own(void *unused)
{
    char three[3];
    (void)unused;
    int own = open_file("f", O_RDONLY);
    bytes(three, read(own, three, 3));
}
CASE(a_file_opened_by_the_child_has_its_own_offset)
{
    numbered(O_RDONLY);
    in_child(open_own, NULL);
    say_offset(fd);
}
static void close_it(void *unused) { (void)unused, ret(close(fd)); }
CASE(a_child_closes_only_its_own)
{
    numbered(O_RDWR);
    in_child(close_it, NULL);
    ret(write(fd, "x", 1));
}
static void set_append(void *unused) { (void)unused, ret(fcntl(fd, F_SETFL, O_APPEND)); }
CASE(flags_are_shared_with_a_child)
{
    numbered(O_RDWR);
    in_child(set_append, NULL);
    say("%d", (fcntl(fd, F_GETFL) & O_APPEND) != 0);
    ret(write(fd, "end", 3));
    say_content("f");
}
static void cut_it(void *unused) { (void)unused, ret(ftruncate(fd, 4)); }
CASE(a_child_cuts_the_file)
{
    numbered(O_RDWR);
    in_child(cut_it, NULL);
    say_fd_size(fd);
    say_fd_content(fd);
}
static void write_lines(void *letter)
{
    char line[16];
    memset(line, *(char *)letter, sizeof line);
    for (int i = 0; i < 500; i++)
        need(write(fd, line, sizeof line));
}
static void count_lines(void)
{
    char line[16];
    int whole = 0, a = 0;
    int reader = open_file("f", O_RDONLY);
    while (read(reader, line, sizeof line) == sizeof line) {
        int same = 1;
        for (int i = 1; i < (int)sizeof line; i++)
            same &= line[i] == line[0];
        whole += same;
        a += same && line[0] == 'a';
    }
    say("%d whole lines, %d of a", whole, a);
    say_fd_size(reader);
}
CASE(two_processes_append_without_loss)
{
    need(close(new_file("f", O_RDWR, "")));
    fd = open_file("f", O_WRONLY | O_APPEND);
    pid_t one = child(write_lines, "a"), two = child(write_lines, "b");
    finish(one), finish(two);
    count_lines();
}
CASE(two_processes_write_at_one_offset_without_loss)
{
    fd = new_file("f", O_WRONLY, "");
    pid_t one = child(write_lines, "a"), two = child(write_lines, "b");
    finish(one), finish(two);
    count_lines();
}
static void open_and_append(void *letter)
{
    fd = open_file("f", O_WRONLY | O_APPEND);
    write_lines(letter);
}
CASE(two_processes_append_by_opens_of_their_own)
{
    need(close(new_file("f", O_RDWR, "")));
    pid_t one = child(open_and_append, "a"), two = child(open_and_append, "b");
    finish(one), finish(two);
    count_lines();
}
static void *thread_lines(void *letter)
{
    write_lines(letter);
    return NULL;
}
CASE(two_threads_write_at_one_offset_without_loss)
{
    pthread_t one, two;
    fd = new_file("f", O_WRONLY, "");
    pthread_create(&one, NULL, thread_lines, "a");
    pthread_create(&two, NULL, thread_lines, "b");
    pthread_join(one, NULL), pthread_join(two, NULL);
    count_lines();
}
CASE(a_descriptor_is_inherited_over_exec)
{
    numbered(O_RDWR);
    need(lseek(fd, 4, SEEK_SET));
    in_new_image("read", number, NULL);
    say_offset(fd);
}
CASE(a_new_image_writes_at_the_inherited_offset)
{
    numbered(O_RDWR);
    need(lseek(fd, 4, SEEK_SET));
    in_new_image("write", number, "exec", NULL);
    say_offset(fd);
    say_content("f");
}
CASE(a_new_image_keeps_the_access_mode)
{
    numbered(O_RDONLY);
    in_new_image("flags", number, NULL);
    in_new_image("write", number, "x", NULL);
}
CASE(a_new_image_keeps_append)
{
    numbered(O_WRONLY | O_APPEND);
    in_new_image("flags", number, NULL);
    in_new_image("write", number, "end", NULL);
    in_new_image("read", number, NULL);
    say_content("f");
}
CASE(a_new_image_moves_the_offset)
{
    numbered(O_RDWR);
    in_new_image("seek", number, "6", NULL);
    in_new_image("tell", number, NULL);
    say_offset(fd);
}
CASE(a_new_image_sees_size_and_truncates)
{
    numbered(O_RDWR);
    in_new_image("size", number, NULL);
    in_new_image("truncate", number, "5", NULL);
    say_fd_content(fd);
}
CASE(close_on_exec_closes)
{
    numbered(O_RDWR | O_CLOEXEC);
    in_new_image("read", number, NULL);
    need(fcntl(fd, F_SETFD, 0));
    in_new_image("read", number, NULL);
    need(fcntl(fd, F_SETFD, FD_CLOEXEC));
    in_new_image("read", number, NULL);
    in_new_image("size", number, NULL);
}
CASE(a_duplicate_survives_exec_without_the_first)
{
    numbered(O_RDWR | O_CLOEXEC);
    need(dup2(fd, 20));
    in_new_image("read", number, NULL);
    in_new_image("read", "20", NULL);
}
CASE(two_inherited_duplicates_share_the_offset)
{
    numbered(O_RDWR);
    need(dup2(fd, 20));
    in_new_image("write", number, "abc", NULL);
    in_new_image("write", "20", "def", NULL);
    say_content("f");
}
CASE(standard_input_from_a_file)
{
    numbered(O_RDONLY);
    need(dup2(fd, 0));
    in_new_image("read", "0", NULL);
}
CASE(a_shell_redirects_into_a_file)
{
    int status = system("echo from the shell >f && echo more >>f && wc -c <f >n");
    say("%d", WEXITSTATUS(status));
    say_size("f");
    say_size("n");
}
CASE(a_spawned_program_opens_a_file_by_action)
{
    pid_t pid;
    int status = -1;
    posix_spawn_file_actions_t actions;
    make_file("f", "old and long content");
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 1, "f", O_WRONLY | O_TRUNC, 0);
    char *words[] = {"echo", "spawned", NULL};
    err(posix_spawnp(&pid, "echo", &actions, NULL, words, environ));
    need(waitpid(pid, &status, 0));
    say("%d", WEXITSTATUS(status));
    say_size("f");
}
CASE(a_spawned_program_gets_a_duplicate)
{
    pid_t pid;
    int status;
    posix_spawn_file_actions_t actions;
    fd = new_file("f", O_RDWR, "");
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, fd, 1);
    char *words[] = {"echo", "spawned", NULL};
    err(posix_spawnp(&pid, "echo", &actions, NULL, words, environ));
    need(waitpid(pid, &status, 0));
    say("%d", WEXITSTATUS(status));
    say_size("f");
    ret(write(fd, "after", 5));
    say_size("f");
}
CASE(a_killed_child_keeps_what_it_wrote)
{
    numbered(O_RDWR);
    pid_t pid = need(fork());
    if (pid == 0) {
        need(pwrite(fd, "child", 5, 20));
        kill(getpid(), SIGKILL);
    }
    finish(pid);
    say_content("f");
}
CASE(a_child_of_vfork_leaves_the_parent_alone)
{
    numbered(O_RDWR);
    pid_t pid = vfork();
    if (pid == 0) {
        close(fd);
        _exit(0);
    }
    finish(pid);
    ret(write(fd, "x", 1));
    say_content("f");
}
static int child_in_our_memory(void *unused)
{
    (void)unused;
    close(fd);
    _exit(0);
}
CASE(a_child_of_clone_in_its_parents_memory_leaves_the_parent_alone)
{
    static char stack[1 << 16] __attribute__((aligned(16)));
    numbered(O_RDWR);
    pid_t pid = clone(child_in_our_memory, stack + sizeof stack, CLONE_VM | CLONE_VFORK | SIGCHLD, NULL);
    finish(pid);
    ret(write(fd, "x", 1));
    say_content("f");
}
CASE(a_child_of_vfork_may_close_while_other_files_are_opened_by_the_parent_later)
{
    numbered(O_RDWR);
    for (int i = 0; i < 3; i++) {
        pid_t pid = vfork();
        if (pid == 0) {
            close(fd);
            dup2(fd, 200);
            _exit(0);
        }
        finish(pid);
        int again = open("f", O_RDONLY);
        ret(again >= 0);
        ret(close(again));
        ret(fcntl(200, F_GETFD));
    }
    ret(write(fd, "x", 1));
    say_content("f");
}
