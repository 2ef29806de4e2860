"""Who waits for whom: a member of a shared store may hold others up for a while, a stranger not at all."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import struct
import subprocess
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hostile import (
    ALICE,
    HOLDING,
    LIES,
    MALLORY,
    PYTHON,
    Managed,
    Realm,
    acting_as,
    as_user,
    create_for,
    ctl_words,
    needs_root,
    run_dir,
    write_words,
)
from rig import LIBRARY, Store, execute, stripewise

pytestmark = needs_root

#: Kinds of service that a member may keep others from for as long as docs/security.md says, and so not for ever.
HOLDS_UP_S = 45.0


def test_writers_of_a_file_that_its_owner_holds_up_get_an_error_in_the_end(realm: Realm) -> None:
    """All at once, since they wait."""
    files = {}
    for lie in HOLDING:
        files[lie] = realm.file(realm.roots)
        write_words(files[lie].dir / "ctl", ctl_words(**LIES[lie]))
    program = (
        "import signal, time\n"
        "children = {}\n"
        "for link in sys.argv[1:]:\n"
        "    pid = os.fork()\n"
        "    if pid == 0:\n"
        "        try: fd = os.open(link, os.O_RDWR); os.pwrite(fd, b'x', 0)\n"
        "        except OSError: pass\n"
        "        os._exit(0)\n"
        "    children[pid] = link\n"
        f"end = time.monotonic() + {HOLDS_UP_S}\n"
        "while children and time.monotonic() < end:\n"
        "    pid, status = os.waitpid(-1, os.WNOHANG)\n"
        "    if pid: assert children.pop(pid) and status == 0\n"
        "    else: time.sleep(0.05)\n"
        "for pid in children: os.kill(pid, signal.SIGKILL)\n"
        "print(*children.values())\n"
    )
    hung = realm.python(ALICE, program, *(file.link for file in files.values()), timeout_s=HOLDS_UP_S + 10).out.split()
    assert not hung, f"writers hang for ever: {[lie for lie, file in files.items() if str(file.link) in hung]}"


@pytest.mark.parametrize("part", ["ctl", "layout", "head", "link", "object", "session.lock", "devices", "mover.lock"])
def test_a_lock_that_a_stranger_takes_keeps_nobody_from_a_private_file(realm: Realm, part: str) -> None:
    """A lock on a plain file keeps nobody from reading or writing it."""
    store = create_for(realm.fresh("locked"), ALICE, shared=False)
    file = realm.files(store, ALICE, 1, 0o600)[0]
    path = run_dir(store.root) / part if part in ("session.lock", "devices", "mover.lock") else file.part(part)
    with acting_as(MALLORY):
        try:
            fd = os.open(path, os.O_RDONLY)
        except (PermissionError, FileNotFoundError):
            return
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        program = (
            "fd = os.open(sys.argv[1], os.O_RDWR); os.pread(fd, 8, 0); os.pwrite(fd, b'x', 0); "
            "os.ftruncate(fd, 100); os.unlink(sys.argv[1])"
        )
        realm.python(ALICE, program, file.link)
    finally:
        os.close(fd)


F_OFD_SETLK = 37


def byte_lock(fd: int, kind: int, start: int = 0, length: int = 0) -> None:
    """A lock of the open file description, by default on all bytes that there can be; BlockingIOError when refused."""
    fcntl.fcntl(fd, F_OFD_SETLK, struct.pack("hhqqi4x", kind, os.SEEK_SET, start, length, 0))


@contextlib.contextmanager
def holding(user: int, paths: Iterable[Path], groups: tuple[int, ...] = ()) -> Iterator[list[str]]:
    """Every lock that a user can take on these; says which he got."""
    held, got = [], []
    with acting_as(user, groups):
        for path in paths:
            for how in (os.O_RDWR, os.O_RDONLY):
                with contextlib.suppress(OSError):
                    fd = os.open(path, how)
                    held.append(fd)
                    for name, take in {
                        "flock": lambda fd: fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB),
                        "shared bytes": lambda fd: byte_lock(fd, fcntl.F_RDLCK),
                        "exclusive bytes": lambda fd: byte_lock(fd, fcntl.F_WRLCK),
                    }.items():
                        with contextlib.suppress(OSError):
                            take(fd)
                            got.append(f"{path.name} {name}")
    try:
        yield got
    finally:
        for fd in held:
            os.close(fd)


#: A reader who has nothing to do with anybody.
BOB = 1004
#: All that a program does with a file of its user's; the last line of the file's first life is its end.
LIFE = """
import fcntl, mmap
link = sys.argv[1]
fd = os.open(link, os.O_RDWR)
os.pread(fd, 8, 0); os.pwrite(fd, b'x', 0); os.stat(link)
end = os.fstat(fd).st_size
for i in range(50): os.pwrite(fd, b'grown', end + 4096 * i)
more = os.open(link, os.O_WRONLY | os.O_APPEND)
for i in range(50): os.write(more, b'appended')
os.ftruncate(fd, 100_000); os.ftruncate(fd, 300_000)
assert os.pread(fd, 200_000, 100_000) == bytes(200_000)
os.fsync(fd); os.chmod(link, 0o640); os.chmod(link, 0o644)
with mmap.mmap(fd, 300_000) as m: m[299_999] = 7
if os.fork() == 0:
    os.lseek(fd, 0, 0); os.read(fd, 10); os.write(fd, b'child'); os._exit(0)
assert os.wait()[1] == 0
again = os.open(link, os.O_RDONLY); os.close(again); os.close(fd); os.close(more)
os.rename(link, link + '.new'); os.unlink(link + '.new')
new = os.open(link + '.second', os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o644); os.write(new, b'new'); os.close(new)
os.unlink(link + '.second')
"""


@pytest.mark.parametrize("user", [ALICE, 0], ids=["the owner", "root"])
def test_no_lock_of_one_who_may_only_read_stops_the_owner_or_root(realm: Realm, user: int) -> None:
    """He may have the file open, and so keep it from moving; nothing waits for him."""
    file = realm.files(realm.roots, ALICE, 1, 0o644)[0]
    run = run_dir(realm.roots.root)
    parts = [file.dir, *file.dir.iterdir(), *file.objects, run, *run.iterdir(), realm.roots.root, file.dir.parent]
    with holding(MALLORY, parts) as got:
        expected = {
            "ctl flock",
            "ctl shared bytes",
            "layout flock",
            "head flock",
            "session.lock flock",
            "session.lock shared bytes",
        }
        assert expected <= set(got), got
        assert not {f"{file.dir.name} flock", "ctl exclusive bytes", "session.lock exclusive bytes"} & set(got), got
        realm.python(user, LIFE, file.link, STRIPEWISE_STORE=realm.roots.root)


def test_readers_that_share_an_offset_read_each_byte_once_whoever_holds_the_lock_of_their_turns(realm: Realm) -> None:
    """A reader's only lock is one that every reader can take."""
    file = realm.files(realm.roots, ALICE, 1, 0o644)[0]
    program = """
import struct
import subprocess
import time
with open(sys.argv[1] + '.numbers', 'wb') as out: out.write(b''.join(struct.pack('<I', i) for i in range(40_000)))
"""
    realm.python(ALICE, program, file.link, STRIPEWISE_STORE=realm.roots.root)
    numbers = Path(f"{file.link}.numbers")
    parts = realm.roots.root / "files" / os.readlink(numbers).rsplit("/", 1)[1]
    program = """
import struct
import subprocess
import time
fd = os.open(sys.argv[1], os.O_RDONLY)
ends = []
for child in range(4):
    come, go = os.pipe(); ends.append(come)
    if os.fork() == 0:
        got = b''
        while part := os.read(fd, 4000): got += part
        with os.fdopen(go, 'wb') as out: out.write(got)
        os._exit(0)
    os.close(go)
got = b''.join(os.fdopen(end, 'rb').read() for end in ends)
numbers = sorted(n for n, in struct.iter_unpack('<I', got))
assert numbers == list(range(40_000)), len(numbers)
"""
    with holding(MALLORY, list(parts.iterdir())) as got:
        assert "ctl flock" in got
        realm.python(BOB, program, numbers, timeout_s=60)


HELD_UP = """
import threading, time
calls = [lambda: os.close(os.open(sys.argv[1], os.O_RDONLY)), lambda: os.truncate(sys.argv[2], 0)]
outcomes = [None] * len(calls)
def attempt(i):
    try: calls[i]()
    except OSError as e: outcomes[i] = e.errno
held = [threading.Thread(target=attempt, args=(i,)) for i in range(len(calls))]
for thread in held: thread.start()
time.sleep(0.2); begun = time.monotonic()
os.truncate(sys.argv[3], 0)
assert time.monotonic() - begun < 5, 'the other file waits, too'
for thread in held: thread.join()
print(*outcomes)
"""


def test_who_may_write_a_file_or_once_might_holds_others_up_for_a_while_and_not_for_ever(realm: Realm) -> None:
    """He can lock it; what waits for that is one file's use, and it gets an error. All at once, since they wait."""
    bad = realm.files(realm.roots, MALLORY, 3, 0o644)
    once = realm.files(realm.roots, ALICE, 3, 0o666)
    damaged = create_for(realm.fresh("damaged"), 0)
    words = realm.files(damaged, MALLORY, 3, 0o644)
    for file in words:
        write_words(file.part("ctl"), {0: b"x" * 8})
    parts = [bad[0].part("ctl"), bad[1].dir, once[0].part("ctl"), once[1].dir, *(file.dir for file in words)]
    with holding(MALLORY, parts) as got, ThreadPoolExecutor() as pool:
        assert got.count("ctl exclusive bytes") == 2
        assert {f"{path.name} flock" for path in parts if path.name != "ctl"} <= set(got)
        for file in once:
            for path in file.dir, *file.dir.iterdir(), *file.objects:
                path.chmod(path.stat().st_mode & 0o755)
        limit = HOLDS_UP_S + 10
        held = [
            pool.submit(realm.python, user, HELD_UP, *(file.link for file in files), timeout_s=limit)
            for user, files in ((0, bad), (ALICE, once))
        ]
        repaired = pool.submit(stripewise, "store", "fsck", damaged.root, "--repair", code=None, timeout_s=limit)
        for said in held:
            assert said.result().out.split() == [str(errno.EAGAIN)] * 2
        assert "keeps it locked" in repaired.result().out
    assert realm.log_lines("30 s")


FAMILY = """
import time
fd = os.open(sys.argv[1], os.O_WRONLY | os.O_APPEND)
if sys.argv[2] != str(os.geteuid()): os.setgid(int(sys.argv[2])); os.setuid(int(sys.argv[2]))
if sys.argv[3]:
    os.mkdir(sys.argv[3])
    while os.path.exists(sys.argv[3]): time.sleep(0.01)
children = []
for child in range(4):
    pid = os.fork()
    if pid == 0:
        for i in range(1000): assert os.write(fd, b'%d %08d|' % (child, i)) == 11
        os._exit(0)
    children.append(pid)
for i in range(1000): os.write(fd, b'%d %08d|' % (4, i))
for pid in children: assert os.waitpid(pid, 0)[1] == 0
"""


def appended(file: Managed) -> None:
    """Every record that the five have written is there, once."""
    data = execute(["cat", file.link], {"LD_PRELOAD": str(LIBRARY)}).out[320_000:]
    assert sorted(data.split("|")[:-1]) == [f"{child} {i:08}" for child in range(5) for i in range(1000)]


@pytest.mark.parametrize("owner", [0, ALICE, MALLORY], ids=["root's", "his own", "another's"])
def test_children_of_one_who_has_given_up_his_rights_lose_no_append(realm: Realm, owner: int) -> None:
    """A daemon opens its log as root, becomes another user, and forks."""
    file = realm.files(realm.roots, owner, 1, 0o644)[0]
    realm.python(0, FAMILY, file.link, str(ALICE), "", timeout_s=60)
    appended(file)


def test_children_of_one_whose_rights_were_taken_lose_no_append(realm: Realm) -> None:
    file = realm.files(realm.roots, MALLORY, 1, 0o666)[0]
    flag = realm.place(ALICE) / "narrowed"
    with ThreadPoolExecutor() as pool:
        done = pool.submit(realm.python, ALICE, FAMILY, file.link, str(ALICE), flag, timeout_s=60)
        while not flag.exists() and not done.done():
            time.sleep(0.01)
        realm.python(MALLORY, "os.chmod(sys.argv[1], 0o644)", file.link)
        flag.rmdir()
        done.result()
    appended(file)


def codes(store: Store) -> set[str]:
    """What fsck has to say, by its codes."""
    return {finding["code"] for finding in json.loads(store.fsck("--json", code=None).out)["findings"]}


def test_an_older_store_s_locks_are_found_and_mended(realm: Realm) -> None:
    """A session lock that everybody may write, a file's directory that everybody may read."""
    store = create_for(realm.fresh("older"), 0)
    file, rooted = realm.files(store, ALICE, 2, 0o664)
    os.chown(rooted.dir, 0, 0)
    assert file.dir.stat().st_mode & 0o777 == 0o751, "who may write it may lock it"
    session = run_dir(store.root) / "session.lock"
    assert session.stat().st_mode & 0o777 == 0o644
    session.chmod(0o666)
    file.dir.chmod(0o755)
    assert {"lock-writable", "attributes"} <= codes(store)
    store.fsck("--repair", code=None)
    assert (session.stat().st_mode & 0o777, file.dir.stat().st_mode & 0o777) == (0o644, 0o751)
    assert rooted.dir.stat().st_uid == ALICE, "it is she who locks it"
    assert not {"lock-writable", "attributes"} & codes(store)


@contextlib.contextmanager
def cutting(path: Path, user: int) -> Iterator[None]:
    """A user's process that cuts a file of his again and again."""
    words = "while True:\n for size in 0, 65536: os.truncate(sys.argv[1], size)\n time.sleep(0.003)"
    with subprocess.Popen(as_user(user, [PYTHON, "-S", "-c", f"import os, sys, time\n{words}", path])) as child:
        try:
            yield
        finally:
            child.kill()


@pytest.mark.parametrize(
    "verb",
    [("drain", "t0", "--patience", "2s"), ("rebalance",), ("fsck", "--repair"), ("scrub",), ("ls",), ("gc",)],
    ids=lambda verb: verb[0],
)
def test_a_member_who_cuts_his_control_words_ends_no_verb_of_root_s(realm: Realm, verb: tuple[str, ...]) -> None:
    """Nor does it keep others' files from being moved."""
    store = create_for(realm.fresh("cut"), 0, kind="emulated")
    good = [realm.files(store, ALICE, 1, 0o644)[0] for _ in range(3)]
    bad = realm.files(store, MALLORY, 1, 0o666)[0]
    with cutting(bad.part("ctl"), MALLORY):
        for _ in range(3):
            said = stripewise("store", verb[0], store.root, *verb[1:], code=None)
            assert said.code in (0, 1), said.report
            assert "Traceback" not in said.err
    program = "assert open(sys.argv[1], 'rb').read() == b'attacker' * 40000"
    for file in good:
        realm.python(ALICE, program, file.link)
    if verb[0] == "drain":
        assert not [path for file in good for path in file.objects if path.parent.name == "t0"]
