"""Names whose absolute path is longer than a path may be, reached by short relative ones: as on plain files.

A rule cannot name such a file, so a new one there is a plain file; one that is managed already stays reachable.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from rig import BIN, Maker, Store

PATH_MAX = 4096
#: Goes down until the directory's path has so many bytes, then does its work by relative names.
DESCEND = """
import errno, os, sys
os.chdir(sys.argv[1])
length, last = len(sys.argv[1]), int(sys.argv[2])
while length < last:
    step = min(200, last - length - 1) or 1
    os.makedirs("d" * step, exist_ok=True); os.chdir("d" * step); length += step + 1
def say(name, work):
    try: print(name, work())
    except OSError as error: print(name, errno.errorcode[error.errno])
def write(name, flags):
    fd = os.open(name, flags, 0o644)
    try: return os.write(fd, b"content"), os.fstat(fd).st_size
    finally: os.close(fd)
def read(name):
    fd = os.open(name, os.O_RDONLY)
    try: return os.read(fd, 100)
    finally: os.close(fd)
"""
WORK = """
name, other = "f" * 100, "g" * 100
say("create", lambda: write(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL))
say("create again", lambda: write(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL))
say("append", lambda: write(name, os.O_WRONLY | os.O_CREAT | os.O_APPEND))
say("read", lambda: read(name))
say("size", lambda: os.stat(name).st_size)
say("rename", lambda: os.rename(name, other))
say("link", lambda: os.link(other, name))
say("truncate", lambda: os.truncate(other, 3))
say("read other", lambda: read(other))
say("access", lambda: os.access(name, os.R_OK))
say("list", lambda: sorted(entry[0] for entry in os.listdir(".")))
say("unlink", lambda: (os.unlink(name), os.unlink(other)))
say("absent", lambda: os.stat(name))
"""
#: A managed file that is carried down there with its directory.
CARRIED = """
top = sys.argv[3]
os.rename(top, "carried"); os.chdir("carried")
say("read", lambda: read("f"))
say("append", lambda: write("f", os.O_WRONLY | os.O_APPEND))
say("size", lambda: os.stat("f").st_size)
say("kind", lambda: os.path.isfile("f"))
say("chmod", lambda: os.chmod("f", 0o600))
say("rename", lambda: os.rename("f", "g" * 200))
say("read", lambda: read("g" * 200))
say("replace", lambda: (write("h", os.O_WRONLY | os.O_CREAT), os.rename("h", "g" * 200)))
say("read", lambda: read("g" * 200))
say("unlink", lambda: os.unlink("g" * 200))
say("list", lambda: os.listdir("."))
"""


def below(store: Store, code: str, directory: Path, length: int, *more: str | Path) -> list[str]:
    said = store.program(BIN / "python", "-c", DESCEND + code, directory, str(length), *more)
    return said.out.splitlines()


@pytest.mark.parametrize("length", [3960, PATH_MAX - 102, PATH_MAX - 101, PATH_MAX - 100, PATH_MAX - 2, PATH_MAX + 300])
def test_files_in_a_deep_directory_are_worked_on_by_short_names(make_store: Maker, length: int) -> None:
    store = make_store(layout="uneven")
    plain, managed = (below(store, WORK, place, length) for place in (store.plain, store.data))
    assert len(plain) == 13 and plain == managed


@pytest.mark.parametrize("length", [3970, PATH_MAX - 6, PATH_MAX + 300])
def test_a_managed_file_that_is_carried_into_the_depth_stays_reachable(make_store: Maker, length: int) -> None:
    store = make_store(layout="uneven")
    said = []
    for place in (store.plain, store.data):
        (place / "top").mkdir()
        store.program(sys.executable, "-c", f"open({str(place / 'top/f')!r}, 'wb').write(b'before')")
        said.append(below(store, CARRIED, place, length, place / "top"))
    assert len(said[0]) == 11 and said[0] == said[1]
