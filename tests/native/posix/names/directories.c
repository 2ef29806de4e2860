/* Directories with files in them: reading, types of entries, walking, changing into, and what a file is not. */
#define SUBJECT "dir"
#include "posix.h"
#include <dirent.h>
#include <fts.h>
#include <ftw.h>
#include <glob.h>
#include <limits.h>

static int by_text(const void *a, const void *b) { return strcmp(a, b); }

static void say_entries(DIR *dir)
{
    char found[32][64];
    int count = 0;
    for (struct dirent *entry; (entry = readdir(dir)) != NULL && count < 32;)
        snprintf(found[count++], sizeof found[0], "%.40s:%d", entry->d_name, entry->d_type);
    qsort(found, (size_t)count, sizeof found[0], by_text);
    for (int i = 0; i < count; i++)
        say("%s", found[i]);
}

static void three_kinds(void)
{
    make_dir("d");
    make_file("f", "x");
    need(symlink("f", "l"));
}

CASE(entries_have_types)
{
    three_kinds();
    DIR *dir = opendir(".");
    say_entries(dir);
    ret(closedir(dir));
}
CASE(entries_by_descriptor_have_types)
{
    three_kinds();
    say_entries(fdopendir(open_file(".", O_RDONLY | O_DIRECTORY)));
}
CASE(entries_are_read_again_after_rewinding)
{
    three_kinds();
    DIR *dir = opendir(".");
    while (readdir(dir) != NULL)
        ;
    make_file("g", "x");
    rewinddir(dir);
    say_entries(dir);
}
CASE(an_entry_has_the_number_of_its_file)
{
    struct stat st;
    make_file("f", "x");
    stat_file("f", &st);
    DIR *dir = opendir(".");
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;)
        if (strcmp(entry->d_name, "f") == 0)
            say("%d", entry->d_ino == st.st_ino);
}
CASE(scandir_sorts)
{
    struct dirent **names;
    three_kinds();
    int n = scandir(".", &names, NULL, alphasort);
    for (int i = 0; i < n; i++)
        say("%s:%d", names[i]->d_name, names[i]->d_type);
}
static int walk_kind(const char *path, const struct stat *st, int flag, struct FTW *walk)
{
    (void)walk;
    if (strcmp(path, "./d") == 0 || flag != FTW_D)
        say("%s %d %ld", path, flag, flag == FTW_F ? (long)st->st_size : -1L);
    return 0;
}
CASE(a_walk_finds_files_and_their_sizes)
{
    make_dir("d");
    make_file("d/f", "12345");
    ret(nftw(".", walk_kind, 8, FTW_PHYS));
}
CASE(a_walk_that_follows_links_finds_files)
{
    make_dir("d");
    make_file("d/f", "12345");
    ret(nftw(".", walk_kind, 8, 0));
}
CASE(the_other_walk_finds_files)
{
    char *paths[] = {".", NULL};
    make_dir("d");
    make_file("d/f", "12345");
    FTS *fts = fts_open(paths, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
    for (FTSENT *entry; (entry = fts_read(fts)) != NULL;)
        say("%s %d %ld", entry->fts_path, entry->fts_info, entry->fts_info == FTS_F ? (long)entry->fts_statp->st_size : -1L);
}
CASE(patterns_match_files)
{
    glob_t found;
    make_file("a.dat", "x");
    make_file("b.dat", "x");
    make_dir("c.dat");
    ret(glob("*.dat", GLOB_MARK, NULL, &found));
    for (size_t i = 0; i < found.gl_pathc; i++)
        say("%s", found.gl_pathv[i]);
}
CASE(a_file_cannot_be_read_as_a_directory)
{
    make_file("f", "x");
    ret(opendir("f") == NULL ? -1 : 0);
    ret(fdopendir(open_file("f", O_RDONLY)) == NULL ? -1 : 0);
    ret(scandir("f", &(struct dirent **){NULL}, NULL, NULL));
}
CASE(a_file_cannot_be_entered)
{
    make_file("f", "x");
    ret(chdir("f"));
    ret(chdir("f/x"));
    ret(fchdir(open_file("f", O_RDONLY)));
    ret(chroot("f"));
}
CASE(a_file_cannot_become_a_directory)
{
    make_file("f", "x");
    ret(mkdir("f", 0755));
    ret(mkdir("f/d", 0755));
    ret(mknod("f", S_IFREG | 0644, 0));
    ret(mkfifo("f", 0644));
}
CASE(a_node_is_a_new_file)
{
    ret(mknod("f", S_IFREG | 0640, 0));
    say_mode("f");
    int fd = fd_ret(open("f", O_RDWR));
    ret(write(fd, "node", 4));
    say_content("f");
}
CASE(names_count_from_the_new_current_directory)
{
    make_dir("d");
    make_file("d/f", "in d");
    need(chdir("d"));
    say_content("f");
    make_file("g", "also");
    need(chdir(".."));
    say_content("d/g");
}
CASE(names_count_from_the_directory_of_a_descriptor)
{
    make_dir("d");
    make_file("d/f", "in d");
    need(fchdir(open_file("d", O_RDONLY | O_DIRECTORY)));
    say_content("f");
}
CASE(names_with_spaces_and_bytes_are_names)
{
    make_file("with space", "1");
    make_file("with\nline", "2");
    make_file("\xff\xfe", "3");
    make_file("-dash", "4");
    say_content("with space");
    say_content("with\nline");
    say_content("\xff\xfe");
    say_content("-dash");
    say_content("./-dash");
}
CASE(many_files_are_listed)
{
    char name[16];
    int count = 0;
    for (int i = 0; i < 60; i++) {
        snprintf(name, sizeof name, "f%02d", i);
        make_file(name, name);
    }
    DIR *dir = opendir(".");
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;)
        count += entry->d_type == DT_REG;
    say("%d", count);
}
