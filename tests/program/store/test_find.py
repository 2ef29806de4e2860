"""`store find`: files by name, size, age, targets and layout, and names that any program can take on."""

from __future__ import annotations

import json
import os

import pytest
from rig import BIN, Store, Target, create_store, dirs, execute, stripewise

from stripewise.cli.store.find import Wanted
from stripewise.errors import UsageError
from stripewise.store import Store as Opened
from stripewise.store import find


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """Files of several sizes, ages and layouts; one has a line break in its name, one no text."""
    made = create_store(tmp_path_factory.mktemp("find"), [*dirs(2), Target("ssd0", "ssd")])
    (made.data / "deep").mkdir()
    for name, size in (("small.dat", 10), ("large.dat", 3 << 20), ("deep/two\nlines", 200_000), ("deep/\udcff", 7)):
        made.program("sh", "-c", 'head -c "$1" /dev/zero >"$0"', os.fsencode(made.data / name), str(size))
    for name, targets in (
        ("small.dat", "t1,ssd0"),
        ("large.dat", "ssd0"),
        ("deep/two\nlines", "t0,t1,ssd0"),
        ("deep/\udcff", "t0,t1"),
    ):
        stripewise("store", "set-layout", os.fsencode(made.data / name), "--targets", targets)
    made.program("touch", "-d", "10 days ago", made.data / "large.dat")
    return made


def found(store: Store, **wanted: object) -> list[str]:
    """What the verb's conditions choose, without a process for each."""
    opened, problems = Opened(store.root), []
    each = find.find(opened, Wanted(**wanted).conditions(opened), problems)
    names = sorted(os.path.relpath(one.path, store.data) for one in each)
    assert not problems
    return names


def test_each_condition_chooses_what_it_says(store: Store) -> None:
    lines, odd = "deep/two\nlines", "deep/\udcff"
    for words, wanted in (
        ({}, [odd, lines, "large.dat", "small.dat"]),
        ({"pattern": "*.dat"}, ["large.dat", "small.dat"]),
        ({"pattern": "*/deep/*"}, [odd, lines]),
        ({"size": "+1MiB"}, ["large.dat"]),
        ({"size": "-10"}, [odd]),
        ({"size": "10"}, ["small.dat"]),
        ({"changed": "+7d"}, ["large.dat"]),
        ({"pattern": "*.dat", "changed": "-7d"}, ["small.dat"]),
        ({"target": ["t0"]}, [odd, lines]),
        ({"target": ["t0", "ssd0"]}, [odd, lines, "large.dat"]),
        ({"klass": ["ssd"]}, [lines, "large.dat"]),
        ({"not_on": ["ssd0"]}, [odd, "small.dat"]),
        ({"not_on": ["ssd0", "t1"]}, [odd]),
        ({"stripe_count": "1"}, ["large.dat"]),
        ({"stripe_count": "+2"}, [lines]),
        ({"stripe_count": "-3", "size": "-1MiB"}, [odd, "small.dat"]),
        ({"like": store.data / "large.dat"}, ["large.dat"]),
    ):
        assert found(store, **words) == sorted(wanted), words


def test_what_is_laid_out_behind_the_end_counts_for_no_condition(store: Store) -> None:
    file = store.data / "grows"
    layout = store.base / "grows.json"
    regions = [
        {"start": 0, "len": 1 << 20, "stripes": [["t0", 65536], ["t1", 65536]]},
        {"start": 1 << 20, "len": 1 << 20, "stripes": [[name, 65536] for name in ("t0", "t1", "ssd0")]},
    ]
    layout.write_text(json.dumps({"regions": regions}))
    store.program("sh", "-c", f"head -c {1 << 20} /dev/zero > {file}")
    stripewise("store", "set-layout", file, "--layout", layout)
    try:
        assert found(store, pattern="grows", stripe_count="2") == ["grows"]
        assert found(store, pattern="grows", stripe_count="3") == []
        store.program("sh", "-c", f"printf more >> {file}")
        assert found(store, pattern="grows", stripe_count="3") == ["grows"]
    finally:
        store.run("rm", file)


def test_a_pattern_with_a_slash_is_from_the_working_directory(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    odd = store.base / "[a]"
    odd.mkdir(exist_ok=True)
    monkeypatch.chdir(store.data.parent)
    name = store.data.name
    assert found(store, pattern=f"{name}/*.dat") == ["large.dat", "small.dat"]
    assert found(store, pattern=f"./{name}/../{name}/small.dat") == ["small.dat"]
    monkeypatch.chdir(odd)
    assert found(store, pattern=f"../{name}/*.dat") == ["large.dat", "small.dat"]
    assert found(store, pattern="no/*.dat") == []
    assert found(store, name=f"../{name}/*.dat") == ["large.dat", "small.dat"]
    said = stripewise("store", "find", store.root, "*.dat", "--name", "*.dat", code=2).err
    assert "give one of them" in said, said


def test_names_are_whole_for_programs_and_one_line_for_people(store: Store) -> None:
    shown = execute([BIN / "stripewise", "store", "find", store.root]).out
    assert len(shown.splitlines()) == 4 and "two\\nlines" in shown
    rows = json.loads(execute([BIN / "stripewise", "store", "find", store.root, "--target", "ssd0", "--json"]).out)
    assert {row["size"] for row in rows} == {200_000, 3 << 20}
    assert all(row["target_bytes"]["ssd0"] and row["stripe_count"] for row in rows)
    listed = os.fsencode(store.data / "deep/\udcff")
    said = execute(
        ["sh", "-c", f"'{BIN / 'stripewise'}' store find '{store.root}' -0 --size 7 | xargs -0 readlink"]
    ).out
    assert listed and said.startswith("/stripewise:"), said


def test_what_makes_no_sense_is_one_clear_error(store: Store) -> None:
    for wanted, told in (
        ({"size": "big"}, "is not a size"),
        ({"changed": "7d"}, "has no sign; write [+]7d for longer ago"),
        ({"changed": "+7"}, "is no span of time"),
        ({"stripe_count": "two"}, "is not a count"),
        ({"target": ["t9"]}, "has no target 't9'; it has t0, t1, ssd0"),
        ({"klass": ["swd"]}, "has no target of class 'swd'; it has hdd, ssd"),
    ):
        with pytest.raises(UsageError, match=told):
            found(store, **wanted)
    said = stripewise("store", "find", store.root, "--size", "-1x", code=2).err
    assert "is not a size" in said and said.count("\n") == 1, said
    assert "not both" in stripewise("store", "find", store.root, "-0", "--json", code=2).err
    assert "is not a store" in stripewise("store", "find", store.plain, code=1).err


def test_a_damaged_file_is_told_and_hides_no_other(store: Store) -> None:
    (identity,) = [str(file["id"]) for file in store.files() if file["size"] == 10]
    layout = store.root / "files" / identity / "layout"
    whole = layout.read_bytes()
    layout.write_bytes(whole[:-1])
    try:
        said = stripewise("store", "find", store.root, "*.dat", code=1)
        assert said.out == f"{store.data / 'large.dat'}\n" and "1 file(s) could not be checked" in said.err
    finally:
        layout.write_bytes(whole)


def test_no_layout_is_read_unless_a_condition_is_about_it(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    opened, read = Opened(store.root), []
    real = find.placed_in
    monkeypatch.setattr(find, "placed_in", lambda *words: read.append(words[1]) or real(*words))
    conditions = find.Conditions(size=find.size_span("+1", ""), changed=("-", 30 * 86_400))
    assert len(list(find.find(opened, conditions, []))) == 4 and not read
    conditions = find.Conditions(pattern="*.dat", on=frozenset({"ssd0"}))
    assert len(list(find.find(opened, conditions, []))) == 1 and len(read) == 2
