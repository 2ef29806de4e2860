"""What a program leaves behind: nothing of files without a name, and rights that fsck agrees with.

Times and streams at their corner cases, too.
"""

from __future__ import annotations

import sys

import pytest
from rig import Maker, Store, Target

OPENED = "import os, sys; fd = os.open('a', os.O_RDWR | os.O_CREAT); os.write(fd, b'x' * 300000); os.unlink('a')"


def python(store: Store, text: str) -> str:
    """A Python program in the managed directory; what it prints."""
    return store.program(sys.executable, "-c", f"import os; os.chdir({str(store.data)!r})\n{text}").out


def stored(store: Store) -> list[str]:
    """Everything that the store holds of files, in its own directory and on its targets."""
    kept = [*(store.root / "files").iterdir(), *(store.root / "trash").iterdir()]
    return [path.name for path in (*kept, *(store.base / "targets").glob("*/*.data*"))]


@pytest.mark.parametrize("end", ["sys.exit(0)", "os._exit(0)", "os.fork() or os._exit(0); os.wait()", "pass"])
def test_a_file_without_a_name_goes_with_the_process_that_has_it_open(make_store: Maker, end: str) -> None:
    store = make_store()
    python(store, f"{OPENED}\n{end}")
    assert stored(store) == []


def test_a_file_without_a_name_outlives_a_child_that_ends_first(make_store: Maker) -> None:
    store = make_store()
    child = "pid = os.fork()\nif pid == 0: os._exit(0)\nos.waitpid(pid, 0)"
    said = python(store, f"{OPENED}\n{child}\nprint(len(os.pread(fd, 400000, 0)), os.pread(fd, 2, 299998))")
    assert said == "300000 b'xx'\n"
    assert stored(store) == []


def test_a_file_without_a_name_outlives_the_process_that_made_it(make_store: Maker) -> None:
    store = make_store()
    text = f"""{OPENED}
ready, go = os.pipe(), os.pipe()
if os.fork():
    os.read(ready[0], 1)
    os._exit(0)
os.write(ready[1], b'r')
while os.getppid() == {{parent}}:
    os.sched_yield()
with open('seen', 'w') as seen:
    seen.write(str(len(os.pread(fd, 400000, 0))))
"""
    python(store, f"parent = os.getpid()\n{text.replace('{parent}', 'parent')}")
    assert (
        store.program("sh", "-c", f"while [ ! -s {store.data}/seen ]; do :; done; cat {store.data}/seen").out
        == "300000"
    )


def test_a_file_goes_though_it_was_once_closed_beside_a_slow_request(make_store: Maker) -> None:
    slow = Target("t0", "hdd", "emulated", 0, startup_s=1.0)
    store = make_store(targets=[slow])
    text = """
import threading, time
slow = os.open('slow', os.O_RDWR | os.O_CREAT)
writer = threading.Thread(target=os.pwrite, args=(slow, b'x', 0))
writer.start()
time.sleep(0.3)
os.close(os.open('a', os.O_RDWR | os.O_CREAT))
print(writer.is_alive())
writer.join()
fd = os.open('a', os.O_RDWR)
os.unlink('a')
os.close(fd)
print(len(os.listdir(FILES)))
"""
    assert python(store, text.replace("FILES", repr(str(store.root / "files")))) == "True\n1\n"


@pytest.mark.parametrize("mode", [0o400, 0o444, 0o600, 0o640, 0o666, 0o700, 0o755, 0o1644])
def test_fsck_agrees_with_the_rights_that_the_library_gives(make_store: Maker, mode: int) -> None:
    store = make_store()
    python(store, f"open('a', 'w').write('x' * 300000); os.chmod('a', {mode})")
    assert store.fsck().out == f"{store.root}: sound\n"


def test_a_time_that_is_omitted_stays(make_store: Maker) -> None:
    store = make_store()
    text = """
import ctypes
omit = (ctypes.c_long * 4)(7, 0, 0, (1 << 30) - 2)
fd = os.open('a', os.O_RDWR | os.O_CREAT)
os.write(fd, b'x')
os.pwrite(fd, b'x', 5000)
before = os.fstat(fd)
assert ctypes.CDLL(None).futimens(fd, omit) == 0
after = os.fstat(fd)
print(after.st_mtime_ns == before.st_mtime_ns, after.st_atime_ns)
"""
    assert python(store, text) == "True 7000000000\n"


def test_freopen_onto_its_own_file_writes_what_was_buffered_before_it_cuts(make_store: Maker) -> None:
    store = make_store()
    text = """
import ctypes
c = ctypes.CDLL(None)
c.fopen.restype = c.freopen.restype = ctypes.c_void_p
stream = ctypes.c_void_p(c.fopen(b'a', b'a'))
c.fputs(b'before', stream)
stream = ctypes.c_void_p(c.freopen(b'a', b'w', stream))
c.fputs(b'after', stream)
c.fclose(stream)
print(open('a').read())
"""
    assert python(store, text) == "after\n"


def test_a_stream_knows_its_place_when_it_wrote_over_what_it_had_read(make_store: Maker) -> None:
    store = make_store()
    text = """
import ctypes
c = ctypes.CDLL(None)
c.fopen.restype = ctypes.c_void_p
open('a', 'w').write('0123456789' * 3000)
stream = ctypes.c_void_p(c.fopen(b'a', b'r+'))
c.getc(stream)
c.fseek(stream, 1001, 0)
c.fputs(b'abcd', stream)
c.fseek(stream, 5, 1)
print(c.ftell(stream), chr(c.getc(stream)))
c.fclose(stream)
"""
    assert python(store, text) == "1010 0\n"
