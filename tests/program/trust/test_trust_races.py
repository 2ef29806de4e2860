"""Names that an attacker exchanges while a victim goes through them: run directories, parts, targets, whole stores.

200 rounds each, 10,000 in `make soak`.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from hostile import ALICE, MALLORY, Realm, acting_as, as_user, create_for, needs_root, run_dir
from rig import NATIVE, SOAK

pytestmark = needs_root

ROUNDS = 10_000 if SOAK else 200
TIME_S = 600.0 if SOAK else 20.0


@contextlib.contextmanager
def attacker(*command: str | Path) -> Iterator[subprocess.Popen[str]]:
    """A program of the attacker's that works until its input ends; what it printed is checked by whoever wants to."""
    child = subprocess.Popen(
        as_user(MALLORY, command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        yield child
        assert child.poll() is None, f"the attacker gave up: {child.communicate()}"
        child.communicate()
    finally:
        child.kill()
        child.wait()


#: Every round a process of its own, so that it attaches the store anew; and of each kind of call one.
ROUNDS_OF_A_VICTIM = """
link, rounds = sys.argv[1], int(sys.argv[2])
for i in range(rounds):
    pid = os.fork()
    if pid == 0:
        for step in (
            lambda: os.stat(link), lambda: os.chmod(link, 0o646),
            lambda: os.chown(link, 1002, 1002) if os.geteuid() == 0 else None,
            lambda: os.truncate(link, 5000), lambda: os.utime(link, (1, 1)),
        )[i % 5:i % 5 + 1]:
            try: step()
            except OSError: pass
        try:
            fd = os.open(link, os.O_RDWR)
            data = os.read(fd, 100000)
            os.pwrite(fd, b"x" * 5000, 0)
            os.close(fd)
        except OSError: data = b""
        os._exit(7 if b"TREASURE" in data else 0)
    status = os.wait()[1]
    assert status == 0, "another's bytes were read" if os.WIFEXITED(status) else f"killed by {os.WTERMSIG(status)}"
"""


def race(realm: Realm, user: int, link: Path, name: Path, other: Path, **settings: str | Path) -> None:
    """The victim uses the link as often as it takes, and the attacker exchanges the names."""
    with attacker(NATIVE / "swapper", name, other):
        realm.python(user, ROUNDS_OF_A_VICTIM, link, str(ROUNDS), timeout_s=TIME_S, **settings)


PARTS = ["layout", "ctl", "head", "link", "object"]


@pytest.mark.parametrize("user", [0, ALICE])
@pytest.mark.parametrize("part", PARTS)
def test_a_part_that_changes_places_with_a_link_leads_nowhere(realm: Realm, part: str, user: int) -> None:
    file = realm.file(realm.roots)
    treasure = realm.treasure(user)
    path = file.part(part)
    other = path.with_name(f"{path.name}.aside")
    with acting_as(MALLORY):
        other.symlink_to(treasure.path)
    race(realm, user, file.link, path, other)
    treasure.check()


@pytest.mark.parametrize("part", ["ctl", "head"])
def test_a_part_that_changes_places_with_a_hard_link_leads_nowhere(realm: Realm, part: str) -> None:
    file = realm.file(realm.roots)
    treasure = realm.treasure()
    path = file.part(part)
    other = path.with_name(f"{path.name}.aside")
    os.link(treasure.path, other)
    race(realm, 0, file.link, path, other)
    treasure.check()


@pytest.mark.parametrize("user", [0, ALICE])
def test_a_file_s_directory_that_changes_places_with_another_s_leads_nowhere(realm: Realm, user: int) -> None:
    """Where the directory above is the attacker's, as in a store of his own that the victim has listed."""
    victim = realm.files(realm.roots, user, 1, 0o600)[0]
    file = realm.copied(realm.file(realm.mallorys))
    before = {path: path.read_bytes() for path in (*victim.objects, victim.dir / "layout")}
    with acting_as(MALLORY):
        (file.store / "files" / "aside").symlink_to(victim.dir)
    race(realm, user, file.link, file.dir, file.store / "files" / "aside", STRIPEWISE_TRUST=str(file.store))
    assert {path: path.read_bytes() for path in before} == before
    assert (victim.dir / "head").lstat().st_uid == user and (victim.dir / "head").lstat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("trusted", [False, True])
def test_a_run_directory_that_changes_places_with_root_s_stays_root_s(realm: Realm, trusted: bool) -> None:
    file = realm.copied(realm.file(realm.mallorys))
    treasure = realm.treasure()
    vault = treasure.path.parent
    vault.chmod(0o700)
    (vault / "host").write_text("root's")
    (vault / "devices").write_text("root's")
    run = file.store / "run"
    with acting_as(MALLORY):
        aside = file.store / "aside"
        aside.mkdir()
        (aside / run_dir(file.store).name).symlink_to(vault)
        os.replace(
            aside / run_dir(file.store).name, aside / Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        )
        second = file.store / "second"
        second.symlink_to(vault)
    settings = {"STRIPEWISE_TRUST": str(file.store)} if trusted else {}
    for other in (aside, second):
        # Whatever is made in it is taken away, so that each round makes it anew.
        cleaner = (
            "import os, select, shutil, sys\n"
            "while not select.select([0], [], [], 0)[0]:\n"
            "    for place in sys.argv[1:]:\n"
            "        try:\n"
            "            for name in os.listdir(place):\n"
            "                if not os.path.islink(f'{place}/{name}') and os.path.isdir(f'{place}/{name}'): "
            "os.rename(f'{place}/{name}', f'{place}/../junk{os.urandom(6).hex()}')\n"
            "        except OSError: pass\n"
        )
        with attacker("/usr/bin/python3", "-c", cleaner, run):
            race(realm, 0, file.link, run, other, **settings)
    st = vault.stat()
    assert (st.st_mode & 0o7777, st.st_uid) == (0o700, 0), f"root's directory has mode {st.st_mode & 0o7777:o} now"
    assert sorted(os.listdir(vault)) == ["devices", "host", "treasure"], os.listdir(vault)
    assert (vault / "host").read_text() == "root's" and (vault / "devices").read_text() == "root's"
    treasure.check()


def test_a_target_that_changes_places_with_another_s_gets_and_gives_none_of_his_bytes(realm: Realm) -> None:
    alices = create_for(realm.fresh("alices"), ALICE)
    hers = realm.files(alices, ALICE, 1, 0o600)[0]
    before = {path: path.read_bytes() for path in hers.objects}
    lure = create_for(realm.fresh("lure"), MALLORY)
    file = realm.files(lure, MALLORY, 1)[0]
    for mine, other in zip(file.targets, hers.targets, strict=True):
        shutil.copy(hers.object, mine / f"{hers.id}.data")
        mine.with_name("aside" + mine.name).symlink_to(other)
        os.chown(mine.parent, MALLORY, MALLORY)
    race(
        realm,
        0,
        file.link,
        file.targets[0],
        file.targets[0].with_name("aside" + file.targets[0].name),
        STRIPEWISE_STORE=lure.root,
    )
    assert {path: path.read_bytes() for path in before} == before
    assert {path.name for target in hers.targets for path in target.iterdir()} <= {
        *(path.name for path in before),
        "stripewise-target",
    }


def test_a_store_that_changes_places_with_another_s_is_one_or_the_other(realm: Realm) -> None:
    """The victim follows her own link; the attacker owns the directory above and exchanges her store for his."""
    above = realm.place(MALLORY, "above")
    hers, his = realm.copied(realm.file(realm.mallorys)), realm.copied(realm.file(realm.mallorys))
    treasure = realm.treasure(ALICE)
    his.part("ctl").unlink()
    his.part("ctl").symlink_to(treasure.path)
    for file, name in ((hers, "hers"), (his, "his")):
        file.store.rename(above / name)
    link = realm.link_to(realm.place(ALICE), above / "hers", hers.id, owner=ALICE)
    race(realm, ALICE, link, above / "hers", above / "his")
    treasure.check()


def test_links_that_change_between_stores_are_judged_by_what_is_used(realm: Realm) -> None:
    """A link to root's store changes places with one to the attacker's while root goes through it."""
    place = realm.place(MALLORY)
    good, bad = realm.file(realm.roots, 0), realm.copied(realm.file(realm.mallorys))
    treasure = realm.treasure()
    bad.part("ctl").unlink()
    bad.part("ctl").symlink_to(treasure.path)
    names = [realm.link_to(place, file.store, file.id) for file in (good, bad)]
    race(realm, 0, names[0], *names)
    treasure.check()


def test_a_slot_or_object_name_that_somebody_takes_first_gets_no_bytes(realm: Realm) -> None:
    """The attacker makes the objects of every new file before its owner can."""
    shared = realm.roots
    targets = [shared.base / "targets" / target.name for target in shared.targets]
    program = (
        "os.umask(0o077)\nmade = 0\n"
        "for i in range(int(sys.argv[2])):\n"
        "    try:\n"
        "        with open(f'{sys.argv[1]}{i}', 'wb') as file: file.write(b'TREASURE' * 20000)\n"
        "        made += 1\n"
        "    except OSError: pass\n"
        "for i in range(int(sys.argv[2])):\n"
        "    try: assert open(f'{sys.argv[1]}{i}', 'rb').read() == b'TREASURE' * 20000\n"
        "    except FileNotFoundError: made = made\n"
        "print(made)\n"
    )
    with attacker(NATIVE / "squatter", shared.root / "files", *targets) as child:
        assert child.stdout is not None and child.stdin is not None
        assert child.stdout.readline() == "ready\n"
        name = shared.data / realm.fresh("squatted").name
        made = realm.python(ALICE, program, name, str(ROUNDS), timeout_s=TIME_S, STRIPEWISE_STORE=shared.root)
        child.stdin.write("\n")
        child.stdin.flush()
        said = dict(child.stdout.readline().split() for _ in range(2))
    assert said["received"] == "0", f"the attacker's files received {said['received']} bytes of Alice's"
    assert int(made.out) > 0
    for target in targets:
        for path in target.glob("*.data"):
            assert path.lstat().st_uid != ALICE or path.lstat().st_mode & 0o077 == 0


def test_a_managed_file_s_parts_stay_one_file_s_while_its_link_is_exchanged(realm: Realm) -> None:
    """Two of the attacker's own files change places under one name: a read gives the bytes of one of them."""
    one, two = realm.file(realm.roots), realm.file(realm.roots)
    realm.python(MALLORY, "open(sys.argv[1], 'r+b').write(b'COLLEAGU' * 40000)", two.link)
    program = (
        "for _ in range(int(sys.argv[2])):\n"
        "    try: data = open(sys.argv[1], 'rb').read()\n"
        "    except OSError: continue\n"
        "    assert data in (b'attacker' * 40000, b'COLLEAGU' * 40000), 'a mixture was read'\n"
    )
    with attacker(NATIVE / "swapper", one.link, two.link):
        realm.python(ALICE, program, one.link, str(ROUNDS), timeout_s=TIME_S)
