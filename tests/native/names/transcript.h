/* What the files of this program share: calls printed with their results, and small files to work on. */
#ifndef NAMES_TRANSCRIPT_H
#define NAMES_TRANSCRIPT_H
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <ftw.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/time.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <utime.h>

/* The directory of the run: paths below it are printed without it. */
extern char start[PATH_MAX];
void say(const char *what, long result);
void say_path(const char *what, const char *path);
#define SAY(call) (errno = 0, say(#call, (long)(call)))
#define SAY_PATH(call) (errno = 0, say_path(#call, call))
/* Makes a file that holds a text. */
void make(const char *name, const char *text);

/* Directories, read and walked in every way. */
void walks(void);
#endif
