/* Directories that hold managed files: their entries, by every call that reads or walks them. */
#include "transcript.h"

static int by_name(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }
static char *lines[64];
static int count;
static void note(const char *form, ...)
{
    va_list ap;
    va_start(ap, form);
    if (count < 64 && vasprintf(&lines[count], form, ap) >= 0)
        count++;
    va_end(ap);
}
static void sorted(const char *what)
{
    qsort(lines, (size_t)count, sizeof *lines, by_name);
    printf("-- %s\n", what);
    for (int i = 0; i < count; i++)
        puts(lines[i]);
    count = 0;
}
static int inode_fits(int at, const char *name, ino_t ino)
{
    struct stat st;
    return fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && (st.st_ino == ino || S_ISDIR(st.st_mode));
}
static int ftw_step(const char *path, const struct stat *st, int type) { return note("%s %d %ld", path, type, S_ISREG(st->st_mode) ? (long)st->st_size : 0), 0; }
static int nftw_step(const char *path, const struct stat *st, int type, struct FTW *at)
{
    return note("%s %d %d %ld", path, type, at->level, S_ISREG(st->st_mode) ? (long)st->st_size : 0), 0;
}
static int regular(const struct dirent *e) { return e->d_type == DT_REG; }

void walks(void)
{
    char buffer[4096];
    struct dirent **list;
    struct dirent *e;
    DIR *dir;
    puts("== walks");
    mkdir("w", 0755);
    mkdir("w/sub", 0755);
    make("w/f", "12345");
    make("w/sub/g", "123");
    SAY(symlink("f", "w/s"));
    SAY(symlink("none", "w/broken"));
    dir = opendir("w");
    while ((e = readdir(dir)))
        note("%s %d %d", e->d_name, e->d_type, inode_fits(dirfd(dir), e->d_name, e->d_ino));
    sorted("readdir");
    rewinddir(dir);
    for (ssize_t n; (n = getdents64(dirfd(dir), buffer, sizeof buffer)) > 0;)
        for (char *at = buffer; at < buffer + n; at += ((struct dirent64 *)at)->d_reclen) {
            struct dirent64 *d = (struct dirent64 *)at;
            note("%s %d %d", d->d_name, d->d_type, inode_fits(dirfd(dir), d->d_name, d->d_ino));
        }
    sorted("getdents64");
    closedir(dir);
    int n = scandir("w", &list, regular, alphasort);
    printf("scandir %d\n", n);
    for (int i = 0; i < n; i++)
        puts(list[i]->d_name);
    SAY(scandir("none", &list, NULL, NULL));
    SAY(ftw("w", ftw_step, 8));
    sorted("ftw");
    SAY(nftw("w", nftw_step, 8, FTW_PHYS));
    sorted("nftw");
    SAY(nftw("w", nftw_step, 8, FTW_PHYS | FTW_CHDIR | FTW_DEPTH));
    sorted("nftw, changing directory");
    SAY(nftw("w", nftw_step, 8, 0));
    sorted("nftw, following links");
    for (int how = 0; how < 2; how++) {
        char *roots[] = {"w", NULL};
        FTS *walk = fts_open(roots, how ? FTS_LOGICAL | FTS_NOCHDIR : FTS_PHYSICAL, NULL);
        for (FTSENT *at; (at = fts_read(walk));)
            note("%s %d %ld", at->fts_path, at->fts_info, at->fts_info == FTS_F ? (long)at->fts_statp->st_size : 0);
        sorted(how ? "fts, following links" : "fts");
        fts_close(walk);
    }
    SAY(unlink("w/f") | unlink("w/s") | unlink("w/broken") | unlink("w/sub/g") | rmdir("w/sub") | rmdir("w"));
}
