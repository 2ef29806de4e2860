/* What the laws of rivals are told with. */
#ifndef RIVALS_H
#define RIVALS_H
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* Where files are made. */
extern const char *dir;

/* Prints whether a law holds. */
void law(int holds, const char *text);
/* Ends the program where a call failed that the test needs. */
int must(int r, const char *what);

void closers(void);
void names(void);
#endif
