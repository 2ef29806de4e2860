"""`tune --levers`: ways of MPI-IO are measured with the layouts, and later runs have the pair that was the fastest."""

from __future__ import annotations

import json
import os
import sys

from rig import Maker, Store, Target, mpiio_command, stripewise

#: Slow enough for a run to be told from another one, and unlike.
TARGETS = [
    *(Target(f"h{number}", "hdd", "emulated", 0, 0.001, 1e-8) for number in range(3)),
    Target("s0", "ssd", "emulated", 0, 0.0001, 1e-9),
]
SHAPE = ("--pattern", "strided", "--file-size", "1MiB", "--request-size", "32KiB", "--phases", "write,read,check")


def tune(store: Store, levers: str, *words: str) -> dict:
    command = mpiio_command(2, store.data / "f", *SHAPE, *words)
    limit = ("--time-limit", "2s") if "layout" in levers else ()
    # Sieved writes read what lies between.
    options = ("--levers", levers, "--repeat", "2", "--reset", "true", *limit, "--json")
    return json.loads(stripewise("tune", "--store", store.root, *options, "--", *command).out)


def test_each_layout_is_measured_in_each_way_and_the_fastest_pair_is_followed(make_store: Maker) -> None:
    store = make_store(TARGETS)
    found = tune(store, "layout,mpi", "--collective")
    measured = {row["policy"] for row in found["runs"]}
    late = next((remark for remark in found["remarks"] if remark.startswith("after one run")), "")
    ways = {f"{policy}+{way}" for policy in ("def", "best") for way in ("engine", "apart", "joined")}
    known = measured | set(found["same_layout"]) | {word for word in ways if f" {word} " in late}
    assert {"def", "best"} <= known and ways <= known, found
    assert all(row["verified_bytes"] == 2 << 20 and row["repeats"] == 2 for row in found["runs"])
    for row in found["runs"]:
        assert (row["mpi"] is None) == ("+" not in row["policy"])
    if found["kept"] is None:
        return
    said = stripewise("run", "--store", store.root, "--", *mpiio_command(2, store.data / "f", *SHAPE, "--collective"))
    assert ("MPI-IO by" in said.err) == ("+" in found["kept"]), said.report
    assert '"verified_bytes": 2097152' in said.out


def test_a_program_without_collective_calls_has_other_ways(make_store: Maker) -> None:
    store = make_store(TARGETS)
    found = tune(store, "mpi")
    late = " ".join(found["remarks"])
    assert {row["policy"] for row in found["runs"]} | {word for word in ("def+unsieved",) if word in late} == {
        "def",
        "def+unsieved",
    }, found


def test_where_nothing_goes_by_mpi_io_it_is_no_lever(make_store: Maker) -> None:
    store = make_store(TARGETS)
    script = "import sys; open(sys.argv[1], 'wb').write(bytes(1 << 20)); open(sys.argv[1], 'rb').read()"
    words = ("--levers", "layout,mpi", "--repeat", "1", "--time-limit", "2s", "--json", "--")
    said = stripewise("tune", "--store", store.root, *words, sys.executable, "-c", script, store.data / "f")
    found = json.loads(said.out)
    assert any("mpi is no lever" in remark for remark in found["remarks"]), found
    assert all(row["mpi"] is None for row in found["runs"])


def test_runs_have_the_hints_of_a_kept_plan_but_where_the_user_gives_his(make_store: Maker) -> None:
    store = make_store(TARGETS)
    (store.base / "source").write_bytes(bytes(1 << 20))
    store.program("cp", store.base / "source", store.data / "f")
    plan = store.base / "plan.json"
    trace = store.base / "trace"
    stripewise("run", "--store", store.root, "--trace", trace, "--", "cat", store.data / "f")
    stripewise("collect", trace)
    stripewise("plan", trace, "--store", store.root, "--policy", "def", "-o", plan)
    data = json.loads(plan.read_text())
    data["mpi"] = {"way": "mine", "hints": {"cb_nodes": "3", "romio_cb_write": "enable"}}
    plan.write_text(json.dumps(data))
    command = ["sh", "-c", 'cat "$ROMIO_HINTS"']
    stripewise("store", "plan", "add", store.root, plan, "--application", "sh -c 'cat \"$ROMIO_HINTS\"'")
    followed = stripewise("run", "--store", store.root, "--", *command)
    assert followed.out == "cb_nodes 3\nromio_cb_write enable\n", followed.report
    assert "MPI-IO by 'cb_nodes=3 romio_cb_write=enable'" in followed.err
    own = store.base / "own"
    own.write_text("cb_nodes 1\n")
    given = stripewise("run", "--store", store.root, "--", *command, env=os.environ | {"ROMIO_HINTS": str(own)})
    assert given.out == "cb_nodes 1\n" and "ROMIO_HINTS is set" in given.err, given.report
    # By the engine: its memory is there while the program runs, as with the option.
    data["mpi"] = {"way": "engine", "engine": True}
    plan.write_text(json.dumps(data))
    stripewise("store", "plan", "add", store.root, plan, "--application", "sh -c 'echo $STRIPEWISE_ENGINE_BOARD'")
    tuned = stripewise("run", "--store", store.root, "--", "sh", "-c", "echo $STRIPEWISE_ENGINE_BOARD")
    assert tuned.out.startswith("/dev/shm/stripewise-engine-"), tuned.report
    stripewise("store", "plan", "rm", store.root, "sh -c 'cat \"$ROMIO_HINTS\"'")
    left = {path.suffix for path in (store.root / "plans").iterdir()}
    assert ".hints" not in left and ".json" in left
