"""Repairs that would serve one target's bytes for another's, or do with root's hands what a store's owner may not."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from hostile import needs_root
from rig import Maker, Store, dirs, stripewise

from stripewise.files.parts import make_at, set_aside_at

IDENTITY = "stripewise-target"
#: A user without a name, who owns nothing.
OWNER = 1234


@pytest.fixture
def store(make_store: Maker) -> Store:
    """Two files over three targets: the first of unlike shares, the second of equal ones."""
    made = make_store(dirs(3))
    for name, size in (("f", 3_000_000), ("g", 3 << 20)):
        made.program("sh", "-c", f"head -c {size} /dev/urandom >'{made.data / name}'")
    widths = [
        word
        for width, name in (("64KiB", "t0"), ("128KiB", "t1"), ("64KiB", "t2"))
        for word in ("--stripe", f"{name}={width}")
    ]
    stripewise("store", "set-layout", made.data / "f", *widths)
    return made


def place(store: Store, number: int) -> Path:
    return store.base / f"targets/t{number}"


def state(store: Store) -> dict[str, bytes | None]:
    """All that lies in the targets' directories, by path; links are not followed."""
    found: dict[str, bytes | None] = {}
    for path in sorted((store.base / "targets").rglob("*")):
        found[str(path)] = path.read_bytes() if path.is_file() and not path.is_symlink() else None
    return found


def swap(store: Store, one: int, other: int) -> None:
    aside = store.base / "aside"
    place(store, one).rename(aside)
    place(store, other).rename(place(store, one))
    aside.rename(place(store, other))


def linked(store: Store) -> None:
    place(store, 1).rename(store.base / "own")
    place(store, 1).symlink_to(place(store, 0))


def copied(store: Store) -> None:
    place(store, 1).rename(store.base / "own")
    shutil.copytree(place(store, 0), place(store, 1))


def swapped(store: Store) -> None:
    (place(store, 0) / IDENTITY).unlink()
    swap(store, 0, 1)


def swapped_without_marks(store: Store) -> None:
    (place(store, 1) / IDENTITY).unlink()
    swapped(store)


def without_marks(store: Store) -> None:
    (place(store, 1) / IDENTITY).unlink()
    (place(store, 0) / IDENTITY).unlink()


@pytest.mark.parametrize("how", [linked, copied, swapped, swapped_without_marks])
@pytest.mark.parametrize("equal", [False, True])
def test_the_directory_of_another_target_is_not_marked(store: Store, how: Callable[[Store], None], equal: bool) -> None:
    if equal:
        store.program("rm", store.data / "f")
    sums = store.program("md5sum", store.data / "g").out
    before = state(store)
    how(store)
    changed = state(store)
    for target in ("t1", "t0"):
        said = stripewise("store", "fsck", store.root, "--repair", "--mark", target, code=None)
        assert "(mended: marked" not in said.out and "Traceback" not in said.err, said.report
        assert state(store) == changed
        assert said.code == 1, said.report
    if how is linked:
        place(store, 1).unlink()
    if how is copied:
        shutil.rmtree(place(store, 1))
    if how in (linked, copied):
        (store.base / "own").rename(place(store, 1))
    if how in (swapped, swapped_without_marks):
        swap(store, 0, 1)
        for path, content in before.items():
            if path.endswith(IDENTITY) and content is not None:
                Path(path).write_bytes(content)
    assert state(store) == before
    assert store.program("md5sum", store.data / "g").out == sums
    store.fsck()


def test_two_lost_marks_come_back(store: Store) -> None:
    sums = store.program("sh", "-c", f"md5sum {store.data}/*").out
    kept = [(place(store, number) / IDENTITY).read_bytes() for number in (0, 1)]
    without_marks(store)
    for target, code in (("t1", 1), ("t0", 0)):
        said = stripewise("store", "fsck", store.root, "--repair", "--mark", target, code=code)
        assert "(mended: marked anew" in said.out, said.report
    assert kept == [(place(store, number) / IDENTITY).read_bytes() for number in (0, 1)]
    assert store.program("sh", "-c", f"md5sum {store.data}/*").out == sums


def test_a_backup_of_the_target_itself_is_not_marked(store: Store) -> None:
    """It has what was there once: only who made it knows."""
    mark, own = place(store, 1) / IDENTITY, store.base / "own"
    kept = mark.read_bytes()
    shutil.copytree(place(store, 1), store.base / "backup")
    place(store, 1).rename(own)
    (store.base / "backup").rename(place(store, 1))
    mark.unlink()
    said = stripewise("store", "fsck", store.root, "--repair", "--mark", "t1", code=1).err
    assert "is not the directory that this target had" in said and "write its mark by hand" in said, said
    mark.write_bytes(kept)
    store.fsck()
    # From now on it is the target's.
    mark.unlink()
    assert "(mended: marked anew" in stripewise("store", "fsck", store.root, "--repair", "--mark", "t1").out


@pytest.mark.parametrize("content", ["yes | head -c 1M", "head -c 1M /dev/zero", "truncate -s 4M /dev/stdout"])
def test_what_a_file_holds_keeps_nobody_from_marking(make_store: Maker, content: str) -> None:
    made = make_store(dirs(2))
    made.program("sh", "-c", f"{content} >'{made.data / 'f'}'")
    (place(made, 0) / "lost+found").mkdir()
    for number in (0, 1):
        (place(made, number) / IDENTITY).unlink()
        said = stripewise("store", "fsck", made.root, "--repair", "--mark", f"t{number}").out
        assert "(mended: marked anew" in said, said
    made.fsck()


def test_a_directory_that_nobody_noted_is_not_marked(store: Store) -> None:
    mark = place(store, 1) / IDENTITY
    kept = mark.read_bytes()
    (store.root / "targets.seen").write_bytes(b"junk")
    mark.unlink()
    said = stripewise("store", "fsck", store.root, "--repair", "--mark", "t1", code=1).err
    assert "no verb has noted yet which directory is this target's" in said, said
    mark.write_bytes(kept)
    store.fsck()


def test_a_run_that_marks_mends_nothing_else(store: Store) -> None:
    sums = store.program("sh", "-c", f"md5sum {store.data}/*").out
    (place(store, 1) / IDENTITY).unlink()
    # An end that a killed program left.
    longer = max(place(store, 1).glob("*.data"), key=lambda path: path.stat().st_size)
    with longer.open("ab") as file:
        file.write(b"more")
    said = stripewise("store", "fsck", store.root, "--repair", "--mark", "t1", code=None)
    assert "marked anew, and nothing else so far" in said.out and "past the end" in said.out, said.report
    assert said.out.count("(mended") == 1 and longer.read_bytes().endswith(b"more"), said.report
    assert "past the end" in store.fsck("--repair").out and not longer.read_bytes().endswith(b"more")
    assert store.program("sh", "-c", f"md5sum {store.data}/*").out == sums


def test_somebody_s_directory_is_not_marked_where_no_file_tells(make_store: Maker) -> None:
    made = make_store(dirs(2))
    shutil.rmtree(place(made, 1))
    place(made, 1).mkdir()
    own = place(made, 1) / "0123456789abcdef.data"
    own.write_bytes(b"")
    said = stripewise("store", "fsck", made.root, "--repair", "--mark", "t1", code=1).err
    assert "is not the directory that this target had" in said and own.exists(), said
    made.check_at_end = False


@needs_root
@pytest.mark.parametrize("verb", [["store", "ls"], ["store", "fsck", "--repair"]])
def test_a_store_s_owner_gets_no_directory_by_the_hands_of_root(make_store: Maker, verb: list[str]) -> None:
    made = make_store(dirs(2))
    secret, toml = made.base / "secret", made.root / "store.toml"
    secret.mkdir(mode=0o700)
    for path in (made.root, place(made, 0), place(made, 1)):
        for each in (path, *path.rglob("*")):
            os.lchown(each, OWNER, OWNER)
    (made.root / "run").chmod(0o1777)
    kept = toml.read_text()
    for path in (secret, made.base / "new"):
        extra = kept[kept.index("[[target]]") :].split("[[target]]")[1]
        extra = extra.replace('"t0"', '"x"').replace(str(place(made, 0)), str(path))
        toml.write_text(f"{kept}\n[[target]]{extra}")
        said = stripewise(*verb[:2], made.root, *verb[2:], code=1).err
        assert f"uid {OWNER}" in said, said
        assert not list(secret.iterdir()) and secret.stat().st_mode & 0o777 == 0o700
        assert not (made.base / "new").exists()
    toml.write_text(kept)
    # What root marks is the owner's.
    mark = place(made, 1) / IDENTITY
    mark.unlink()
    assert "marked anew" in stripewise("store", "fsck", made.root, "--repair", "--mark", "t1").out
    assert mark.stat().st_uid == OWNER
    made.fsck()


@needs_root
def test_root_gives_no_file_away_that_was_moved_into_a_store(make_store: Maker) -> None:
    made = make_store(dirs(2))
    for path in (made.root, *(place(made, number) for number in (0, 1))):
        for each in (path, *path.rglob("*")):
            os.lchown(each, OWNER, OWNER)
    lock, outside = made.root / "config.lock", made.base / "outside"
    for how in ("moved", "linked"):
        lock.unlink(missing_ok=True)
        outside.write_text("secret")
        outside.chmod(0o600)
        if how == "moved":
            outside.rename(lock)
        else:
            os.lchown(outside, OWNER, OWNER)
            os.link(outside, lock)
        said = stripewise("store", "template", "add", made.root, f"{made.data}/", "--stripe-size", "1MiB", code=1).err
        assert ("who has no business there" if how == "moved" else "it has other names elsewhere") in said, said
        assert lock.stat().st_uid == (0 if how == "moved" else OWNER) and lock.read_text() == "secret"
    lock.unlink()
    stripewise("store", "template", "add", made.root, f"{made.data}/", "--stripe-size", "1MiB")
    assert lock.stat().st_uid == (made.root / "layouts").stat().st_uid == OWNER
    made.fsck()


@needs_root
def test_root_shares_no_directory_that_says_it_is_a_target(make_store: Maker) -> None:
    made = make_store(dirs(1))
    for each in (made.root, *made.root.rglob("*"), place(made, 0), *place(made, 0).rglob("*")):
        os.lchown(each, OWNER, OWNER)
    (made.root / "run").chmod(0o1777)
    victim, toml = made.base / "victim", made.root / "store.toml"
    victim.mkdir()
    victim.chmod(0o770)
    mark = (place(made, 0) / IDENTITY).read_text()
    (victim / IDENTITY).write_text(mark.replace("index 0", "index 1"))
    os.lchown(victim / IDENTITY, OWNER, OWNER)
    kept = toml.read_text()
    extra = kept[kept.index("[[target]]") :].split("[[target]]")[1].split("[[rule]]")[0]
    extra = extra.replace('"t0"', '"x"').replace(str(place(made, 0)), str(victim))
    toml.write_text(f"{kept}\n[[target]]{extra}")
    said = stripewise("store", "df", made.root, code=1).err
    assert f"{victim} belongs to uid 0, and the store to uid {OWNER}" in said, said
    assert victim.stat().st_mode & 0o7777 == 0o770
    toml.write_text(kept)
    made.fsck()


@needs_root
def test_what_is_put_aside_stays_whose_it_is_and_nothing_is_written_over(make_store: Maker) -> None:
    made = make_store(dirs(1))
    stripewise("store", "ls", made.root)
    toml, aside = made.root / "store.toml", made.root / "store.toml.refused"
    kept = toml.read_text()
    for each in (made.root, *made.root.rglob("*")):
        os.lchown(each, OWNER, OWNER)
    for number, name in enumerate(("store.toml.refused", "store.toml.refused.2")):
        toml.unlink()
        toml.write_text(f"secret {number}")
        toml.chmod(0o600)
        assert f"is {name} now" in made.fsck("--repair").out
        found = (made.root / name).stat()
        assert (found.st_uid, found.st_mode & 0o777) == (0, 0o600)
        assert toml.read_text() == kept and toml.stat().st_uid == OWNER
    assert aside.read_text() == "secret 0"
    # The one that is kept is of this very store.
    toml.unlink()
    (made.root / "store.toml.compiled").write_text(kept.replace('uuid = "', 'uuid = "0')[:-1].replace("-", "", 1))
    said = made.fsck("--repair", code=1).err
    assert "put store.toml back from a copy" in said and not toml.exists(), said
    toml.write_text(kept)
    made.fsck()


def test_a_file_that_comes_meanwhile_stays(tmp_path: Path) -> None:
    at = os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        (tmp_path / "a").write_text("new")
        with pytest.raises(FileExistsError):
            make_at(at, "a", b"other", (os.geteuid(), os.getegid(), 0o644))
        assert (tmp_path / "a").read_text() == "new"
        judged = (tmp_path / "a").stat()
        (tmp_path / "b").write_text("newer")
        (tmp_path / "b").rename(tmp_path / "a")
        with pytest.raises(FileExistsError):
            set_aside_at(at, "a", "aside", judged)
        assert (tmp_path / "a").read_text() == "newer" and os.listdir(tmp_path) == ["a"]
        assert set_aside_at(at, "a", "aside", (tmp_path / "a").stat()) == "aside"
        make_at(at, "a", b"third", (os.geteuid(), os.getegid(), 0o640))
        assert (tmp_path / "a").stat().st_mode & 0o777 == 0o640
        assert set_aside_at(at, "a", "aside", (tmp_path / "a").stat()) == "aside.2"
    finally:
        os.close(at)
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"aside": "newer", "aside.2": "third"}
