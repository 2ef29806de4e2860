"""What verbs say of copies: a run whose reads they served, and which wrote what has some."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from rig import Maker, Store, Target, stripewise

DISKS = [Target(f"d{number}", "hdd", "dir", 0, 3e-3, 1e-8) for number in range(3)]
#: Makes 16 MiB; or reads every fourth 16 KiB and writes some of these.
PROGRAM = """
import os, sys
if sys.argv[2] == "make":
    open(sys.argv[1], "wb").write(os.urandom(1 << 24))
else:
    f = os.open(sys.argv[1], os.O_RDWR)
    for k in range(256):
        os.pread(f, 16384, k << 16)
    for k in range(8):
        os.pwrite(f, b"y" * 16384, k << 16)
"""
#: Reads these blocks in no order.
ANY_ORDER = """
import os, random, sys
f = os.open(sys.argv[1], os.O_RDONLY)
for k in random.Random(1).sample(range(128), 128):
    os.pread(f, 16384, k << 16)
"""


@pytest.fixture
def store(make_store: Maker) -> Store:
    return make_store(DISKS)


def traced(store: Store, name: str) -> Path:
    """The trace of a run that reads and writes the file."""
    trace = store.base / name
    command = ["python3", "-c", PROGRAM, store.data / "f", "use"]
    stripewise("run", "--store", store.root, "--trace", trace, "--", *command)
    stripewise("collect", trace)
    return trace


def test_what_copies_serve_and_what_they_cost_is_told(store: Store, tmp_path: Path) -> None:
    stripewise("run", "--store", store.root, "--", "python3", "-c", PROGRAM, store.data / "f", "make")
    plain = traced(store, "plain")
    assert "from copies" not in stripewise("show", plain).out
    before = json.loads(stripewise("show", plain, "--json").out)
    assert before["from_copies"] == {"reads": 0, "bytes": 0}
    assert stripewise("replicate", plain, "--store", store.root).out.count("replica, 4.0 MiB, ") == 1

    used = traced(store, "used")
    flags = pq.read_table(used / "trace.parquet", columns=["flags"])["flags"].to_pylist()
    served = sum(flag & 1 << 13 != 0 for flag in flags)
    assert served >= 248
    said, page = json.loads(stripewise("show", used, "--json").out), stripewise("show", used).out
    (row,) = [line.split() for line in page.splitlines() if line.startswith("from copies")]
    assert row[2:] == ["-", str(served), f"{served / 64:.1f}", "MiB", "0", "B", "-"]
    assert said["from_copies"] == {"reads": served, "bytes": served << 14}
    # Homes served the rest, and all writes.
    assert sum(each["read"] for each in said["targets"]) == (256 - served) << 14
    assert sum(each["written"] for each in said["targets"]) == 8 << 14
    (found,) = [each for each in said["findings"] if each["cause"] == "copied_writes"]
    path = store.data / "f"
    assert found["command"] == f"stripewise store replica rm {store.root} {path}" and found["price"] is None
    assert "8 writes, 128.0 KiB in all" in found["evidence"][0] and f"{served} read(s)" in found["evidence"][1]
    html = tmp_path / "page.html"
    stripewise("show", used, "--html", html)
    assert f'"copied":{served}' in html.read_text()

    # What stands is told alike in the table, the sum and the line of the file.
    again = " ".join(stripewise("replicate", used, "--store", store.root).out.split())
    assert "row 1: stands already" not in again or "nothing to build, it stands already" in again
    last = stripewise("replicate", used, "--store", store.root)
    told = " ".join(last.out.split())
    assert "row 1: stands already" in told and "4.0 MiB of space, nothing to build, it stands already" in told
    assert f"{path}: up to date: 1 replica, 4.0 MiB, left alone" in told
    assert f"copies served {served} read(s)" in last.err and "the model has them read from the file itself" in last.err

    # The bytes that copies hold bound new ones, of managed files as of plain ones.
    way = stripewise("replicate", used, "--store", store.root, "--space", "1MiB").out
    assert "its copies are removed: evicted" in " ".join(way.split())
    assert json.loads(stripewise("store", "replica", "ls", store.root, "--json").out) == []
    assert "copied_writes" not in stripewise("show", used, "--json").out


def test_a_plan_is_for_the_trace_s_own_store_and_names_what_copies_served(store: Store) -> None:
    stripewise("run", "--store", store.root, "--", "python3", "-c", PROGRAM, store.data / "f", "make")
    stripewise("replicate", traced(store, "plain"), "--store", store.root)
    used, plan = traced(store, "used"), store.base / "plan.json"
    said = stripewise("plan", used, "--policy", "h2dp", "-o", plan)
    assert f"planned for {store.root}, the store that has its files" in said.err
    told = " ".join(said.out.split())
    assert "but copies served 256 read(s), 4.0 MiB, of " in told and "as if the files themselves had" in told
    # Three directories of one machine: what init says of them, and the model does not know.
    assert "share " in told and "the model takes them as separate devices" in told
    assert "are assumed, none was measured" in told and f"stripewise calibrate --store {store.root} --apply" in told
    assert f"stripewise apply {plan} --store {store.root}" in said.out
    assert next(iter(json.loads(stripewise("plan", used, "--json").out)["copied"].values()))["reads"] == 256
    # Of files that are gone no store is said to have them, and what helps is said once.
    stripewise("store", "replica", "rm", store.root, store.data / "f")
    store.run("rm", store.data / "f")
    gone = stripewise("plan", used, code=2).err
    assert "planned for" not in gone and f"the files of this run are gone from {store.root} (removed since)" in gone
    assert "run the program again, or give --cluster" in gone and "--store:" not in gone
    gone = stripewise("apply", plan, "--store", store.root, code=1).err
    assert "(removed since?): run the program again and plan" in gone
    assert f"stripewise store template add {store.root} {store.data / 'f'}" in gone
    # A plain file's trace names the store of its run.
    outside = store.plain / "outside"
    outside.write_bytes(bytes(1 << 20))
    trace = store.base / "outside-trace"
    stripewise("run", "--store", store.root, "--trace", trace, "--", "md5sum", outside)
    told = stripewise("collect", trace).out
    assert f"stripewise plan {trace} --cluster {store.root} -o plan.json" in told
    assert f"stripewise store adopt --store {store.root} {outside}" in told and " STORE" not in told


def test_copies_that_are_slower_than_the_home_are_found_and_dropped(make_store: Maker) -> None:
    disk = Target("disk", "hdd", "emulated", 0, 3e-3, 1e-8)
    quick = [Target(f"quick{number}", "ssd", "emulated", 0, 1e-4, 1e-9) for number in range(2)]
    store = make_store([disk, *quick])
    path = store.data / "f"
    stripewise("run", "--store", store.root, "--", "python3", "-c", PROGRAM, path, "make")

    def causes(name: str, *words: str) -> list[str]:
        trace = store.base / name
        if not trace.exists():
            stripewise("run", "--store", store.root, "--trace", trace, "--", "python3", "-c", ANY_ORDER, path)
            stripewise("collect", trace)
        told.update(json.loads(stripewise("show", trace, *words, "--json").out))
        return [each["cause"] for each in told["findings"]]

    told: dict[str, Any] = {}
    stripewise("store", "set-layout", path, "--targets", "disk")
    stripewise("replicate", traced(store, "plain"), "--store", store.root, "--manager", "h-pdla")
    assert "slow_copies" not in causes("as-slow") and told["from_copies"]["reads"] == 128
    stripewise("store", "set-layout", path, "--targets", "quick0,quick1")
    assert "slow_copies" in causes("slower")
    (found,) = [each for each in told["findings"] if each["cause"] == "slow_copies"]
    assert found["command"] == f"stripewise store replica rm {store.root} {path}"
    # 128 accesses of 3 ms, against 0.1 ms.
    assert min(found["measured_s"], found["price"]["low"]) > 0.25
    # Devices that did not serve the run have no say, nor copies that are gone.
    assert "slow_copies" not in causes("slower", "--cluster", str(store.cluster))
    stripewise(*found["command"].split()[1:])
    assert "slow_copies" not in causes("slower") and "slow_copies" not in causes("without")
    assert told["from_copies"]["reads"] == 0
