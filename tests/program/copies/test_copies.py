"""Plain files with copies beside them: programs read the same bytes whoever serves them, and never old ones."""

from __future__ import annotations

import json
import mmap
import os
import random
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from rig import MPIEXEC, NATIVE, Maker, Store, Target, execute, holds, stripewise, talking

from stripewise import native

KIB = 1024
BLOCK, COLUMNS, ROWS = 4 * KIB, 12, 40
SIZE = BLOCK * COLUMNS * ROWS
#: Accesses to emulated devices are counted: they tell whether copies were read.
EMULATED = [Target(f"e{number}", "hdd", "emulated", 0, 0.0, 1e-10) for number in range(3)]


def column(number: int, store: Store, width: int = 4 * KIB) -> dict[str, object]:
    """A replica of every COLUMNS-th block, on all targets."""
    cycle = [[number, width] for number in range(len(store.targets))]
    return {
        "base": number * BLOCK,
        "block": BLOCK,
        "dims": [[BLOCK * COLUMNS, ROWS]],
        "regions": [{"start": 0, "len": width * len(cycle), "stripes": cycle}],
    }


def make_copies(store: Store, path: Path, replicas: list[dict[str, object]]) -> None:
    native.call("store_copies_make", str(store.root), str(path), json.dumps({"replicas": replicas}))


@pytest.fixture
def copied(make_store: Maker) -> tuple[Store, Path, bytes]:
    """A store, a plain file of random bytes with copies of all its columns, and the bytes."""
    store = make_store(EMULATED)
    path, data = store.plain / "array", random.Random(1).randbytes(SIZE)
    path.write_bytes(data)
    make_copies(store, path, [column(number, store) for number in range(COLUMNS)])
    return store, path, data


def accesses(store: Store) -> int:
    """Reads that the targets' devices have counted."""
    told = json.loads(stripewise("store", "info", store.root, "--json").out)
    return sum(int(target["accesses_read"]) for target in told["devices"])


READS = """
import os, random, sys
path, size, block = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
plain = open(sys.argv[4], "rb").read()
fd, chance = os.open(path, os.O_RDONLY), random.Random(7)
for at in range(0, size, block):
    assert os.pread(fd, block, at) == plain[at : at + block]
    parts = [bytearray(block // 4), bytearray(block // 2)]
    assert os.preadv(fd, parts, at + 256) == block // 4 * 3
    assert b"".join(parts) == plain[at + 256 : at + 256 + block // 4 * 3]
for _ in range(2000):
    at, length = chance.randrange(size + 9), chance.choice([1, 100, 4096, 5000, 70000])
    assert os.pread(fd, length, at) == plain[at : at + length]
os.lseek(fd, 0, os.SEEK_SET)
whole = b""
while part := os.read(fd, chance.choice([1, 1000, block])):
    whole += part
assert whole == plain
os.lseek(fd, block, os.SEEK_SET)
into = [bytearray(block // 2), bytearray(block // 2)]
assert os.readv(fd, into) == block and b"".join(into) == plain[block : 2 * block]
assert os.lseek(fd, 0, os.SEEK_CUR) == 2 * block
other = os.dup(fd)
os.close(fd)
assert os.read(other, block) == plain[2 * block : 3 * block]
if os.fork() == 0:
    ok = os.pread(other, block, 0) == plain[:block] and os.read(other, block) == plain[3 * block : 4 * block]
    os._exit(0 if ok else 1)
assert os.wait()[1] == 0
assert os.read(other, block) == plain[4 * block : 5 * block]
os.set_inheritable(other, True)
os.execv(sys.executable, [sys.executable, "-c", f"import os; print(os.pread({other}, 4, 0).hex())"])
"""


def test_every_way_to_read_gives_the_plain_files_bytes(copied: tuple[Store, Path, bytes]) -> None:
    store, path, data = copied
    twin = store.plain / "twin"
    twin.write_bytes(data)
    before = accesses(store)
    said = store.program(sys.executable, "-c", READS, path, str(SIZE), str(BLOCK), twin)
    assert said.out.strip() == data[:4].hex()
    assert accesses(store) - before > 2 * COLUMNS * ROWS
    # Without the library, and under another store's, it is the plain file.
    assert execute(["cksum", path]).out.split()[:2] == execute(["cksum", twin]).out.split()[:2]
    assert store.program("md5sum", path).out.split()[0] == execute(["md5sum", twin]).out.split()[0]


#: Reads where it is told to; "fresh AT" first waits until the plain file is due to be looked at again.
READER = """
import os, sys, time
fd = os.open(sys.argv[1], os.O_RDONLY)
while words := sys.stdin.readline().split():
    if words[0] == "fresh":
        time.sleep(0.11)
    print(os.pread(fd, 4096, int(words[-1])).hex(), flush=True)
"""

#: Says that it is there, waits for a line, does one thing.
WRITER = """
import ctypes, mmap, os, sys
P, B = sys.argv[1], bytes(range(256)) * 16
print(flush=True)
sys.stdin.readline()
exec(sys.argv[2])
print(flush=True)
"""

WRITERS = {
    "open": "os.pwrite(os.open(P, os.O_WRONLY), B, 0)",
    "open for both": "os.pwrite(os.open(P, os.O_RDWR), B, 0)",
    "truncate by name": "os.truncate(P, 0); os.pwrite(os.open(P, os.O_WRONLY), B, 0)",
    "open and cut": "os.pwrite(os.open(P, os.O_WRONLY | os.O_TRUNC), B, 0)",
    "map": "mmap.mmap(os.open(P, os.O_RDWR), 4096)[:4096] = B",
    "stream": """
c = ctypes.CDLL(None)
c.fopen.restype = ctypes.c_void_p
f = c.fopen(P.encode(), b"r+")
c.fwrite(B, 1, len(B), ctypes.c_void_p(f))
c.fclose(ctypes.c_void_p(f))
""",
    "shell": "os.system(f'head -c 4096 {P}.new 1<>{P}')",
}


@pytest.mark.parametrize("writer", WRITERS)
def test_who_opens_the_file_to_write_drops_its_copies_at_once(copied: tuple[Store, Path, bytes], writer: str) -> None:
    store, path, data = copied
    new = bytes(range(256)) * 16
    path.with_name("array.new").write_bytes(new)
    env = store.environment()
    with (
        talking([sys.executable, "-c", READER, str(path)], env) as reader,
        talking([sys.executable, "-c", WRITER, str(path), WRITERS[writer]], env) as doer,
    ):
        assert doer.line() == "\n"
        before = accesses(store)
        reader.say("fresh 0")
        assert reader.line().strip() == data[:4096].hex()
        doer.say()
        assert doer.line() == "\n"
        # Far less than 100 ms after it was looked at.
        reader.say("0")
        assert reader.line().strip() == new.hex()
        assert accesses(store) > before
        before = accesses(store)
        for at in (4096, 8192):
            reader.say(str(at))
            assert reader.line().strip() == path.read_bytes()[at : at + 4096].hex()
        assert accesses(store) == before


def test_a_change_without_the_library_is_seen_at_once(copied: tuple[Store, Path, bytes]) -> None:
    store, path, data = copied
    with talking([sys.executable, "-c", READER, str(path)], store.environment()) as reader:
        reader.say("0")
        assert reader.line().strip() == data[:4096].hex()
        with path.open("r+b") as file:
            file.write(b"x" * 4096)
        reader.say("0")
        assert reader.line().strip() == (b"x" * 4096).hex()
    # Whoever opens it now finds no copies that count.
    before = accesses(store)
    assert store.program("head", "-c", "4096", path).out == "x" * 4096
    assert accesses(store) == before


def test_a_store_through_a_map_without_the_library_is_seen_at_once(copied: tuple[Store, Path, bytes]) -> None:
    store, path, data = copied
    with (
        talking([sys.executable, "-c", READER, str(path)], store.environment()) as reader,
        path.open("r+b") as file,
        mmap.mmap(file.fileno(), 0) as mapped,
    ):
        before = accesses(store)
        reader.say("0")
        assert reader.line().strip() == data[:4096].hex()
        assert accesses(store) > before
        for at, letter in ((0, b"m"), (4096, b"n")):
            mapped[at : at + 4096] = letter * 4096
            reader.say(str(at))
            assert reader.line().strip() == (letter * 4096).hex()


@pytest.mark.parametrize("spoil", [lambda path: path.chmod(0o620), lambda path: path.with_name("x").hardlink_to(path)])
def test_a_record_that_others_may_have_written_is_not_used(
    copied: tuple[Store, Path, bytes], spoil: Callable[[Path], object]
) -> None:
    store, path, _ = copied
    (record,) = (each for each in (store.root / "copies").iterdir() if not each.name.endswith(".copy"))
    read = [sys.executable, "-c", f"import os; os.pread(os.open({os.fspath(path)!r}, os.O_RDONLY), 4096, 0)"]
    before = accesses(store)
    store.program(*read)
    assert (served := accesses(store)) > before
    spoil(record)
    store.program(*read)
    assert accesses(store) == served
    record.with_name("x").unlink(missing_ok=True)


#: Each reads a block that has a copy, does one thing, and reads again by the same number: what the kernel says counts.
UNSEEN = {
    "raw close and open": "c.syscall(3, fd); again = os.open(twin, os.O_RDONLY)",
    "raw dup2": "c.syscall(33, other, fd)",
    "raw open and write": "raw = c.syscall(2, path.encode(), 1, 0); c.syscall(18, raw, b'y' * 4096, 4096, 0)",
    "freopen": """
c.fopen.restype = c.freopen.restype = ctypes.c_void_p
f = ctypes.c_void_p(c.freopen(None, b"r+", ctypes.c_void_p(c.fopen(path.encode(), b"r"))))
c.fwrite(b"y" * 4096, 1, 4096, f)
c.fflush(f)
""",
    "spawn": "os.waitpid(os.posix_spawn('/usr/bin/head', ['head', '-c', '4096', '/dev/zero'], os.environ, "
    "file_actions=[(os.POSIX_SPAWN_OPEN, 1, path, os.O_WRONLY, 0)]), 0)",
    "chmod before": "os.chmod(path, 0o600); os.pwrite(os.open(path, os.O_WRONLY), b'y' * 4096, 0)",
    "no descriptor": """
import resource
while True:
    try: low = os.dup(0)
    except OSError: break
    if low > 200: break
os.close(low)
resource.setrlimit(resource.RLIMIT_NOFILE, (low + 1, low + 1))
os.pwrite(os.open(path, os.O_WRONLY), b'y' * 4096, 0)
""",
    "chroot": "os.chroot(os.path.dirname(path)); os.pwrite(os.open('/array', os.O_WRONLY), b'y' * 4096, 0)",
}
WHATEVER = """
import ctypes, os, sys
path, twin = sys.argv[1:3]
c = ctypes.CDLL(None)
fd, other = os.open(path, os.O_RDONLY), os.open(twin, os.O_RDONLY)
first = os.pread(fd, 4096, 0)
exec(sys.argv[3])
into = ctypes.create_string_buffer(4096)
assert c.syscall(17, fd, into, 4096, 0) == 4096 and into.raw != first
assert os.pread(fd, 4096, 0) == into.raw
"""


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="not run: the numbers of system calls are x86-64's")
@pytest.mark.parametrize("how", UNSEEN)
def test_what_the_library_does_not_see_changes_what_is_read_all_the_same(
    copied: tuple[Store, Path, bytes], how: str
) -> None:
    store, path, _ = copied
    if how == "chroot" and os.geteuid() != 0:
        pytest.skip("not run: only root changes its root directory")
    twin = store.plain / "twin"
    twin.write_bytes(random.Random(2).randbytes(SIZE))
    before = accesses(store)
    store.program(sys.executable, "-c", WHATEVER, path, twin, UNSEEN[how])
    assert accesses(store) > before


def test_bad_addresses_and_limits_end_no_program(copied: tuple[Store, Path, bytes]) -> None:
    store, path, _ = copied
    bad = (
        "import ctypes, errno, os, sys\n"
        "c = ctypes.CDLL(None, use_errno=True)\n"
        "fd = os.open(sys.argv[1], os.O_RDONLY)\n"
        "for call in (c.readv, c.preadv, c.preadv2):\n"
        "    assert call(fd, ctypes.c_void_p(8), 2, 0, 0) == -1 and ctypes.get_errno() == errno.EFAULT\n"
    )
    store.program(sys.executable, "-c", bad, path)
    store.program("sh", "-c", f"ulimit -f 0; : >>{path}")


def test_writers_that_are_the_first_of_their_process_to_open_anything_all_drop(make_store: Maker) -> None:
    store = make_store(EMULATED)
    paths = [store.plain / f"f{number}" for number in range(4)]
    for path in paths:
        path.write_bytes(bytes(BLOCK * COLUMNS))
    for path in paths:
        make_copies(store, path, [column(0, store) | {"dims": []}])
    store.program(NATIVE / "firstopens", *paths)
    states = [each["state"] for each in json.loads(stripewise("store", "replica", "ls", store.root, "--json").out)]
    assert states == ["dropped"] * len(paths), states


@pytest.mark.parametrize("is_managed", [False, True])
def test_who_leaves_an_open_by_a_jump_holds_nobody_up(copied: tuple[Store, Path, bytes], is_managed: bool) -> None:
    store, path, _ = copied
    if is_managed:
        path = store.data / "array"
        store.program("dd", f"if={store.plain / 'array'}", f"of={path}", "bs=1M", "status=none")
    for _ in range(5):
        holds(store.program(NATIVE / "jumpopens", path, timeout_s=60))


THREADS = """
import os, sys, threading
fd, block = os.open(sys.argv[1], os.O_RDONLY), int(sys.argv[2])
plain = open(sys.argv[3], "rb").read()
wanted = sorted(plain[at : at + block] for at in range(0, len(plain), block))
def work():
    while part := os.read(fd, block):
        found.append(part)
for _ in range(30):
    found = []
    os.lseek(fd, 0, os.SEEK_SET)
    threads = [threading.Thread(target=work) for _ in range(4)]
    [each.start() for each in threads]; [each.join() for each in threads]
    assert sorted(found) == wanted, len(found)
"""


def test_threads_that_share_an_offset_read_each_block_once(copied: tuple[Store, Path, bytes]) -> None:
    store, path, data = copied
    twin = store.plain / "twin"
    twin.write_bytes(data)
    store.program(sys.executable, "-c", THREADS, path, str(BLOCK), twin)


JOB = """
import sys
from mpi4py import MPI
comm, block, columns, rows = MPI.COMM_WORLD, *map(int, sys.argv[2:5])
plain = open(sys.argv[5], "rb").read()
file = MPI.File.Open(comm, sys.argv[1], MPI.MODE_RDONLY)
for column in range(comm.rank, columns, comm.size):
    for row in range(rows):
        at, into = (row * columns + column) * block, bytearray(block)
        file.Read_at(at, into)
        assert into == plain[at : at + block], (column, row)
file.Close()
"""


def test_an_mpi_job_reads_columns_from_copies(copied: tuple[Store, Path, bytes]) -> None:
    store, path, data = copied
    twin = store.plain / "twin"
    twin.write_bytes(data)
    before = accesses(store)
    words = [MPIEXEC, "-n", "3", sys.executable, "-c", JOB, path, str(BLOCK), str(COLUMNS), str(ROWS), twin]
    store.run(*words)
    assert accesses(store) - before >= COLUMNS * ROWS
