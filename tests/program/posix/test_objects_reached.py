"""Objects are made when a file first reaches them: what is there when, what a lost one is, who may leave them out."""

from __future__ import annotations

import errno
import json
import os
import subprocess
from pathlib import Path
from textwrap import dedent

import pytest
from hostile import PYTHON, needs_root
from rig import Maker, Store, crc32c, dirs, stripewise

WIDTH = 64 * 1024
TARGETS = 4
OPEN = "import os, sys\npath = sys.argv[1]\nfd = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)\n"


def objects(store: Store) -> list[str]:
    """Targets that hold an object of the one file, in order."""
    return [t.name for t in store.targets if list((store.base / "targets" / t.name).glob("*.data*"))]


def on(store: Store, path: Path, body: str, *words: str) -> str:
    """What a Python program prints that has opened a file, `fd`, for reading and writing."""
    return store.program(PYTHON, "-c", OPEN + dedent(body), path, *words).out


#: Ways to make a file `end` bytes long.
WAYS = {
    "write": "os.pwrite(fd, b'x' * 100, end - 100)",
    "truncate": "os.ftruncate(fd, end)",
    "allocate": "os.posix_fallocate(fd, 0, end)",
    "append": "os.lseek(fd, 0, 2); os.write(fd, b'a' * (end - os.fstat(fd).st_size))",
    "vector": "os.pwritev(fd, [b'v' * 10, b'w' * 20], end - 30)",
    "path": "os.truncate(path, end)",
    "copy": "s = os.memfd_create('s'); os.write(s, b'c' * end); os.lseek(fd, 0, 0); os.sendfile(fd, s, 0, end)",
}


@pytest.mark.parametrize("way", WAYS)
def test_a_file_has_the_objects_that_it_reaches_and_reads_as_a_plain_one(make_store: Maker, way: str) -> None:
    store = make_store(dirs(TARGETS))
    body = f"""
        for end in map(int, sys.argv[2:]):
            {WAYS[way]}
            print(os.fstat(fd).st_size, os.pread(fd, end, 0) == open(path, 'rb').read())
    """
    on(store, store.data / "f", body)
    assert objects(store) == []
    for end, there in ((100, 1), (WIDTH, 1), (WIDTH + 1, 2), (3 * WIDTH + 1, 4)):
        said = on(store, store.data / "f", body, str(end))
        assert said == on(store, store.plain / "f", body, str(end)) == f"{end} True\n"
        assert len(objects(store)) == there, f"at {end} bytes"
        assert store.program("cat", store.data / "f").out == (store.plain / "f").read_text()


def test_a_map_of_more_than_the_file_shows_what_the_file_grows_to(make_store: Maker) -> None:
    store = make_store(dirs(TARGETS))
    body = """
        import ctypes
        libc = ctypes.CDLL(None, use_errno=True)
        libc.mmap.restype = ctypes.c_void_p
        libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
        os.ftruncate(fd, 4096)
        at = libc.mmap(None, 262144, 3, 1, fd, 0)
        assert at != 2**64 - 1
        os.ftruncate(fd, 262144)
        os.pwrite(fd, b'grown', 200000)
        print(ctypes.string_at(at + 200000, 5))
        ctypes.memmove(at + 100000, b'mapped', 6)
        print(os.pread(fd, 6, 100000))
    """
    assert on(store, store.data / "f", body) == "b'grown'\nb'mapped'\n"


def lose(store: Store, stripe: int) -> str:
    """The object of one stripe of the file's cycle is gone; the target that had it."""
    (told,) = json.loads(stripewise("store", "layout", store.data / "f", "--json").out)["files"]
    target = str(told["regions"][0]["stripes"][stripe][0])
    (path,) = (store.base / "targets" / target).glob("*.data")
    path.unlink()
    return target


TOUCHES = {
    "read": "os.pread(fd, 10, 2 * 65536)",
    "write": "os.pwrite(fd, b'new', 2 * 65536)",
    "sync": "os.fsync(fd)",
    "grow": "os.pwrite(fd, b'new', 4 * 65536 + 2 * 65536)",
    "stat": "os.fstat(fd)",
    "chmod": "os.fchmod(fd, 0o666)",
}


@pytest.mark.parametrize("touch", TOUCHES)
def test_an_object_that_the_file_had_reached_is_lost_and_nobody_makes_it_anew(make_store: Maker, touch: str) -> None:
    store = make_store(dirs(TARGETS))
    store.check_at_end = False
    (store.base / "source").write_bytes(os.urandom(TARGETS * WIDTH))
    store.program("cp", store.base / "source", store.data / "f")
    lost = lose(store, 2)
    body = f"""
        try:
            {TOUCHES[touch]}
        except OSError as e:
            print(e.errno)
    """
    assert on(store, store.data / "f", body) == f"{errno.EIO}\n"
    assert objects(store) == [target.name for target in dirs(TARGETS) if target.name != lost]
    found = store.fsck(code=None)
    assert found.code != 0 and "is missing" in found.out + found.err


def test_an_object_that_no_byte_had_come_to_is_made_when_one_comes(make_store: Maker) -> None:
    store = make_store(dirs(TARGETS))
    on(store, store.data / "f", "os.ftruncate(fd, 4 * 65536)")
    assert len(objects(store)) == TARGETS
    on(store, store.data / "f", "os.truncate(path, 10)")
    for stripe in (1, 2, 3):
        lose(store, stripe)
    store.fsck()
    grow = "os.pwrite(fd, b'end', 3 * 65536)\nprint(sorted(set(os.pread(fd, 10**6, 10))))"
    assert on(store, store.data / "f", grow) == "[0, 100, 101, 110]\n"
    assert len(objects(store)) == TARGETS


#: An ACL by which user 1003 may write, as the kernel takes it.
ACL = (
    "02000000 01000600ffffffff 02000600eb030000 04000400ffffffff 10000600ffffffff 20000400ffffffff"  # version, entries
)
RIGHTS = {
    "group": "os.fchmod(fd, 0o664)",
    "others": "os.chmod(path, 0o666)",
    "list": f"os.setxattr(fd, 'system.posix_acl_access', bytes.fromhex('{ACL}'))",
    "owner": "os.chown(path, 1003, -1)",
}


@needs_root
@pytest.mark.parametrize("change", RIGHTS)
def test_whoever_is_let_in_to_write_finds_all_objects(make_store: Maker, change: str) -> None:
    store = make_store(dirs(TARGETS))
    on(store, store.data / "f", "os.write(fd, b'x')\nos.fchmod(fd, 0o600)")
    assert len(objects(store)) == 1
    said = store.program(PYTHON, "-c", OPEN + RIGHTS[change], store.data / "f", code=None)
    if "Operation not supported" in said.err:
        pytest.skip("not run: the file system has no ACLs")
    assert said.code == 0, said.report
    assert len(objects(store)) == TARGETS


def test_what_lets_nobody_in_makes_no_objects(make_store: Maker) -> None:
    store = make_store(dirs(TARGETS))
    body = """
        os.write(fd, b'x')
        for mode in (0o444, 0o400, 0, 0o755, 0o4755, 0o644):
            os.fchmod(fd, mode)
        os.utime(fd)
        os.rename(path, path + '2')
        os.close(os.open(path + '3', os.O_RDWR | os.O_CREAT, 0o444))
    """
    on(store, store.data / "f", body)
    assert len(objects(store)) == 1
    store.program("cp", "-p", store.data / "f2", store.data / "copy")
    every = [path for t in store.targets for path in (store.base / "targets" / t.name).glob("*.data*")]
    assert len(every) == 2, every


@needs_root
@pytest.mark.parametrize("has_acl", [False, True])
def test_objects_that_come_later_have_head_s_group_mode_and_acl(make_store: Maker, has_acl: bool) -> None:
    """The group is that of a set-group-id directory, the ACL the directory's default one."""
    store, group = make_store(dirs(TARGETS)), 7
    made = store.data / "made"
    made.mkdir()
    os.chown(made, 0, group)
    made.chmod(0o2755)
    try:
        if has_acl:
            os.setxattr(made, "system.posix_acl_default", bytes.fromhex(ACL))
    except OSError as error:
        if error.errno != errno.EOPNOTSUPP:
            raise
    on(store, made / "f", f"os.umask(0o077); os.pwrite(fd, b'x', {WIDTH * TARGETS} - 1); os.pwrite(fd, b'y', 0)")
    (head,) = store.root.glob("files/*/head")
    found = [next((store.base / "targets" / t.name).glob("*.data")) for t in store.targets]

    def rights(path: Path) -> tuple[int, int, int, list[str]]:
        st = path.stat()
        return st.st_uid, st.st_gid, st.st_mode & 0o077, os.listxattr(path)

    assert head.stat().st_gid == group
    assert [rights(path) for path in found] == [rights(head)] * TARGETS


def test_in_a_shared_store_all_objects_are_made_with_the_file(make_store: Maker) -> None:
    store = make_store(dirs(TARGETS), shared=True)
    on(store, store.data / "f", "")
    assert len(objects(store)) == TARGETS


@needs_root
@pytest.mark.parametrize("gives_up", ["os.setgid(1003); os.setuid(1003)", "os.chroot('/')", "os.seteuid(1003)"])
def test_one_who_gives_up_his_rights_still_writes_what_he_has_open(make_store: Maker, gives_up: str) -> None:
    store = make_store(dirs(TARGETS))
    body = f"""
        {gives_up}
        os.pwrite(fd, b'grown', 3 * 65536)
        print(os.fstat(fd).st_size, os.pread(fd, 5, 3 * 65536))
    """
    assert on(store, store.data / "f", body) == f"{3 * WIDTH + 5} b'grown'\n"
    assert len(objects(store)) == TARGETS


def test_processes_that_reach_an_object_together_make_it_once(make_store: Maker) -> None:
    store = make_store(dirs(TARGETS))
    body = """
        for turn in range(40):
            name = f'{path}{turn}'
            os.close(os.open(name, os.O_CREAT | os.O_RDWR))
            pids = []
            for child in range(4):
                pid = os.fork()
                if pid == 0:
                    fd = os.open(name, os.O_RDWR)
                    for k in range(8):
                        os.pwrite(fd, bytes([65 + child]) * 4096, (k * 4 + child) * 16384)
                    os._exit(0)
                pids.append(pid)
            assert all(os.waitpid(pid, 0)[1] == 0 for pid in pids)
            data = open(name, 'rb').read()
            assert len(data) == 31 * 16384 + 4096, len(data)
            for i in range(32):
                assert data[i * 16384 : i * 16384 + 4096] == bytes([65 + i % 4]) * 4096, (turn, i)
    """
    on(store, store.data / "f", body)


def test_a_maker_who_fails_takes_nothing_from_one_who_does_not(make_store: Maker) -> None:
    store = make_store(dirs(TARGETS))
    no_descriptors = """
        import resource, time
        taken = [os.open('/dev/null', os.O_RDONLY) for _ in range(40)]
        resource.setrlimit(resource.RLIMIT_NOFILE, (int(sys.argv[2]),) * 2)
        end = time.monotonic() + 0.2
        while time.monotonic() < end:
            try:
                os.pwrite(fd, b'A', 3 * 65536)
            except OSError as e:
                assert e.errno == 24
    """
    for turn, limit in enumerate((57, 58, 59, 60, 61)):
        file = store.data / f"f{turn}"
        on(store, file, "os.write(fd, b'x')")
        failing = subprocess.Popen(
            [PYTHON, "-c", OPEN + dedent(no_descriptors), file, str(limit)],
            env=store.environment(),
            stderr=subprocess.DEVNULL,
        )
        while failing.poll() is None:
            on(store, file, "os.pwrite(fd, b'IMPORTANT', 3 * 65536)\nos.fsync(fd)")
        failing.wait()
        assert "b'MPORTANT'" in on(store, file, "print(os.pread(fd, 8, 3 * 65536 + 1))")


def test_a_layout_of_the_version_before_opens(make_store: Maker) -> None:
    store = make_store(dirs(TARGETS))
    on(store, store.data / "f", "os.pwrite(fd, b'old', 3 * 65536)")
    (layout,) = store.root.glob("files/*/layout")
    data = bytearray(layout.read_bytes())
    assert data[8] == 2
    data[8:16] = b"\1\0\0\0\0\0\0\0"
    data[12:16] = crc32c(bytes(data)).to_bytes(4, "little")
    layout.write_bytes(data)
    assert on(store, store.data / "f", "print(os.pread(fd, 3, 3 * 65536))") == "b'old'\n"


def test_an_adopted_file_of_a_few_bytes_has_the_object_that_it_reaches(make_store: Maker) -> None:
    store = make_store(dirs(TARGETS))
    plain = store.plain / "f"
    plain.write_bytes(b"few")
    stripewise("store", "adopt", "--store", store.root, plain)
    assert len(objects(store)) == 1
    assert store.program("cat", plain).out == "few"
    stripewise("store", "export", plain)
    assert plain.read_bytes() == b"few" and objects(store) == []
