"""Streams of the C library on managed files: a table of small uses, and programs that read and write through them."""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
import sys
from pathlib import Path

import pytest
from rig import BIN, NATIVE, Maker, Store, execute, is_managed, stripewise

STDIO = NATIVE / "stdio"
FSTREAM = NATIVE / "fstream"

# Each runs in the managed directory under the library, and in a plain one without it. They read `numbers` and `words`,
# and may make what they like: all files, what they print and how they end must be the same.
TABLE = r"""
# md5sum reads standard input
md5sum < numbers
md5sum numbers
sha256sum - < words
# sort from and to
sort -rn < numbers > made
sort words > made2
sort -o words words
# awk
awk '{s += $1} END {print s, NR}' numbers > made
awk 'NR > 5 {print > "made2"}' words
awk 'END {print NR}' < words
# awk reads and appends
awk 'BEGIN {while ((getline l < "words") > 0) n++; print n >> "made"
close("made"); print n >> "made"}'
# seq
seq 30000 > made
seq 1000 >> made
seq 5 1>> made
# sed
sed -n '5,9p' words
sed 's/1/X/g' < numbers > made
sed -n '$=' numbers
sed -e 'w made2' words > /dev/null
# wc
wc numbers words
wc < numbers
# tee
seq 2000 | tee made made2 > made3
echo more | tee -a made
# paste, cut and join
paste words numbers > made
cut -d' ' -f1 < words > made2
paste - - < words | head -n 3
# split
split -l 7000 numbers part.
split -b 40000 numbers byte.
split -n 3 words third.
# grep
grep -c 7 numbers
grep -n 99 < numbers > made
grep -f made words
true
# uniq, tr, fold, nl, tac
tr 0-4 5-9 < numbers | uniq -c > made
fold -w 9 words > made2
nl < words | tail -n 2
tac words > made3
# od, cmp, comm, diff
od -c words | tail -n 3
cmp numbers words
comm words words | wc -l
diff words numbers | tail -n 1
# head and tail on shared input
(head -n 2 > made; cat > made2) < words
tail -n +5 < words > made3
tail -c 7 numbers
# printf and echo of bash
bash -c 'echo hi > made
printf "%s\n" a b >> made; cat made; echo over > made; cat made'
# read of bash
bash -c 'while read -r l; do echo "<$l>"; done < words > made
tail -n 2 made; mapfile -t a < words; echo ${#a[@]}'
# exec of bash
bash -c 'exec > made; echo a; ls -d .; echo b >&2; printf c; exec 2>&1; echo d >&2'
# bash goes back and forth
bash -c 'for i in 1 2 3; do echo to file $i >> made; echo to caller $i; done
(echo sub; echo sub2 >&2) > made2 2>&1'
# bash reads a file twice by one descriptor
bash -c 'exec 7< words; read a <&7; read b <&7; echo $a $b; cat <&7 | wc -l'
# here documents and substitutions
bash -c 'cat > made <<X
here $(wc -l < words)
X
diff <(sort words) <(sort words) && cat made'
# dash
dash -c 'echo x > made; read y < made; echo $y$y >> made; printf z >> made; cat < made'
# perl
perl -ne 'print if $. % 1000 == 0' numbers > made
perl -pe 's/1/I/' < words > made2
perl -i -pe 's/2/Z/' words
# standard input by name
cat /dev/stdin < words
awk 'END {print NR}' /dev/stdin < numbers
awk 'END {print NR}' /dev/fd/7 7< numbers
# standard output by name
awk 'BEGIN {print "by name" > "/dev/stdout"}' > made
seq 3 | tee /dev/stderr 2> made2
# xargs
xargs -n 2 echo < words > made
xargs -a words echo | wc -w
# a loop of the shell in a pipeline
while read a b; do echo $((a + 1)); done < numbers | tail -n 1 > made
# base64 there and back
base64 numbers > made
base64 -d < made > made2
cmp made2 numbers && echo same
# gzip
gzip -nc < numbers > made
gunzip < made > made2
cmp made2 numbers && echo same
# rev and column
rev words > made
rev < words | tail -n 1
column -t words > made2
"""
COMMANDS = {name: script for name, _, script in (part.partition("\n") for part in TABLE.split("\n# ")[1:])}
NEEDED = {"gzip": "gzip", "perl": "perl", "rev and column": "column", "dash": "dash"}


def fill(directory: Path) -> None:
    """The files that the commands read; to be copied through the library."""
    generator = random.Random(3)
    (directory / "numbers.src").write_text("".join(f"{generator.randrange(10**6)}\n" for _ in range(20_000)))
    (directory / "words.src").write_text("".join(f"word{n} {n * n}\n" for n in range(60)))


def contents(directory: Path, store: Store | None) -> dict[str, str]:
    """Every file's checksum, read through the library where the files are managed."""
    program = (
        "import hashlib, os\nfor n in sorted(os.listdir('.')): print(n, hashlib.md5(open(n, 'rb').read()).hexdigest())"
    )
    command = [sys.executable, "-c", program]
    result = (
        store.program("sh", "-c", f"cd '{directory}' && '{sys.executable}' -c \"{program}\"")
        if store
        else execute(command, cwd=directory)
    )
    return dict(line.rsplit(" ", 1) for line in result.out.splitlines())


@pytest.mark.parametrize("name", COMMANDS)
def test_a_program_does_the_same_on_managed_files(make_store: Maker, name: str) -> None:
    if name in NEEDED and shutil.which(NEEDED[name]) is None:
        pytest.skip(f"not run: {NEEDED[name]} is not installed")
    store = make_store(layout="uneven")
    fill(store.base)
    for directory in (store.plain, store.data):
        for file in ("numbers", "words"):
            store.program("dd", f"if={store.base / file}.src", f"of={directory / file}", "bs=64K")
    expected = execute(["bash", "-c", COMMANDS[name]], code=None, cwd=store.plain)
    got = store.program("bash", "-c", f"cd '{store.data}' || exit 99\n{COMMANDS[name]}", code=None)
    assert (got.code, got.out, got.err) == (expected.code, expected.out, expected.err), got.report
    assert is_managed(store.data / "numbers")
    assert contents(store.data, store) == contents(store.plain, None)
    made = [file for file in store.data.iterdir() if file.name.startswith("made")]
    assert all(is_managed(file) for file in made), made


@pytest.mark.parametrize("layout", ["one", "uneven"])
def test_small_uses_of_streams_give_the_same_transcript(make_store: Maker, layout: str) -> None:
    store = make_store(layout=layout)
    expected = execute([STDIO, store.plain])
    assert len(expected.out.splitlines()) > 150, expected.report
    for directory in (store.data, store.plain):
        got = store.program(STDIO, directory)
        wrong = [
            f"{a!r} is {b!r}" for a, b in zip(expected.out.splitlines(), got.out.splitlines(), strict=False) if a != b
        ]
        assert got.out == expected.out and got.err == expected.err, "\n".join(wrong) or got.report


def test_a_traced_run_records_what_streams_of_plain_files_move(make_store: Maker) -> None:
    store = make_store(layout="one")
    expected = execute([STDIO, store.plain, "moves_large_pieces"])
    trace = store.base / "trace"
    got = stripewise("run", "--trace", trace, "--", STDIO, store.plain, "moves_large_pieces")
    assert got.out == expected.out, got.report
    # The program reads its 3 MB file seven times over, in large pieces and small ones: each of them is a record.
    said = json.loads(stripewise("collect", trace, "--json").out)
    assert said["records"] > 20, said


def test_cpp_streams_give_the_same_transcript(make_store: Maker) -> None:
    if not FSTREAM.exists():
        pytest.skip(
            "not run: no C++ compiler when the tests were built; the C library's part is test_small_uses_of_streams"
        )
    store = make_store(layout="uneven")
    expected = execute([FSTREAM, store.plain])
    assert store.program(FSTREAM, store.data).out == expected.out
    assert store.program(FSTREAM, store.plain).out == expected.out
    script = (
        f"cd '{store.data}' && seq 20000 > s && {FSTREAM} --copy < s > t 2> u"
        f" && {FSTREAM} --copy unsynced < s > v 2>> u && cmp s t && cmp s v && cat u"
        f" && {FSTREAM} --write 20001 w && tail -n 1 w"
    )
    assert store.program("bash", "-c", script).out == "20000 lines\n20000 lines\n20000\n"


def test_numpy_writes_and_reads_raw_files(make_store: Maker) -> None:
    store = make_store(layout="uneven")
    program = (
        "import numpy, sys, os\n"
        "a = numpy.arange(400_000, dtype='f8')\n"
        "a.tofile(sys.argv[1])\n"
        "assert os.path.getsize(sys.argv[1]) == a.nbytes\n"
        "assert (numpy.fromfile(sys.argv[1]) == a).all()\n"
        "assert (numpy.fromfile(sys.argv[1], count=10, offset=800) == a[100:110]).all()\n"
        "with open(sys.argv[1], 'r+b') as f:\n"
        "    f.seek(80); a[:5].tofile(f); assert f.tell() == 120\n"
        "    assert (numpy.fromfile(f, count=3) == a[15:18]).all() and f.tell() == 144\n"
        "numpy.arange(5).tofile(sys.argv[1] + '.txt', sep=' ')\n"
        "assert open(sys.argv[1] + '.txt').read() == '0 1 2 3 4'\n"
        "assert numpy.fromfile(sys.argv[1] + '.txt', sep=' ').sum() == 10\n"
        "numpy.savetxt(sys.argv[1] + '.csv', a[:9]); assert numpy.loadtxt(sys.argv[1] + '.csv').sum() == 36\n"
    )
    store.run(BIN / "python", "-c", program, store.data / "f")


def test_python_text_streams_are_what_they_were(make_store: Maker) -> None:
    store = make_store(layout="striped")
    file = store.data / "f"
    program = "import sys; print('out'); print('err', file=sys.stderr); print(input())"
    store.program(
        "bash", "-c", f"printf 'in\\n' > {file}.in; {sys.executable} -c \"{program}\" < {file}.in > {file} 2>&1"
    )
    assert sorted(store.program("cat", file).out.split()) == ["err", "in", "out"]


def test_temporary_files_beside_managed_ones_are_managed(make_store: Maker) -> None:
    store = make_store(layout="striped")
    file = store.data / "f"
    store.program("bash", "-c", f"seq 100 > {file}; sed -i s/1/one/ {file}")
    assert is_managed(file) and store.program("head", "-n", "1", file).out == "one\n"
    assert len(store.files()) == 1, "sed left its temporary file, or the old one, in the store"


def test_what_a_killed_writer_had_flushed_is_there(make_store: Maker) -> None:
    store = make_store(layout="striped")
    file = store.data / "f"
    store.program("bash", "-c", f"exec > {file}; for i in 1 2 3; do echo $i; done; kill -9 $$", code=-9)
    assert store.program("cat", file).out == "1\n2\n3\n"


def test_many_processes_append_whole_lines(make_store: Maker) -> None:
    store = make_store(layout="uneven")
    file = store.data / "f"
    one = f"for i in $(seq 60); do echo $0 $i >> {file}; done"
    store.program("bash", "-c", f"for p in 1 2 3 4; do bash -c '{one}' $p & done; wait")
    lines = store.program("cat", file).out.splitlines()
    assert sorted(lines) == sorted(f"{p} {i}" for p in range(1, 5) for i in range(1, 61))


def test_a_full_target_is_told_to_the_program(make_store: Maker) -> None:
    store = make_store(layout="striped")
    file = store.data / "f"
    # RLIMIT_FSIZE stands for the full target: a stream's write fails half way.
    result = store.program("bash", "-c", f"trap '' XFSZ; ulimit -f 64; seq 1000000 > {file}", code=None)
    assert result.code == 1 and "File too large" in result.err, result.report
    kept = store.program("cat", file).out
    whole = hashlib.md5("".join(f"{n}\n" for n in range(1, 1_000_001)).encode()[: len(kept)]).hexdigest()
    assert len(kept) >= 65536 and hashlib.md5(kept.encode()).hexdigest() == whole


def test_a_stream_of_a_foreign_file_leaves_the_head_alone(make_store: Maker) -> None:
    store = make_store(layout="striped")
    store.program("bash", "-c", f"seq 5000 > {store.data / 'f'}; sort -r < {store.data / 'f'} > {store.data / 'g'}")
    for head in store.root.glob("files/*/head"):
        assert head.stat().st_blocks == 0, f"{os.fspath(head)} holds data"
