/* Extended attributes: set, get, list, remove, by name and by descriptor. */
#define SUBJECT "xattr"
#include "posix.h"
#include <sys/xattr.h>

static char buf[1024];

CASE(a_value_is_set_and_got)
{
    make_file("f", "x");
    ret(setxattr("f", "user.colour", "green", 5, 0));
    bytes(buf, getxattr("f", "user.colour", buf, sizeof buf));
    ret(getxattr("f", "user.colour", NULL, 0));
    ret(getxattr("f", "user.colour", buf, 2));
}
CASE(a_value_is_set_and_got_by_descriptor)
{
    int fd = new_file("f", O_RDWR, "x");
    ret(fsetxattr(fd, "user.colour", "blue", 4, 0));
    bytes(buf, fgetxattr(fd, "user.colour", buf, sizeof buf));
    bytes(buf, getxattr("f", "user.colour", buf, sizeof buf));
    bytes(buf, fgetxattr(open_file("f", O_RDONLY), "user.colour", buf, sizeof buf));
}
CASE(a_value_is_got_without_following)
{
    make_file("f", "x");
    ret(lsetxattr("f", "user.colour", "red", 3, 0));
    bytes(buf, lgetxattr("f", "user.colour", buf, sizeof buf));
}
CASE(a_missing_attribute_is_an_error)
{
    make_file("f", "x");
    ret(getxattr("f", "user.none", buf, sizeof buf));
    ret(removexattr("f", "user.none"));
    ret(getxattr("none", "user.none", buf, sizeof buf));
}
CASE(creating_and_replacing_are_told_apart)
{
    make_file("f", "x");
    ret(setxattr("f", "user.a", "1", 1, XATTR_REPLACE));
    ret(setxattr("f", "user.a", "1", 1, XATTR_CREATE));
    ret(setxattr("f", "user.a", "2", 1, XATTR_CREATE));
    ret(setxattr("f", "user.a", "3", 1, XATTR_REPLACE));
    bytes(buf, getxattr("f", "user.a", buf, sizeof buf));
}
static void say_list(long n)
{
    if (n < 0)
        ret(n);
    else
        say("%ld bytes", n);
    for (char *at = buf; n > 0 && at < buf + n; at += strlen(at) + 1)
        if (strncmp(at, "user.", 5) == 0)
            say("%s", at);
}
CASE(attributes_are_listed)
{
    int fd = new_file("f", O_RDWR, "x");
    ret(setxattr("f", "user.a", "1", 1, 0));
    say_list(listxattr("f", buf, sizeof buf));
    say_list(flistxattr(fd, buf, sizeof buf));
    say_list(llistxattr("f", buf, sizeof buf));
}
CASE(attributes_are_removed)
{
    int fd = new_file("f", O_RDWR, "x");
    ret(setxattr("f", "user.a", "1", 1, 0));
    ret(setxattr("f", "user.b", "1", 1, 0));
    ret(removexattr("f", "user.a"));
    ret(fremovexattr(fd, "user.b"));
    say_list(listxattr("f", buf, sizeof buf));
}
CASE(attributes_survive_renaming)
{
    make_file("f", "x");
    ret(setxattr("f", "user.a", "kept", 4, 0));
    need(rename("f", "g"));
    bytes(buf, getxattr("g", "user.a", buf, sizeof buf));
}
CASE(an_unknown_namespace_is_refused)
{
    make_file("f", "x");
    ret(setxattr("f", "none.a", "1", 1, 0));
    ret(setxattr("f", "noname", "1", 1, 0));
}
CASE(nobody_sets_none_of_another)
{
    make_file("f", "x");
    if (!be_nobody())
        return;
    ret(setxattr("f", "user.a", "1", 1, 0));
    ret(getxattr("f", "user.a", buf, sizeof buf));
}
