"""strace's text: halves of calls, descriptors and positions over dup, fork and threads, and real programs."""

from __future__ import annotations

import shutil
import subprocess
import sys

import pytest

from imports import brief, imported, rows_of
from stripewise.errors import WorkloadError
from stripewise.importing.formats import import_trace
from stripewise.importing.strace.syntax import parse_call, unescaped

needs_strace = pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace")
HEAD = '9 1.0 openat(AT_FDCWD</d>, "f", O_RDWR|O_CREAT|O_TRUNC, 0644) = 3</d/f> <0.000010>\n'


def data(rows):
    return brief([row for row in rows if row["op"] in ("read", "write")], "op", "file", "fd", "offset", "done")


def test_reads_and_writes_stand_at_the_position_of_their_descriptor(tmp_path):
    text = (
        HEAD
        + '9 2.0 write(3</d/f>, "abc"..., 100) = 100 <0.000020>\n'
        + '9 3.0 pwrite64(3</d/f>, "x", 10, 1000) = 10 <0.000001>\n'
        + '9 4.0 write(3</d/f>, "abc"..., 100) = 60 <0.000001>\n'
        + "9 5.0 lseek(3</d/f>, 16, SEEK_SET) = 16 <0.000001>\n"
        + '9 6.0 readv(3</d/f>, [{iov_base="a", iov_len=5}, {iov_base="b", iov_len=6}], 2) = 11 <0.000001>\n'
        + '9 7.0 read(3</d/f>, "", 5) = 0 <0.000001>\n'
        + "9 8.0 close(3</d/f>) = 0 <0.000001>\n9 9.0 +++ exited with 3 +++\n"
    )
    meta, rows = imported(tmp_path, "strace", text)
    assert data(rows) == [
        ("write", "/d/f", 3, 0, 100), ("write", "/d/f", 3, 1000, 10), ("write", "/d/f", 3, 100, 60),
        ("read", "/d/f", 3, 16, 11), ("read", "/d/f", 3, 27, 0),
    ]  # fmt: skip
    assert brief(rows, "op", "start_ns", "end_ns")[:2] == [
        ("open", 0, 10_000), ("write", 1_000_000_000, 1_000_020_000),
    ]  # fmt: skip
    assert rows[5]["requested"] == 11 and rows[-1]["op"] == "exit" and rows[-1]["aux"] == 3
    assert meta["zero_unix_ns"] == 10**9 and meta["partial"] == []


def test_halves_of_calls_are_put_together_by_pid(tmp_path):
    text = (
        HEAD
        + "8 1.5 futex(0x55, FUTEX_WAIT_PRIVATE, 2, NULL <unfinished ...>\n"
        + '9 2.0 write(3</d/f>, "abc", 3 <unfinished ...>\n8 2.1 <... futex resumed>) = 0 <0.600000>\n'
        + "9 2.2 <... write resumed>) = 3 <0.150000>\n9 2.3 read(3</d/f>,  <unfinished ...>\n"
        + '8 2.35 getpid() = 8 <0.000001>\n9 2.4 <... read resumed>"", 77) = 0 <0.000001>\n'
    )
    _, rows = imported(tmp_path, "strace", text)
    assert data(rows) == [("write", "/d/f", 3, 0, 3), ("read", "/d/f", 3, 3, 0)]
    assert rows[1]["end_ns"] - rows[1]["start_ns"] == 150_000_000 and rows[2]["requested"] == 77


def test_forks_share_positions_and_threads_descriptors(tmp_path):
    text = (
        HEAD
        + "9 2.0 clone(child_stack=NULL, flags=CLONE_CHILD_SETTID|SIGCHLD <unfinished ...>\n"
        + '10 2.1 write(3</d/f>, "child", 5) = 5 <0.000001>\n'
        + "9 2.2 <... clone resumed>, child_tidptr=0x7f) = 10 <0.000100>\n"
        + "10 2.3 close(3</d/f>) = 0 <0.000001>\n"
        + '9 2.4 write(3</d/f>, "parent", 6) = 6 <0.000001>\n'
        + "9 2.5 clone3({flags=CLONE_VM|CLONE_FS|CLONE_FILES|CLONE_THREAD, exit_signal=0}, 88) = 11 <0.000001>\n"
        + "11 2.6 lseek(3</d/f>, 100, SEEK_SET) = 100 <0.000001>\n"
        + '9 2.7 write(3</d/f>, "x", 1) = 1 <0.000001>\n11 2.8 close(3</d/f>) = 0 <0.000001>\n'
        + '11 2.9 openat(AT_FDCWD</d>, "g", O_RDONLY) = 3</d/g> <0.000001>\n'
        + '9 3.0 read(3</d/g>, "y", 1) = 1 <0.000001>\n'
    )
    meta, rows = imported(tmp_path, "strace", text)
    by_pid = {pid: data([row for row in rows if row["pid"] == pid]) for pid in (9, 10)}
    assert by_pid[10] == [("write", "/d/f", 3, 0, 5)]
    assert by_pid[9] == [("write", "/d/f", 3, 5, 6), ("write", "/d/f", 3, 100, 1), ("read", "/d/g", 3, 0, 1)]
    assert {row["pid"] for row in rows if row["thread"] == 11} == {9}
    assert [process["parent_pid"] for process in meta["processes"]] == [0, 9]


def test_duplicates_share_a_position_until_they_are_closed(tmp_path):
    text = (
        HEAD
        + "9 2.0 dup2(3</d/f>, 7) = 7</d/f> <0.000001>\n9 3.0 fcntl(7</d/f>, F_DUPFD_CLOEXEC, 0) = 4</d/f> <0.000001>\n"
        + '9 4.0 write(4</d/f>, "x", 10) = 10 <0.000001>\n9 5.0 write(7</d/f>, "x", 10) = 10 <0.000001>\n'
        + "9 6.0 close(3</d/f>) = 0 <0.000001>\n"
        + '9 7.0 execve("/bin/x", ["x", "-a"], 0x7f /* 3 vars */) = 0 <0.000001>\n'
        + '9 8.0 write(7</d/f>, "x", 10) = 10 <0.000001>\n9 9.0 write(4</d/f>, "x", 10) = 10 <0.000001>\n'
    )
    meta, rows = imported(tmp_path, "strace", text)
    # Descriptor 4 was to close on exec: what is 4 now was not seen being opened.
    assert [offset for *_, offset, _ in data(rows)] == [0, 10, 20, None]
    assert meta["command"] == ["x", "-a"] and "1 reads and writes have no known offset" in meta["partial"][0]


def test_appends_stand_at_the_end_of_a_file_of_known_size(tmp_path):
    append = '9 2.0 openat(AT_FDCWD</d>, "log", O_WRONLY|O_APPEND) = 4</d/log> <0.000001>\n'
    stat = '9 3.0 newfstatat(4</d/log>, "", {st_mode=S_IFREG|0644, st_size=500, ...}, AT_EMPTY_PATH) = 0 <0.000001>\n'
    writes = '9 4.0 write(4</d/log>, "x", 10) = 10 <0.000001>\n9 5.0 write(4</d/log>, "x", 10) = 10 <0.000001>\n'
    assert [offset for *_, offset, _ in data(imported(tmp_path, "strace", append + stat + writes)[1])] == [500, 510]
    meta, rows = imported(tmp_path, "strace", append + writes)
    assert [offset for *_, offset, _ in data(rows)] == [None, None] and meta["partial"]


def test_without_y_descriptors_are_followed_from_their_opens(tmp_path):
    text = (
        '9 1.0 chdir("/d") = 0 <0.000001>\n9 2.0 open("f", O_RDONLY|O_CLOEXEC) = 3 <0.000001>\n'
        '9 3.0 read(3, "x", 10) = 10 <0.000001>\n9 4.0 close(3) = 0 <0.000001>\n'
        '9 5.0 read(3, "x", 10) = -1 EBADF (Bad file descriptor) <0.000001>\n'
        '9 6.0 socket(AF_INET, SOCK_STREAM, 0) = 3 <0.000001>\n9 7.0 read(3, "x", 10) = 10 <0.000001>\n'
    )
    assert data(imported(tmp_path, "strace", text)[1]) == [("read", "/d/f", 3, 0, 10)]


def test_a_renamed_file_goes_on_under_its_new_name(tmp_path):
    text = (
        HEAD
        + '9 2.0 write(3</d/f>, "x", 10) = 10 <0.000001>\n9 3.0 rename("/d/f", "/d/g\\n\\"") = 0 <0.000001>\n'
        + '9 4.0 write(3</d/g\\n">, "x", 10) = 10 <0.000001>\n'
    )
    _, rows = imported(tmp_path, "strace", text)
    assert data(rows) == [("write", "/d/f", 3, 0, 10), ("write", '/d/g\n"', 3, 10, 10)]
    assert brief(rows, "op", "file2")[2] == ("rename", '/d/g\n"')


def test_what_is_no_file_is_no_row(tmp_path):
    text = (
        HEAD
        + '9 2.0 write(1<pipe:[123]>, "x", 10) = 10 <0.000001>\n'
        + '9 3.0 read(5<TCP:[1.2.3.4:5->6.7.8.9:10]>, "x", 10) = 10 <0.000001>\n'
        + '9 4.0 write(2</dev/pts/0<char 136:0>>, "x", 10) = 10 <0.000001>\n9 5.0 exit_group(0) = ?\n'
        + "9 6.0 --- SIGCHLD {si_signo=SIGCHLD} ---\nstrace: Process 9 attached\n"
    )
    assert data(imported(tmp_path, "strace", text)[1]) == [("write", "/dev/pts/0", 2, None, 10)]


def test_files_without_pids_are_processes_of_their_own(tmp_path):
    text = '1.0 openat(AT_FDCWD</d>, "f", O_RDONLY) = 3</d/f> <0.000010>\n2.0 read(3</d/f>, "x", 5) = 5 <0.000010>\n'
    meta, rows = imported(tmp_path, "strace", text, text)
    assert [process["pid"] for process in meta["processes"]] == [0, 1]
    assert data(rows) == [("read", "/d/f", 3, 0, 5)] * 2


def test_errors_have_their_number(tmp_path):
    text = HEAD + '9 2.0 openat(AT_FDCWD</d>, "none", O_RDONLY) = -1 ENOENT (No such file or directory) <0.000001>\n'
    assert brief(imported(tmp_path, "strace", text)[1], "op", "file", "done", "errno")[1] == ("open", "/d/none", -1, 2)


def test_calls_are_taken_apart_whatever_stands_in_their_texts():
    call = parse_call(r'openat(AT_FDCWD</a, b>, "x) = 3 \"<", O_RDONLY|O_CLOEXEC) = 3</a, b/x) = 3 \76> <0.000012>')
    assert call.arguments == ["AT_FDCWD</a, b>", r'"x) = 3 \"<"', "O_RDONLY|O_CLOEXEC"]
    assert (call.result, call.fd_name, call.duration_ns) == (3, "/a, b/x) = 3 >", 12_000)
    assert unescaped(r"\303\244\x41\n\"") == 'äA\n"' and unescaped(r"\377") == "\udcff"


@pytest.mark.parametrize(
    "line",
    [
        "nonsense", '9 2.0 write(3</d/f>, "abc, 3) = 3 <0.1>', "9 2.0 <... write resumed>) = 3 <0.1>",
    "9 2.0 +++ what +++",
        "9 2.0 write(3</d/f>) = 3 <0.1>", "9 2.0 close(x) = 0 <0.1>", "9 2.0 read(3, {[}]) = 1",
        "9 2.0 read", "9 2.0 --- x",
    ],
)  # fmt: skip
def test_a_bad_line_is_named_or_skipped(tmp_path, line):
    text = HEAD + line + '\n9 3.0 write(3</d/f>, "abc", 3) = 3 <0.000001>\n'
    with pytest.raises(WorkloadError, match=r"trace0.txt: line 2: .*--lenient"):
        imported(tmp_path, "strace", text)
    meta, rows = imported(tmp_path, "strace", text, lenient=True)
    assert data(rows) == [("write", "/d/f", 3, 0, 3)] and meta["skipped"]


PROGRAM = """
import os, threading
f = os.open("f", os.O_RDWR | os.O_CREAT, 0o644)
for n in range(4):
    os.write(f, b"x" * 8192)
os.lseek(f, 4096, 0)
copy = os.dup(f)
os.read(copy, 100)
os.pwrite(f, b"y" * 10, 20000)
if os.fork() == 0:
    os.write(f, b"child")
    os._exit(0)
os.wait()
thread = threading.Thread(target=os.write, args=(f, b"thread"))
thread.start()
thread.join()
os.close(f)
log = os.open("log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
os.fstat(log)
for n in range(3):
    os.write(log, b"line\\n")
os.rename("log", "old log")
os.write(log, b"more")
try:
    os.open("none", os.O_RDONLY)
except OSError:
    pass
"""
EXPECTED = [
    ("write", "f", 0, 8192), ("write", "f", 8192, 8192), ("write", "f", 16384, 8192), ("write", "f", 24576, 8192),
    ("read", "f", 4096, 100), ("write", "f", 20000, 10), ("write", "f", 4196, 5), ("write", "f", 4201, 6),
    ("write", "log", 0, 5), ("write", "log", 5, 5), ("write", "log", 10, 5), ("write", "old log", 15, 4),
]  # fmt: skip


@needs_strace
@pytest.mark.parametrize("options", [["-f", "-y"], ["-f", "-yy"], ["-f"], ["-ff", "-y"], ["-ff"]], ids=" ".join)
def test_a_real_program_is_followed_byte_by_byte(tmp_path, options):
    program = [sys.executable, "-S", "-c", PROGRAM]
    subprocess.run(["strace", *options, "-ttt", "-T", "-o", "../t", *program], cwd=_made(tmp_path), check=True)
    files = sorted(path for path in tmp_path.iterdir() if path.is_file())
    assert len(files) == 1 or options[0] == "-ff"
    work, out = tmp_path / "work", tmp_path / "out"
    _, rows = rows_of(import_trace("strace", files, out, base=work), out)
    ours = [row for row in rows if row["file"] and row["file"].startswith(f"{work}/")]
    ours.sort(key=lambda row: row["start_ns"])
    found = [(op, name.removeprefix(f"{work}/"), offset, done) for op, name, _, offset, done in data(ours)]
    assert found == EXPECTED
    [failed] = [row for row in ours if row["op"] == "open" and row["done"] < 0]
    assert failed["file"] == str(work / "none") and failed["errno"] == 2


@needs_strace
def test_dd_has_the_offsets_that_it_was_told(tmp_path):
    dd = ["dd", "if=/dev/zero", "of=f", "bs=4k", "count=5", "seek=3", "status=none"]
    subprocess.run(["strace", "-f", "-ttt", "-T", "-y", "-o", "../t", *dd], cwd=_made(tmp_path), check=True)
    meta, rows = rows_of(import_trace("strace", [tmp_path / "t"], tmp_path / "out"), tmp_path / "out")
    written = [row for row in rows if row["op"] == "write" and row["file"] == str(tmp_path / "work" / "f")]
    assert brief(written, "offset", "done") == [(n << 12, 4096) for n in range(3, 8)]
    assert meta["command"] == dd


@needs_strace
@pytest.mark.skipif(shutil.which("sqlite3") is None, reason="needs sqlite3")
def test_what_sqlite_wrote_is_what_its_file_holds(tmp_path):
    work = _made(tmp_path)
    sql = "create table t(a,b); insert into t select value, hex(randomblob(50)) from generate_series(1,2000); select 1;"
    traced = ["strace", "-f", "-ttt", "-T", "-y", "-s", "65536", "-xx", "-o", "../t", "sqlite3", "db", sql]
    subprocess.run(traced, cwd=work, check=True, capture_output=True)
    _, rows = rows_of(import_trace("strace", [tmp_path / "t"], tmp_path / "out"), tmp_path / "out")
    written = [row for row in rows if row["op"] == "write" and row["file"] == str(work / "db")]
    covered = set()
    for row in written:
        covered |= set(range(row["offset"] // 4096, -(-(row["offset"] + row["done"]) // 4096)))
    assert covered == set(range((work / "db").stat().st_size // 4096))


def _made(tmp_path):
    work = tmp_path / "work"
    work.mkdir()
    return work


def test_a_place_that_no_file_has_is_no_position(tmp_path):
    beyond = HEAD + '9 3.0 pwrite64(3</d/f>, "", 5, 4611686018427387904) = 5 <0.000001>\n'
    with pytest.raises(WorkloadError, match="at a place that no file has"):
        imported(tmp_path, "strace", beyond)


def test_bytes_that_are_copied_from_file_to_file_are_told_of(tmp_path):
    text = (
        HEAD
        + '9 2.0 openat(AT_FDCWD</d>, "g", O_RDONLY) = 4</d/g> <0.000010>\n'
        + "9 3.0 copy_file_range(4</d/g>, NULL, 3</d/f>, NULL, 1000000, 0) = 1000000 <0.000001>\n"
    )
    meta, rows = imported(tmp_path, "strace", text)
    assert [(row["file"], row["file2"]) for row in rows if row["op"] == "copy"] == [("/d/g", "/d/f")]
    assert any("1,000,000 bytes went from file to file" in each for each in meta["partial"])


def test_a_trace_that_would_be_replaced_by_what_is_made_of_it_is_refused(tmp_path):
    (tmp_path / "trace.parquet").write_text(HEAD)
    with pytest.raises(WorkloadError, match="would be replaced"):
        import_trace("strace", [tmp_path / "trace.parquet"], tmp_path)
    assert (tmp_path / "trace.parquet").read_text() == HEAD
