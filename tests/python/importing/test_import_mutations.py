"""Texts that were damaged by chance: each is read, or refused in one line that names its file; none hangs."""

from __future__ import annotations

import contextlib
import random
import time

import pytest

from imports import SOAK, mutated
from stripewise.errors import WorkloadError
from stripewise.importing.formats import FORMATS, import_trace
from stripewise.importing.records import Names, Notes
from test_import_csv import IOSIG, PATHS
from test_import_fio import V2, V3
from test_import_lanl import OPEN, REST
from test_import_strace import HEAD

STRACE = (
    HEAD
    + '9 2.0 write(3</d/f>, "abc"..., 100 <unfinished ...>\n8 2.1 getpid() = 8 <0.000001>\n'
    + "9 2.2 <... write resumed>) = 100 <0.000020>\n9 3.0 lseek(3</d/f>, 0, SEEK_END) = 100 <0.000001>\n"
    + "9 4.0 clone(child_stack=NULL, flags=CLONE_FILES|SIGCHLD) = 10 <0.000001>\n"
    + '10 4.5 preadv(3</d/f>, [{iov_base="a", iov_len=5}], 1, 10) = 5 <0.000001>\n'
    + '9 5.0 newfstatat(3</d/f>, "", {st_mode=S_IFREG|0644, st_size=500, ...}, AT_EMPTY_PATH) = 0 <0.000001>\n'
    + '9 6.0 rename("/d/f", "/d/g") = 0 <0.000001>\n9 6.5 dup2(3</d/g>, 5) = 5</d/g> <0.000001>\n'
    + "9 7.0 mmap(NULL, 4096, PROT_READ, MAP_SHARED, 3</d/g>, 0x1000) = 0x7f0000000000 <0.000001>\n"
    + "9 7.5 copy_file_range(3</d/g>, [0], 5</d/g>, NULL, 100, 0) = 100 <0.000001>\n"
    + '9 8.0 execve("/bin/x", ["x"], 0x7f /* 3 vars */) = 0 <0.000001>\n9 9.0 +++ exited with 0 +++\n'
)
CSV = (
    "rank,pid,layer,op,file,offset,requested,done,start_us,end_us,collective,aux\n"
    '0,10,posix,read,"/data/a ""b""",0,4096,4096,100,200,false,1\n1,11,mpi,mpi_write,/data/c,4096,10,10,150,250,yes,\n'
    "1,11,posix,open,/data/c,,0,3,1,2,,64\n"
)
TEXTS = {"csv": [CSV, IOSIG + PATHS], "strace": [STRACE], "lanl": [OPEN + REST], "fio": [V2, V3]}
COUNT = 10_000 if SOAK else 400
#: One damaged text of a page takes no more processor time.
SECONDS_MAX = 20


@pytest.mark.parametrize("name", sorted(TEXTS))
def test_a_damaged_text_is_read_or_refused_in_one_line(tmp_path, name):
    chance = random.Random(name)
    path, other = tmp_path / "trace.1", tmp_path / "paths"
    other.write_text(PATHS)
    read = refused = 0
    for number in range(COUNT):
        path.write_bytes(mutated(chance.choice(TEXTS[name]).encode(), chance))
        files = [path, other] if name == "csv" else [path]
        notes = Notes(lenient=bool(number % 2))
        began = time.process_time()
        try:
            if number % 20 < 2:
                import_trace(name, files, tmp_path / "out", notes.lenient)
            else:
                for batch in FORMATS[name].read(files, Names(tmp_path), notes):
                    assert (batch.rows["end_ns"] >= batch.rows["start_ns"]).all() and (batch.rows["offset"] >= 0).all()
            read += 1
        except WorkloadError as error:
            said = str(error)
            assert said.startswith((f"{path}: ", f"{other}: ")) and "\n" not in said and "; " in said, said
            refused += 1
        except BaseException as error:
            raise AssertionError(f"text {number}: {path.read_bytes()!r}") from error
        assert time.process_time() - began < SECONDS_MAX, path.read_bytes()
    assert read > COUNT // 10 and refused > COUNT // 10


@pytest.mark.parametrize(
    "bytes_",
    [
        b"\x1f\x8b\x08rest",
        b"BZh91AY",
        b"\xfd7zXZ\0",
        b"\x28\xb5\x2f\xfdrest",
        b"PK\x03\x04",
        b"\x7fELF\0\0",
        b"\xff\xfea\0",
    ],
    ids=["gzip", "bzip2", "xz", "zstd", "zip", "binary", "utf-16"],
)
@pytest.mark.parametrize("name", sorted(TEXTS))
def test_what_is_no_text_is_refused_in_one_line(tmp_path, name, bytes_):
    (tmp_path / "trace").write_bytes(bytes_)
    with pytest.raises(WorkloadError, match=r"is compressed|is binary|is UTF-16"):
        import_trace(name, [tmp_path / "trace"], tmp_path / "out", lenient=True)


@pytest.mark.parametrize("name", sorted(TEXTS))
def test_a_line_without_end_is_refused(tmp_path, name):
    (tmp_path / "trace").write_bytes(TEXTS[name][0].encode() + b"x" * (3 << 20) + b"\n")
    with pytest.raises(WorkloadError, match=r"is longer than 1,048,576 bytes"):
        import_trace(name, [tmp_path / "trace"], tmp_path / "out")


#: Lines that make a careless expression take for ever.
_LONG = [
    '9 1.0 write(3, "' + '\\"' * 200_000, "9 1.0 write(" + "3<" * 200_000, "9 1.0 write(" + "/*" * 200_000,
    "9 1.0 write(" + "(" * 200_000, "9 1.0 " + "a" * 500_000, "9 1.0 write(3<" + "->" * 200_000,
    "9 1.0 <... " + "a" * 500_000,
    "9 1.0 write(1) = 1" + " <0.1" * 100_000, "9 1.0 write(" + "<unfinished ...> " * 30_000,
    "9 1.0 +++" + " (core dumped)" * 9_000,
    "9 1.0 read(" + '""' * 200_000 + ") = 1", "9 " * 200_000, "[pid " + " " * 500_000,
]  # fmt: skip


@pytest.mark.parametrize("name", ["strace", "lanl"])
@pytest.mark.parametrize("number", range(len(_LONG)))
def test_a_line_of_half_a_megabyte_is_no_work(tmp_path, name, number):
    (tmp_path / "trace").write_text(HEAD + _LONG[number] + "\n")
    began = time.process_time()
    with contextlib.suppress(WorkloadError):
        import_trace(name, [tmp_path / "trace"], tmp_path / "out")
    assert time.process_time() - began < SECONDS_MAX
