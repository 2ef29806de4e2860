"""Directories of targets: what cannot become one changes nothing; one that is lost is told of, and left behind."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest
from rig import Maker, Store, Target, dirs, execute, is_managed, stripewise

from stripewise.store.config import read_store

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
    said = stripewise("store", "add", store.root, "new", "--path", store.base / place, code=1).err
    assert "measuring" not in said, said
    wanted = "make the directory" if place in ("missing", "no/such") else "directory of its own"
    assert wanted in said and "store.toml: cannot" not in said, said
    assert (store.root / "store.toml").read_bytes() == before
    assert not (store.base / "missing").exists() and not (store.base / "targets/t0/below" / IDENTITY).exists()


def test_a_new_target_is_measured_and_its_class_found_as_those_of_init_are(make_store: Maker) -> None:
    store = make_store(dirs(2))
    for name in ("new", "given"):
        (store.base / name).mkdir()
    added = stripewise("store", "add", store.root, "new", "--path", store.base / "new")
    assert added.err.startswith("measuring the directory for up to 10 s"), added.report
    _, found, figures = added.out.splitlines()
    assert figures.startswith("measured: read ") and "a small read at chance takes" in found, added.out
    assert os.listdir(store.base / "new") == [IDENTITY]
    target = next(each for each in read_store(store.root).cluster.targets if each.name == "new")
    assert target.calibration is not None and target.startup_read_s > 0 and f"; {target.klass}: " in found
    # What another one lends needs no measurement.
    lent = stripewise("store", "add", store.root, "given", "--path", store.base / "given", "--like", "new")
    assert "kind and figures are those of new: read " in lent.out and "measuring" not in lent.err, lent.report
    given = read_store(store.root).cluster.targets[-1]
    assert (given.klass, given.startup_read_s, given.calibration) == (target.klass, target.startup_read_s, None)
    store.program("sh", "-c", f"head -c 3M /dev/urandom >{store.data}/f")
    assert "sound" in store.fsck().out


def test_a_target_more_of_an_emulated_store_is_emulated(make_store: Maker) -> None:
    store = make_store([Target("h0", kind="emulated", startup_s=0.002), Target("s0", "ssd", kind="emulated")])
    (store.base / "more").mkdir()
    said = stripewise("store", "add", store.root, "more", "--path", store.base / "more", "--class", "hdd").out
    assert "an EMULATED one" in said and "those of h0 (--like takes another's): read 2.000 ms" in said, said


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
    text = stripewise("store", "ls", store.root, code=1).out
    assert text.count("cannot be told without it") == 2 and "KiB" not in text
    listed = json.loads(stripewise("store", "ls", store.root, "--json", code=1).out)
    assert all("cannot be told without it" in row["error"] for row in listed) and len(listed) == 2
    # What needs no size works.
    assert "target t1 is away" in stripewise("store", "df", store.root).out
    for verb in (("export", *files), ("rebalance", store.root), ("drain", store.root, "t1"),
                 ("fsck", store.root, "--repair"), ("scrub", store.root), ("layout", files[0])):  # fmt: skip
        stripewise("store", *verb, code=1)
    for program in (("cat", files[0]), ("truncate", "--size=+1", files[0])):
        assert store.program(*program, code=None).code != 0
    assert "cannot be told without it" in stripewise("undo", store.root, code=1).err
    assert set(store.program("ls", store.data).out.split()) == {file.name for file in files}
    (store.base / "away").rename(place)
    stripewise("store", "drain", store.root, "t1", "--undo")
    for file in files:
        assert store.program("cmp", file, store.plain / "source").out == ""
    store.fsck("--repair")


def test_a_directory_that_lost_its_mark_gets_it_back_where_it_is_the_right_one(make_store: Maker) -> None:
    store = make_store(dirs(3))
    file = write(store, "f", 3 * MIB)
    kept = store.program("md5sum", file).out
    places = [store.base / "targets" / f"t{number}" for number in range(3)]
    marks = [place / IDENTITY for place in places]
    texts = [mark.read_bytes() for mark in marks]

    def mark(target: str, code: int = 0) -> str:
        said = stripewise("store", "fsck", store.root, "--repair", "--mark", target, code=code)
        return said.out + said.err

    assert "add --repair" in stripewise("store", "fsck", store.root, "--mark", "t1", code=2).err
    assert "has no target 't9'; it has t0, t1, t2" in mark("t9", code=2)
    assert "marked anew" not in mark("t1")
    # Lost; half of it; another's, whose own directory has its own.
    for text in (None, texts[1][:20], texts[2]):
        marks[1].unlink()
        if text is not None:
            marks[1].write_bytes(text)
        assert f"store fsck {store.root} --repair --mark t1" in stripewise("store", "df", store.root).out
        assert "marked anew" in mark("t1") and marks[1].read_bytes() == texts[1]
        assert store.program("md5sum", file).out == kept
    # Another directory in its place, one of another store, and two that are swapped are not taken.
    places[1].rename(store.base / "aside")
    places[1].mkdir()
    assert "is not the directory that this target had" in mark("t1", code=1)
    marks[1].write_bytes(texts[1].replace(b"uuid ", b"uuid f")[:60] + b"\nindex 1\nstore /elsewhere\n")
    assert marks[1].read_bytes() != texts[1] and "marked anew" not in mark("t1", code=1)
    marks[1].unlink()
    places[1].rmdir()
    places[2].rename(places[1])
    (store.base / "aside").rename(places[2])
    assert "where paths are swapped" in mark("t1", code=1) and marks[1].read_bytes() == texts[2]
    places[1].rename(store.base / "aside")
    places[2].rename(places[1])
    (store.base / "aside").rename(places[2])
    assert store.program("md5sum", file).out == kept


def test_a_file_goes_out_though_a_target_is_away_that_has_nothing_of_it(make_store: Maker) -> None:
    store = make_store(dirs(3))
    file, other = write(store, "f", 2 * MIB), write(store, "g", 2 * MIB)
    kept = store.program("md5sum", file).out
    stripewise("store", "set-layout", file, "--targets", "t0")
    place = store.base / "targets/t2"
    place.rename(store.base / "away")
    said = stripewise("store", "export", file)
    assert "exported" in said.out and "away" not in said.err, said.report
    assert not file.is_symlink() and execute(["md5sum", file]).out == kept
    assert str(file) not in stripewise("store", "ls", store.root).out
    assert "t2 is away" in stripewise("store", "export", other, code=1).err and other.is_symlink()
    (store.base / "away").rename(place)
    stripewise("store", "gc", store.root)
    assert "sound" in store.fsck().out and not list((store.root / "trash").iterdir())


def test_a_store_toml_that_lost_a_target_says_which_and_where_its_table_is(make_store: Maker) -> None:
    store = make_store(dirs(3))
    file = write(store, "f", 3 * MIB)
    toml = store.root / "store.toml"
    kept = toml.read_text()
    lost = kept.index('[[target]]\nname = "t2"')
    toml.write_text(kept[:lost] + kept[kept.index("[[rule]]") :])
    for words in (["df"], ["fsck"], ["drain"]):
        said = stripewise("store", *words, store.root, *(["t2"] if words == ["drain"] else []), code=1).err
        assert f"no [[target]] table for target t2 any more, which holds data of {file}; put it back" in said, said
    toml.write_text((store.root / "store.toml.compiled").read_text())
    assert toml.read_text() == kept and "sound" in store.fsck().out


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
    stripewise("store", "add", store.root, "t3", "--path", new, "--class", "hdd", "--no-calibrate")
    stripewise("store", "drain", store.root, "t1", "--remove")
    states = {row["name"] for row in json.loads(stripewise("store", "df", store.root, "--json").out)["targets"]}
    assert states == {"t0", "t2", "t3"}
    said = stripewise("undo", store.root).out
    assert f"left: {store.cluster}, for it is yours" in said and other.name not in said, said
