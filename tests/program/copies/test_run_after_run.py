"""RADAR in a store, run after run: what stands competes with what is new, fades as its file is read, and makes way."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import signal
import subprocess
from pathlib import Path

import pytest
from rig import STRIPEWISE, Maker, Store, Target, stripewise, wait_until
from test_replica_verbs import states

KIB = 1024
BLOCK, COLUMNS, ROWS = 16 * KIB, 16, 64
SIZE = BLOCK * COLUMNS * ROWS
#: Slow enough by the model that a seek for each block is worth a copy.
DISKS = [Target(f"d{number}", "hdd", "dir", 0, 3e-3, 1e-8) for number in range(3)]

READS = """
import os, sys
f = os.open(sys.argv[1], os.O_RDONLY)
for column in map(int, sys.argv[2].split(",")):
    for row in range(64):
        os.pread(f, 16384, (row * 16 + column) * 16384)
"""


@pytest.fixture
def store(make_store: Maker) -> Store:
    return make_store(DISKS)


def array(store: Store, name: str) -> Path:
    path = store.plain / name
    path.write_bytes(random.Random(name).randbytes(SIZE))
    os.utime(path, (path.stat().st_atime, path.stat().st_mtime - 60))
    return path


def traced(store: Store, path: Path, columns: str) -> Path:
    """The trace of a program that reads these columns of the file."""
    trace = store.base / f"trace-{path.name}-{columns}"
    stripewise("run", "--trace", trace, "--", "python3", "-c", READS, path, columns)
    stripewise("collect", trace)
    return trace


def replicate(store: Store, trace: Path, *options: str, code: int = 0) -> dict[str, object]:
    said = stripewise("replicate", trace, "--store", store.root, "--json", *options, code=code)
    found: dict[str, object] = json.loads(said.out)
    return found


def standing(store: Store) -> dict[str, float]:
    """The age of each file's sets."""
    told = json.loads((store.root / "replicas.json").read_text())
    return {os.path.basename(one["file"]): one["age"] for one in told["managers"][0]["sets"]}


def test_what_stands_makes_way_for_what_is_worth_more(store: Store) -> None:
    a, b = array(store, "a"), array(store, "b")
    one, four = traced(store, a, "0"), traced(store, b, "0,1,2,3")
    made = replicate(store, one, "--space", "4MiB")
    assert made["evicted"] == [] and states(store) == {"a": "in use"}
    # A column of the one and four of the other have room beside each other, and then not any more.
    assert replicate(store, four, "--space", "5MiB")["evicted"] == []
    assert states(store) == {"a": "in use", "b": "in use"}
    again = replicate(store, four, "--space", "4MiB")
    (gone,) = again["evicted"]  # type: ignore[misc]
    assert gone["file"] == str(a) and "evicted: its set takes 1.0 MiB, of which 0 B are left" in gone["reason"]
    assert again["made"] == [] and len(again["up_to_date"]) == 1  # type: ignore[arg-type]
    assert states(store) == {"b": "in use"} and list(standing(store)) == ["b"]


def test_a_run_counts_once_and_what_it_reads_again_is_young(store: Store) -> None:
    a, b = array(store, "a"), array(store, "b")
    column, other = traced(store, a, "0"), traced(store, b, "1")
    whole = traced(store, a, ",".join(map(str, range(8))))
    replicate(store, column)
    replicate(store, other)
    assert standing(store) == {"a": 0.0, "b": 0.0}
    # Half of the file is read by a run of another pattern: the set of the first run is older by that, once.
    stood = json.loads((store.root / "replicas.json").read_text())
    for _ in range(2):
        replicate(store, whole)
        told = json.loads((store.root / "replicas.json").read_text())["managers"][0]["sets"]
        # The trace takes the furthest byte for the end of the file.
        assert sorted(each["age"] for each in told if each["file"] == str(a)) == [0.0, pytest.approx(0.5, rel=0.01)]
    assert len(stood["taken"]) == 2
    replicate(store, column)
    assert standing(store)["b"] == 0.0


def test_what_a_killed_command_was_to_make_does_not_stand(store: Store) -> None:
    a = array(store, "a")
    first, more = traced(store, a, "0"), traced(store, a, "0,1,2,3")
    replicate(store, first)
    words = [STRIPEWISE, "replicate", str(more), "--store", str(store.root), "--bandwidth", "200KiB"]
    child = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    record = store.root / "replicas.json"
    assert wait_until(lambda: bool(json.loads(record.read_text())["managers"][1]["sets"]))
    child.kill()
    child.wait()
    stripewise("store", "gc", store.root)
    made = replicate(store, more)
    assert len(made["made"]) == 1 and made["up_to_date"] == [], "made"  # type: ignore[arg-type]
    assert replicate(store, more)["made"] == []


def test_copies_that_count_no_more_and_those_of_other_managers_do_not_stand(store: Store) -> None:
    a, b = array(store, "a"), array(store, "b")
    first, second = traced(store, a, "0"), traced(store, b, "0")
    replicate(store, first)
    replicate(store, second)
    a.write_bytes(a.read_bytes())
    replicate(store, second)
    assert list(standing(store)) == ["b"]
    replicate(store, second, "--manager", "h-pdla")
    assert standing(store) == {} and states(store) == {"a": "changed", "b": "in use"}


def test_a_run_is_set_beside_what_the_model_says_of_it_alone(store: Store) -> None:
    large, small = traced(store, array(store, "a"), "0,1,2,3,4,5,6,7"), traced(store, array(store, "b"), "0")
    replicate(store, large)
    said = stripewise("replicate", small, "--store", store.root).err
    told = re.search(r"the model says ([0-9.]+) s: memory or faster devices", said)
    # A seek for each of 64 blocks on 3 disks, and not those of the other file.
    assert told is not None and float(told[1]) < 64 * 3e-3


def test_the_sum_is_of_the_run_at_hand_and_what_stands_of_others_is_told_apart(store: Store) -> None:
    one, four = traced(store, array(store, "a"), "0"), traced(store, array(store, "b"), "0,1,2,3")
    alone = stripewise("replicate", one, "--store", store.root).out
    (total,) = [line for line in alone.splitlines() if line.startswith("radar: 1 replica, I/O by the model")]
    assert "of other runs" not in alone
    stripewise("replicate", four, "--store", store.root)
    said = stripewise("replicate", one, "--store", store.root, "--what-if").out
    assert total.split(" from the file")[0] in said and f"radar: {store.plain / 'b'}" not in said, said
    assert f"of other runs, not in the sum: 1 replica stands, 4.0 MiB of space, of {store.plain / 'b'}" in " ".join(
        said.split()
    )


def test_watch_takes_up_traces_as_they_come_until_it_is_interrupted(store: Store, tmp_path: Path) -> None:
    first, second = traced(store, array(store, "a"), "0"), traced(store, array(store, "b"), "0")
    place, said = tmp_path / "traces", tmp_path / "said"
    place.mkdir()
    shutil.copytree(first, place / "one")
    with said.open("w") as text:
        words = [STRIPEWISE, "replicate", str(place), "--store", str(store.root), "--watch"]
        child = subprocess.Popen(words, stdout=text, stderr=text)
        try:
            assert wait_until(lambda: states(store) == {"a": "in use"})
            (place / "damaged").mkdir()
            (place / "damaged" / "trace.parquet").write_bytes(b"PAR1")
            assert wait_until(lambda: "damaged" in said.read_text())
            # Half of a copy would be damaged, too.
            shutil.copytree(second, tmp_path / "two")
            (tmp_path / "two").rename(place / "two")
            assert wait_until(lambda: states(store) == {"a": "in use", "b": "in use"})
            child.send_signal(signal.SIGINT)
            assert child.wait(20) == 130
        finally:
            child.kill()
            child.wait()
    assert stripewise("replicate", first, "--store", store.root, "--watch", "--json", code=2).err


def test_a_damaged_record_is_told_with_its_cure_and_undo_removes_it(store: Store) -> None:
    trace = traced(store, array(store, "a"), "0")
    replicate(store, trace)
    record = store.root / "replicas.json"
    for text in ("{", "[]", '{"version": 1, "managers": [], "taken": 3}', '{"version": 9, "managers": []}'):
        record.write_text(text)
        said = stripewise("replicate", trace, "--store", store.root, code=1).err
        assert said.startswith(f"stripewise: {record}: ") and said.count("\n") == 1, said
    record.unlink()
    replicate(store, trace)
    store.check_at_end = False
    stripewise("undo", store.root)
    assert not store.root.exists()
