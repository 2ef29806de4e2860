"""What is said of a store's room: allocated blocks count, and a target that nobody can write is no full one."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from hostile import needs_root
from rig import STRIPEWISE, Maker, Result, Store, Target, dirs, execute, stripewise

MIB = 1 << 20


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
