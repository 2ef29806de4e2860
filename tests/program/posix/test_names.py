"""Names and attributes of managed files: what programs see and change is what they see and change on plain ones."""

from __future__ import annotations

import os
import shutil
import stat
import sys
from pathlib import Path

import pytest
from rig import NATIVE, Maker, Store, execute, is_managed

TIME = "2001-02-03 04:05:06.789"


@pytest.fixture
def store(make_store: Maker) -> Store:
    """A store whose layout cuts files unevenly."""
    return make_store(layout="uneven")


@pytest.fixture(params=["data", "plain"])
def place(request: pytest.FixtureRequest, store: Store) -> Path:
    """Managed and unmanaged: the same must come out."""
    return Path(getattr(store, str(request.param)))


def shell(store: Store, script: str, code: int | None = 0) -> str:
    """What a shell script says."""
    return store.program("sh", "-ec", script, code=code).out


def write(store: Store, file: Path, content: bytes = b"content") -> None:
    """Make a file by a program under the library."""
    store.program("sh", "-c", f"dd of='{file}' 2>/dev/null", stdin=content.decode())


def objects(store: Store) -> list[Path]:
    """All objects of all files."""
    return sorted(path for path in store.base.glob("targets/*/*.data*"))


def test_every_call_on_a_name_says_on_a_managed_file_what_it_says_on_a_plain_one(store: Store) -> None:
    transcripts = []
    for directory in (store.plain / "here", store.data / "here"):
        directory.mkdir()
        transcripts.append(store.program(NATIVE / "names", directory).out.splitlines())
    plain, managed = transcripts
    assert len(plain) > 250 and managed == plain
    assert not list(store.root.glob("files/*")) and not objects(store), "an unlinked file is still there"


def test_find_ls_stat_and_du_see_regular_files(store: Store, place: Path) -> None:
    write(store, place / "f", b"x" * 5000)
    assert is_managed(place / "f") == (place == store.data)
    shell(store, f"mkdir {place}/d; mv {place}/f {place}/d/g; ln {place}/d/g {place}/h; ln -s d/g {place}/s")
    assert shell(store, f"cd {place}; find . -type f | sort").split() == ["./d/g", "./h"]
    assert shell(store, f"cd {place}; find . -type l").split() == ["./s"]
    assert shell(store, f"cd {place}; find . -samefile h | sort").split() == ["./d/g", "./h"]
    assert shell(store, f"cd {place}; find . -links 2 -type f -size 5000c | sort").split() == ["./d/g", "./h"]
    assert [line.split()[0] for line in shell(store, f"ls -l {place}/h {place}/d/g").splitlines()] == ["-rw-r--r--"] * 2
    assert shell(store, f"stat -c '%F %s %h %a' {place}/h").strip() == "regular file 5000 2 644"
    assert shell(store, f"ls -i {place}/h | cut -d' ' -f1") == shell(store, f"ls -i {place}/d/g | cut -d' ' -f1")
    assert int(shell(store, f"du -B1 {place}/h").split()[0]) >= 4096
    assert shell(store, f"readlink -f {place}/s").strip() == f"{place}/d/g"
    assert (
        shell(store, f"test -f {place}/s && test ! -L {place}/h && test {place}/h -ef {place}/d/g && echo yes")
        == "yes\n"
    )


def test_copies_within_the_library_keep_mode_times_and_links(store: Store, place: Path) -> None:
    write(store, place / "f")
    shell(store, f"chmod 640 {place}/f; touch -d '{TIME}' {place}/f; mkdir {place}/tree; ln {place}/f {place}/tree/g")
    shell(store, f"ln {place}/f {place}/tree/h; cp -p {place}/f {place}/p; cp -a {place}/tree {place}/tree2")
    wanted = shell(store, f"stat -c '%a %y %s' {place}/f")
    assert "2001-02-03 04:05:06.789" in wanted
    for copy in ("p", "tree2/g", "tree2/h"):
        assert shell(store, f"stat -c '%a %y %s' {place}/{copy}") == wanted
    assert shell(store, f"stat -c %h {place}/p {place}/tree2/g {place}/f").split() == ["1", "2", "3"]
    shell(
        store, f"cmp {place}/tree2/h {place}/f; install -m 711 {place}/f {place}/i; install -m 700 {place}/p {place}/i"
    )
    assert shell(store, f"stat -c %a {place}/i").strip() == "700"


def test_the_data_go_with_the_last_name(store: Store) -> None:
    write(store, store.data / "f")
    shell(store, f"cd {store.data}; ln f g; ln g h; rm f")
    assert shell(store, f"cat {store.data}/g") == "content"
    write(store, store.data / "other", b"other")
    shell(store, f"cd {store.data}; mv -f other g")
    assert shell(store, f"cat {store.data}/h {store.data}/g") == "contentother"
    assert len(list(store.root.glob("files/*"))) == 2
    shell(store, f"cd {store.data}; rm h g")
    assert not list(store.root.glob("files/*")) and not objects(store)


def test_a_rename_onto_another_name_of_the_file_changes_nothing(store: Store) -> None:
    write(store, store.data / "f")
    code = (
        "import os, sys; os.link(sys.argv[1], sys.argv[2]); os.rename(sys.argv[1], sys.argv[2])\n"
        "print(os.stat(sys.argv[1]).st_nlink)"
    )
    assert store.program(sys.executable, "-c", code, store.data / "f", store.data / "g").out == "2\n"
    assert shell(store, f"cat {store.data}/f {store.data}/g") == "contentcontent"


def test_objects_and_control_words_take_mode_owner_and_group(store: Store) -> None:
    write(store, store.data / "f", b"x" * 300_000)
    parts = [*objects(store), *store.root.glob("files/*/ctl")]
    assert len(parts) > 3
    shell(store, f"chmod 620 {store.data}/f")
    assert {stat.S_IMODE(part.stat().st_mode) for part in objects(store)} == {0o620}
    assert {stat.S_IMODE(part.stat().st_mode) for part in store.root.glob("files/*/ctl")} == {0o664}
    shell(store, f"chmod 4 {store.data}/f")
    assert {stat.S_IMODE(part.stat().st_mode) for part in objects(store)} == {0o604}
    if os.geteuid() != 0:
        pytest.skip("the rest was not run: giving files away needs root")
    shell(store, f"chown 1234:4321 {store.data}/f")
    everything = [*parts, *store.root.glob("files/*"), *store.root.glob("files/*/*"), store.data / "f"]
    assert {(part.lstat().st_uid, part.lstat().st_gid) for part in everything} == {(1234, 4321)}


def test_python_sets_gets_and_removes_extended_attributes(store: Store, place: Path) -> None:
    write(store, place / "f")
    code = (
        "import os, sys; f = sys.argv[1]\n"
        "os.setxattr(f, 'user.a', b'1'); fd = os.open(f, os.O_RDWR); os.setxattr(fd, 'user.b', b'2' * 1000)\n"
        "assert sorted(os.listxattr(fd)) == ['user.a', 'user.b'] == sorted(os.listxattr(f, follow_symlinks=False))\n"
        "assert os.getxattr(f, 'user.b') == b'2' * 1000 and os.getxattr(fd, 'user.a') == b'1'\n"
        "os.removexattr(f, 'user.a', follow_symlinks=False); os.removexattr(fd, 'user.b')\n"
        "assert os.listxattr(f) == []\n"
    )
    store.program(sys.executable, "-c", code, place / "f")


def test_a_descriptor_stays_usable_when_the_mode_changes(store: Store, place: Path) -> None:
    code = (
        "import os, sys; fd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT, 0o600)\n"
        "os.chmod(sys.argv[1], 0); os.pwrite(fd, b'x' * 300000, 0); os.ftruncate(fd, 200000); os.fsync(fd)\n"
        "assert os.pread(fd, 300000, 0) == b'x' * 200000; assert os.fstat(fd).st_mode & 0o777 == 0\n"
    )
    store.program(sys.executable, "-c", code, place / "f")


def test_a_copied_link_keeps_its_hands_off_the_file_s_attributes(store: Store) -> None:
    write(store, store.data / "f")
    execute(["cp", "-a", store.data / "f", store.data / "copy"])
    before = shell(store, f"stat -c '%a %Y' {store.data}/f")
    for command in ("chmod 777", "touch -d 2001-01-01", "setfattr -n user.a -v 1", "chgrp 0"):
        if shutil.which(command.split()[0]):
            said = store.program("sh", "-c", f"{command} {store.data}/copy", code=None)
            assert said.code != 0 and "Read-only" in said.err, said.report
    assert shell(store, f"stat -c '%a %Y' {store.data}/f") == before
    (store.data / "copy").unlink()


def test_an_open_file_gets_a_name_of_its_own_and_never_heads(store: Store) -> None:
    write(store, store.data / "f")
    code = (
        "import os, sys; fd = os.open(sys.argv[1], os.O_RDWR)\n"
        "os.link(f'/proc/self/fd/{fd}', sys.argv[2], src_dir_fd=os.open('/', os.O_RDONLY), follow_symlinks=True)\n"
    )
    store.program(sys.executable, "-c", code, store.data / "f", store.plain / "name")
    assert is_managed(store.plain / "name")
    assert (store.plain / "name").lstat().st_ino == (store.data / "f").lstat().st_ino


SPOOLED = """
import os, sys, time
come, go = sys.argv[1:]
end = time.monotonic() + 2
if os.fork() == 0:
    number = 0
    while time.monotonic() < end:
        number += 1
        fd = os.open(f"{come}/{number}", os.O_CREAT | os.O_EXCL | os.O_RDWR)
        os.write(fd, b"spooled"); os.close(fd)
    os._exit(0)
while time.monotonic() < end:
    for name in os.listdir(come): os.rename(f"{come}/{name}", f"{go}/{name}")
assert os.wait()[1] == 0
for place in sys.argv[1:]:
    for name in os.listdir(place): assert open(f"{place}/{name}", "rb").read() == b"spooled"
"""


def test_a_new_file_that_another_process_renames_at_once_is_kept(make_store: Maker) -> None:
    store = make_store(layout="striped")
    places = [store.data / name for name in ("come", "go")]
    for place in places:
        place.mkdir()
    store.program(sys.executable, "-S", "-c", SPOOLED, *places)
