"""Maps of managed files behave as maps of plain ones, and so do programs that map."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from rig import LAYOUTS, NATIVE, Maker, Result, Store, Target, execute, region, stripes, stripewise, talking

MAPS = NATIVE / "maps"
#: Each page an area of its own: 140 MiB of it are more than a process's maps may take.
NARROW = [region(0, 1024, stripes(("t0", 4), ("t1", 4)))]
NARROW_BYTES = 140 << 20

MEMMAP = """
import numpy, sys
path, count = sys.argv[1], 300_001
whole = numpy.arange(count, dtype="<u4")
made = numpy.memmap(path, dtype="<u4", mode="w+", shape=(count,))
assert not made.any()
made[:] = whole
made.flush()
assert (numpy.fromfile(path, dtype="<u4") == whole).all() if sys.argv[2] == "plain" else True
del made
seen = numpy.memmap(path, dtype="<u4", mode="r")
assert (seen == whole).all() and not seen.flags.writeable
later = numpy.memmap(path, dtype="<u4", mode="r+")
later[::1000] = 7
assert (seen[::1000] == 7).all()
mine = numpy.memmap(path, dtype="<u4", mode="c")
mine[:] = 1
assert (seen[::1000] == 7).all() and seen[1] == 1 and seen[2] == 2
middle = numpy.memmap(path, dtype="<u4", mode="r", offset=123_456, shape=(1000,))
assert (middle == seen[30_864:31_864]).all()
with open(path, "rb") as file:
    data = numpy.frombuffer(file.read(), dtype="<u4")
assert (data == seen).all()
"""

RESIZE = """
import mmap, os, sys
fd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT, 0o644)
os.write(fd, b"begin" + bytes(9995))
map = mmap.mmap(fd, 0)
assert len(map) == 10_000 and map[:5] == b"begin"
map.resize(1_500_000)
assert os.fstat(fd).st_size == 1_500_000 and map[10_000:].count(0) == 1_490_000
map[1_400_000:1_400_004] = b"last"
map.flush()
assert os.pread(fd, 4, 1_400_000) == b"last"
assert map.find(b"last") == 1_400_000
map.resize(5_000)
assert os.fstat(fd).st_size == 5_000 and map[:5] == b"begin" and len(map) == 5_000
map.close()
"""

SQLITE = """
import sqlite3, sys
base = sqlite3.connect(sys.argv[1])
base.execute("pragma page_size=4096")
assert base.execute("pragma mmap_size=67108864").fetchone()[0] == 67108864
base.execute("create table t (i integer primary key, b blob)")
for part in range(4):
    with base:
        base.executemany("insert into t (b) values (randomblob(?))", [(900 + i,) for i in range(400)])
    found = base.execute("select count(*), sum(length(b)) from t").fetchone()
    assert found == ((part + 1) * 400, (part + 1) * (900 * 400 + 79_800))
assert base.execute("pragma integrity_check").fetchone() == ("ok",)
base.execute("delete from t where i % 3 = 0")
base.commit()
base.execute("vacuum")
assert base.execute("pragma integrity_check").fetchone() == ("ok",)
"""

#: Maps a whole file with the flags given and says whether it is what the random generator of the seed made.
WHOLE = """
import ctypes, mmap, os, sys
path, flags, access = sys.argv[1], getattr(mmap, sys.argv[2]), os.O_RDWR if "w" in sys.argv[3] else os.O_RDONLY
fd = os.open(path, access)
try:
    map = mmap.mmap(fd, 0, flags, mmap.PROT_READ | (mmap.PROT_WRITE if "p" in sys.argv[3] else 0))
except OSError as refused:
    print(refused.errno)
    sys.exit(0)
assert len(map) == os.fstat(fd).st_size
for at in range(0, len(map), 4096 * 1001):
    assert map[at : at + 8] == at.to_bytes(8, "little"), at
libc = ctypes.CDLL(None, use_errno=True)
libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
start = next(int(line.split("-")[0], 16) for line in open("/proc/self/maps") if "stripewise-map" in line)
print("copied", libc.mprotect(start, 4096, 3) and ctypes.get_errno())
"""


def python(store: Store, script: str, *words: str | Path, code: int | None = 0) -> Result:
    """A Python program under the library."""
    return store.program(sys.executable, "-c", script, *words, code=code)


@pytest.mark.parametrize("layout", sorted(LAYOUTS))
def test_maps_of_managed_files_behave_as_maps_of_plain_ones(make_store: Maker, layout: str) -> None:
    store = make_store(layout=layout)
    plain = store.program(MAPS, store.plain)
    managed = store.program(MAPS, store.data)
    assert managed.out.splitlines() == plain.out.splitlines(), managed.report


@pytest.mark.parametrize("layout", sorted(LAYOUTS))
@pytest.mark.parametrize("script", [MEMMAP, RESIZE, SQLITE], ids=["memmap", "resize", "sqlite"])
def test_programs_that_map(make_store: Maker, layout: str, script: str) -> None:
    store = make_store(layout=layout)
    python(store, script, store.plain / "f", "plain")
    python(store, script, store.data / "f", "managed")


def narrow(make_store: Maker) -> Store:
    """A store with a sparse file of more stripes than a process may have areas; every 1,001st page holds its offset."""
    store = make_store([Target("t0"), Target("t1")], regions=NARROW)
    script = (
        "import os, sys\nfd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)\nos.ftruncate(fd, int(sys.argv[2]))\n"
        "for at in range(0, int(sys.argv[2]), 4096 * 1001): os.pwrite(fd, at.to_bytes(8, 'little'), at)\n"
    )
    python(store, script, store.data / "f", str(NARROW_BYTES))
    return store


def test_a_map_of_too_many_areas_is_a_copy_if_it_only_reads(make_store: Maker) -> None:
    store = narrow(make_store)
    assert python(store, WHOLE, store.data / "f", "MAP_PRIVATE", "r").out.split() == ["copied", "0"]
    assert python(store, WHOLE, store.data / "f", "MAP_PRIVATE", "wp").out.split() == ["copied", "0"]
    # EACCES: what is shared and read-only stays so.
    assert python(store, WHOLE, store.data / "f", "MAP_SHARED", "r").out.split() == ["copied", "13"]


def test_a_map_of_too_many_areas_that_would_have_to_follow_changes_is_refused(make_store: Maker) -> None:
    store = narrow(make_store)
    log = store.base / "log"
    store.environment()["STRIPEWISE_LOG"] = str(log)
    for access in ("w", "wp"):
        assert python(store, WHOLE, store.data / "f", "MAP_SHARED", access).out.split() == ["19"]
    assert "wider stripes" in log.read_text()


def test_copies_end_at_the_cap(make_store: Maker) -> None:
    store = narrow(make_store)
    log = store.base / "log"
    store.environment().update(STRIPEWISE_LOG=str(log), STRIPEWISE_MMAP_COPY_BYTES=str(NARROW_BYTES - 1))
    assert python(store, WHOLE, store.data / "f", "MAP_PRIVATE", "r").out.split() == ["19"]
    assert "STRIPEWISE_MMAP_COPY_BYTES" in log.read_text()


def test_a_map_for_writing_takes_its_blocks_where_a_target_has_a_capacity(make_store: Maker) -> None:
    store = make_store([Target("t0", capacity_bytes=4 << 20), Target("t1", capacity_bytes=4 << 20)])
    script = (
        "import mmap, os, sys\nfd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)\nos.ftruncate(fd, int(sys.argv[2]))\n"
        "try: map = mmap.mmap(fd, 0)\nexcept OSError as refused: print(refused.errno)\n"
        "else:\n    map[:] = b'x' * len(map)\n    print('written')\n"
    )
    assert python(store, script, store.data / "small", str(2 << 20)).out.split() == ["written"]
    assert python(store, script, store.data / "large", str(32 << 20)).out.split() == ["28"]


def test_a_mapped_file_is_pinned_until_its_last_map_is_gone(make_store: Maker) -> None:
    store = make_store(layout="striped")
    script = (
        "import mmap, os, sys\nfd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)\nos.ftruncate(fd, 99999)\n"
        "map = mmap.mmap(fd, 0)\nos.close(fd)\nchild = os.fork()\n"
        "if child == 0:\n    sys.stdin.readline()\n    os._exit(0)\n"
        "map.close()\nprint('parent', flush=True)\nos.waitpid(child, 0)\n"
        "print('child', flush=True)\nsys.stdin.readline()\n"
    )
    probe = (
        "import fcntl, struct, sys\nfile = open(sys.argv[1], 'r+b')\n"
        "ask = struct.pack('hhqqi4x', fcntl.F_WRLCK, 0, 1, 1, 0)\n"
        "print(struct.unpack('hhqqi4x', fcntl.fcntl(file, 36, ask))[0] == fcntl.F_UNLCK)\n"
    )
    with talking([sys.executable, "-c", script, store.data / "f"], store.environment()) as process:
        assert process.line() == "parent\n"
        ctl = next(store.root.glob("files/*/ctl"))
        assert execute([sys.executable, "-c", probe, ctl]).out.split() == ["False"], "the child's map pins nothing"
        process.say()
        assert process.line() == "child\n"
        assert execute([sys.executable, "-c", probe, ctl]).out.split() == ["True"], "nobody has a map any more"


def test_what_was_written_through_a_map_survives_moving_the_file(make_store: Maker, tmp_path: Path) -> None:
    store = make_store(layout="striped")
    python(store, MEMMAP, store.data / "f", "managed")
    before = store.program("dd", f"if={store.data / 'f'}", f"of={tmp_path / 'before'}", "bs=1M")
    plan = store.plan(
        tmp_path / "plan.json", store.data / "f", [region(0, 1024, stripes(("t1", 12), ("t3", 4)))], 1_200_004
    )
    stripewise("apply", "--store", store.root, plan)
    store.program("dd", f"if={store.data / 'f'}", f"of={tmp_path / 'after'}", "bs=1M")
    assert (tmp_path / "before").read_bytes() == (tmp_path / "after").read_bytes(), before.report
    python(store, MEMMAP, store.data / "f", "managed")


IOCTL = """
import array, fcntl, os, struct, sys
managed, plain = (os.open(name, os.O_RDWR | os.O_CREAT) for name in sys.argv[1:3])
os.write(managed, b"0123456789")
os.write(plain, b"0123456789")
def ask(fd, command, argument=0):
    try:
        return fcntl.ioctl(fd, command, argument)
    except OSError as refused:
        return refused.errno
EOPNOTSUPP = 95
clone, dedupe = struct.pack("qQQQ", managed, 0, 0, 0), struct.pack("QQHHIqQQiI", 0, 10, 1, 0, 0, managed, 0, 0, 0, 0)
assert ask(managed, 0x40049409, plain) == ask(plain, 0x40049409, managed) == EOPNOTSUPP
assert ask(plain, 0x4020940D, clone) == EOPNOTSUPP
assert ask(plain, 0xC0189436, dedupe) == EOPNOTSUPP
assert ask(managed, 0xC020660B, bytes(32)) == EOPNOTSUPP
assert ask(managed, 1, bytes(4)) == EOPNOTSUPP
os.lseek(managed, 3, os.SEEK_SET)
assert struct.unpack("i", ask(managed, 0x541B, bytes(4)))[0] == 7
ask(managed, 0x5450)
assert os.get_inheritable(managed)
ask(managed, 0x5451)
assert not os.get_inheritable(managed)
assert ask(managed, 0x5401, bytes(64)) == 25
assert not os.isatty(managed) and os.pread(plain, 20, 0) == b"0123456789"
"""


def test_ioctls_that_act_on_blocks_are_refused_and_the_rest_answers_for_the_file(make_store: Maker) -> None:
    store = make_store(layout="striped")
    python(store, IOCTL, store.data / "f", store.plain / "f")
    assert os.stat(store.plain / "f").st_size == 10


@pytest.mark.parametrize("layout", ["striped", "uneven"])
def test_the_size_of_a_mapped_file_is_found_again_from_its_objects_alone(make_store: Maker, layout: str) -> None:
    store = make_store(layout=layout)
    script = (
        "import mmap, os, sys\nfd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)\nos.ftruncate(fd, int(sys.argv[2]))\n"
        "map = mmap.mmap(fd, 0)\nassert map[:].count(0) == len(map)\nmap[-1] = 9\nmap.flush()\n"
    )
    for size in (1, 4096, 4097, 20_480, 70_001, 122_880, 122_881, 700_001):
        python(store, script, store.data / str(size), str(size))
    for head in store.root.glob("files/*/head"):
        os.truncate(head, 0)
        (head.parent / "ctl").unlink()
    for name in store.data.iterdir():
        found = python(store, "import os, sys; print(os.stat(sys.argv[1]).st_size)", name)
        assert found.out.split() == [name.name], "the objects are too long, or too short"
