"""Kept plans of short programs: what is due when one ends is finished, for a bounded time, and counted truly."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from rig import STRIPEWISE, Maker, Store, Target, dirs, region, stripes, stripewise, wait_until

from stripewise.layout import Layout, Region
from stripewise.limits import Limits
from stripewise.moving import mover_process, plan_follower
from stripewise.moving.mover_session import Moved, MoverSession
from stripewise.moving.schedule import Schedule
from stripewise.plan import Expected, FilePlan, Plan, Window
from stripewise.plan.document import RegionPlan
from stripewise.store import Store as Opened

MIB = 1 << 20
#: A copy takes a second or more, the programs next to nothing.
TARGETS = [Target("h0", "hdd", "emulated", 0, 1e-4, 4e-8), Target("s0", "ssd")]
ON = {name: [region(0, 32 << 10, stripes((name, 64)))] for name in ("h0", "s0")}


def lying(store: Store, file: Path) -> str:
    opened = Opened(store.root)
    return opened.layout(str(opened.resolve(str(file)))).regions[0].stripes[0][0]


@pytest.fixture
def job(make_store: Maker) -> tuple[Store, Path]:
    """A store that keeps a plan for `stat FILE`, which moves all of it in one step."""
    store = make_store(TARGETS, regions=ON["h0"])
    file = store.data / "f"
    store.program("dd", "if=/dev/urandom", f"of={file}", "bs=1M", "count=32")
    plan = store.plan(store.base / "p.json", file, ON["s0"], 32 * MIB)
    stripewise("store", "plan", "add", store.root, plan, "--application", f"stat {file}", "--processes", "1")
    return store, file


def test_a_plan_takes_effect_however_short_its_program_is(job: tuple[Store, Path]) -> None:
    store, file = job
    said = store.run("stat", file)
    assert lying(store, file) == "s0", said.report
    assert "mover: 1 move(s), 32.0 MiB in" in said.err and "stopped before" not in said.err, said.report
    assert "not moved" not in said.err and "not all has moved" not in said.err, said.report
    assert "mover:" not in store.run("stat", file).err
    store.fsck()


def test_ctrl_c_ends_the_wait_for_a_mover_and_its_program_s_status_stays(job: tuple[Store, Path]) -> None:
    store, file = job
    words = [STRIPEWISE, "run", "--store", store.root, "--bandwidth", "2MiB", "--", "stat", file]
    with (store.base / "said").open("w+") as said:
        process = subprocess.Popen(list(map(str, words)), stdout=said, stderr=said, process_group=0)
        wait_until(lambda: "the program has ended" in (store.base / "said").read_text())
        begun = time.monotonic()
        os.kill(process.pid, signal.SIGINT)
        assert process.wait(30) == 0 and time.monotonic() - begun < mover_process.FINISH_S / 2
    told = (store.base / "said").read_text()
    assert "mover: 0 move(s), 0 B in" in told and "stopped before the end" in told, told
    assert "stopped while its bytes were copied" in told and "not begun" not in told and "Traceback" not in told, told
    assert "not all has moved yet; the next run moves the rest" in told, told
    assert lying(store, file) == "h0"
    store.fsck()


def test_the_wait_is_bounded(job: tuple[Store, Path]) -> None:
    store, file = job
    begun = time.monotonic()
    said = stripewise("run", "--store", store.root, "--bandwidth", "1MiB", "--", "stat", file)
    assert mover_process.FINISH_S <= time.monotonic() - begun < mover_process.FINISH_S + 8
    assert "files move on for up to 10 s, or until Ctrl-C" in said.err and "stopped before the end" in said.err


@pytest.mark.parametrize("at_end", [True, False])
def test_what_had_moved_when_a_mover_was_stopped_is_counted(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, at_end: bool
) -> None:
    here, wanted = ((Region(0, 4 * MIB, ((name, MIB),)),) for name in ("h0", "s0"))
    plan = Plan("best", {}, "", ("job",), 1, (Window(0, 1),), (), {}, Expected(1.0, 1.0, 1.0))
    file = FilePlan("/f", None, 4 * MIB, tuple(RegionPlan(each.start, each.len, each.stripes) for each in wanted))
    plan = replace(plan, files=(file,))
    lies = SimpleNamespace(regions=here)
    session = SimpleNamespace(stopped=False, finishing=False, signal=15, tell=lambda **_: None, expect=lambda _: None)

    def move(*_: object) -> Moved:
        session.stopped, lies.regions = True, wanted if at_end else here
        return Moved(4 * MIB if at_end else 0, "stopped", "stopped", "StoppedError")

    session.move = move
    store: Any = SimpleNamespace(root=tmp_path, layout=lambda _: lies)
    monkeypatch.setattr(plan_follower, "identity_of", lambda *_: "id")
    schedule = Schedule(plan, frozenset())
    result = plan_follower.PlanFollower(store, plan, schedule, cast(Any, session), print, time.time()).run()
    assert (result.moves, result.moved_bytes, result.is_complete) == ((1, 4 * MIB, True) if at_end else (0, 0, False))
    assert [left["why"] for left in result.left] == [] if at_end else [plan_follower.CUT_SHORT]


def test_a_move_that_is_stopped_half_way_tells_what_has_moved(make_store: Maker) -> None:
    on = {name: [region(at, 1024, stripes((name, 64))) for at in range(0, 33 << 10, 1024)] for name in ("h0", "s0")}
    store = make_store(TARGETS, regions=on["h0"])
    file = store.data / "f"
    store.program("dd", "if=/dev/urandom", f"of={file}", "bs=1M", "count=32")
    opened = Opened(store.root)
    identity = str(opened.resolve(str(file)))
    wanted = tuple(Region(at, MIB, (("s0", 64 << 10),)) for at in range(0, 33 * MIB, MIB))

    def look(done_bytes: int, _: int) -> None:
        if done_bytes > 10 * MIB:
            session.signal = signal.SIGTERM

    with MoverSession(opened, {"verb": "apply"}, Limits(32 * MIB, 0.0), look) as session:
        session.expect(32 * MIB)
        moved = session.move(str(file), identity, Layout(wanted), 0, 32 * MIB)
    there = sum(each.len for each in opened.layout(identity).regions if each.stripes[0][0] == "s0")
    assert moved.was_stopped and 0 < moved.moved_bytes == there < 32 * MIB
    store.fsck()


def test_a_plan_of_a_trace_is_kept_for_the_directory_of_its_run(
    make_store: Maker, monkeypatch: pytest.MonkeyPatch
) -> None:
    # No word of the program names its file: the directory does.
    store = make_store(dirs(4))
    words = ["dd", "if=/dev/zero", "bs=64k", "count=32", "conv=notrunc", "of=out.dat", "status=none"]
    script = store.base / "job.sh"
    script.write_text(" ".join(words))
    for name in ("a", "b"):
        (store.data / name).mkdir()
        monkeypatch.chdir(store.data / name)
        store.run("sh", script)
    trace = store.base / "trace"
    stripewise("run", "--store", store.root, "--trace", trace, "--", "sh", script)
    stripewise("collect", trace)
    monkeypatch.chdir(store.base)
    stripewise("plan", trace, "--store", store.root, "--keep", "--policy", "def")
    (row,) = json.loads(stripewise("store", "plan", "ls", store.root, "--json").out)
    assert row["directory"] == str(store.data / "b")
    monkeypatch.chdir(store.data / "a")
    said = store.run("sh", script)
    assert "is not followed: this run is in" in said.err, said.report
