"""`plan --replicas` and `apply`: layouts and copies of one plan, in a store, beside what others made there."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from rig import STRIPEWISE, Maker, Store, Target, stripewise, wait_until
from test_replica_verbs import READS, states

KIB = 1024
DATA = random.Random("planned").randbytes(4 << 20)
#: One order of reads that no layout helps: by rows, and by columns on disks alone.
DISKS = [Target(f"d{number}", "hdd", "dir", 0, 3e-3, 1e-8) for number in range(3)]


@pytest.fixture
def managed(make_store: Maker) -> tuple[Store, Path]:
    """A store with the file that is read, and its trace's place."""
    made = make_store(DISKS)
    path = made.data / "array"
    (made.plain / "array").write_bytes(DATA)
    made.run("cp", made.plain / "array", path)
    return made, path


def planned(store: Store, path: Path, *options: str) -> tuple[Path, str]:
    """A plan with copies, and what was said of it."""
    trace, plan = store.base / "trace", store.base / "plan.json"
    if not trace.exists():
        stripewise("run", "--trace", trace, "--store", store.root, "--", "python3", "-c", READS, path)
        stripewise("collect", trace)
    words = ["plan", trace, "--store", store.root, "--replicas", "8MiB", "--read-ahead", "384KiB", *options]
    return plan, stripewise(*words, "-o", plan).out


def test_a_plan_s_copies_are_made_and_read_from(managed: tuple[Store, Path]) -> None:
    store, path = managed
    plan, said = planned(store, path, "--policy", "def")
    told = " ".join(said.split())
    assert "copies (radar): 1 replica, 4.0 MiB of space" in told and "of the layouts alone:" in told
    assert f"copy of {path}: " in told and "* chosen" not in told and "def * - by radar 4.0 MiB" in told
    checked = " ".join(stripewise("plan", "--check", plan, "--store", store.root).out.split())
    assert "copies (radar): 1 replica" in checked
    shown = stripewise("show", plan).out
    assert "copies (radar): 1 replica" in " ".join(shown.split())
    made = stripewise("apply", plan, "--store", store.root).out
    assert "array: 1 replica, 4.0 MiB" in made and states(store) == {"array": "in use"}
    trace = store.base / "again"
    stripewise("run", "--trace", trace, "--store", store.root, "--", "python3", "-c", READS, path)
    stripewise("collect", trace)
    assert "served" in stripewise("show", trace).out
    # Applied again, nothing is made; and run after run it competes as any set.
    again = json.loads(stripewise("apply", plan, "--store", store.root, "--json").out)
    assert again["moved_bytes"] == 0 and again["made"] == [] and len(again["up_to_date"]) == 1
    assert json.loads((store.root / "replicas.json").read_text())["managers"][0]["sets"][0]["file"] == str(path)
    store.fsck()


def test_what_best_leaves_in_place_gets_its_copies_all_the_same(managed: tuple[Store, Path]) -> None:
    store, path = managed
    before = stripewise("store", "layout", path).out
    plan, _ = planned(store, path, "--time-limit", "2s")
    data = json.loads(plan.read_text())
    assert data["policy"] == "best" and "replicas" in data
    made = stripewise("apply", plan, "--store", store.root).out
    assert states(store) == {"array": "in use"}
    if data.get("leave"):
        assert (
            "1 file(s) left where they lie: with the copies no other layout" in made
            and stripewise("store", "layout", path).out == before
        )


def test_copies_of_other_files_stay(managed: tuple[Store, Path]) -> None:
    store, path = managed
    other = store.plain / "other"
    other.write_bytes(DATA)
    os.utime(other, (other.stat().st_atime, other.stat().st_mtime - 60))
    trace = store.base / "other-trace"
    stripewise("run", "--trace", trace, "--", "python3", "-c", READS, other)
    stripewise("collect", trace)
    stripewise("replicate", trace, "--store", store.root)
    assert states(store) == {"other": "in use"}
    plan, _ = planned(store, path, "--policy", "def")
    stripewise("apply", plan, "--store", store.root)
    assert states(store) == {"array": "in use", "other": "in use"}


def test_a_plan_whose_copies_cannot_be_moves_nothing(managed: tuple[Store, Path]) -> None:
    store, path = managed
    plan, _ = planned(store, path, "--policy", "def")
    data = json.loads(plan.read_text())
    data["files"][0]["regions"] = [{"start": 0, "len": 4 << 20, "stripes": [["d0", 4096]]}]
    (replica,) = data["replicas"]["sets"][0]["replicas"]
    replica["layout"]["regions"][0]["stripes"] = [["gone", 4096]]
    plan.write_text(json.dumps(data))
    before = stripewise("store", "layout", path).out
    said = stripewise("apply", plan, "--store", store.root, "--anyway", code=1).err
    assert "replicas of" in said and "the target 'gone'" in said and "Traceback" not in said
    assert stripewise("store", "layout", path).out == before and states(store) == {}


def interrupted(store: Store, words: list[str | Path], begun: Callable[[], bool]) -> str:
    """What a verb says that Ctrl-C ends while it moves bytes slowly."""
    child = subprocess.Popen([STRIPEWISE, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert wait_until(begun)
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=60)
    finally:
        child.kill()
        child.wait()
    assert child.returncode == 128 + signal.SIGINT, out + err
    store.fsck()
    return err


def test_an_interrupted_apply_says_what_stands_and_how_to_go_on_to_the_copies(managed: tuple[Store, Path]) -> None:
    store, path = managed
    plan, _ = planned(store, path, "--policy", "def")
    data = json.loads(plan.read_text())
    data["files"][0]["regions"] = [{"start": 0, "len": 4 << 20, "stripes": [["d0", 4096]]}]
    plan.write_text(json.dumps(data))
    words = ["apply", plan, "--store", store.root, "--anyway"]
    status = ["mover", "status", store.root]
    err = interrupted(store, [*words, "--bandwidth", "256KiB"], lambda: "moving" in stripewise(*status, code=None).out)
    stands = "interrupted; 0 of 1 file(s) have the new layout, each has the old one and all its bytes; the same command"
    assert f"stripewise: {stands} again moves the rest, then makes the copies, what was under way" in err, err
    stripewise(*words)
    assert states(store) == {"array": "in use"}


def test_an_interrupted_replicate_says_that_no_copies_are_left(managed: tuple[Store, Path]) -> None:
    store, path = managed
    planned(store, path, "--policy", "def")
    words = ["replicate", store.base / "trace", "--store", store.root, "--manager", "h-pdla"]

    def unfinished() -> bool:
        return "unfinished" in stripewise("store", "replica", "ls", store.root, code=None).out

    err = interrupted(store, [*words, "--bandwidth", "256KiB"], unfinished)
    stands = (
        "interrupted; no copies were made, none are left half-made, and no file has changed; the same command again"
    )
    assert f"stripewise: {stands} makes them\n" in err and states(store) == {}, err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--replicas", "8MiB", "--window", "1s"), "--replicas: copies stand for the whole run; leave out --window"),
        (("--replicas", "8MiB", "--keep"), "--keep: runs follow layouts alone"),
        (("--replicas", "8MiB", "--manager", "me"), "--manager: 'me' is not known; give one of h-pdla, s-pdla"),
        (("--replicas", "much"), "--replicas: "),
        (("--manager", "h-pdla"), "--manager: is for copies; give --replicas SIZE too"),
        (("--read-ahead", "1MiB"), "--read-ahead: is for copies; give --replicas SIZE too"),
    ],
)
def test_what_goes_not_with_copies_is_told(managed: tuple[Store, Path], words: tuple[str, ...], said: str) -> None:
    store, _ = managed
    found = stripewise("plan", store.base / "none", "--store", store.root, *words, code=2).err
    assert said in found


def test_copies_that_lie_elsewhere_than_planned_are_made_anew(managed: tuple[Store, Path]) -> None:
    store, path = managed
    plan, _ = planned(store, path, "--policy", "def")
    stripewise("replicate", store.base / "trace", "--store", store.root)
    assert states(store) == {"array": "in use"}
    data = json.loads(plan.read_text())
    (replica,) = data["replicas"]["sets"][0]["replicas"]
    for region in replica["layout"]["regions"]:
        region["stripes"] = [["d2", region["len"]]]
    plan.write_text(json.dumps(data))
    said = json.loads(stripewise("apply", plan, "--store", store.root, "--json").out)
    assert said["up_to_date"] == [] and [each["replaced"] for each in said["made"]] == [True]
    layout = stripewise("store", "layout", str(next((store.root / "copies").glob("*.copy")))).out
    # Ids have digits and a to f as names of targets do.
    assert [line for line in layout.splitlines() if line.startswith("held by")] == ["held by d2 4.0 MiB"]
    store.fsck()


def test_too_little_space_is_told_and_a_plan_simulated_without_its_copies_is_said_to_be(
    managed: tuple[Store, Path],
) -> None:
    store, path = managed
    _, said = planned(store, path, "--replicas", "10", "--time-limit", "1s")
    assert "no copies: its set takes 4.0 MiB, of which 10 B are left" in " ".join(said.split())
    plan, _ = planned(store, path, "--policy", "def")
    words = ["simulate", "--trace", store.base / "trace", "--cluster", store.root, "--plan", plan]
    assert "is simulated without its 1 copy; with them " in stripewise(*words).err
