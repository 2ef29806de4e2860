"""The mover process: windows, kills, pauses, two at a time, targets that are full or gone, while a program writes."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from rig import (
    NATIVE,
    STRIPEWISE,
    Maker,
    Result,
    Store,
    Target,
    execute,
    region,
    stripes,
    stripewise,
    talking,
    wait_until,
)

from stripewise.store import Store as Opened

ACKED = NATIVE / "acked"
MIB = 1 << 20
KIB_PER_MIB = 1024
TARGETS = [Target("h0"), Target("h1"), Target("s0", "ssd")]
SLOW = [
    Target("h0", "hdd", "emulated", 0, 1e-4, 2e-8),
    Target("h1", "hdd", "emulated", 0, 1e-4, 2e-8),
    Target("s0", "ssd", "emulated", 0, 1e-5, 1e-9),
]
HDD = stripes(("h0", 64), ("h1", 64))
SSD = stripes(("s0", 64))
Regions = list[dict[str, object]]


def grid(cycles: list[list[list[object]]]) -> Regions:
    """Regions of a mebibyte, and one past the end."""
    return [region(number * KIB_PER_MIB, KIB_PER_MIB, cycle) for number, cycle in enumerate([*cycles, HDD])]


def plan_of(store: Store, files: dict[Path, Regions], windows: list[tuple[float, list[tuple[Path, int, str]]]]) -> Path:
    """A plan whose later windows begin after so many seconds and move regions (by number) to `h` or `s`."""
    starts = [0.0, *(start for start, _ in windows)]
    body = {
        "version": 1,
        "policy": "by hand",
        "windows": [{"start_ns": int(s * 1e9), "end_ns": int((s + 1) * 1e9)} for s in starts],
        "files": [
            {"path": str(path), "size": (len(regions) - 1) * MIB, "regions": regions} for path, regions in files.items()
        ],
        "migrations": [
            {
                "window": number,
                "moves": [
                    {
                        "file": str(path),
                        "start": index * MIB,
                        "len": MIB,
                        "stripes": SSD if to == "s" else HDD,
                        "direction": "in" if to == "s" else "out",
                        "bytes": MIB,
                        "gain_s": 2.0,
                        "cost_s": 1.0,
                    }
                    for path, index, to in moves
                ],
            }
            for number, (_, moves) in enumerate(windows, start=1)
        ],
    }
    plan = store.base / "plan.json"
    plan.write_text(json.dumps(body))
    return plan


def filled(store: Store, name: str, mebibytes: int, regions: Regions, seed: int = 1) -> tuple[Path, bytes]:
    """A file of random bytes whose regions are those of a plan's window 0."""
    file, content = store.data / name, random.Random(seed).randbytes(mebibytes * MIB)
    source = store.base / f"{name}.source"
    source.write_bytes(content)
    store.program("dd", f"if={source}", f"of={file}", "bs=1M")
    stripewise("apply", store.plan(store.base / "first.json", file, regions, len(content)), "--store", store.root)
    return file, content


def read(store: Store, file: Path) -> bytes:
    sink = store.base / "sink"
    execute(["dd", f"if={file}", f"of={sink}", "bs=1M"], store.environment())
    return sink.read_bytes()


def placement(store: Store, file: Path) -> str:
    """Where the file's regions lie up to its size: h, s, or ? for a mixture."""
    identity = os.readlink(file).rpartition("/")[2]
    opened = Opened(store.root)
    size = next(row.size for row in opened.files() if row.id == identity)
    regions = opened.layout(identity).regions
    there = [max((r for r in regions if r.start <= at), key=lambda r: r.start) for at in range(0, size, MIB)]
    letters = ["".join(sorted({name[0] for name, _ in r.stripes})) for r in there]
    return "".join(letter if len(letter) == 1 else "?" for letter in letters)


def status(store: Store) -> dict[str, object]:
    return dict(json.loads(stripewise("mover", "status", store.root, "--json").out))


class Mover:
    """A mover that runs beside the test."""

    def __init__(self, store: Store, *words: str | Path) -> None:
        self.store = store
        self.process = subprocess.Popen(
            [STRIPEWISE, "migrate", *words, "--store", store.root, "--json"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def begun(self) -> bool:
        """Wait until it holds the store."""
        return wait_until(lambda: self.process.poll() is not None or self.said().get("pid") == self.process.pid)

    def said(self) -> dict[str, object]:
        for found in self.store.root.glob("run/mover.json"):
            return dict(json.loads(found.read_text()))
        return {}

    def end(self, number: int | None = None) -> Result:
        if number is not None:
            self.process.send_signal(number)
        out, err = self.process.communicate(timeout=60)
        return Result(self.process.returncode, out.decode(), err.decode())


@pytest.fixture
def writer(make_store: Maker) -> Iterator[object]:
    """Starts writers that tell what they wrote, and ends them at the end."""
    started: list[subprocess.Popen[bytes]] = []

    def start(store: Store, file: Path, acks: Path) -> subprocess.Popen[bytes]:
        with acks.open("wb") as out:
            job = subprocess.Popen(
                [ACKED, "write", file, "5", "300", "written"],
                env=store.environment(),
                stdout=out,
                stdin=subprocess.DEVNULL,
            )
        started.append(job)
        assert wait_until(lambda: acks.stat().st_size > 0)
        return job

    yield start
    for job in started:
        job.kill()
        job.wait()


def check(store: Store, file: Path, acks: Path) -> None:
    lines = acks.read_text()
    store.program(ACKED, "check", file, stdin=lines[: lines.rfind("\n") + 1])


@pytest.mark.parametrize("targets", [TARGETS, SLOW], ids=["plain", "emulated"])
def test_regions_follow_the_windows_and_what_leaves_goes_first(make_store: Maker, targets: list[Target]) -> None:
    store = make_store(targets)
    regions = grid([SSD, HDD, HDD, HDD])
    file, content = filled(store, "f", 4, regions)
    plan = plan_of(
        store, {file: regions}, [(0.8, [(file, 0, "h"), (file, 1, "s")]), (1.6, [(file, 1, "h"), (file, 2, "s")])]
    )
    begun = time.monotonic()
    mover = Mover(store, plan)
    seen = []
    while mover.process.poll() is None:
        now = placement(store, file)
        if not seen or seen[-1][1] != now:
            seen.append((time.monotonic() - begun, now))
    assert mover.end().code == 0
    order = [at for _, at in seen]
    assert [at for at in order if at != "hhhh"] == ["shhh", "hshh", "hhsh"], "never two at a time on the SSD"
    assert read(store, file) == content
    said = status(store)
    assert said["state"] == "ended" and said["moves"] == 4 and not said["first_moves"] and not said["alive"]


def test_a_mover_started_late_skips_what_is_over(make_store: Maker) -> None:
    store = make_store(TARGETS)
    regions = grid([SSD, HDD, HDD])
    file, content = filled(store, "f", 3, regions)
    plan = plan_of(
        store, {file: regions}, [(100, [(file, 0, "h"), (file, 1, "s")]), (200, [(file, 1, "h"), (file, 2, "s")])]
    )
    done = json.loads(stripewise("migrate", plan, "--store", store.root, "--start-at", "250", "--json").out)
    assert done["moves"] == 2 and done["first_moves"] == 0 and placement(store, file) == "hhs"
    assert json.loads(stripewise("migrate", plan, "--store", store.root, "--now", "--json").out)["moves"] == 0
    first = json.loads(stripewise("migrate", plan, "--store", store.root, "--now", "--windows", "0-1", "--json").out)
    assert first["moves"] == 2 and placement(store, file) == "hsh"
    # A gain of twice the cost is not enough for what comes in; what makes room goes.
    words = ("--now", "--windows", "0,2", "--min-gain", "2.5", "--json")
    stripewise("migrate", plan, "--store", store.root, *words)
    assert placement(store, file) == "shh"
    assert read(store, file) == content


def test_a_killed_mover_is_started_again_and_ends_as_if_nothing_had_been(make_store: Maker, writer) -> None:
    store = make_store(TARGETS)
    rng = random.Random(11)
    regions = grid([HDD] * 8)
    file, content = filled(store, "f", 8, regions)
    busy, acks = store.data / "busy", store.base / "acks"
    job = writer(store, busy, acks)
    plan = plan_of(
        store,
        {file: regions, busy: grid([HDD] * 6)},
        [(0.5, [(f, k, "s") for k in range(6) for f in (file, busy)]), (2.0, [(file, 0, "h"), (file, 7, "s")])],
    )
    killed = 0
    for _ in range(4):
        mover = Mover(store, plan, "--bandwidth", "16MiB")
        assert mover.begun()
        time.sleep(rng.uniform(0.0, 0.4))
        killed += mover.process.poll() is None
        mover.end(signal.SIGKILL)
    assert killed
    assert status(store)["state"] == "killed"
    last = Mover(store, plan).end()
    assert last.code == 0, last.report
    assert "resuming a killed mover" in last.err
    assert placement(store, file) == "hsssss" + "hs"
    assert placement(store, busy) == "ssssss"
    job.kill()
    job.wait()
    assert read(store, file) == content
    check(store, busy, acks)


def test_a_mover_is_paused_resumed_and_stopped_and_the_files_are_whole(make_store: Maker) -> None:
    store = make_store(TARGETS)
    regions = grid([HDD] * 12)
    file, content = filled(store, "f", 12, regions)
    plan = plan_of(store, {file: regions}, [(0.1, [(file, k, "s") for k in range(12)])])
    mover = Mover(store, plan, "--now", "--bandwidth", "1MiB", "--max-slowdown", "0")
    assert mover.begun()
    assert wait_until(lambda: mover.said().get("state") == "moving")
    second = stripewise("migrate", plan, "--store", store.root, "--now", code=1)
    assert f"process {mover.process.pid} is moving files" in second.err
    assert len(second.err.strip().splitlines()) == 1
    assert "paused" in stripewise("mover", "pause", store.root).out
    copied = status(store)["copied_bytes"]
    time.sleep(0.5)
    assert status(store)["copied_bytes"] == copied
    assert read(store, file) == content
    stripewise("mover", "resume", store.root)
    assert wait_until(lambda: int(str(mover.said().get("copied_bytes", 0))) > int(str(copied)))
    stripewise("mover", "stop", store.root)
    ended = mover.end()
    said = json.loads(ended.out)
    assert ended.code == 1 and said["stopped"] and 0 < len(said["left"]) <= 12, ended.report
    assert "was stopped; the same command again moves the rest" in ended.err
    assert stripewise("mover", "pause", store.root, code=1).err.count("\n") == 1
    assert "stopped" in stripewise("mover", "status", store.root, "--watch").out
    assert "is not a store" in stripewise("mover", "stop", store.base, code=1).err
    store.fsck()
    assert read(store, file) == content


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_mover_ends_as_other_programs_do(make_store: Maker, number: int) -> None:
    store = make_store(TARGETS)
    regions = grid([HDD] * 8)
    file, content = filled(store, "f", 8, regions)
    mover = Mover(
        store,
        plan_of(store, {file: regions}, [(0.1, [(file, k, "s") for k in range(8)])]),
        "--now",
        "--bandwidth",
        "2MiB",
    )
    assert mover.begun()
    assert wait_until(lambda: mover.said().get("state") == "moving")
    ended = mover.end(number)
    assert ended.code == 128 + number, ended.report
    assert "Traceback" not in ended.err
    # SIGTERM is how 'run' ends its mover: nothing to be told of.
    stands = "stripewise: interrupted; what has moved stays, every file is whole; the same command again"
    assert (stands in ended.err) == (number == signal.SIGINT), ended.report
    store.fsck()
    assert read(store, file) == content


def test_what_cannot_be_moved_is_tried_again_and_listed(make_store: Maker) -> None:
    store = make_store(TARGETS)
    regions = grid([HDD] * 2)
    mapped, content = filled(store, "mapped", 2, regions)
    free, _ = filled(store, "free", 2, regions)
    gone = store.data / "gone"
    plan = plan_of(
        store, {mapped: regions, free: regions, gone: regions}, [(0.1, [(f, 0, "s") for f in (mapped, free, gone)])]
    )
    script = (
        "import mmap, sys; f = open(sys.argv[1], 'r+b'); m = mmap.mmap(f.fileno(), 0)\n"
        "print('up', flush=True); sys.stdin.read()"
    )
    with talking(["/usr/bin/python3", "-c", script, mapped], store.environment()) as holder:
        assert holder.line() == "up\n"
        ended = stripewise("migrate", plan, "--store", store.root, "--now", "--patience", "1s", "--json", code=1)
        left = {Path(entry["file"]).name: entry["why"] for entry in json.loads(ended.out)["left"]}
        assert set(left) == {"mapped", "gone"} and "mapped" in left["mapped"] and "not a file" in left["gone"]
        assert placement(store, free) == "sh" and placement(store, mapped) == "hh"
        mover = Mover(store, plan, "--now", "--patience", "20s")
        assert mover.begun()
        time.sleep(0.3)
    assert wait_until(lambda: placement(store, mapped) == "sh")
    mover.end(signal.SIGTERM)
    assert read(store, mapped) == content


def test_files_that_are_waited_for_are_named_at_once_with_how_long_and_the_way_round(make_store: Maker) -> None:
    store = make_store(TARGETS)
    regions = grid([HDD])
    gone = [store.data / f"gone{number}" for number in range(7)]
    plan = plan_of(store, dict.fromkeys(gone, regions), [])
    mover = Mover(store, plan)
    try:
        assert mover.process.stderr is not None
        line = mover.process.stderr.readline().decode()
    finally:
        mover.end(signal.SIGTERM)
    named = ", ".join(map(str, gone[:5]))
    told = (
        f"stripewise: waiting up to 60 s for 7 file(s) that are not in the store yet: {named} and 2 more; --patience 0s"
    )
    assert line.startswith(told), line
    at_once = stripewise("migrate", plan, "--store", store.root, "--patience", "0s", code=1)
    assert "waiting" not in at_once.err and "7 file(s) of the plan are not in this store" in at_once.err, at_once.report
    assert "--missing-ok" in at_once.err
    beside = stripewise("run", "--store", store.root, "--migrate", plan, "--", "sleep", "1")
    assert "waiting" not in beside.err, beside.report


def test_run_starts_the_mover_beside_the_program_and_stops_it_after(make_store: Maker) -> None:
    store = make_store(TARGETS)
    regions = grid([HDD] * 4)
    file, content = filled(store, "f", 4, regions)
    plan = plan_of(store, {file: regions}, [(0.5, [(file, 0, "s")]), (500.0, [(file, 1, "s")])])
    ended = stripewise(
        "run",
        "--store",
        store.root,
        "--migrate",
        plan,
        "--",
        "sh",
        "-c",
        f"sleep 2; head -c 100 {file} | wc -c; exit 7",
        code=7,
    )
    assert "100" in ended.out and "1 move" in ended.err, ended.report
    assert placement(store, file) == "shhh" and not status(store)["alive"]
    assert read(store, file) == content
    assert "stopped before the end" in ended.err
    # A window in which nothing moves is nothing that is left.
    plan = plan_of(store, {file: grid([SSD, HDD, HDD, HDD])}, [(0.2, [(file, 1, "s")]), (500.0, [])])
    ended = stripewise("run", "--store", store.root, "--migrate", plan, "--", "sleep", "2")
    assert "all moves made" in ended.err and "stopped before" not in ended.err, ended.report
    plan.write_text("{}")
    broken = stripewise("run", "--store", store.root, "--migrate", plan, "--", "touch", store.base / "ran", code=1)
    assert "plan.json" in broken.err and not (store.base / "ran").exists()
    assert broken.err.count("stripewise: ") == 1, broken.report


def test_a_plan_of_another_store_is_called_that_before_its_room_is(make_store: Maker) -> None:
    small = make_store([Target("h0"), Target("h1"), Target("s0", "ssd", capacity_bytes=MIB)], regions=grid([HDD]))
    regions = grid([SSD] * 3)
    elsewhere = small.base / "of-another-store"
    plan = plan_of(small, {elsewhere: regions}, [])
    body = json.loads(plan.read_text()) | {"cluster_digest": "0" * 64}
    plan.write_text(json.dumps(body))
    for words in (
        ["apply", plan, "--store", small.root],
        ["migrate", plan, "--store", small.root],
        ["run", "--store", small.root, "--migrate", plan, "--", "true"],
    ):
        said = stripewise(*words, code=1).err
        assert f"'{elsewhere}' is not a file of the store {small.root}" in said and "leaves room" not in said, said
    elsewhere.touch()
    file = small.data / "mine"
    small.program("touch", file)
    plan.write_text(json.dumps(body).replace(str(elsewhere), str(file)))
    said = stripewise("apply", plan, "--store", small.root, code=1).err
    assert "puts 3.0 MiB on 's0'" in said and "leaves room for" in said, said


def test_a_full_target_is_named_and_other_moves_go_on(make_store: Maker) -> None:
    # Room for two regions and what the file system takes for finding them.
    small = [Target("h0"), Target("h1"), Target("s0", "ssd", capacity_bytes=2 * MIB + 65_536)]
    store = make_store(small, regions=grid([HDD]))
    regions = grid([HDD] * 3)
    filled(store, "other", 1, grid([SSD]))
    file, content = filled(store, "f", 3, regions)
    plan = plan_of(store, {file: regions}, [(0.1, [(file, 0, "s"), (file, 1, "s")])])
    ended = stripewise("migrate", plan, "--store", store.root, "--now", "--patience", "0s", "--json", code=1)
    left = json.loads(ended.out)["left"]
    assert len(left) == 1 and left[0]["start"] == MIB and "s0 has no room" in left[0]["why"], ended.report
    assert placement(store, file) == "shh" and read(store, file) == content


def test_a_target_that_went_away_costs_no_byte_and_is_named(make_store: Maker) -> None:
    store = make_store([*TARGETS, Target("s1", "ssd")], regions=grid([HDD]))
    regions = grid([HDD] * 3)
    file, content = filled(store, "f", 3, regions)
    plan = plan_of(store, {file: regions}, [(0.1, [(file, 0, "s"), (file, 1, "s")])])
    body = json.loads(plan.read_text())
    body["migrations"][0]["moves"][1]["stripes"] = stripes(("s1", 64))
    plan.write_text(json.dumps(body))
    (store.base / "targets" / "s0").rename(store.base / "away")
    ended = stripewise("migrate", plan, "--store", store.root, "--now", "--patience", "0s", "--json", code=1)
    left = json.loads(ended.out)["left"]
    assert len(left) == 1 and left[0]["start"] == 0 and "target s0 is away: the directory" in left[0]["why"], (
        ended.report
    )
    assert ended.err.count("stays where it is") == 1
    assert placement(store, file) == "hsh"
    (store.base / "away").rename(store.base / "targets" / "s0")
    assert read(store, file) == content


def test_apply_is_a_mover_as_migrate_is(make_store: Maker) -> None:
    store = make_store(SLOW)
    file, content = filled(store, "f", 8, grid([HDD] * 8))
    plan = store.plan(store.base / "second.json", file, grid([SSD] * 8), len(content))
    words = [STRIPEWISE, "apply", plan, "--store", store.root, "--bandwidth", "512KiB"]
    slow = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait_until(lambda: "moving" in stripewise("mover", "status", store.root).out)
    assert "apply" in stripewise("mover", "status", store.root).out
    refused = stripewise("apply", plan, "--store", store.root, code=1)
    assert "is moving files of the store" in refused.err and len(refused.err.splitlines()) == 1, refused.report
    stripewise("mover", "stop", store.root)
    _, said = slow.communicate(timeout=60)
    assert slow.returncode == 1 and len(said.splitlines()) == 1, said
    assert "s" not in placement(store, file) or "h" in placement(store, file)
    stripewise("apply", plan, "--store", store.root)
    assert placement(store, file) == "s" * 8 and read(store, file) == content
