"""Targets of unequal room: a store is full when its targets are, not when the smallest is, however files come and grow.

The layouts by themselves, in 1,000 mixes: crates/layout/tests/all/spread.rs. Here real programs fill real directories.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hostile import needs_root
from rig import STRIPEWISE, Maker, Result, Store, Target, dirs, execute, region, stripes, stripewise

MIB = 1 << 20
#: What was seen of a target's room is believed for twenty times as long as looking took: longer on a busy machine.
LOOKED_AGAIN_S = 0.5

#: Fills the directory `sys.argv[1]` until a write fails, as `sys.argv[2]` says; prints the bytes that were taken.
FILL = """
import errno, os, random, sys
where, how, seed = sys.argv[1], sys.argv[2], int(sys.argv[3])
chance, taken, chunk = random.Random(seed), 0, bytes(range(256)) * 256

def write(fd, count):
    global taken
    while count:
        done = os.write(fd, chunk[:min(count, len(chunk))])
        taken, count = taken + done, count - done

def new(number):
    return os.open(f"{where}/{how}{number}", os.O_CREAT | os.O_WRONLY | os.O_EXCL, 0o644)

try:
    if how == "one":
        fd = new(0)
        while True:
            write(fd, 1 << 20)
    elif how == "turns":
        for number in range(1 << 20):
            fd = new(number)
            write(fd, chance.choice((4096, 100_000, 1 << 20, 7 << 20)))
            os.close(fd)
    else:
        fds = [new(number) for number in range(8)]
        while True:
            for fd in fds:
                write(fd, chance.choice((4096, 65536, 200_000)))
except OSError as error:
    assert error.errno == errno.ENOSPC, error
print(taken)
"""


def fill(store: Store, how: str, seed: int = 1) -> int:
    return int(store.program(sys.executable, "-c", FILL, store.data, how, str(seed)).out)


def free(store: Store) -> int:
    return int(json.loads(stripewise("store", "df", store.root, "--json").out)["free_bytes"])


@pytest.mark.parametrize("how", ["one", "turns", "together"])
@pytest.mark.parametrize("seed", range(3))
def test_a_store_takes_what_its_targets_hold(make_store: Maker, how: str, seed: int) -> None:
    chance = random.Random(seed)
    sizes = [48 * MIB] + [chance.choice((2, 3, 8, 16, 30, 48)) * MIB for _ in range(chance.randint(1, 5))]
    chance.shuffle(sizes)
    store = make_store([Target(f"t{number}", capacity_bytes=size) for number, size in enumerate(sizes)])
    room = free(store)
    assert room == sum(sizes)
    taken = fill(store, how, seed)
    assert taken >= 0.95 * sum(sizes), (taken / sum(sizes), sizes)
    assert abs(room - taken - free(store)) < 0.01 * room


def test_the_log_tells_once_which_target_a_full_store_lacks_room_on(make_store: Maker) -> None:
    store = make_store([Target(f"t{number}", capacity_bytes=4 * MIB) for number in range(2)])
    log = store.base / "log"
    fill = (
        "import os, sys; fd = os.open(sys.argv[1], 577, 0o644)\nfor _ in range(2000):\n try: os.write(fd, bytes(8192))"
    )
    script = f"{fill}\n except OSError: pass"
    execute([sys.executable, "-c", script, store.data / "f"], {**store.environment(), "STRIPEWISE_LOG": str(log)})
    told = [line for line in log.read_text().splitlines() if "has no room for" in line]
    assert 1 <= len(told) <= 2 and len(set(told)) == len(told), told
    assert all("errno" not in line and f"store df {store.root}'" in line and "/targets/t" in line for line in told), (
        told
    )


@needs_root
def test_new_files_avoid_a_target_that_is_mounted_read_only(make_store: Maker) -> None:
    store = make_store(dirs(3))
    place = store.base / "targets/t1"
    script = f'mount --bind {place} {place} && mount -o remount,bind,ro {place} && exec "$@"'
    write = f"for i in 1 2 3; do head -c 3M /dev/zero >{store.data}/f$i || exit 9; done"
    run = [STRIPEWISE, "run", "--store", store.root, "--", "sh", "-c", write]
    execute(["unshare", "-m", "sh", "-c", script, "sh", *run], store.environment())
    rows = json.loads(stripewise("store", "layout", *sorted(store.data.glob("f*")), "--json").out)["files"]
    assert len(rows) == 3 and not any(each["target_bytes"].get("t1") for each in rows), rows


def test_two_small_ssds_beside_disks_end_no_file(make_store: Maker) -> None:
    small = [Target(name, "ssd", capacity_bytes=16 * MIB) for name in ("s0", "s1")]
    store = make_store([*dirs(4), *small])
    store.program("dd", "if=/dev/zero", f"of={store.data / 'big'}", "bs=1M", "count=200")
    small = "targets with much less room than the others: s0 16.0 MiB, s1 16.0 MiB"
    said = " ".join(stripewise("store", "df", store.root).out.split())
    assert small in said and "use what is left for the parts of files that are used most" in said
    assert "s0 (16.0 MiB)" in stripewise("doctor", "--store", store.root, code=None).out


def test_a_full_store_is_said_to_be_full_with_what_helps_and_no_target_is_called_small(make_store: Maker) -> None:
    store = make_store([Target("t0", capacity_bytes=8 * MIB), Target("t1", capacity_bytes=8 * MIB)])
    script = 'for n in 1 2 3; do head -c 64M /dev/zero >"$0/f$n"; done 2>/dev/null; exit 0'
    stripewise("run", "--store", store.root, "--", "sh", "-c", script, store.data)
    said = " ".join(stripewise("store", "df", store.root).out.split())
    assert "the store is full: all targets together have" in said and "much less room" not in said, said
    assert f"'stripewise store add {store.root} NAME" in said and "-- rm FILE" in said, said


def test_a_plain_file_comes_in_by_the_room_that_there_is_and_one_without_room_is_told_what_helps(
    make_store: Maker,
) -> None:
    store = make_store([Target("t0", capacity_bytes=48 * MIB), Target("s0", "ssd", capacity_bytes=4 * MIB)])
    file = store.plain / "f"
    file.write_bytes(content := random.Random(1).randbytes(24 * MIB))
    stripewise("store", "adopt", "--store", store.root, file)
    (told,) = json.loads(stripewise("store", "layout", file, "--json").out)["files"]
    assert 0 < told["target_bytes"]["s0"] <= 4 * MIB, told
    stripewise("store", "export", file)
    assert file.read_bytes() == content
    said = stripewise("store", "adopt", "--store", store.root, "--layout", "def", file, code=1).err
    assert "needs 24.0 MiB in the store" in said and "s0 (would take 12.0 MiB, has 4.0 MiB free)" in said, said
    assert f"stripewise store add {store.root} NAME" in said and "--layout over targets with room (t0)" in said, said
    file.write_bytes(bytes(1) * 60 * MIB)
    said = stripewise("store", "adopt", "--store", store.root, file, code=1).err
    assert "stays plain: all targets together have room for 52.0 MiB: stripewise store df" in said, said
    assert "t0" not in said and "--layout" not in said and f"stripewise store add {store.root} NAME" in said, said
    assert file.stat().st_size == 60 * MIB and not store.files()


def test_a_plain_file_comes_in_as_a_new_one_would_lie_and_can_grow(make_store: Maker) -> None:
    store = make_store([*dirs(2), Target("s0", "ssd", capacity_bytes=16 * MIB)])
    new, plain = store.data / "new", store.plain / "f"
    store.program("dd", "if=/dev/zero", f"of={new}", "bs=1M", "count=24", "status=none")
    plain.write_bytes(random.Random(1).randbytes(24 * MIB))
    kept = shutil.copy(plain, store.plain / "kept")
    stripewise("store", "adopt", "--store", store.root, plain)
    for file in (new, plain):
        # Equal stripes over all targets would take 8 MiB of the SSD, and end at 48 MiB.
        (told,) = json.loads(stripewise("store", "layout", file, "--json").out)["files"]
        assert told["target_bytes"].get("s0", 0) < MIB and told["origin"] == "own", told
        store.program("sh", "-c", 'head -c 64M /dev/zero >>"$0"', file)
    assert store.program("cmp", "-n", str(24 * MIB), plain, kept).out == ""
    before = stripewise("store", "layout", plain).out
    stripewise("store", "set-layout", plain, "--layout", "def")
    assert stripewise("store", "layout", plain).out == before


def test_a_rule_whose_targets_have_no_room_gives_way_to_the_layout_of_the_store(make_store: Maker) -> None:
    store = make_store([*dirs(2), Target("s0", "ssd", capacity_bytes=4 * MIB)])
    layout = store.base / "hot.json"
    hot = [region(0, 2048, stripes(("s0", 64))), region(2048, 65536, stripes(("t0", 64), ("t1", 64)))]
    layout.write_text(json.dumps({"regions": hot}))
    stripewise("store", "template", "add", store.root, store.data / "ckpt-*", "--layout", layout)
    for number in range(4):
        store.program("dd", "if=/dev/zero", f"of={store.data / f'ckpt-{number}'}", "bs=1M", "count=8")
        time.sleep(LOOKED_AGAIN_S)
    told = json.loads(stripewise("store", "layout", *sorted(store.data.glob("ckpt-*")), "--json").out)["files"]
    on_ssd = [bool(each["target_bytes"].get("s0")) for each in told]
    assert on_ssd == [True, True, False, False], told


def test_a_template_of_one_region_gives_way_once_its_targets_are_full(make_store: Maker) -> None:
    store = make_store([*dirs(2), Target("s0", "ssd", capacity_bytes=4 * MIB)])
    stripewise(
        "store", "template", "add", store.root, store.data / "idx-*", "--stripe-size", "64KiB", "--targets", "s0"
    )
    store.program("dd", "if=/dev/zero", f"of={store.data / 'idx-0'}", "bs=1M", "count=4")
    time.sleep(LOOKED_AGAIN_S)
    store.program("dd", "if=/dev/zero", f"of={store.data / 'idx-1'}", "bs=1M", "count=1")
    told = json.loads(stripewise("store", "layout", *sorted(store.data.glob("idx-*")), "--json").out)["files"]
    assert [bool(each["target_bytes"].get("s0")) for each in told] == [True, False], told


def test_files_of_a_few_bytes_lie_on_all_targets(make_store: Maker) -> None:
    store = make_store(dirs(4))
    store.program("sh", "-c", f"cd {store.data}; for i in $(seq 200); do echo x >f$i; done")
    counts = [len(list((store.base / "targets" / target.name).glob("*.data"))) for target in dirs(4)]
    assert sum(counts) == 200 and min(counts) > 20, counts


def test_what_cannot_be_drained_is_told_before_anything_moves(make_store: Maker) -> None:
    store = make_store([Target(f"t{number}", capacity_bytes=8 * MIB) for number in range(3)])
    fill(store, "one")
    said = stripewise("store", "drain", store.root, "t1", code=1)
    assert "add a target" in said.err and "nothing was moved" in said.err, said.report
    rows = json.loads(stripewise("store", "df", store.root, "--json").out)["targets"]
    assert [row["state"] for row in rows] == ["active"] * 3
    extra = store.base / "extra"
    extra.mkdir()
    words = ("--path", extra, "--class", "hdd", "--no-calibrate", "--capacity", "40MiB")
    added = stripewise("store", "add", store.root, "t3", *words)
    kind, found, figures = added.out.splitlines()
    # What init says of its targets.
    assert "t0, t1, t2 and t3 share " in added.err and "no layout over them is faster than another" in added.err
    assert kind.endswith(f"target t3 in {extra}, of kind dir") and "hdd: by --class; without it " in found, added.out
    assert figures.startswith("assumed, as typical of its class: read 3.000 ms and 100 MB/s"), figures
    assert figures.endswith(f"to measure them: stripewise calibrate --store {store.root} --target t3 --apply")
    stripewise("store", "drain", store.root, "t1", "--remove")
    assert free(store) > 20 * MIB


def test_rebalance_fills_a_new_target_and_then_has_nothing_to_do(make_store: Maker) -> None:
    store = make_store([Target(f"t{number}", capacity_bytes=24 * MIB) for number in range(2)])
    content = Path("/dev/urandom").open("rb").read(9 * MIB)  # noqa: SIM115
    (store.plain / "source").write_bytes(content)
    for number in range(2):
        store.program("cp", store.plain / "source", store.data / f"f{number}")
    extra = store.base / "extra"
    extra.mkdir()
    words = ("--path", extra, "--class", "hdd", "--no-calibrate", "--capacity", "8MiB")
    stripewise("store", "add", store.root, "t2", *words)
    assert json.loads(stripewise("store", "rebalance", store.root, "--json").out)["files"] == 2
    held = {
        row["name"]: row["used_bytes"]
        for row in json.loads(stripewise("store", "df", store.root, "--json").out)["targets"]
    }
    # In proportion to what each can hold: 24, 24 and 8 of 56 MiB.
    assert 2 * MIB < held["t2"] < 3.5 * MIB, held
    for number in range(2):
        assert Path(store.data / f"f{number}").is_symlink()
        store.program("cmp", store.plain / "source", store.data / f"f{number}")
    assert json.loads(stripewise("store", "rebalance", store.root, "--json").out)["files"] == 0
    # What somebody has asked for stays.
    stripewise("store", "set-layout", store.data / "f0", "--stripe-size", "256KiB", "--targets", "t0,t1")
    assert json.loads(stripewise("store", "rebalance", store.root, "--json").out)["files"] == 0


def test_the_room_of_a_target_that_is_drained_is_that_of_the_others_on_its_file_system(make_store: Maker) -> None:
    store = make_store([*dirs(3), Target("small", "ssd", capacity_bytes=4 * MIB)])
    store.program("dd", "if=/dev/zero", f"of={store.data / 'f'}", "bs=1M", "count=2")

    def rooms() -> dict[str, int]:
        rows = json.loads(stripewise("store", "df", store.root, "--json").out)["targets"]
        return {row["name"]: row["free_bytes"] for row in rows}

    disk = os.statvfs(store.base)
    near = 0.05 * disk.f_bavail * disk.f_frsize
    before = rooms()
    assert abs(before["t0"] - before["t1"]) < near
    stripewise("store", "drain", store.root, "t1")
    for words in ((), ("remove", store.root, "t1")):
        if words:
            stripewise("store", *words)
        after, told = rooms(), stripewise("store", "df", store.root).out
        # Nothing was written meanwhile: all that was free is free, for two instead of three.
        assert abs(sum(after.values()) - sum(before.values())) < near and after.get("t1", 0) == 0, (before, after)
        assert abs(after["t0"] - 1.5 * before["t0"]) < near and after["small"] <= 4 * MIB
        assert words or [line.split()[-3:] for line in told.splitlines() if line.startswith("t1")] == [["-", "-", "0"]]
    # In a drain of one of two, the other has all the room that there is.
    from stripewise.store import Store as Opened
    from stripewise.store.room import room_bytes

    opened = Opened(store.root)
    assert abs(room_bytes(opened, idle=("t0",))["t2"] - room_bytes(opened)["t2"] * 2) < near


def with_one_read_only(store: Store, place: Path, *commands: str) -> list[Result]:
    """What commands of a shell say where the directory `place` is mounted read-only."""
    mounts = f"mount --bind {place} {place} && mount -o remount,bind,ro {place}"
    return [
        execute(["unshare", "-m", "sh", "-c", f"{mounts} && {command}"], store.environment(), code=None)
        for command in commands
    ]


def test_used_is_what_a_sparse_file_has_allocated_and_no_target_holds_more_than_its_capacity(make_store: Maker) -> None:
    store = make_store([Target(name, capacity_bytes=20 * MIB) for name in ("t0", "t1")])
    write = 'head -c 3M /dev/urandom >"$0"; truncate -s 76M "$0"'
    store.program("sh", "-c", write, store.data / "sparse")
    found = json.loads(stripewise("store", "df", store.root, "--json").out)
    for row in found["targets"]:
        disk = subprocess.check_output(["du", "-s", "-B1", store.base / "targets" / row["name"]])
        assert abs(row["used_bytes"] - int(disk.split()[0])) < 64 << 10 and not row["read_only"], (row, disk)
    assert 3 * MIB <= found["used_bytes"] < 4 * MIB, found
    assert abs(found["used_bytes"] + found["free_bytes"] - 40 * MIB) < MIB, found
    assert "38.0 MiB" not in stripewise("store", "df", store.root).out


@needs_root
def test_a_target_that_is_mounted_read_only_is_said_to_be_and_not_to_be_full(make_store: Maker) -> None:
    store = make_store(dirs(3))
    store.program("sh", "-c", 'head -c 3M /dev/urandom >"$0"', store.data / "f")
    place = store.base / "targets/t1"
    df, laid, doctor = with_one_read_only(
        store,
        place,
        f"{STRIPEWISE} store df {store.root}",
        f"{STRIPEWISE} store set-layout {store.data / 'f'} --stripe-size 1MiB",
        f"{STRIPEWISE} doctor --store {store.root}",
    )
    assert df.code == 0, df.report
    said = " ".join(df.out.split())
    (row,) = [line for line in df.out.splitlines() if " t1 " in f" {line} " and "read-only" in line and "%" not in line]
    assert "read-only" in row and f"{place} is mounted read-only; mount it for writing" in said, said
    assert "much less room" not in said and "full" not in said, said
    assert laid.code == 1 and f"target t1: {place} is mounted read-only; mount it for writing" in laid.err, laid.report
    assert "narrower" not in laid.err, laid.err
    assert f"{place} is mounted read-only" in doctor.out, doctor.report


#: Reads pages of the file `sys.argv[1]` at random.
READ = """
import os, random, sys
fd, chance = os.open(sys.argv[1], os.O_RDONLY), random.Random(1)
for _ in range(100):
    os.pread(fd, 65536, chance.randrange(480) * 65536)
"""


@pytest.fixture
def on_small_disk(make_store: Maker) -> Iterator[Store]:
    """A store with a file of 30 MiB on a disk, beside an SSD of 10 MiB without a capacity."""
    store = make_store([Target("t0", startup_s=0.003), Target("s0", "ssd", per_byte_s=1e-10)])
    mount = ["mount", "-t", "tmpfs", "-o", "size=10m", "tmpfs", store.base / "targets/s0"]
    mark = (store.base / "targets/s0/stripewise-target").read_bytes()
    if os.geteuid() or execute(mount, code=None).code:
        pytest.skip("not run: mounting a file system needs root")
    try:
        (store.base / "targets/s0/stripewise-target").write_bytes(mark)
        store.program("dd", "if=/dev/zero", f"of={store.data / 'f'}", "bs=1M", "count=30")
        yield store
        store.program("rm", *store.data.iterdir())
    finally:
        execute(["umount", store.base / "targets/s0"])


def test_plans_respect_what_a_file_system_has_where_no_capacity_is_given(on_small_disk: Store) -> None:
    root, file, logs = on_small_disk.root, on_small_disk.data / "f", on_small_disk.base / "logs"
    trace, plan = on_small_disk.base / "trace", on_small_disk.base / "plan.json"
    stripewise("run", "--store", root, "--trace", logs, "--", sys.executable, "-c", READ, file)
    stripewise("collect", logs, "-o", trace)
    planned = json.loads(stripewise("plan", trace, "--cluster", root, "-o", plan, "--json").out)["target_bytes"]
    assert planned["s0"] > 20 * MIB, planned
    said = stripewise("plan", "--check", plan, "--store", root, code=1).err
    assert "on 's0', " in said and f"room for beside other files (stripewise store df {root})" in said, said
    said = stripewise("apply", plan, "--store", root, code=1).err
    assert "target s0 has no room for this layout: " in said and " MiB short; free space there" in said, said
    planned = json.loads(stripewise("plan", trace, "--store", root, "-o", plan, "--json").out)["target_bytes"]
    assert 5 * MIB < planned["s0"] < 10 * MIB, planned
    for _ in range(2):
        # What the planned file itself has there counts as its own.
        assert "sound" in stripewise("plan", "--check", plan, "--store", root).out
        stripewise("apply", plan, "--store", root)


def test_the_baseline_of_tune_is_laid_out_in_the_room_that_there_is(on_small_disk: Store) -> None:
    file = on_small_disk.data / "f"
    told = stripewise("tune", "--store", on_small_disk.root, "--repeat", "1", "--", sys.executable, "-c", READ, file)
    assert "def has no room throughout: 1 of 1 region(s) go where there is some" in told.err, told.report
    assert "apply best: 1 file(s)" in told.err, told.report


def test_files_that_leave_a_small_file_system_move_before_those_that_come(on_small_disk: Store) -> None:
    files, layouts = [on_small_disk.data / name for name in ("b", "a")], ["s0", "t0"]
    for file, target in zip(files, reversed(layouts), strict=True):
        on_small_disk.program("dd", "if=/dev/zero", f"of={file}", "bs=1M", "count=7")
        stripewise("store", "set-layout", file, "--targets", target)
    plan = on_small_disk.base / "plan.json"
    body = [
        {"path": str(file), "size": 7 * MIB, "regions": [region(0, 7168, stripes((target, 64)))]}
        for file, target in zip(files, layouts, strict=True)
    ]
    plan.write_text(json.dumps({"version": 1, "policy": "by hand", "files": body}))
    stripewise("apply", plan, "--store", on_small_disk.root, "--no-templates")
    rows = json.loads(stripewise("store", "layout", *files, "--json").out)["files"]
    assert [list(row["target_bytes"]) for row in rows] == [["s0"], ["t0"]], rows


def test_the_store_s_own_layout_is_given_by_room_to_files_that_exist(make_store: Maker) -> None:
    store = make_store([*dirs(2), *(Target(name, "ssd", capacity_bytes=2 * MIB) for name in ("s0", "s1"))])
    files = [store.data / "f", store.data / "g"]
    for file in files:
        store.program("dd", "if=/dev/urandom", f"of={file}", "bs=1M", "count=16")
    content = store.program("md5sum", *files).out
    stripewise("store", "set-layout", *files, "--targets", "t0", "--stripe-size", "64KiB")
    # Equal stripes over all targets would take 4 MiB of each SSD.
    stripewise("store", "set-layout", *files, "--layout", "def")
    told = json.loads(stripewise("store", "layout", *files, "--json").out)["files"]
    assert all(each["origin"] == "own" and {"t0", "t1"} <= each["target_bytes"].keys() for each in told), told
    assert all(sum(each["target_bytes"].get(name, 0) for each in told) <= 2 * MIB for name in ("s0", "s1")), told
    assert store.program("md5sum", *files).out == content
    stripewise("store", "rebalance", store.root)
    again = json.loads(stripewise("store", "layout", *files, "--json").out)["files"]
    assert again == told
    said = stripewise("store", "set-layout", *files, "--stripe-size", "64KiB", "--targets", "t0,s0", code=1).err
    assert "no room for this layout" in said, said


def test_what_is_told_of_a_full_target_is_a_command_where_paths_have_spaces(scratch: Path) -> None:
    lab = scratch / "a b"
    stripewise("init", "--emulate", lab, *(word for n in range(4) for word in ("--capacity", f"hdd{n}=1MiB")),
               *(word for n in range(2) for word in ("--capacity", f"ssd{n}=1MiB")))  # fmt: skip
    job = ["dd", "if=/dev/zero", f"of={lab / 'f'}", "bs=1M", "count=16"]
    said = stripewise("run", "--store", lab / "store", "--", *job, code=None)
    assert said.code and f"see 'stripewise store df {scratch}/a\\ b/store'" in said.err, said.report
