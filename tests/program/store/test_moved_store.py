"""A store moved by hand with its targets, and one that has lost targets for good: what finds it, what ends it."""

from __future__ import annotations

import json
import os
import shlex
import shutil
from pathlib import Path

import pytest
from hostile import MALLORY, needs_root
from rig import STRIPEWISE, execute, stripewise

IDENTITY = "stripewise-target"
SIZE = 300_000


def run(root: Path, command: str, code: int | None = 0) -> None:
    execute([STRIPEWISE, "run", "--store", root, "--", "sh", "-c", command], code=code)


@pytest.fixture
def lab(tmp_path: Path) -> Path:
    """A store `store`, its targets `t0`, `t1`, `t2`, and files in `data`, all below one directory."""
    base = tmp_path / "lab"
    for name in ("t0", "t1", "t2", "data"):
        (base / name).mkdir(parents=True)
    stripewise(
        "init",
        base / "t0",
        base / "t1",
        base / "t2",
        "--no-calibrate",
        "--store",
        base / "store",
        "--manage",
        base / "data",
    )
    run(base / "store", f"head -c {SIZE} /dev/urandom > {base}/data/f; head -c 10 /dev/urandom > {base}/data/g")
    return base


def cat(store: Path, file: Path) -> str:
    return execute(["sh", "-c", f"{STRIPEWISE} store cat {file} | md5sum"]).out


def moved(lab: Path) -> Path:
    now = lab.parent / "elsewhere"
    lab.rename(now)
    return now


def planted(now: Path) -> tuple[Path, Path]:
    """A copy of a target where it would be found from the directory above the moved store, and the target."""
    place = next(now.rglob(IDENTITY)).parent
    above = now.parent.joinpath(*place.relative_to(now).parts)
    above.parent.mkdir(parents=True, exist_ok=True)
    shutil.copytree(place, above)
    return above, place


def test_a_target_that_is_away_after_all_is_named_with_the_cure(lab: Path) -> None:
    (lab / "t0").rename(lab / "elsewhere")
    said = stripewise("store", "relink", "--moved", lab / "store", lab / "data")
    assert "target t0 is away still: " in said.err and "give its new path in store.toml" in said.err, said.report
    toml = lab / "store/store.toml"
    toml.write_text(toml.read_text().replace(f"{lab}/t0/", f"{lab}/elsewhere/"))
    assert "sound" in stripewise("store", "fsck", lab / "store").out


def test_a_store_that_moved_with_its_targets_is_found_with_its_files_and_rules(lab: Path) -> None:
    before = cat(lab / "store", lab / "data/f")
    now = moved(lab)
    refused = stripewise("store", "drain", now / "store", "t0", code=None)
    told = stripewise("store", "df", now / "store", code=None)
    assert "stripewise store relink --moved" in told.out + told.err + refused.out + refused.err
    said = stripewise("store", "relink", "--moved", now / "store", now / "data").out
    assert f"target t0: is in {now}/t0" in said or f"is in {now}/t0" in said, said
    assert "2 link(s) rewritten" in said
    config = (now / "store/store.toml").read_text()
    assert str(lab) not in config, config
    assert cat(now / "store", now / "data/f") == before
    assert "sound" in stripewise("store", "fsck", now / "store").out
    # New files go into it where it is now.
    run(now / "store", f"echo new > {now}/data/new")
    assert (now / "data/new").is_symlink()
    again = json.loads(stripewise("store", "relink", "--moved", now / "store", now / "data", "--json").out)
    assert (again["targets"], again["globs"], again["current"]) == ({}, {}, 3)
    stripewise("undo", now / "store")
    assert not list(now.rglob(IDENTITY)) and (now / "data/f").stat().st_size == SIZE


def test_an_undo_takes_the_marks_of_a_store_that_moved_and_none_of_a_store_that_was_copied(lab: Path) -> None:
    run(lab / "store", f"rm {lab}/data/f {lab}/data/g")
    shutil.copytree(lab / "store", lab.parent / "copy", symlinks=True)
    stripewise("undo", lab.parent / "copy")
    assert len(list(lab.rglob(IDENTITY))) == 3
    now = moved(lab)
    toml = now / "store/store.toml"
    toml.write_text(toml.read_text().replace(str(lab), str(now)))
    said = stripewise("undo", now / "store").out
    assert "did not make it" not in said and not list(now.rglob(IDENTITY)), said


def test_two_directories_that_are_the_same_target_are_not_chosen_between(lab: Path) -> None:
    now = moved(lab)
    planted(now)
    before = (now / "store/store.toml").read_bytes()
    said = stripewise("store", "relink", "--moved", now / "store", now / "data", code=1).err
    assert "both say that they are it" in said and (now / "store/store.toml").read_bytes() == before


def test_a_move_to_another_place_under_the_same_name_takes_rules_and_removed_targets_with_it(lab: Path) -> None:
    store, trace = lab / "store", lab.parent / "trace"
    stripewise("store", "drain", store, "t2", "--remove")
    stripewise("run", "--store", store, "--trace", trace, "--", "cat", lab / "data/f")
    stripewise("collect", trace)
    stripewise("plan", trace, "--store", store, "--keep", "--policy", "def")
    now = lab.parent / "elsewhere" / lab.name
    now.parent.mkdir()
    lab.rename(now)
    said = stripewise("store", "relink", "--moved", now / "store", now / "data").out
    assert "1 kept plan(s) stay as they are" in said and "removed" not in said, said
    former = [line for line in (now / "store/store.toml").read_text().splitlines() if f"{lab}/" in line]
    assert [line.split()[0] for line in former] == ["application"], former
    assert "sound" in stripewise("store", "fsck", now / "store").out
    stripewise("store", "gc", now / "store")
    run(now / "store", f"echo new > {now}/data/new")
    assert (now / "data/new").is_symlink()
    said = stripewise("undo", now / "store").out
    assert "left" not in said and not (now / "store").exists() and not list(now.rglob(IDENTITY)), said


@needs_root
def test_nobody_else_makes_a_directory_a_target_of_a_moved_store(lab: Path) -> None:
    now = moved(lab)
    # Found where it lay, seen from a directory above the store, and another user's.
    above, place = planted(now)
    mallory = [above, *above.iterdir()]
    for each in mallory:
        os.chown(each, MALLORY, MALLORY)
    stripewise("store", "relink", "--moved", now / "store", now / "data")
    config = (now / "store/store.toml").read_text()
    assert str(above) not in config and str(place) in config, config


def test_a_store_without_its_targets_is_undone_once_no_file_needs_them(lab: Path) -> None:
    for each in list(lab.rglob(IDENTITY)):
        shutil.rmtree(each.parent)
    f, g, store = lab / "data/f", lab / "data/g", lab / "store"
    said = stripewise("undo", store, code=1).err
    assert f"such as {f}" in said and f"stripewise run --store {store} -- rm {f}" in said, said
    assert store.exists() and f.is_symlink()
    run(store, f"rm {f} {g}")
    looked = stripewise("undo", store, "--dry-run").out
    assert "no file needs it" in " ".join(looked.split())
    said = stripewise("undo", store).out
    assert said.count("left, for no file needed it: target") == 3 and not store.exists(), said


def test_files_that_do_not_need_a_lost_target_are_plain_again(lab: Path) -> None:
    f, g, store = lab / "data/f", lab / "data/g", lab / "store"
    rows = json.loads(stripewise("store", "layout", g, "--json").out)
    names = json.loads(stripewise("store", "find", store, "*", "--stripe-count", "+0", "--json").out)
    (held,) = [row["target_bytes"] for row in names if row["path"] == str(g)]
    lost = next(target for target in ("t0", "t1", "t2") if not held.get(target))
    (place,) = [each.parent for each in lab.rglob(IDENTITY) if each.parent.is_relative_to(lab / lost)]
    content = execute(["sh", "-c", f"{STRIPEWISE} store cat {g} | od -c"]).out
    place.rename(lab / "away")
    assert rows and "such as" in stripewise("undo", store, code=1).err
    run(store, f"rm {f}")
    said = stripewise("undo", store)
    assert f"left, for no file needed it: target {lost}" in said.out, said.report
    assert not g.is_symlink() and execute(["od", "-c", g]).out == content and not store.exists()
    # What lies there is nobody's by now, and is not touched.
    assert os.listdir(lab / "away")


#: Makes its file anew in each run.
ANEW = "rm -f out; head -c 100000 /dev/zero > out"


@pytest.mark.parametrize("brought", ["by nothing", "by --manage", "by a file that is there"])
def test_a_run_in_the_former_place_of_a_moved_store_makes_plain_files(
    lab: Path, monkeypatch: pytest.MonkeyPatch, brought: str
) -> None:
    there, store, plan = lab / "data", lab.parent / "elsewhere/store", lab.parent / "p.json"
    run(lab / "store", f"cd {there} && {ANEW} && cp out more")
    regions = [{"start": 0, "len": 1 << 20, "stripes": [["t1", 65536]]}]
    files = [{"path": str(there / name), "size": 100_000, "regions": regions} for name in ("out", "more")]
    keys = {"options": {}, "application": {}, "windows": [], "target_bytes": {}, "expected": {}}
    plan.write_text(json.dumps({"version": 1, "policy": "hand", "files": files, **keys}))
    monkeypatch.chdir(there)
    words = ("--application", f"sh -c '{ANEW}'", "--processes", "1")
    stripewise("store", "plan", "add", lab / "store", plan, *words)
    assert "following the plan" in stripewise("run", "--store", lab / "store", "--", "sh", "-c", ANEW).err
    now = moved(lab)
    stripewise("store", "relink", "--moved", store, now / "data")
    there.mkdir(parents=True)
    monkeypatch.chdir(there)
    if brought == "by a file that is there":
        run(store, f"mv {now}/data/more {there}/more")
    manage = ("--manage", there) if brought == "by --manage" else ()
    said = stripewise("run", "--store", store, *manage, "--", "sh", "-c", ANEW).err
    assert (there / "out").is_symlink() == (brought == "by --manage"), said
    assert ("following the plan kept for" in said) == (brought != "by nothing"), said
    if brought == "by nothing":
        assert f"is not followed: none of its files is in {store}, or where that takes new files; " in said, said
        stripewise(*shlex.split(said.partition("to forget it: stripewise ")[2]))
        assert "no plans; " in stripewise("store", "plan", "ls", store).out


def test_links_that_two_given_directories_show_are_those_that_are_recorded_through_every_move(lab: Path) -> None:
    """Copies of a file in a store that moves twice, found once by the store and once by the directory above it."""
    script = "import os,sys\nf=os.open(sys.argv[1],0)\n[os.pread(f,4096,n*16384) for _ in '12' for n in range(18)]"
    stripewise("run", "--store", lab / "store", "--trace", lab / "tr", "--", "python3", "-c", script, lab / "data/f")
    stripewise("collect", lab / "tr")
    words = ["--pattern", f"{lab}/data/f,read:0:4096:16384x18", "--store", lab / "store"]
    stripewise("replicate", lab / "tr", *words)
    now = lab
    for name in ("second", "third", "fourth"):
        now = now.rename(lab.parent / name)
        stripewise("store", "relink", "--moved", now / "store", now, now / "data")
        (copies,) = json.loads(stripewise("store", "replica", "ls", now / "store", "--json").out)
        assert (copies["state"], copies["path"]) == ("in use", str(now / "data/f"))
        assert "sound" in stripewise("store", "fsck", now / "store").out
    stripewise("undo", now / "store")
    assert (now / "data/f").stat().st_size == SIZE
