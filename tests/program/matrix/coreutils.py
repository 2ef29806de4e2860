"""The tools that every script uses to copy, read, cut and name files."""

from __future__ import annotations

from .case import Case

CASES = [
    Case(
        name="cp",
        job="copy in, within, and out; over a longer file; recursively",
        needs=("cp",),
        script="""
cp "$S/random" a; cp a b; cp --sparse=always "$S/sparse" c; cp c d
cp "$S/text" b; cp b "$T/out"; cmp "$T/out" "$S/text"
cp -r "$S/tree" tree; cp -a tree again; cp -p tree/run.sh run; cp -u a b; cp --remove-destination a d
cp --reflink=auto a e; cp -n "$S/text" e; cp -L tree/pointer f; cp -b "$S/text" a
""",
    ),
    Case(
        name="cp-reflink-always",
        job="cp --reflink=always",
        needs=("cp",),
        script="""
printf x > a
if cp --reflink=always a b 2>err; then rm -f b err; echo cloned or refused; else grep -q "failed to clone" err
rm -f b err; echo cloned or refused; fi
""",
        remark="a file system without reflinks says the same",
    ),
    Case(
        name="cat",
        job="concatenate, append, standard streams",
        needs=("cat",),
        script="""
cat "$S/text" "$S/random" > a; cat a | md5sum; cat < a | cksum; cat a a > b; cat "$S/text" >> b
cat - a < "$S/text" > c; cat -n "$S/text" | tail -1; cat > d <<X
here
X
cat /dev/null > e; : > f; cat b c d e f | md5sum
""",
    ),
    Case(
        name="dd",
        job="blocks, seek, skip, conv=notrunc,fsync,sparse, oflag=append",
        needs=("dd",),
        script="""
dd if="$S/random" of=a bs=100001 2>/dev/null; dd if=a of=b bs=4k skip=3 count=7 2>/dev/null
dd if="$S/text" of=a bs=777 seek=5 conv=notrunc 2>/dev/null
dd if="$S/text" of=b bs=1k oflag=append conv=notrunc 2>/dev/null
dd if=a of=c bs=64k conv=fsync 2>/dev/null; dd if=a of=d bs=64k conv=fdatasync oflag=sync 2>/dev/null
dd if="$S/sparse" of=e bs=64k conv=sparse 2>/dev/null; dd if=/dev/null of=f bs=1 seek=123456 2>/dev/null
dd if=a bs=1k iflag=skip_bytes,count_bytes skip=12345 count=54321 2>/dev/null | md5sum
dd < a > g ibs=1000 obs=3000 2>/dev/null; dd if=a of=h conv=swab,ucase bs=512 count=9 2>/dev/null
""",
    ),
    Case(
        name="dd-direct",
        job="oflag=direct, iflag=direct",
        needs=("dd",),
        script="""
dd if=/dev/zero of=a bs=64k count=9 oflag=direct 2>/dev/null
dd if="$S/random" of=b bs=64k iflag=fullblock count=8 oflag=direct 2>/dev/null
dd if=b of=c bs=16k iflag=direct 2>/dev/null; cmp b c
""",
        remark="O_DIRECT is accepted and ignored",
    ),
    Case(
        name="checksums",
        job="md5sum, sha256sum, b2sum, cksum, sum, by name and from standard input",
        needs=("md5sum",),
        script="""
cp "$S/random" a; cp "$S/text" b; : > empty
for tool in md5sum sha1sum sha256sum sha512sum b2sum cksum sum; do $tool a b empty; $tool < a; done
md5sum a b empty > sums; md5sum -c sums; sha256sum -c --quiet /dev/stdin <<X
$(sha256sum a)
X
printf 1 >> a; if md5sum -c --status sums; then echo unchanged; else echo changed; fi
""",
    ),
    Case(
        name="head-tail-wc",
        job="head, tail, wc, nl, tac, od, base64",
        needs=("head",),
        script="""
cp "$S/text" a; cp "$S/random" b
head -3 a; head -c 70001 b | md5sum; head -n -7990 a | md5sum; head -c -5 b | md5sum
tail -3 a; tail -c 12345 b | md5sum; tail -n +7990 a | md5sum; tail -c +99 b | md5sum; tail -n 2 < a
wc a b; wc -l < a; wc -c < b; nl a | tail -2; tac a | head -2; tac a > c
od -A d -t x1 -j 1000000 -N 64 b; od -c < b | md5sum; base64 b > d; base64 -d d | cmp - b
hexdump -C b 2>/dev/null | tail -1 || :
""",
    ),
    Case(
        name="tail-follow",
        job="tail -f of a file that another process extends",
        needs=("tail",),
        script="""
seq 5 > a; tail -n +1 -s 0.1 -f a > seen & follower=$!
(sleep 0.5; seq 6 10 >> a; sleep 1.5)
kill $follower; wait $follower || :; cat seen
""",
    ),
    Case(
        name="split",
        job="split, csplit, and together again",
        needs=("split",),
        script="""
cp "$S/random" a; split -b 123457 -d -a 3 a part.; cat part.* | cmp - a
cp "$S/text" t; split -l 1000 t lines.; cat lines.* | cmp - t; split -n 4 a quarter.; split -n l/3 t third.
csplit -s -f c. t 100 2000; cat c.* | cmp - t; split -b 1M --filter='md5sum > $FILE' a sum.
""",
    ),
    Case(
        name="tee",
        job="tee, tee -a into several files",
        needs=("tee",),
        script='cat "$S/text" | tee a b > c; echo more | tee -a a b >> c; cmp a b; cmp b c; tee d < a | md5sum',
    ),
    Case(
        name="compare",
        job="cmp, diff, diff -r, comm",
        needs=("diff",),
        script="""
cp "$S/text" a; cp a b; cmp a b; diff a b; sed 's/^77 /seventy-seven /' "$S/text" > b
diff a b || echo differs $?; diff -u --label a --label b a b || :; cmp a b || echo differs $?
cmp -l a b | wc -l || :
diff -q a b || :; cp -r "$S/tree" t; cp -r t u; diff -r t u; printf x >> u/run.sh; diff -r t u || echo $?
sort a > as; sort b > bs; comm -3 as bs; diff - b < a | md5sum; cmp "$S/text" a
""",
    ),
    Case(
        name="mv",
        job="within, over, into directories, in and out of the managed directory",
        needs=("mv",),
        script="""
seq 1000 > a; mv a b; seq 5 > c; mv -f c b; cat b; mkdir d; mv b d; mv d/b d/c; mv d e; cat e/c
cp "$S/random" f; mv f "$T/out"; cmp "$T/out" "$S/random"; mv "$T/out" back; cmp back "$S/random"
seq 3 > g; seq 4 > h; mv -n g h; wc -l h; mv -b g h; ls; mv -T e k; ls k
""",
    ),
    Case(
        name="ln",
        job="symbolic links, relative and to directories",
        needs=("ln",),
        script="""
seq 9 > a; ln -s a s; cat s; ln -s "$PWD/a" t; wc -l t; readlink s; ln -sf nowhere s; mkdir d; ln -s ../a d/u
cat d/u
echo more >> t; tail -1 a; realpath --relative-to=. d/u; readlink -f d/u | sed "s,^$D,,"; rm s t; test -L d/u
test ! -L a; test -f a
if readlink a; then echo link; else echo no link; fi
""",
    ),
    Case(
        name="ln-hard",
        job="hard links",
        needs=("ln",),
        script="""
seq 9 > a; ln a b; echo more >> b; tail -1 a; stat -c '%h %s' a b; rm a; cat b; ln b c; rm b; mv c d; cat d; rm d
""",
    ),
    Case(
        name="attributes",
        job="chmod, chown, touch, stat, install, umask",
        needs=("chmod",),
        version="chmod --version",
        script="""
cp "$S/text" a; chmod 600 a; stat -c '%a %s %F' a; chmod u+x,go+r a; stat -c '%a %A' a; chmod --reference=a "$T"
touch -d '2001-02-03 04:05:06.789 UTC' a; stat -c '%y %Y' a; touch -r a b; stat -c '%Y %s' b; touch -c none
touch -a -d @5 a; stat -c %X a
install -m 640 a c; stat -c '%a %s' c; install -D -m 755 "$S/tree/run.sh" x/y/run.sh; (umask 077; : > d)
stat -c %a d
chown "$(id -u):$(id -g)" a; stat -c '%U %G' a | sed "s/$(id -un)/me/g; s/$(id -gn)/me/g"; test -r a; test -w a
test -x a; test -s a; test ! -s d; test a -nt d || echo older; stat -L -c '%h %i' a | awk '{print $1}'
""",
    ),
    Case(
        name="truncate",
        job="truncate, fallocate, rm, unlink, shred, sync",
        needs=("truncate",),
        script="""
cp "$S/text" a; truncate -s 12345 a; md5sum a; truncate -s 300000 a; md5sum a; truncate -s +7 a
truncate -s %4096 a; stat -c %s a
truncate -r a b; stat -c %s b; truncate -s 0 b; fallocate -l 100000 c; stat -c %s c; md5sum c; sync a; sync -d b
sync
seq 9 > d; rm d; test ! -e d; seq 9 > e; unlink e; mkdir f; seq 9 > f/g; rm -r f; cp "$S/text" h; shred -n 1 -z h
md5sum h; shred -u h; ls
""",
    ),
    Case(
        name="listing",
        job="ls, du --apparent-size, stat, file types, globs",
        needs=("ls",),
        script="""
cp -r "$S/tree" t; cd t; ls -R; ls -l | awk 'NR > 1 && $1 !~ /^d/ {print $1, $5, $NF}'
ls -lS d0/e0 | awk 'NR > 1 {print $5, $9}'; ls -F .; ls -p d0/e0
du -ab --apparent-size d1 | grep -v '/e.$' | sort | grep -v 'd1$'; stat -c '%n %s %F %a' *; for f in d2/e2/*
do test -f "$f" && echo "$f"; done; file run.sh pointer 2>/dev/null || :
""",
    ),
    Case(
        name="sort",
        job="sort, by number, merge, in place, through temporary files; uniq, join, cut, paste, tr, shuf",
        needs=("sort",),
        script="""
cp "$S/numbers" a; sort a > b; sort -n a > c; sort -n -o a a; cmp a c; sort -n -S 64k -T . "$S/numbers" -o d
cmp c d; sort -m c d | uniq -d | wc -l
sort -r -k2,2 "$S/text" > e; sort -u -n < c | tail -1; sort -R --random-source="$S/random" c > f; sort -c -n c
sort -n --compress-program=gzip -S 64k -T . "$S/numbers" | cmp - c
cut -d ' ' -f 1-2 "$S/text" > g; sort g > h; sort "$S/text" > i; join h i | md5sum; paste c d | tail -1
tr 0-9 a-j < c > j; uniq -c j | tail -1; shuf --random-source="$S/random" c > k; comm -12 b b | wc -l
""",
    ),
]
