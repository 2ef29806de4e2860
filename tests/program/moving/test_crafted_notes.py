"""What repairs make of what somebody else wrote: notes of a killed tune, names of files, directories of traces."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from rig import STRIPEWISE, Maker, Store, dirs, execute, stripewise

MIB = 1 << 20
#: A layout under trial: all of a file on one target.
ON_T1 = {"regions": [{"start": 0, "len": 64 * MIB, "stripes": [["t1", 65536]]}]}


@pytest.fixture
def store(make_store: Maker) -> Store:
    made = make_store(dirs(2))
    for name in ("f", "g", "h"):
        made.program("sh", "-c", 'head -c 300000 /dev/urandom >"$0"', made.data / name)
    return made


def note(store: Store, paths: list[str], **more: object) -> None:
    """What a tune that is at work notes."""
    said = {"command": "x", "files": paths, "count": len(paths), "before": dict.fromkeys(paths, ON_T1), "made": []}
    (store.root / "tune.lock").write_text(json.dumps(said | more))


def lies(store: Store, name: str) -> list[object]:
    (told,) = json.loads(stripewise("store", "layout", store.data / name, "--json").out)["files"]
    return [region["stripes"] for region in told["regions"]]


@pytest.mark.parametrize("what", ["Infinity", "deep", "half a surrogate", "other types", "no lock", "second name"])
def test_a_note_that_no_tune_wrote_ends_no_verb_with_a_traceback(store: Store, what: str) -> None:
    file, lock = str(store.data / "f"), store.root / "tune.lock"
    note(store, [file])
    if what == "Infinity":
        lock.write_text(lock.read_text().replace('"count": 1', '"count": Infinity'))
    elif what == "deep":
        lock.write_text("[" * 100_000)
    elif what == "half a surrogate":
        note(store, ["/\ud800", file, "/a\0b"])
    elif what == "other types":
        note(store, [file], files=[[file], 3, None, file], before=[[file, 3]], made=[{}])
    elif what == "no lock":
        lock.unlink()
        os.mkfifo(lock)
    else:
        os.link(lock, store.base / "second")
    for words in (["store", "fsck", store.root], ["store", "fsck", store.root, "--repair"],
                  ["doctor", "--store", store.root], ["store", "set-layout", file, "--layout", "def"]):  # fmt: skip
        said = stripewise(*words, code=None, timeout_s=60)
        assert "internal error" not in said.err and "Traceback" not in said.err, said.report
    lock.unlink(missing_ok=True)
    store.fsck()


def test_a_file_that_is_noted_often_is_put_back_once(store: Store) -> None:
    file, spelled = str(store.data / "f"), [f"{store.data}{'/.' * number}/f" for number in range(1, 100)]
    note(store, [file, *spelled] * 50)
    said = store.fsck("--repair").out
    assert "1 file(s) have the layout again that they had before it" in said, said
    assert lies(store, "f") == [[["t1", 65536]]] and not (store.root / "tune.lock").read_text()


def test_a_damaged_file_keeps_no_other_from_being_put_back(store: Store) -> None:
    paths = [str(store.data / name) for name in "fgh"]
    note(store, paths)
    part = next((store.base / "targets/t0").glob(f"{os.path.basename(os.readlink(paths[1]))}.data"))
    kept = part.rename(store.base / "kept")
    said = store.fsck("--repair", code=1).out
    assert "2 file(s) have the layout again" in said and f"killed: {paths[1]} may lie" in said, said
    assert "cannot be put back now: " in said and lies(store, "f") == lies(store, "h") == [[["t1", 65536]]], said
    kept.rename(part)
    assert "1 file(s) have the layout again" in store.fsck("--repair").out
    assert lies(store, "g") == [[["t1", 65536]]]


def test_no_directory_that_others_may_write_is_taken_for_a_tune_s(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    places = store.base / "tmp"
    monkeypatch.setenv("TMPDIR", str(places))
    for name, mode in (("stripewise-tune-notes", 0o1777), ("stripewise-tune-own", 0o700)):
        (places / name).mkdir(parents=True)
        (places / name / ".tune").touch()
        (places / name).chmod(mode)
    note(store, [str(store.data / "f")])
    store.fsck("--repair")
    assert [each.name for each in places.iterdir() if each.name.startswith("stripewise-tune")] == [
        "stripewise-tune-notes"
    ]


def test_a_name_that_leads_elsewhere_stands_in_no_command(store: Store) -> None:
    victim = store.plain / "victim"
    victim.write_text("precious")
    identity = os.path.basename(os.readlink(store.data / "f"))
    part = next((store.base / "targets/t0").glob(f"{identity}.data"))
    kept = part.rename(store.base / "kept")
    assert f"-- rm {store.data / 'f'};" in store.fsck(code=1).out
    record = store.root / "files" / identity / "link"
    before = record.read_bytes()
    record.write_text(f"1 2 {victim}\n")
    said = store.fsck(code=1).out
    assert f"rm {victim}" not in said and "-- rm FILE;" in said, said
    record.write_bytes(before)
    kept.rename(part)


def test_a_store_with_files_in_more_directories_than_descriptors_is_relinked(store: Store, tmp_path: Path) -> None:
    many = [store.data / str(number) for number in range(150)]
    for directory in many:
        directory.mkdir()
    store.program("sh", "-c", 'for d in "$0"/*/; do echo x >"$d/f"; done', store.data)
    moved = tmp_path / "moved"
    moved.mkdir()
    (store.base / "data").rename(moved / "data")
    store.root.rename(moved / "store")
    few = 'ulimit -n 100; exec "$0" "$@"'
    words = (STRIPEWISE, "store", "relink", "--moved", moved / "store", moved / "data")
    said = execute(["sh", "-c", few, *words], dict(os.environ), 0).out
    assert "153 link(s) rewritten" in said, said
    store.check_at_end = False
