"""Members of a shared store: each has his own files and nothing else, whatever he writes into their control words and
whatever names he takes first. He may hold others up for a while, never for ever.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import stat
import struct
from pathlib import Path

import pytest
from hostile import (
    ALICE,
    GROUP,
    HOLDING,
    LIES,
    MALLORY,
    NEVER,
    PYTHON,
    TREASURE,
    Managed,
    Realm,
    acting_as,
    as_user,
    create_for,
    ctl_words,
    needs_root,
    record_link,
    run_dir,
    write_words,
)
from rig import SOAK, execute, stripewise, talking

pytestmark = needs_root


def take(realm: Realm, user: int = ALICE, mode: int = 0o600) -> Managed:
    """A file of a user's in the shared store."""
    return realm.files(realm.roots, user, 1, mode)[0]


def content(file: Managed) -> dict[str, tuple[int, int, bytes]]:
    """Owner, mode and bytes of the file's objects and parts."""
    paths = [*file.objects, file.dir / "layout"]
    return {path.name: (path.lstat().st_uid, path.lstat().st_mode, path.read_bytes()) for path in paths}


def closed_to_this_user(file: Managed) -> None:
    """No part that holds bytes, or decides about them, can be opened; the size in ctl is no secret."""
    parts = [(path, flags) for path in (*file.objects, file.dir / "head") for flags in (os.O_RDONLY, os.O_WRONLY)]
    for path, flags in [*parts, (file.dir / "ctl", os.O_WRONLY), (file.dir / "layout", os.O_WRONLY)]:
        with pytest.raises(PermissionError):
            os.close(os.open(path, flags))
            raise AssertionError(f"{path.name} can be opened with flags {flags}")


#: What a victim does with a file whose control words are lies; no answer is a hang or a signal.
USE = """
import errno, json
said = {}
def attempt(name, step):
    try: said[name] = step()
    except OSError as error: said[name] = errno.errorcode[error.errno]
link, writes = sys.argv[1], len(sys.argv) > 2
def read():
    fd = os.open(link, os.O_RDONLY)
    try:
        for _ in range(100): data = os.pread(fd, 4096, 0)
        os.pread(fd, 4096, 1 << 40); os.pread(fd, 4096, (1 << 62))
        return data[:8].decode(errors="replace")
    finally: os.close(fd)
def end():
    fd = os.open(link, os.O_RDONLY)
    try: return os.lseek(fd, 0, os.SEEK_END)
    finally: os.close(fd)
def write(flags):
    fd = os.open(link, flags)
    try: os.write(fd, b"attacker" * 10); os.fsync(fd)
    finally: os.close(fd)
attempt("size", lambda: os.stat(link).st_size)
attempt("links", lambda: os.stat(link).st_nlink)
attempt("read", read)
attempt("end", end)
attempt("hole", lambda: os.lseek(os.open(link, os.O_RDONLY), 0, os.SEEK_HOLE))
if writes:
    attempt("write", lambda: write(os.O_WRONLY))
    attempt("append", lambda: write(os.O_WRONLY | os.O_APPEND))
    attempt("cut", lambda: os.truncate(link, 100))
    attempt("after", lambda: os.stat(link).st_size)
print(json.dumps(said))
"""


@pytest.mark.parametrize("lie", LIES)
@pytest.mark.parametrize("user", [0, ALICE])
def test_readers_of_a_file_whose_control_words_are_lies_go_on(realm: Realm, lie: str, user: int) -> None:
    file = realm.file(realm.roots)
    write_words(file.dir / "ctl", ctl_words(**LIES[lie]))
    said = json.loads(realm.python(user, USE, file.link).out)
    assert said["read"] in ("attacker", "EIO") or (lie in ("unlinked", "every flag") and said["read"] == "ENOENT"), said
    for name in ("size", "end", "links"):
        assert not isinstance(said[name], int) or said[name] >= 0, said


@pytest.mark.parametrize("lie", [lie for lie in LIES if lie not in HOLDING])
def test_writers_of_a_file_whose_control_words_are_lies_go_on_or_get_an_error(realm: Realm, lie: str) -> None:
    file = realm.file(realm.roots)
    write_words(file.dir / "ctl", ctl_words(**LIES[lie]))
    realm.python(ALICE, USE, file.link, "writes")


def test_control_words_of_any_content_harm_nobody(realm: Realm) -> None:
    """Random words but for the magic, the boot and a state that keeps nobody waiting."""
    treasure = realm.treasure(ALICE)
    rounds = 2000 if SOAK else 60
    chance = random.Random(1)
    files = [realm.file(realm.roots) for _ in range(10)]
    program = (
        "import errno, signal\n"
        "for link in sys.argv[1:]:\n"
        "    pid = os.fork()\n"
        "    if pid == 0:\n"
        "        signal.alarm(8)\n"
        "        for step in (lambda: os.stat(link), lambda: open(link, 'rb').read(1 << 16), lambda: open(link, "
        "'r+b').write(b'x' * 5000),\n"
        "                     lambda: os.posix_fallocate(os.open(link, os.O_RDWR), 0, 8192), "
        "lambda: os.lseek(os.open(link, os.O_RDWR), 5, 2)):\n"
        "            try: step()\n"
        "            except (OSError, OverflowError, MemoryError): pass\n"
        "        os._exit(0)\n"
        "    status = os.wait()[1]\n"
        "    assert status == 0, (link, status)\n"
    )
    for _ in range(rounds // len(files)):
        for file in files:
            words = {
                at: struct.pack("<Q", chance.choice([0, 1, NEVER, 1 << 63, chance.getrandbits(64)]))
                for at in range(64, 176, 8)
            }
            words[80] = struct.pack("<Q", chance.getrandbits(64) & ~2)
            words[128] = struct.pack("<Q", chance.getrandbits(64) & ~7 | chance.choice([0, 1, 4]))
            write_words(file.dir / "ctl", words)
        realm.python(ALICE, program, *(file.link for file in files), timeout_s=60)
    treasure.check()


@pytest.mark.parametrize("kind", ["symbolic link", "fifo", "hard link", "directory"])
def test_a_layout_that_waits_to_be_published_is_looked_at_like_any_part(realm: Realm, kind: str) -> None:
    """A waiter takes the mover's last step, and so puts in place what lies under a name that the file's owner chose."""
    file = realm.file(realm.roots)
    treasure = realm.treasure(ALICE)
    path = file.dir / f"layout.{5:016x}"
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "hard link":
        os.link(treasure.path, path)
    elif kind == "directory":
        path.mkdir()
    else:
        path.symlink_to(treasure.path)
    write_words(file.dir / "ctl", ctl_words(move=3, start=0, len=NEVER, deadline=1, next=5))
    before = treasure.path.stat()
    program = (
        "for flags in (os.O_RDWR, os.O_RDONLY):\n"
        "    try:\n"
        "        fd = os.open(sys.argv[1], flags)\n"
        "        assert b'TREASURE' not in os.pread(fd, 100000, 0)\n"
        "        os.pwrite(fd, b'x' * 100000, 0)\n"
        "    except OSError: pass\n"
    )
    for user in (ALICE, 0):
        realm.python(user, program, file.link)
    after = treasure.path.stat()
    assert (before.st_mode, before.st_uid, before.st_mtime_ns) == (after.st_mode, after.st_uid, after.st_mtime_ns)


def test_a_trash_directory_of_the_victim_s_id_keeps_her_from_nothing(realm: Realm) -> None:
    for kind in ("directory", "full directory", "file", "symbolic link"):
        file = take(realm)
        name = realm.roots.root / "trash" / file.id
        objects = file.objects
        aside = realm.place(MALLORY)
        with acting_as(MALLORY):
            if kind == "file":
                name.touch()
            elif kind == "symbolic link":
                name.symlink_to(aside)
            else:
                name.mkdir()
                name.chmod(0o777)
                if kind == "full directory":
                    (name / "x").touch()
        said = realm.run(ALICE, "rm", "-f", file.link, code=None)
        left = [path for path in objects if path.exists()]
        assert said.code == 0 and not os.path.lexists(file.link), f"{kind}: {said.report}"
        assert not left, f"{kind}: objects are left: {left}"
        assert not list(aside.iterdir())


@pytest.mark.parametrize("ending", ["data1", "repl"])
def test_objects_that_the_attacker_makes_first_get_no_bytes(realm: Realm, ending: str) -> None:
    file = take(realm)
    squatted = []
    for target in file.targets:
        path = target / f"{file.id}.{ending}"
        with acting_as(MALLORY):
            path.touch()
            path.chmod(0o666)
        squatted.append(path)
    program = (
        "with open(sys.argv[1], 'r+b') as file:\n"
        "    file.write(b'TREASURE' * 60000); file.flush(); os.ftruncate(file.fileno(), 100000); "
        "os.posix_fallocate(file.fileno(), 0, 900000)\n"
        "    os.fsync(file.fileno())\n"
        "os.truncate(sys.argv[1], 10); os.chmod(sys.argv[1], 0o604); os.unlink(sys.argv[1])\n"
    )
    realm.python(ALICE, program, file.link)
    assert all(
        path.stat().st_size == 0 and path.stat().st_uid == MALLORY and path.stat().st_mode & 0o777 == 0o666
        for path in squatted
    )


def test_what_lies_in_the_run_directory_keeps_nobody_from_a_truncate(realm: Realm) -> None:
    """Names like slots', of every kind; none is anybody's who lives."""
    run = run_dir(realm.roots.root)
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    treasure = realm.treasure(ALICE)
    made = [run / f"{boot}.{4000 + number}-{number:016x}.slot" for number in range(7)]
    os.mkfifo(made[0], 0o666)
    made[1].symlink_to(treasure.path)
    made[2].mkdir()
    made[3].touch()
    os.link(treasure.path, made[4])
    made[5].write_bytes(b"SWSLOT01" + b"\xff" * 65528)
    made[6].symlink_to("nowhere")
    for path in made:
        if path.name != made[4].name:
            os.chown(path, MALLORY, MALLORY, follow_symlinks=False)
    file = take(realm)
    program = "os.truncate(sys.argv[1], 1000); os.truncate(sys.argv[1], 10); assert os.stat(sys.argv[1]).st_size == 10"
    try:
        realm.python(ALICE, program, file.link)
    finally:
        for path in made:
            if path.is_dir() and not path.is_symlink():
                path.rmdir()
            else:
                path.unlink(missing_ok=True)
    assert treasure.path.read_bytes() == TREASURE


def test_a_slot_s_second_name_does_not_make_a_living_process_a_dead_one(realm: Realm) -> None:
    """Where fs.protected_hardlinks is off a member can give it one, and then take away neither."""
    file = take(realm, mode=0o666)
    program = (
        "fd = os.open(sys.argv[1], os.O_RDWR); os.pread(fd, 8, 0); print(os.getpid(), flush=True)\n"
        "sys.stdin.readline(); os.pwrite(fd, b'x', 0); os.fsync(fd); os.ftruncate(fd, 100); print('went on')\n"
    )
    command = as_user(ALICE, [PYTHON, "-S", "-c", f"import os, sys\n{program}", file.link])
    with talking(command, realm.environment()) as child:
        pid = child.line().strip()
        slots = list(run_dir(realm.roots.root).glob(f"*.{pid}-*.slot"))
        assert len(slots) == 1, slots
        os.link(slots[0], slots[0].with_name("second"))
        realm.python(0, "os.truncate(sys.argv[1], 200)", file.link)
        assert slots[0].exists(), "a living process's slot was removed"
        with acting_as(MALLORY), pytest.raises(PermissionError):
            slots[0].unlink()
        with acting_as(MALLORY), pytest.raises(PermissionError):
            os.rename(slots[0], slots[0].with_name("third"))
        assert child.end(10).out == "went on\n"
    (run_dir(realm.roots.root) / "second").unlink(missing_ok=True)


@pytest.mark.parametrize("where", ["targets", "files"])
@pytest.mark.parametrize("how", ["default ACL", "set-group-id"])
def test_a_store_s_owner_gains_no_right_to_a_member_s_bytes_by_his_directories(
    realm: Realm, how: str, where: str
) -> None:
    """Of a store that Alice has listed. Its owner could remove her objects, but not read them."""
    store = create_for(realm.fresh("spying"), MALLORY)
    tops = (
        [store.base / "targets" / target.name for target in store.targets]
        if where == "targets"
        else [store.root / "files"]
    )
    for top in tops:
        if how == "default ACL":
            entries = [(1, 7, NEVER), (2, 7, MALLORY), (4, 7, NEVER), (16, 7, NEVER), (32, 7, NEVER)]
            value = struct.pack("<I", 2) + b"".join(
                struct.pack("<HHI", tag, perm, who & 0xFFFFFFFF) for tag, perm, who in entries
            )
            os.setxattr(top, "system.posix_acl_default", value)
        else:
            os.chown(top, MALLORY, GROUP)
            top.chmod(0o3777)
    for mode in (0o600, 0o640, 0o660):
        program = (
            "os.umask(0)\n"
            "fd = os.open(sys.argv[1], os.O_CREAT | os.O_RDWR, int(sys.argv[2])); os.write(fd, "
            "b'TREASURE' * 40000); os.fsync(fd)\n"
        )
        settings = {"STRIPEWISE_STORE": store.root}
        link = store.data / f"f{mode:o}"
        realm.python(ALICE, program, link, str(mode), **settings)
        file = Managed(link, store.root, [store.base / "targets" / target.name for target in store.targets])
        with acting_as(MALLORY, (GROUP,)):
            closed_to_this_user(file)
            with pytest.raises(PermissionError):
                (file.dir / "x").touch()
            with pytest.raises(PermissionError):
                os.rename(file.dir / "ctl", file.dir / "x")


COPIES = {
    "chown": "chown -R 1002 {place}",
    "chmod": "chmod -R 777 {place}",
    "rm": "rm -rf {place}",
    "touch": "find {place} -type f -exec touch -d 2001-01-01 {{}} +",
    "tar": "tar -cf - {place}",
    "cp": "cp -a {place} {place}-copy; find {place}-copy -type f -exec cat {{}} +",
    "grep": "grep -r attack {place}",
    "mv": "mv {place}/* {place}/moved; rm {place}/moved",
    "find": "find {place} -type f -delete",
}


@pytest.mark.parametrize("how", COPIES)
def test_a_copy_of_a_link_gives_no_hold_on_the_file(realm: Realm, how: str) -> None:
    """The attacker makes a link with the text of Alice's in a directory of his own, and root works on that directory,
    as on one with a plain symbolic link in it that leads to her file."""
    file = take(realm)
    before, st = content(file), (file.dir / "head").lstat()
    place = realm.place(MALLORY)
    link = place / "copy"
    with acting_as(MALLORY):
        link.symlink_to(os.readlink(file.link))
    said = realm.run(0, "sh", "-c", COPIES[how].format(place=place), code=None)
    assert content(file) == before, "her bytes, their owner or mode changed"
    now = (file.dir / "head").lstat()
    assert (now.st_uid, now.st_mode, int(now.st_mtime)) == (st.st_uid, st.st_mode, int(st.st_mtime)), (
        "the file's owner, mode or time changed"
    )
    assert how not in ("tar", "cp", "grep") or "attackerattacker" not in said.out, (
        "her bytes came into what root made of the attacker's directory"
    )
    assert os.path.lexists(file.link)


def test_a_copy_of_a_link_with_the_recorded_inode_number_gives_no_hold_on_the_file(realm: Realm) -> None:
    """Inode numbers are of one file system: on another the attacker makes links until one has the number of Alice's."""
    mounts = [realm.place(0, "mount") for _ in range(2)]
    for path in mounts:
        execute(["mount", "-t", "tmpfs", "-o", "mode=1777", "tmpfs", path])
    try:
        file = take(realm)
        name = mounts[0] / "hers"
        text = os.readlink(file.link)
        name.symlink_to(text)
        os.chown(name, ALICE, ALICE, follow_symlinks=False)
        record_link(name, file.dir)
        file.link.unlink()
        file = Managed(name, file.store, file.targets)
        before = content(file)
        with acting_as(MALLORY):
            for number in range(1000):
                link = mounts[1] / f"l{number}"
                link.symlink_to(text)
                if link.lstat().st_ino == name.lstat().st_ino:
                    break
            else:
                pytest.skip("not run: no link on the other file system got the inode number")
        realm.run(0, "rm", "-f", link, code=None)
        assert Path(file.dir).exists() and content(file) == before, "root's rm of the attacker's link deleted her file"
        shown = realm.run(ALICE, "cat", name)
        assert shown.out == "attacker" * 40000
    finally:
        for path in mounts:
            execute(["umount", path])


def test_a_hard_link_of_another_s_link_gives_no_hold_on_the_file(realm: Realm) -> None:
    """As where fs.protected_hardlinks is off: then also plain files can be linked, and rm takes one name only."""
    file = take(realm)
    before = content(file)
    place = realm.place(MALLORY)
    os.link(file.link, place / "second", follow_symlinks=False)
    realm.run(0, "rm", "-rf", place)
    assert content(file) == before
    assert realm.run(ALICE, "cat", file.link).out == "attacker" * 40000


def test_what_the_owner_keeps_to_himself_stays_so_through_every_call_of_others(realm: Realm) -> None:
    file = take(realm, 0, 0o600)
    before = content(file)
    said = realm.touch(MALLORY, file.link)
    only = {
        name: said[name]
        for name in ("open", "open for writing", "append", "truncate", "open and truncate", "chmod", "chown", "utime")
    }
    assert set(only.values()) <= {"EACCES", "EPERM"}, only
    assert said["unlink"] in ("EPERM", "EACCES"), said
    assert content(file) == before


def test_no_part_of_a_private_file_can_be_opened_by_others_without_the_library(realm: Realm) -> None:
    file = take(realm, ALICE, 0o600)
    with acting_as(MALLORY, (GROUP,)):
        closed_to_this_user(file)
        for path in (file.dir, file.dir.parent, realm.roots.root):
            if path != file.dir.parent:
                with pytest.raises(PermissionError):
                    (path / "x").touch()
        with pytest.raises(PermissionError):
            os.rename(file.dir, file.dir.with_name("0" * 16))
        for path in file.objects:
            with pytest.raises(PermissionError):
                path.unlink()


def test_common_directories_of_a_shared_store_are_sticky_and_its_owner_s(realm: Realm) -> None:
    for name in ("files", "trash", "run"):
        st = (realm.roots.root / name).stat()
        assert st.st_uid == 0 and st.st_mode & stat.S_ISVTX, name
    run = run_dir(realm.roots.root)
    with acting_as(MALLORY):
        for name in ("session.lock", "devices", "mover.lock"):
            with pytest.raises(PermissionError):
                os.rename(run / name, run / "aside")
            with pytest.raises(PermissionError):
                (run / name).unlink()


@pytest.mark.parametrize("inside", ["", "x", "adopting"])
def test_a_trash_entry_that_a_member_makes_takes_no_file_of_others(realm: Realm, inside: str) -> None:
    file = take(realm)
    before = content(file)
    with acting_as(MALLORY):
        entry = file.store / "trash" / file.id
        entry.mkdir()
        if inside:
            (entry / inside).write_text("crc 00000000\n")
    said = stripewise("store", "gc", file.store, "--json", code=None)
    assert content(file) == before, said.report
    # Nor one of a file that is being created or has just gone: its objects are another user's than the entry is.
    (file.dir).rename(file.dir.with_name("kept"))
    said = stripewise("store", "gc", file.store, "--json", code=None)
    file.dir.with_name("kept").rename(file.dir)
    assert content(file) == before, said.report
    shutil.rmtree(entry, ignore_errors=True)
