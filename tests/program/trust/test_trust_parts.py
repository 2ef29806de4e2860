"""Parts of a store that are not what they should be: links, FIFOs, hard links, devices and files without end in the
place of each, laid by an attacker in his own store, in one that the victim has listed, and in his own files of a shared
store. Nobody's bytes are read or changed by it, and nothing hangs.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from hostile import (
    ALICE,
    MALLORY,
    THROUGH,
    Managed,
    Realm,
    Treasure,
    acting_as,
    chown_all,
    create_for,
    needs_root,
    only,
    record_link,
    run_dir,
)
from rig import SOAK, execute

pytestmark = needs_root

Plant = Callable[[Path, Treasure], None]


def remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def symbolic_link(path: Path, treasure: Treasure) -> None:
    path.symlink_to(treasure.path)


def hard_link(path: Path, treasure: Treasure) -> None:
    # As root: where fs.protected_hardlinks is off, anybody may.
    with acting_as(0):
        os.link(treasure.path, path)


def device(path: Path, _: Treasure) -> None:
    with acting_as(0):
        os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 5))


def endless(path: Path, _: Treasure) -> None:
    """Sparse, of 64 GiB."""
    path.touch()
    os.truncate(path, 64 << 30)


def loop(path: Path, _: Treasure) -> None:
    path.symlink_to(path.name)


KINDS: dict[str, Plant] = {
    "symbolic link": symbolic_link,
    "hard link": hard_link,
    "fifo": lambda path, _: os.mkfifo(path, 0o666),
    "directory": lambda path, _: path.mkdir(),
    "device": device,
    "endless": endless,
    "loop": loop,
}
#: With what the file must not be opened. A record of the link that says nothing makes the link a copy.
PARTS = {
    "layout": KINDS,
    "ctl": {name: plant for name, plant in KINDS.items() if name != "endless"},
    "head": {name: plant for name, plant in KINDS.items() if name != "endless"},
    "object": {name: plant for name, plant in KINDS.items() if name != "endless"},
}
#: Where the attacker's file is, and who touches it.
SETTINGS = [("in his own store", 0), ("in a listed store", 0), ("in a shared store", 0), ("in a shared store", ALICE)]
#: What a store that is refused must not even come to.
WORST = ["symbolic link", "fifo", "endless"]
CASES = [
    (part, kind, setting, user)
    for part, kinds in PARTS.items()
    for kind in kinds
    for setting, user in SETTINGS
    if SOAK or (setting, user) in SETTINGS[1::2] or kind in WORST
]


def file_in(realm: Realm, setting: str) -> tuple[Managed, dict[str, str]]:
    """A file of the attacker's, and how the victim is started."""
    if setting == "in a shared store":
        return realm.file(realm.roots), {}
    file = realm.file(realm.mallorys)
    return file, {"STRIPEWISE_TRUST": str(file.store)} if setting == "in a listed store" else {}


def unlocked_by_nothing(said: dict[str, object], setting: str) -> None:
    """What goes through a link into a store that nobody vouches for is refused."""
    if setting == "in his own store":
        only(said, "EACCES", THROUGH)
    assert "treasure" not in said.values(), f"another's bytes were read: {said}"


@pytest.mark.parametrize(("part", "kind", "setting", "user"), CASES)
def test_what_stands_in_the_place_of_a_part_is_not_opened(
    realm: Realm, part: str, kind: str, setting: str, user: int
) -> None:
    file, settings = file_in(realm, setting)
    treasure = realm.treasure(user)
    path = file.part(part)
    remove(path)
    with acting_as(MALLORY):
        KINDS[kind](path, treasure)
    realm.log.write_text("")
    said = realm.touch(user, file.link, **settings)
    treasure.check()
    unlocked_by_nothing(said, setting)
    if setting != "in his own store":
        # chmod and its kin of another's file are not permitted in any case.
        only(said, "EIO", ["open"])
        # A link whose file's owner cannot be told is taken for a copy, which is read-only.
        wrong = {
            step: said[step] for step in ("open for writing", "append", "create") if said[step] not in ("EIO", "EROFS")
        }
        assert not wrong, wrong
        named = [line for line in realm.log_lines("stripewise store fsck") if path.name in line]
        assert named, f"no line of the log names {path.name}: {realm.log.read_text()}"


@pytest.mark.parametrize(("setting", "user"), SETTINGS if SOAK else SETTINGS[2:3])
@pytest.mark.parametrize("kind", KINDS)
def test_the_record_of_the_link_leads_nowhere(realm: Realm, kind: str, setting: str, user: int) -> None:
    file, settings = file_in(realm, setting)
    treasure = realm.treasure(user)
    remove(file.dir / "link")
    with acting_as(MALLORY):
        KINDS[kind](file.dir / "link", treasure)
    unlocked_by_nothing(realm.touch(user, file.link, **settings), setting)
    treasure.check()


@pytest.mark.parametrize(("setting", "user"), SETTINGS if SOAK else SETTINGS[2:])
@pytest.mark.parametrize("kind", ["symbolic link", "fifo", "file", "loop"])
def test_what_stands_in_the_place_of_a_file_s_directory_is_not_entered(
    realm: Realm, kind: str, setting: str, user: int
) -> None:
    file, settings = file_in(realm, setting)
    victim = realm.file(realm.roots, user)
    before = victim.object.read_bytes()
    place = file.dir
    place.rename(realm.fresh("aside"))
    with acting_as(MALLORY):
        if kind == "symbolic link":
            place.symlink_to(victim.dir)
        elif kind == "fifo":
            os.mkfifo(place)
        elif kind == "loop":
            place.symlink_to(place.name)
        else:
            place.write_text("a file")
    said = realm.touch(user, file.link, **settings)
    unlocked_by_nothing(said, setting)
    assert said["open"] in ("EACCES", "EIO"), said
    assert victim.object.read_bytes() == before and (victim.dir / "head").exists()


@pytest.mark.parametrize(("setting", "user"), SETTINGS)
def test_a_layout_of_another_file_is_refused(realm: Realm, setting: str, user: int) -> None:
    victim = realm.file(realm.roots, user)
    file, settings = file_in(realm, setting)
    before = victim.object.read_bytes()
    remove(file.dir / "layout")
    shutil.copy(victim.dir / "layout", file.dir / "layout")
    os.chown(file.dir / "layout", MALLORY, MALLORY)
    said = realm.touch(user, file.link, **settings)
    unlocked_by_nothing(said, setting)
    assert said["open"] in ("EACCES", "EIO"), said
    assert victim.object.read_bytes() == before


def test_a_layout_that_its_owner_cuts_kills_nobody_who_has_the_file_open(realm: Realm) -> None:
    for cut in (0, 100):
        file = realm.file(realm.roots)
        program = (
            "fd = os.open(sys.argv[1], os.O_RDWR)\n"
            "assert os.pread(fd, 8, 0) == b'attacker'\n"
            "os.truncate(sys.argv[2], int(sys.argv[3]))\n"
            "for at in range(0, 320000, 4096):\n"
            "    try: os.pread(fd, 4096, at)\n"
            "    except OSError: pass\n"
            "print('alive')\n"
        )
        assert realm.python(0, program, file.link, file.dir / "layout", str(cut)).out == "alive\n"


def test_a_layout_as_long_as_the_format_allows_holds_nobody_up(realm: Realm) -> None:
    file = realm.file(realm.roots)
    os.truncate(file.dir / "layout", 256 << 20)
    program = "try: os.stat(sys.argv[1])\nexcept OSError as error: print(error.errno)\n"
    assert realm.python(ALICE, program, file.link).out == "5\n"


def test_a_head_with_set_user_id_bits_gives_them_to_no_object(realm: Realm) -> None:
    file = realm.files(realm.roots, 0, 1, 0o755)[0]
    realm.run(0, "chmod", "6755", file.link)
    modes = {path.name: oct(path.lstat().st_mode & 0o7777) for path in [*file.objects, file.dir / "ctl"]}
    assert not [path for path in [*file.objects, file.dir / "ctl"] if path.lstat().st_mode & 0o7000], modes


def replaced(file: Managed, name: str) -> Path:
    """A part of the store, made free for another thing."""
    path = run_dir(file.store) / name.removeprefix("run/") if name.startswith("run/") else file.store / name
    remove(path)
    path.parent.mkdir(exist_ok=True, parents=True)
    os.chown(path.parent, MALLORY, MALLORY)
    return path


#: Of a store; a directory's place takes fewer things.
STORE_CASES = [
    (name, kind, setting)
    for name in ("store.bin", "run/devices", "run/session.lock", "session.lock", "files", "run", "trash")
    for kind in ("symbolic link", "fifo", "dangling", "hard link", "device", "endless")
    for setting in ("in his own store", "in a listed store")
    if (name not in ("files", "run", "trash") or kind in ("symbolic link", "fifo", "dangling"))
    and (SOAK or setting != "in his own store" or kind in ("symbolic link", "fifo"))
]


@pytest.mark.parametrize(("name", "kind", "setting"), STORE_CASES)
def test_what_stands_in_the_place_of_a_store_s_part_is_not_used(
    realm: Realm, name: str, kind: str, setting: str
) -> None:
    file = realm.copied(realm.file(realm.mallorys))
    settings = {"STRIPEWISE_TRUST": str(file.store)} if setting == "in a listed store" else {}
    treasure = realm.treasure()
    path = file.store / "run" / "session.lock" if name == "session.lock" else replaced(file, name)
    remove(path)
    nowhere = treasure.path.with_name("nowhere")
    with acting_as(MALLORY):
        if kind == "dangling":
            path.symlink_to(nowhere)
        elif kind == "symbolic link" and name in ("files", "run", "trash"):
            path.symlink_to(treasure.path.parent)
        else:
            KINDS[kind](path, treasure)
    said = realm.touch(0, file.link, **settings)
    treasure.check()
    unlocked_by_nothing(said, setting)
    assert os.listdir(treasure.path.parent) == ["treasure"], "files were made at a place of the attacker's choice"


def test_a_swapped_target_directory_leads_to_no_other_user_s_bytes(realm: Realm) -> None:
    """The attacker's target directory leads to Alice's, and his layout and id are those of her file."""
    alices = create_for(realm.fresh("alices"), ALICE)
    hers = realm.files(alices, ALICE, 1, 0o600)[0]
    before = [path.read_bytes() for path in sorted(hers.objects)]
    for setting in ("in his own store", "in a listed store"):
        lure = create_for(realm.fresh("lure"), MALLORY)
        file = realm.files(lure, MALLORY, 1)[0]
        shutil.copytree(hers.dir, lure.root / "files" / hers.id)
        chown_all(lure.root, MALLORY)
        for mine, other in zip(file.targets, hers.targets, strict=True):
            mine.rename(mine.with_name(f"{mine.name}-aside"))
            mine.symlink_to(other)
        link = realm.link_to(realm.place(MALLORY), lure.root, hers.id)
        record_link(link, lure.root / "files" / hers.id)
        settings = {"STRIPEWISE_TRUST": str(lure.root)} if setting == "in a listed store" else {}
        program = "sys.stdout.buffer.write(open(sys.argv[1], 'rb').read())"
        said = realm.python(0, program, link, code=None, **settings)
        assert "attacker" not in said.out and said.code != 0, f"{setting}: another user's bytes were shown"
        realm.touch(0, link, **settings)
        assert [path.read_bytes() for path in sorted(hers.objects)] == before, (
            f"{setting}: another user's bytes changed"
        )


def test_a_store_that_bears_another_s_uuid_leads_to_no_other_user_s_bytes(realm: Realm) -> None:
    """store.bin, layout and id are copies of Alice's, so that her targets name this store, too."""
    alices = create_for(realm.fresh("alices"), ALICE)
    hers = realm.files(alices, ALICE, 1, 0o600)[0]
    before = [path.read_bytes() for path in sorted(hers.objects)]
    file = realm.copied(hers)
    settings = {"STRIPEWISE_TRUST": str(file.store)}
    said = realm.touch(0, file.link, **settings)
    assert said["open"] == "EIO", said
    assert [path.read_bytes() for path in sorted(hers.objects)] == before, "another user's bytes changed"
    assert [path.lstat().st_uid for path in hers.objects] == [ALICE] * 2


@pytest.mark.parametrize("kind", ["fifo", "symbolic link", "missing", "of another store", "endless"])
def test_a_target_without_the_store_s_own_mark_is_not_used(realm: Realm, kind: str) -> None:
    store = create_for(realm.fresh("marked"), MALLORY)
    file = realm.files(store, MALLORY, 1)[0]
    treasure = realm.treasure()
    for target in file.targets:
        mark = target / "stripewise-target"
        kept = mark.read_text()
        remove(mark)
        with acting_as(MALLORY):
            if kind == "of another store":
                mark.write_text(kept.replace("uuid ", "uuid f", 1)[:-1])
            elif kind != "missing":
                KINDS[kind](mark, treasure)
    settings = {"STRIPEWISE_STORE": store.root}
    said = realm.touch(0, file.link, **settings)
    assert said["open"] == "EIO", said
    fresh = store.data / "new"
    made = realm.run(0, "dd", f"of={fresh}", "if=/dev/zero", "bs=4096", "count=1", code=None, **settings)
    assert made.code != 0, f"a file was made on a target that is not the store's\n{made.report}"
    treasure.check()


def test_parts_that_are_mounted_from_elsewhere_are_judged_like_any_other(realm: Realm) -> None:
    file = realm.file(realm.roots)
    treasure = realm.treasure()
    for part in ("ctl", "head", "object"):
        path = file.part(part)
        execute(["mount", "--bind", treasure.path, path])
        try:
            said = realm.python(
                ALICE,
                "import errno\n"
                "try: fd = os.open(sys.argv[1], os.O_RDWR); os.pwrite(fd, b'x' * 100000, 0); print('used')\n"
                "except OSError as error: print(errno.errorcode[error.errno])\n",
                file.link,
            )
            treasure.check()
            assert said.out.strip() in ("EIO", "EACCES", "EROFS"), said.report
        finally:
            execute(["umount", path])


def test_nothing_in_a_private_store_can_be_written_by_everybody(realm: Realm) -> None:
    store = create_for(realm.fresh("private"), ALICE, shared=False)
    realm.files(store, ALICE, 2, 0o644)
    open_to_all = [
        path
        for top in (store.root, *(store.base / "targets").iterdir())
        for path in [top, *top.rglob("*")]
        if not path.is_symlink() and path.stat().st_mode & 0o002
    ]
    assert not open_to_all, open_to_all


def test_store_create_makes_what_the_store_s_users_meet_in(realm: Realm) -> None:
    for name in ("devices", "session.lock", "mover.lock"):
        path = run_dir(realm.roots.root) / name
        assert path.is_file() and path.stat().st_uid == 0, f"{name} is made by whoever comes first"
