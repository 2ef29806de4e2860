/*
 * names: what programs see of a file's name and attributes, as a transcript that must be the same on a managed and on a plain file.
 *
 * usage: names DIRECTORY
 * Works in DIRECTORY, which must be empty, and prints one line per fact. Nothing that differs from run to run is printed: no inode
 * numbers, no times but those it has set.
 */
#include "transcript.h"

static void show(const char *name)
{
    struct stat st;
    char text[64] = "";
    int fd;
    if (lstat(name, &st)) {
        printf("%s: %s\n", name, strerrorname_np(errno));
        return;
    }
    fd = open(name, O_RDONLY | O_NOFOLLOW);
    if (fd >= 0) {
        ssize_t n = read(fd, text, sizeof text - 1);
        text[n > 0 ? n : 0] = 0;
        close(fd);
    }
    printf("%s: mode %o links %ld size %ld uid %d gid %d blksize %ld \"%s\"\n", name, st.st_mode, (long)st.st_nlink, (long)st.st_size, (int)st.st_uid, (int)st.st_gid,
           (long)st.st_blksize, text);
}

static void times(const char *name)
{
    struct stat st;
    struct statx sx;
    if (stat(name, &st) || statx(AT_FDCWD, name, 0, STATX_BASIC_STATS | STATX_BTIME, &sx)) {
        say(name, -1);
        return;
    }
    printf("%s: mtime %ld.%09ld atime %ld.%09ld statx %lld.%09u nlink %u base %d\n", name, (long)st.st_mtim.tv_sec, st.st_mtim.tv_nsec, (long)st.st_atim.tv_sec, st.st_atim.tv_nsec,
           (long long)sx.stx_mtime.tv_sec, sx.stx_mtime.tv_nsec, sx.stx_nlink, (sx.stx_mask & STATX_BASIC_STATS) == STATX_BASIC_STATS);
}

static void links(void)
{
    char text[PATH_MAX];
    struct stat a, b;
    int fd, other;
    puts("== links");
    make("f", "one");
    SAY(readlink("f", text, sizeof text));
    SAY(readlinkat(AT_FDCWD, "f", text, sizeof text));
    fd = open("f", O_PATH | O_NOFOLLOW);
    SAY(readlinkat(fd, "", text, sizeof text));
    close(fd);
    SAY(symlink("f", "s"));
    SAY(symlink("sub/../s", "s2"));
    SAY(mkdir("sub", 0755));
    SAY(symlink("../s", "sub/s3"));
    SAY(symlink("sub", "dirlink"));
    SAY(readlink("s", text, 1));
    SAY_PATH(realpath("f", NULL));
    SAY_PATH(realpath("s2", text));
    SAY_PATH(canonicalize_file_name("dirlink/s3"));
    SAY_PATH(realpath("f/", NULL));
    SAY_PATH(realpath("f/x", NULL));
    SAY_PATH(realpath("none", NULL));
    SAY_PATH(realpath(".", NULL));
    show("f");
    SAY(link("f", "g"));
    show("g");
    SAY(linkat(AT_FDCWD, "s2", AT_FDCWD, "h", AT_SYMLINK_FOLLOW));
    show("h");
    SAY(linkat(AT_FDCWD, "s", AT_FDCWD, "s4", 0));
    SAY(readlink("s4", text, sizeof text));
    SAY(link("f", "g"));
    SAY(link("f", "f/x"));
    SAY(link("f/x", "y"));
    SAY(stat("f", &a) | stat("h", &b));
    printf("same inode %d, device %d\n", a.st_ino == b.st_ino, a.st_dev == b.st_dev);
    fd = open("g", O_RDWR);
    SAY(fstat(fd, &a));
    printf("links by descriptor %ld\n", (long)a.st_nlink);
    SAY(unlink("f"));
    SAY(fstat(fd, &a));
    printf("links by descriptor %ld\n", (long)a.st_nlink);
    show("g");
    SAY(write(fd, "two!", 4));
    show("h");
    make("plain", "replaced");
    other = open("plain", O_RDONLY);
    SAY(rename("h", "g"));
    show("h");
    show("g");
    SAY(unlink("h"));
    SAY(rename("g", "plain"));
    show("plain");
    SAY(fstat(other, &a));
    printf("links of the replaced one %ld\n", (long)a.st_nlink);
    SAY(read(other, text, 8));
    close(other);
    SAY(unlink("plain"));
    SAY(fstat(fd, &a));
    printf("links by descriptor %ld\n", (long)a.st_nlink);
    SAY(pread(fd, text, 4, 0));
    snprintf(text, sizeof text, "/proc/self/fd/%d", fd);
    SAY(linkat(AT_FDCWD, text, AT_FDCWD, "again", AT_SYMLINK_FOLLOW) == 0);
    show("again");
    close(fd);
    SAY(open("s", O_RDONLY));
    SAY(unlink("s") | unlink("s2") | unlink("sub/s3") | unlink("s4") | unlink("dirlink") | rmdir("sub"));
}

static void renames(void)
{
    puts("== renames");
    make("a", "aaa");
    make("b", "bb");
    SAY(renameat2(AT_FDCWD, "a", AT_FDCWD, "b", RENAME_NOREPLACE));
    SAY(renameat2(AT_FDCWD, "a", AT_FDCWD, "b", RENAME_EXCHANGE));
    show("a");
    show("b");
    SAY(rename("a", "a"));
    SAY(mkdir("d", 0755));
    SAY(rename("a", "d"));
    SAY(rename("d", "a"));
    SAY(rename("a", "d/a"));
    SAY(rename("d", "e"));
    show("e/a");
    SAY(rename("e/a", "b"));
    show("b");
    SAY(rename("b/x", "c"));
    SAY(rename("b", "b/x"));
    SAY(rename("b/", "c"));
    SAY(remove("b"));
    SAY(remove("e"));
    SAY(remove("b"));
}

static void directories(void)
{
    struct stat st;
    struct statvfs fs;
    DIR *dir;
    puts("== a file where a directory should be");
    make("f", "x");
    SAY(open("f/x", O_RDONLY));
    SAY(open("f/x", O_RDWR | O_CREAT, 0644));
    SAY(open("f/", O_RDONLY));
    SAY(open("f", O_RDONLY | O_DIRECTORY));
    SAY(open("f", O_RDWR | O_CREAT | O_EXCL, 0644));
    SAY(stat("f/x", &st));
    SAY(stat("f/", &st));
    SAY(lstat("f/x/y", &st));
    SAY(access("f/x", F_OK));
    SAY(unlink("f/x"));
    SAY(unlink("f/"));
    SAY(rmdir("f"));
    SAY(mkdir("f", 0755));
    SAY(mkdir("f/x", 0755));
    SAY(mknod("f", S_IFREG | 0644, 0));
    SAY(mkfifo("f/x", 0644));
    SAY(symlink("x", "f"));
    SAY(symlink("x", "f/x"));
    SAY(chdir("f"));
    SAY(chdir("f/x"));
    SAY(truncate("f/x", 0));
    SAY(chmod("f/x", 0644));
    SAY((dir = opendir("f")) != NULL);
    SAY(errno == ENOTDIR);
    SAY(statvfs("f", &fs));
    SAY(pathconf("f", _PC_NAME_MAX));
    SAY(pathconf("f", _PC_LINK_MAX) > 0);
    SAY(truncate("f", 10));
    show("f");
    SAY(unlink("f"));
}

static void modes(void)
{
    int fd, path;
    puts("== modes");
    umask(027);
    make("m", "mode");
    show("m");
    umask(0);
    fd = open("w", O_CREAT | O_RDWR | O_EXCL, 0404);
    SAY(write(fd, "abc", 3));
    SAY(ftruncate(fd, 2));
    SAY(fsync(fd));
    close(fd);
    show("w");
    SAY(close(open("x", O_CREAT | O_WRONLY | O_EXCL, 04751)));
    show("x");
    umask(022);
    SAY(chmod("m", 0600));
    show("m");
    SAY(chmod("m", 01755));
    show("m");
    SAY(fchmodat(AT_FDCWD, "m", 0640, 0));
    fd = open("m", O_RDONLY);
    path = open("m", O_PATH);
    SAY(fchmod(fd, 0604));
    SAY(fchmod(path, 0777));
    show("m");
    SAY(chown("m", -1, -1));
    SAY(lchown("m", -1, getgid()));
    SAY(fchown(fd, -1, -1));
    SAY(fchown(path, -1, -1));
    SAY(fchownat(path, "", getuid(), -1, AT_EMPTY_PATH));
    SAY(fchownat(AT_FDCWD, "m", -1, -1, AT_SYMLINK_NOFOLLOW));
    SAY(chown("none", 0, 0));
    SAY(chmod("none", 0));
    if (geteuid() == 0) {
        SAY(chown("m", 1234, 4321));
        show("m");
        SAY(fchown(fd, 0, 0));
        show("m");
    }
    SAY(faccessat(AT_FDCWD, "m", X_OK, 0));
    SAY(faccessat(AT_FDCWD, "m", X_OK, AT_SYMLINK_NOFOLLOW));
    SAY(faccessat(AT_FDCWD, "m", R_OK | W_OK, AT_EACCESS));
    SAY(euidaccess("m", X_OK));
    SAY(chmod("m", 0));
    char text[8];
    SAY(read(fd, text, 8));
    show("m");
    close(fd);
    close(path);
    SAY(unlink("m") | unlink("w") | unlink("x"));
}

static void clocks(void)
{
    struct timespec ns[2] = {{1000, 5}, {2000, 7}}, omit[2] = {{0, UTIME_OMIT}, {3000, 9}}, now[2] = {{0, UTIME_NOW}, {0, UTIME_OMIT}};
    struct timeval us[2] = {{11, 12}, {13, 14}}, bad[2] = {{0, 1000000}, {0, 0}};
    struct utimbuf s = {21, 22};
    struct stat st;
    int fd, path;
    puts("== times");
    make("t", "time");
    fd = open("t", O_RDWR);
    path = open("t", O_PATH);
    SAY(utimensat(AT_FDCWD, "t", ns, 0));
    times("t");
    SAY(utimensat(AT_FDCWD, "t", omit, AT_SYMLINK_NOFOLLOW));
    times("t");
    SAY(utimes("t", us));
    times("t");
    SAY(utimes("t", bad));
    SAY(lutimes("t", us));
    SAY(utime("t", &s));
    times("t");
    SAY(futimesat(AT_FDCWD, "t", us));
    SAY(futimes(fd, us));
    SAY(futimens(path, ns));
    SAY(futimens(fd, ns));
    times("t");
    SAY(utimensat(AT_FDCWD, "t", now, 0));
    SAY(stat("t", &st));
    printf("atime now %d, mtime %ld\n", st.st_atime > 1000000, (long)st.st_mtime);
    SAY(write(fd, "changed", 7));
    SAY(futimens(fd, ns));
    SAY(close(fd));
    times("t");
    fd = open("t", O_RDWR);
    SAY(close(fd));
    times("t");
    fd = open("t", O_RDWR);
    SAY(futimens(fd, ns));
    SAY(write(fd, "again", 5));
    SAY(stat("t", &st));
    printf("written later %d\n", st.st_mtime > 1000000);
    SAY(utime("t", NULL));
    close(fd);
    SAY(utimensat(AT_FDCWD, "t", ns, 0));
    fd = open("t", O_WRONLY | O_TRUNC);
    SAY(stat("t", &st));
    printf("truncated later %d\n", st.st_mtime > 1000000);
    SAY(utimensat(AT_FDCWD, "t", ns, 0));
    SAY(truncate("t", 100));
    SAY(stat("t", &st));
    printf("resized later %d\n", st.st_mtime > 1000000);
    close(fd);
    close(path);
    SAY(utimes("none", us));
    SAY(unlink("t"));
}

static void attributes(void)
{
    char v[64];
    int fd, path;
    puts("== extended attributes");
    make("f", "x");
    fd = open("f", O_RDWR);
    path = open("f", O_PATH);
    SAY(setxattr("f", "user.one", "1", 1, 0));
    SAY(lsetxattr("f", "user.two", "22", 2, XATTR_CREATE));
    SAY(setxattr("f", "user.two", "22", 2, XATTR_CREATE));
    SAY(fsetxattr(fd, "user.three", "333", 3, 0));
    SAY(fsetxattr(path, "user.three", "333", 3, 0));
    SAY(getxattr("f", "user.one", v, sizeof v));
    SAY(lgetxattr("f", "user.two", v, sizeof v));
    SAY(fgetxattr(fd, "user.three", v, sizeof v));
    SAY(fgetxattr(path, "user.three", v, sizeof v));
    SAY(getxattr("f", "user.three", v, 1));
    SAY(getxattr("f", "user.none", v, sizeof v));
    SAY(listxattr("f", v, sizeof v));
    SAY(llistxattr("f", NULL, 0));
    SAY(flistxattr(fd, v, sizeof v));
    SAY(removexattr("f", "user.one"));
    SAY(lremovexattr("f", "user.one"));
    SAY(fremovexattr(fd, "user.two"));
    SAY(listxattr("f", v, sizeof v));
    /* rw- for the owner, --- for user 1234 and so on: version 2, then tag, permissions, id. */
    static const unsigned char acl[] = {2, 0, 0, 0, 1, 0, 6, 0, 255, 255, 255, 255, 2, 0, 4, 0, 210, 4, 0, 0, 4, 0, 0, 0, 255, 255, 255, 255,
                                        16, 0, 4, 0, 255, 255, 255, 255, 32, 0, 0, 0, 255, 255, 255, 255};
    SAY(setxattr("f", "system.posix_acl_access", acl, sizeof acl, 0));
    show("f");
    SAY(getxattr("f", "system.posix_acl_access", v, sizeof v));
    SAY(chmod("f", 0600));
    show("f");
    SAY(removexattr("f", "system.posix_acl_access"));
    SAY(getxattr("f", "system.posix_acl_access", v, sizeof v));
    SAY(fsetxattr(fd, "system.posix_acl_access", acl, sizeof acl, 0));
    show("f");
    close(fd);
    close(path);
    SAY(unlink("f"));
}

static void watches(void)
{
    char buffer[4096];
    int fd, watch = inotify_init1(IN_NONBLOCK);
    puts("== watches");
    make("f", "x");
    SAY(inotify_add_watch(watch, "f", IN_CLOSE_WRITE));
    fd = open("f", O_WRONLY);
    close(fd);
    SAY(read(watch, buffer, sizeof buffer) > 0);
    close(watch);
    SAY(unlink("f"));
}

static void descriptors(void)
{
    char name[64], text[PATH_MAX];
    struct stat st;
    int fd;
    puts("== by descriptor");
    make("f", "x");
    fd = open("f", O_RDWR);
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    SAY_PATH(realpath(name, NULL));
    ssize_t n = readlink(name, text, sizeof text - 1);
    text[n > 0 ? n : 0] = 0;
    SAY_PATH(text);
    SAY(chmod(name, 0611));
    show("f");
    SAY(stat(name, &st));
    printf("mode %o size %ld\n", st.st_mode, (long)st.st_size);
    SAY(unlink("f"));
    SAY(chmod(name, 0600));
    n = readlink(name, text, sizeof text - 1);
    text[n > 0 ? n : 0] = 0;
    puts(n > 10 && strcmp(text + n - 10, " (deleted)") == 0 ? "deleted" : text);
    close(fd);
}

int main(int argc, char **argv)
{
    if (argc != 2 || chdir(argv[1]) || !getcwd(start, sizeof start)) {
        fprintf(stderr, "usage: names DIRECTORY\n");
        return 2;
    }
    umask(022);
    links();
    renames();
    directories();
    modes();
    clocks();
    attributes();
    walks();
    watches();
    descriptors();
    return 0;
}
