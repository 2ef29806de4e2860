"""Searching and editing: grep, sed, awk, perl, editors, find."""

from __future__ import annotations

from .case import Case, Refusal

CASES = [
    Case(
        name="grep",
        job="one file, several, recursive, binary, from standard input",
        needs=("grep",),
        script="""
cp "$S/text" a; cp "$S/random" b; cp -r "$S/tree" t
grep -c stripe a; grep -n 'hint track' a | head -3; grep -v region a | md5sum
grep -o 'w[a-z]*' a | sort | uniq -c; grep -l -r ran t; grep -c . < a
grep -a -c x b; grep -F -x -f a a | wc -l; grep -q nothing a || echo none; grep -L stripe a t/run.sh
grep -E -A1 -B1 '^77 ' a; grep -z -c . b; grep stripe a b || :
""",
    ),
    Case(
        name="sed",
        job="sed, sed -i, with backup, w files",
        needs=("sed",),
        script="""
cp "$S/text" a; sed 's/stripe/STRIPE/g' a > b; sed -i 's/region/REGION/2' a; sed -i.old -e '1,10d' -e '$a end' a
sed -n '/hint/w c' a; sed -s -i '1i first' a b
chmod 640 b; sed -i 5d b; stat -c %a b; sed -n '$=' a b; sed --follow-symlinks -i 1d a
""",
    ),
    Case(
        name="awk",
        job="awk reading and writing files and pipes",
        needs=("awk",),
        version="awk -W version </dev/null || awk --version",
        script="""
cp "$S/text" a; awk '{ n[$2]++ } END { for (w in n) print w, n[w] }' a | sort; awk '{ print > ("out." NR % 3) }' a
awk 'NR % 100 == 0' a > b
awk 'BEGIN { while ((getline line < "a") > 0) k++; print k; close("a"); print "x" >> "b"; close("b")
    "wc -l < b" | getline c; print c }'
awk '{ print $1 | "sort -rn > sorted" }' a; head -2 sorted; awk 'BEGIN { printf "%s", "no newline" > "c" }'
awk '{s += $1} END {print s}' < a
""",
    ),
    Case(
        name="gawk",
        job="gawk reading and writing",
        needs=("gawk",),
        script="""
cp "$S/text" a; gawk '{ print > ("out." NR % 4); n += length($0) } END { print n }' a
wc -l a; gawk 'BEGIN { RS = "" } { print NR, NF }' a
gawk 'ENDFILE { print FILENAME, FNR }' out.*; gawk '{ s += $1 } END { print s }' < a
""",
    ),
    Case(
        name="gawk-inplace",
        job="gawk -i inplace",
        needs=("gawk",),
        script="""
cp "$S/text" a; gawk -i inplace 'NR % 2' a && wc -l a
""",
        refused=Refusal(
            "Bad file descriptor",
            "gawk keeps a copy of the pointer stdout and leads descriptor 1 elsewhere afterwards; the old file stays",
        ),
    ),
    Case(
        name="perl",
        sources=("files.pl",),
        job="perl -i, open modes, seek, -s, rename, opendir, File::Copy, sysopen, flock",
        needs=("perl",),
        version="perl -v",
        script=r"""
cp "$S/text" a; perl -pi -e 's/stripe/bar/g' a; perl -pi.bak -e '$_ = "" if $. > 5000' a
perl -ne 'END { print "$.\n" }' a
perl "$W/files.pl"
""",
    ),
    Case(
        name="vim",
        job="vim -es: edit, write, backup and swap files in the directory",
        needs=("vim",),
        script="""
cp "$S/text" a
vim -u NONE -es -c 'set backup swapfile directory=. backupdir=.' -c '%s/stripe/bar/ge' -c '1,10d' -c 'w' \\
    -c 'w! b' -c 'q' a < /dev/null || echo exit $?
vim -u NONE -es -c '$put =\\"last\\"' -c 'wq' b < /dev/null || echo exit $?
vim -u NONE -es -c 'r b' -c 'w new' -c 'qa!' < /dev/null || echo exit $?
wc -l a b new; ls -a
""",
    ),
    Case(
        name="vim-tiny",
        job="vim.tiny -es: edit and write",
        needs=("vim.tiny",),
        script="""
cp "$S/text" a; vim.tiny -u NONE -es -c '%s/region/REGION/e' -c '2d' -c 'wq' a < /dev/null || echo exit $?
wc -l a; ls -a
""",
    ),
    Case(
        name="patch",
        job="diff | patch, in place and with backup",
        needs=("patch",),
        script="""
cp "$S/text" a; sed '5d; 100s/$/ more/; 7000i new' a > b; diff -u a b > c || :; cp a d; patch -s d c; cmp d b
patch -s -R d < c; cmp d a; patch -s -b a c; cmp a b; ls
""",
        volatile=("c",),
    ),
    Case(
        name="find",
        job="find -type f, -newer, -size, -empty, -perm, -exec, -delete, -printf; xargs",
        needs=("find",),
        script="""
cp -r "$S/tree" t; cp -a "$S/tree" u; : > marker; touch -d '2030-01-01 UTC' t/run.sh
find t -type f | sort; find t -type l; find t -type d | wc -l; find . -newer marker -type f
find t -size +8k | sort; find t -type f -empty | sort; find t -perm -100 -type f
find t -type f -printf '%p %s %y %m\n' | sort | md5sum; find t -name '*.dat' -exec cat {} + | wc -c
find u -type f -printf '%T@\n' | sort -n | md5sum; find t -type f -print0 | sort -z | xargs -0 md5sum | md5sum
find u -type f -size -2 -delete; find u -type f | sort; find t -samefile t/run.sh
find t -maxdepth 1 -links 1 -type f; find t -type f -readable -writable | wc -l
""",
    ),
    Case(
        name="shell",
        job="redirections, here documents, read loops, test, source",
        needs=("sh",),
        version="dpkg-query -W -f '${Version}' dash 2>/dev/null || echo 0.0",
        script="""
exec 3> a; echo one >&3; echo two >&3; exec 3>&-; while read -r line; do echo "got $line"; done < a
exec 4<> b; echo hello >&4; exec 4>&-; cat b; { echo x; echo y; } > c; (echo z) >> c; wc -l < c
echo 'v=5; echo sourced $v' > d; . ./d; set -C; (echo no > c) 2>/dev/null || echo noclobber; set +C
n=0; while read -r x rest; do n=$((n + x)); done < "$S/text"; echo $n; printf '#!/bin/sh\necho script $0 $1\n' > e
sh e arg; sh < e; seq 100 | while read -r i; do echo $i >> f; done; tail -1 f; cat < a > g 2> h
sh -c 'echo err >&2; echo out' > i 2>&1; cat i; read -r first < a; echo $first; echo "$(cat c)"; : > a
test ! -s a
""",
    ),
    Case(
        name="bash",
        job="bash: redirections, mapfile, $(<file), process substitution, [[ ]]",
        needs=("bash",),
        script="""
cat > "$T/s" <<'X'
cp "$S/text" a; mapfile -t lines < a; echo ${#lines[@]}; x=$(<a); echo ${#x}
diff <(sort a) <(sort a) && echo equal; [[ -f a && -s a && ! -L a ]] && echo file
exec {fd}> b; echo hi >&$fd; exec {fd}>&-; read -r -u 5 word 5< b; echo $word; coproc cat; echo co >&${COPROC[1]}
read -r y <&${COPROC[0]}; echo $y > c; shopt -s globstar; printf '%s\\n' **; cat <<< string > d
{ time true; } 2> /dev/null; set -o noclobber; echo no > b; echo $?
X
bash "$T/s" 2>/dev/null
""",
    ),
]
