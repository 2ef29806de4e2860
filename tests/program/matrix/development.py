"""What a programmer does in a directory: git, compilers, make, and running what was built."""

from __future__ import annotations

from .case import Case

HELLO = """
cat > part.h <<X
int part(int);
X
cat > part.c <<X
#include "part.h"
int part(int x) { return x * 3; }
X
cat > main.c <<X
#include <stdio.h>
#include "part.h"
int main(void) { printf("%d\\n", part(14)); return 0; }
X
"""

CASES = [
    Case(
        name="git",
        job="init, add, commit, status, log, diff, branch, merge, gc, fsck, clone",
        needs=("git",),
        script="""
git config --global user.name me; git config --global user.email me@example.org
git config --global init.defaultBranch main; git config --global gc.auto 0
git init -q .; cp -r "$S/tree" tree; cp "$S/text" text; git add .; git commit -q -m first; git status --short
echo more >> text; git diff --stat; git commit -q -a -m second; git log --oneline
git checkout -q -b side HEAD~1; echo side > side; git add side; git commit -q -m side; git checkout -q main
git merge -q -m merge side; git log --format='%H %s'; git fsck --full 2>&1; git gc -q; git fsck --full 2>&1
git count-objects | cut -d ' ' -f 1
git status --short; git clone -q . clone; git -C clone log --format=%H | md5sum; git stash list; git mv side moved
git commit -q -m moved; git rm -q -r tree; git commit -q -m removed; git checkout -q HEAD~1 -- tree
git reset -q --hard; git archive HEAD | tar -t | wc -l; git cat-file -s HEAD:text; git blame text | wc -l
git tag v1; git describe --tags; git show-ref | md5sum; git status --short
""",
        volatile=(".git/*", "clone/.git/*"),
        remark="contents of .git are judged by git fsck and the commit ids",
    ),
    Case(
        name="gcc",
        job="compile, link, static and shared libraries, run from a plain directory",
        needs=("gcc",),
        script=HELLO
        + """
gcc -O1 -g -c part.c main.c; gcc -o "$T/a" part.o main.o; "$T/a"; ar rcs libpart.a part.o; ranlib libpart.a
ar t libpart.a; gcc -o b main.o -L. -lpart; cp b "$T/b"; "$T/b"; nm libpart.a | grep -c ' T '
gcc -fPIC -shared -o "$T/libp.so" part.c; gcc -pipe -save-temps -o c main.c part.c
size c | awk 'NR == 2 {print NF}'; strip -o d c; objcopy --strip-debug b e; readelf -h b | grep Type
objdump -d part.o | grep -c ret; gcc -MMD -c main.c; cat main.d; gcc -E main.c | grep -c part
echo 'int main(void){return 0;}' | gcc -x c -c -o f.o -; gcc -flto -O2 -o g part.c main.c; cp g "$T/g"; "$T/g"
g++ -x c++ -c -o h.o /dev/null
""",
        volatile=("*.o", "b", "c", "d", "e", "g", "*.a"),
    ),
    Case(
        name="gcc-run",
        job="run a program and load a library that lie in the directory",
        needs=("gcc",),
        script=HELLO
        + """
gcc -o a part.c main.c; ./a; printf '#!/bin/sh\\necho script $1\\n' > s; chmod +x s; ./s arg
gcc -fPIC -shared -o libpart.so part.c; gcc -o b main.c -L. -lpart; LD_LIBRARY_PATH=. ./b
find . -name a -exec {} \\;
""",
        volatile=("a", "b", "*.so"),
    ),
    Case(
        name="make",
        job="rules, dependencies by time, touch, parallel",
        needs=("make", "gcc"),
        script=HELLO
        + """
cat > Makefile <<X
all: prog data.sum
prog: main.o part.o ; gcc -o \\$@ main.o part.o
%.o: %.c part.h ; gcc -c \\$<
data.sum: part.c ; md5sum part.c > \\$@
clean: ; rm -f *.o prog data.sum
X
make -j2 -s; make -q all && echo made; touch -d 2030-01-01 part.h; make -n 2>/dev/null | sort
touch -d 2000-01-01 part.h; make -s -t; make clean; make -s prog; ls
""",
        volatile=("*.o", "prog"),
    ),
    Case(
        name="gcc-cpp",
        job="g++ with templates and precompiled headers",
        needs=("g++",),
        script="""
echo '#include <vector>' > all.h; echo '#include "all.h"
#include <iostream>
int main() { std::vector<int> v(7, 3); int s = 0; for (int x : v) s += x; std::cout << s << std::endl; }' > a.cpp
g++ -o "$T/a" a.cpp; "$T/a"; g++ -c a.cpp -o a.o; g++ a.o -o "$T/b"; "$T/b"
""",
        volatile=("*.o",),
    ),
    Case(
        name="strace",
        job="a traced child under the library",
        needs=("strace",),
        script='cp "$S/text" a; strace -o "$T/log" cat a | md5sum; test -s "$T/log"',
        heavy=True,
    ),
]
