"""`--on-write invalidate`: writes of a managed file leave its copies as they are, stale where they wrote."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from rig import Maker, Store, Target, dirs, stripewise
from test_planned_copies import DATA, planned
from test_replica_verbs import READS

from stripewise import native

BLOCK, BLOCKS = 16384, 6
DISKS = [Target(f"d{number}", "hdd", "dir", 0, 3e-3, 1e-8) for number in range(3)]

#: Reads blocks 0 and 1, writes into block 1, and reads both again, in one process.
WRITES = """
import os, sys
f = os.open(sys.argv[1], os.O_RDWR)
print([os.pread(f, 3, k * 16384) for k in (0, 1)])
assert os.pwrite(f, b"new", 16384) == 3
print([os.pread(f, 3, k * 16384) for k in (0, 1)])
"""
READ = "import os, sys; f = os.open(sys.argv[1], os.O_RDONLY); print([os.pread(f, 3, k * 16384) for k in (0, 1)])"


def replicas(*on_write: str) -> dict[str, Any]:
    """Copies of the same blocks, to which writes do this."""
    region = {"start": 0, "len": 1 << 20, "stripes": [[0, 65536], [1, 65536]]}
    one = {"base": 0, "block": BLOCK, "dims": [[BLOCK, BLOCKS]], "regions": [region]}
    return {"replicas": [{**one, "on_write": each} for each in on_write]}


def made(store: Store, file: Path, *on_write: str) -> dict[str, Any]:
    found = native.call("store_copies_make", str(store.root), str(file), json.dumps(replicas(*on_write)))
    return dict(found)


def objects(store: Store, container: str) -> dict[Path, tuple[bytes, int]]:
    """Bytes and times of a container's objects."""
    found = {each for each in (store.base / "targets").rglob(f"{container}*") if each.is_file()}
    assert found
    return {each: (each.read_bytes(), each.stat().st_mtime_ns) for each in found}


def listed(store: Store) -> dict[str, Any]:
    (found,) = json.loads(stripewise("store", "replica", "ls", store.root, "--json").out)
    return dict(found)


@pytest.fixture
def old(make_store: Maker) -> tuple[Store, Path]:
    store = make_store(dirs(2))
    file = store.data / "file"
    store.program("sh", "-c", f"yes old | tr -d '\\n' | head -c {BLOCK * BLOCKS} > {file}")
    return store, file


@pytest.mark.parametrize("on_write", ["update", "invalidate"])
def test_a_write_touches_the_copies_that_it_updates_alone(old: tuple[Store, Path], on_write: str) -> None:
    store, file = old
    container = made(store, file, on_write)["container"]
    before = objects(store, container)
    said = store.program(sys.executable, "-c", WRITES, file).out.splitlines()
    # Block 1 begins with the second byte of "old".
    first, second = (f"[b'old', b'{which}']" for which in ("ldo", "new"))
    assert said == [first, second]
    is_invalidated = on_write == "invalidate"
    assert (objects(store, container) == before) == is_invalidated
    assert listed(store)["stale_bytes"] == (4096 if is_invalidated else 0)
    assert listed(store)["invalidated"] == int(is_invalidated)
    # Other bytes in the copies show who serves what: what was written is the home's.
    for each, (content, _) in objects(store, container).items():
        each.write_bytes(b"x" * len(content))
    assert store.program(sys.executable, "-c", READ, file).out.strip() == (
        "[b'xxx', b'new']" if is_invalidated else "[b'xxx', b'xxx']"
    )
    again = made(store, file, on_write)
    assert again["earlier"] == ("replaced" if is_invalidated else "same")
    if is_invalidated:
        assert listed(store)["stale_bytes"] == 0
        assert store.program(sys.executable, "-c", READ, file).out.strip() == second
        assert made(store, file, on_write)["earlier"] == "same"
    other = "update" if is_invalidated else "invalidate"
    assert made(store, file, other)["earlier"] == "replaced" and listed(store)["invalidated"] == int(not is_invalidated)


def test_of_copies_of_both_kinds_the_updated_ones_are_written(old: tuple[Store, Path]) -> None:
    store, file = old
    container = made(store, file, "invalidate", "update")["container"]
    before = b"".join(content for content, _ in objects(store, container).values())
    said = store.program(sys.executable, "-c", WRITES, file).out.splitlines()
    assert said[1] == "[b'old', b'new']"
    after = b"".join(content for content, _ in objects(store, container).values())
    assert (before.count(b"new"), after.count(b"new")) == (0, 1)
    assert listed(store)["stale_bytes"] == 4096
    said = stripewise("store", "replica", "ls", store.root).out
    assert "update 1, invalidate 1" in said and "4.0 KiB stale" in said
    told = native.call("store_copies_blocks", str(store.root), listed(store)["name"])["replicas"]
    assert [each["on_write"] for each in told] == ["invalidate", "update"]
    bad = json.dumps(replicas("drop"))
    with pytest.raises(Exception, match="unknown variant `drop`, expected `update` or `invalidate`"):
        native.call("store_copies_make", str(store.root), str(file), bad)


@pytest.fixture
def managed(make_store: Maker) -> tuple[Store, Path]:
    """A store with the file that is read."""
    store = make_store(DISKS)
    path = store.data / "array"
    (store.plain / "array").write_bytes(DATA)
    store.run("cp", store.plain / "array", path)
    return store, path


def test_replicate_makes_what_writes_are_to_do_to_copies(managed: tuple[Store, Path]) -> None:
    store, path = managed
    trace = store.base / "trace"
    stripewise("run", "--trace", trace, "--store", store.root, "--", "python3", "-c", READS, path)
    stripewise("collect", trace)
    words = ["replicate", trace, "--store", store.root]
    stripewise(*words, "--on-write", "invalidate")
    assert listed(store)["invalidated"] == listed(store)["replicas"] > 0
    assert "left alone" in stripewise(*words, "--on-write", "invalidate").out
    assert (
        "in place of earlier copies" in " ".join(stripewise(*words).out.split()) and listed(store)["invalidated"] == 0
    )
    # The next run's report tells what such copies gain.
    told = json.loads(
        stripewise(*words, "--what-if", "--json", "--on-write", "invalidate", "--manager", "radar,h-pdla").out
    )
    assert {each["on_write"] for one in told["managers"] for each in one["replicas"]} == {"invalidate"}
    stripewise(*words, "--on-write", "invalidate")
    wrote = store.base / "wrote"
    stripewise("run", "--trace", wrote, "--store", store.root, "--", "dd", "if=/dev/urandom", f"of={path}", "bs=4M",
               "count=1", "conv=notrunc")  # fmt: skip
    stripewise("collect", wrote)
    (found,) = [
        each
        for each in json.loads(stripewise("show", wrote, "--json").out)["findings"]
        if each["cause"] == "copied_writes"
    ]
    assert (
        "leaves the copies stale where it writes" in found["evidence"][0]
        and "4.0 MiB of them stale" in found["evidence"][1]
    )
    assert "--on-write: 'drop' is not known" in stripewise(*words, "--on-write", "drop", code=2).err


def test_a_plan_s_copies_are_made_as_it_says(managed: tuple[Store, Path]) -> None:
    store, path = managed
    plan, _ = planned(store, path, "--policy", "def")
    data = json.loads(plan.read_text())
    (replica,) = data["replicas"]["sets"][0]["replicas"]
    assert replica["on_write"] == "update"
    replica["on_write"] = "drop"
    plan.write_text(json.dumps(data))
    said = stripewise("plan", "--check", plan, "--store", store.root, code=1).err
    assert "replicas.sets[0].replicas[0].on_write" in said and "update, invalidate" in said
    replica["on_write"] = "invalidate"
    plan.write_text(json.dumps(data))
    stripewise("apply", plan, "--store", store.root)
    assert listed(store)["invalidated"] == listed(store)["replicas"] == 1
    assert json.loads(stripewise("apply", plan, "--store", store.root, "--json").out)["made"] == []
    del replica["on_write"]
    plan.write_text(json.dumps(data))
    assert len(json.loads(stripewise("apply", plan, "--store", store.root, "--json").out)["made"]) == 1
    assert listed(store)["invalidated"] == 0
