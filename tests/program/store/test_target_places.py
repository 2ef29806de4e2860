"""Directories of targets: what cannot become one changes nothing; one that is lost is told of, and left behind."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest
from rig import Maker, Store, Target, dirs, execute, is_managed, stripewise

MIB = 1 << 20
IDENTITY = "stripewise-target"


def write(store: Store, name: str, count_bytes: int) -> Path:
    path = store.data / name
    store.program("sh", "-c", f"head -c {count_bytes} /dev/urandom >'{path}'")
    return path


@pytest.mark.parametrize("place", ["missing", "no/such", "targets/t0/below", ".", "link"])
def test_a_new_target_has_a_directory_of_its_own_that_is_there(make_store: Maker, place: str) -> None:
    store = make_store(dirs(2))
    (store.base / "targets/t0/below").mkdir()
    (store.base / "link").symlink_to("targets/t0/below")
    before = (store.root / "store.toml").read_bytes()
    said = stripewise("store", "add", store.root, "new", "--path", store.base / place, "--class", "ssd", code=1).err
    wanted = "make the directory" if place in ("missing", "no/such") else "directory of its own"
    assert wanted in said and "store.toml: cannot" not in said, said
    assert (store.root / "store.toml").read_bytes() == before
    assert not (store.base / "missing").exists() and not (store.base / "targets/t0/below" / IDENTITY).exists()


def test_a_store_that_cannot_be_made_takes_no_target(tmp_path: Path) -> None:
    targets = [*dirs(2), dirs(3)[2]]
    for target in targets[:2]:
        (tmp_path / target.name).mkdir()
    text = "".join(target.toml(tmp_path) for target in targets)
    cluster = tmp_path / "cluster.toml"
    for wrong, part in (("no/t2", "does not exist"), ("t0/below", "lies in")):
        cluster.write_text(text.replace(f'{tmp_path}/t2"', f'{tmp_path}/{wrong}"'))
        said = stripewise("store", "create", tmp_path / "store", "--cluster", cluster, code=1).err
        assert part in said, said
        assert sorted(os.listdir(tmp_path)) == ["cluster.toml", "t0", "t1"]
        assert not os.listdir(tmp_path / "t0") and not os.listdir(tmp_path / "t1")


def test_init_says_what_to_remove_where_a_target_of_a_store_that_is_gone_is_in_the_way(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    words = ("init", tmp_path / "d", "--no-calibrate", "--store")
    stripewise(*words, tmp_path / "a/../store")
    (tmp_path / "store").rename(tmp_path / "aside")
    (tmp_path / "cluster.toml").unlink()
    mark = tmp_path / "d/stripewise-store" / IDENTITY
    (tmp_path / "e").mkdir()
    said = stripewise(*words, tmp_path / "e/store", code=1).err
    assert f"if that store is gone, remove {mark}" in said, said
    said = stripewise("init", mark.parent, "--no-calibrate", "--store", tmp_path / "e/store", code=1).err
    assert f"which is not there (if it is gone for good, remove {mark})" in said, said
    mark.unlink()
    stripewise(*words, tmp_path / "e/store")


def test_init_shows_the_room_that_the_store_has(tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        (tmp_path / name).mkdir()
    words = ("init", *(tmp_path / name for name in "abc"), "--no-calibrate", "--capacity", "a=8MiB")
    shown = stripewise(*words, "--store", tmp_path / "store").out.splitlines()
    free = {line.split()[0]: " ".join(line.split()[-2:]) for line in shown if line[:2] in ("a ", "b ", "c ")}
    rows = json.loads(stripewise("store", "df", tmp_path / "store", "--json").out)["targets"]
    assert free["a"] == "8.0 MiB" and free["b"] == free["c"], shown
    disk = os.statvfs(tmp_path)
    assert sum(row["free_bytes"] for row in rows[1:]) <= disk.f_bavail * disk.f_frsize
    info = stripewise("store", "info", tmp_path / "store").out
    assert [line.split()[-1] for line in info.splitlines() if line[:2] in ("a ", "b ", "c ")] == ["-"] * 3, info


@pytest.mark.parametrize("how", ["no mark", "no directory"])
def test_a_lost_target_is_told_of_and_left_behind(make_store: Maker, how: str) -> None:
    store = make_store(dirs(3))
    big, small = write(store, "big", 3 * MIB), write(store, "small", 5)
    place = store.base / "targets/t1"
    empties = [write(store, f"f{number}", 0) for number in range(6)]
    if how == "no mark":
        (place / IDENTITY).unlink()
    else:
        place.rename(store.base / "dead")
    examined = stripewise("doctor", "--store", store.root, code=None)
    lines = [line for line in examined.out.splitlines() if "targets:" in line]
    assert len(lines) == 1 and "target t1" in lines[0] and "A lost target" in lines[0], examined.report
    shown = stripewise("store", "df", store.root).out
    assert "target t1 is away" in shown and "much less room" not in shown, shown
    # Who may have a byte there is named, and nothing moves: of a killed program's file not even the length is known.
    left = stripewise("store", "drain", store.root, "t1", code=1)
    assert all(f"left: {path}" in left.out for path in (big, small, *empties)) and "-- rm FILE" in left.err, left.report
    assert "drain" in stripewise("store", "remove", store.root, "t1", code=1).err
    assert store.program("cat", big, code=None).code != 0
    # New files keep off it.
    write(store, "after", MIB)
    store.run("rm", big, small, *empties)
    stripewise("store", "drain", store.root, "t1")
    stripewise("store", "remove", store.root, "t1")
    assert "sound" in store.fsck().out
    write(store, "new", MIB)
    assert "ok" in stripewise("doctor", "--store", store.root, code=None).out
    stripewise("store", "gc", store.root)
    stripewise("undo", store.root)
    store.check_at_end = False
    assert (store.data / "new").stat().st_size == MIB


def test_an_empty_store_gets_rid_of_a_lost_target_at_once(make_store: Maker) -> None:
    store = make_store(dirs(2))
    (store.base / "targets/t0" / IDENTITY).unlink()
    stripewise("store", "drain", store.root, "t0", "--remove")
    assert [
        target["name"] for target in json.loads(stripewise("store", "df", store.root, "--json").out)["targets"]
    ] == ["t1"]
    write(store, "f", MIB)
    assert "sound" in store.fsck().out


def test_an_object_that_came_back_with_its_target_after_its_file_went_is_purged(make_store: Maker) -> None:
    store = make_store(dirs(2))
    file, place = store.data / "f", store.base / "targets/t1"
    store.program("dd", "if=/dev/urandom", f"of={file}", "bs=64K", "count=8")
    place.rename(store.base / "away")
    store.program("rm", file)
    (store.base / "away").rename(place)
    said = stripewise("store", "fsck", store.root, code=None)
    assert "belongs to no file" in said.out and "with --purge also those with data" in said.out, said.report
    assert "add --repair" in stripewise("store", "fsck", store.root, "--purge", code=2).err
    stripewise("store", "fsck", store.root, "--repair", code=None)
    assert list(place.glob("*.data*"))
    stripewise("store", "fsck", store.root, "--repair", "--purge")
    assert not list(place.glob("*.data*"))
    assert stripewise("store", "fsck", store.root).out.endswith("sound\n")


@pytest.mark.parametrize("first", ["t0", "t1", "t2"])
def test_no_verb_takes_a_file_for_shorter_because_a_target_is_away(make_store: Maker, first: str) -> None:
    """Of a killed program's file only the objects tell the length after a reboot, which new boot words stand for.

    The files lie on `first` and the target after it; which of the three a new file begins on is a matter of chance.
    """
    store = make_store(dirs(3))
    content = os.urandom(100_000)
    (store.plain / "source").write_bytes(content)
    writes = (
        "import os, sys; os.write(os.open(sys.argv[1], 577, 0o644), open(sys.argv[2], 'rb').read()); "
        "os.kill(os.getpid(), 9)"
    )
    files: list[Path] = []
    place = store.base / "targets/t1"
    for number in range(1000):
        file = store.data / f"f{number}"
        command = [sys.executable, "-c", writes, file, store.plain / "source"]
        store.program(*command, code=None)
        [told] = json.loads(stripewise("store", "layout", "--json", file).out)["files"]
        if told["regions"][0]["stripes"][0][0] == first:
            files.append(file)
        else:
            store.program("rm", file)
        if len(files) == 2:
            break
    for words in (store.root / "files").glob("*/ctl"):
        with words.open("r+b") as ctl:
            ctl.seek(8)
            ctl.write(bytes(range(16)))
    place.rename(store.base / "away")
    refused = stripewise("store", "set-layout", *files, "--targets", "t2", code=1)
    assert "cannot be told without it" in refused.out + refused.err, refused.report
    cat = stripewise("store", "cat", files[0], code=1)
    assert "cannot be told without it" in cat.err and cat.out == "", cat.report
    text = stripewise("store", "ls", store.root).out
    assert text.count("cannot be told without it") == 2 and "KiB" not in text
    listed = json.loads(stripewise("store", "ls", store.root, "--json").out)
    assert all("cannot be told without it" in row["error"] for row in listed) and len(listed) == 2
    # What needs no size works.
    assert "target t1 is away" in stripewise("store", "df", store.root).out
    for verb in (("export", *files), ("rebalance", store.root), ("drain", store.root, "t1"),
                 ("fsck", store.root, "--repair"), ("scrub", store.root), ("layout", files[0])):  # fmt: skip
        stripewise("store", *verb, code=1)
    for program in (("cat", files[0]), ("truncate", "--size=+1", files[0])):
        assert store.program(*program, code=None).code != 0
    assert "cannot be told without it" in stripewise("undo", store.root, code=1).err
    assert store.program("ls", store.data).out.split() == [file.name for file in files]
    (store.base / "away").rename(place)
    stripewise("store", "drain", store.root, "t1", "--undo")
    for file in files:
        assert store.program("cmp", file, store.plain / "source").out == ""
    store.fsck("--repair")


def another_store(store: Store, name: str, targets: list[Target]) -> Path:
    """A description beside the store, in a directory of its own for its targets."""
    path = store.root.parent / name
    place = store.base / f"of-{path.stem}"
    place.mkdir(exist_ok=True)
    path.write_text("".join(target.toml(place) for target in targets))
    return path


def test_the_description_of_a_store_is_not_adopted_and_can_be_read_afterwards(make_store: Maker) -> None:
    store = make_store(dirs(2))
    place = store.data / "mine.toml"
    place.write_bytes(store.cluster.read_bytes())
    foreign = store.data / "foreign.toml"
    foreign.write_text(dirs(1)[0].toml(store.plain))
    for path in (store.cluster, place):
        said = stripewise("store", "adopt", "--store", store.root, path, code=1).err
        assert f"{path}: describes the targets of the store {store.root}" in said and said.count("\n") == 1, said
    (store.data / "f").write_bytes(b"bytes")
    told = stripewise("store", "adopt", "--store", store.root, "-r", store.data)
    assert f"{place}: stays plain, for it describes the targets of the store" in told.err, told.report
    assert is_managed(store.data / "f") and is_managed(foreign) and not is_managed(place)
    assert store.cluster.read_bytes() == place.read_bytes()
    execute(["cat", place])


def test_an_undo_names_the_description_of_a_store_whose_targets_have_changed_since(make_store: Maker) -> None:
    store = make_store(dirs(3))
    store.check_at_end = False
    other = another_store(store, "other.toml", [Target("t1"), Target("t0")])
    new = store.base / "new"
    new.mkdir()
    stripewise("store", "add", store.root, "t3", "--path", new, "--class", "hdd")
    stripewise("store", "drain", store.root, "t1", "--remove")
    states = {row["name"] for row in json.loads(stripewise("store", "df", store.root, "--json").out)["targets"]}
    assert states == {"t0", "t2", "t3"}
    said = stripewise("undo", store.root).out
    assert f"left: {store.cluster}, for it is yours" in said and other.name not in said, said
