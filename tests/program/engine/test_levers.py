"""`tune --levers`: ways of MPI-IO are measured with the layouts, and later runs have the pair that was the fastest."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

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
    out = {remark.split(" ", 1)[0] for remark in found["remarks"] if " was left out: " in remark}
    # Where the baseline is far behind itself in another way, nobody else is measured in that way.
    ways = {"engine", "apart", "joined", "joined-by-all", "joined-64MiB"}
    assert {"", *ways} <= {name.partition("+")[2] for name in measured | out}, found
    assert {"def", "best"} <= measured | set(found["same_layout"])
    assert not any("was not carried out" in remark or "the runs moved" in remark for remark in found["remarks"])
    # Whose first run met a stall has one more.
    assert all(row["verified_bytes"] == 2 << 20 and row["repeats"] in (2, 3) for row in found["runs"])
    for row in found["runs"]:
        assert (row["mpi"] is None) == ("+" not in row["policy"])
    job = mpiio_command(2, store.data / "f", *SHAPE, "--collective")
    said = stripewise("run", "--store", store.root, "--", *job)
    assert ("MPI-IO by" in said.err) == ("+" in (found["kept"] or "")), said.report
    assert '"verified_bytes": 2097152' in said.out


def test_a_program_without_collective_calls_has_other_ways(make_store: Maker) -> None:
    found = tune(make_store(TARGETS), "mpi")
    out = {remark.split(" ", 1)[0] for remark in found["remarks"] if " was left out: " in remark}
    assert {row["policy"] for row in found["runs"]} | out == {"def", "def+unsieved"}, found


def test_hints_that_the_program_gives_itself_are_no_other_way(make_store: Maker) -> None:
    given = ("--hint", "romio_cb_write=disable", "--hint", "romio_cb_read=disable", "--hint", "cb_buffer_size=65536")
    found = tune(make_store(TARGETS), "mpi", "--collective", *given)
    out = {remark.split(" ", 1)[0] for remark in found["remarks"] if "hints of the program count more" in remark}
    assert {"def+joined", "def+joined-64MiB"} <= out, found


#: A program that fails where collective writes are joined.
FAILS = 'case "$(cat $ROMIO_HINTS 2>/dev/null)" in *romio_cb_write\\ enable*) exit 7;; esac; exec "$@"'


def test_a_way_in_which_the_program_fails_is_left_out_and_files_are_where_they_were(make_store: Maker) -> None:
    store = make_store(TARGETS)
    job = mpiio_command(2, store.data / "f", *SHAPE, "--collective")
    command = ["sh", "-c", FAILS, "sh", *job]
    words = ("--levers", "mpi", "--repeat", "1", "--json", "--")
    found = json.loads(stripewise("tune", "--store", store.root, *words, *command).out)
    out = {remark.split(" ", 1)[0] for remark in found["remarks"] if "ended with status 7 by" in remark}
    assert out == {"def+joined", "def+joined-by-all", "def+joined-64MiB"}, found
    store.fsck()


def test_an_end_after_a_way_that_was_left_out_puts_files_back(make_store: Maker) -> None:
    """The run after the ways fails: the layout that lay there was that of a way that nobody measures any more."""
    store = make_store(TARGETS)
    job = mpiio_command(2, store.data / "f", *SHAPE, "--collective")
    store.program(*job)
    stripewise("store", "set-layout", store.data / "f", "--targets", "h0,h1", "--stripe-size", "64KiB")
    count = store.base / "count"
    ends = f"echo x >>{count}; test $(wc -l <{count}) -ge 8 && exit 3; {FAILS}"
    words = ("--levers", "mpi", "--repeat", "3", "--")
    said = stripewise("tune", "--store", store.root, *words, "sh", "-c", ends, "sh", *job, code=1)
    assert "ended with status 3" in said.err and "internal" not in said.err, said.report
    (file,) = json.loads(stripewise("store", "layout", store.data / "f", "--json").out)["files"]
    assert {str(region["stripes"]) for region in file["regions"]} == {"[['h0', 65536], ['h1', 65536]]"}
    store.fsck()


def test_where_nothing_goes_by_mpi_io_it_is_no_lever(make_store: Maker) -> None:
    store = make_store(TARGETS)
    script = "import sys; open(sys.argv[1], 'wb').write(bytes(1 << 20)); open(sys.argv[1], 'rb').read()"
    job = ("--repeat", "1", "--json", "--", sys.executable, "-c", script, store.data / "f")
    said = stripewise("tune", "--store", store.root, "--levers", "layout,mpi", "--time-limit", "2s", *job)
    found = json.loads(said.out)
    assert any("mpi is no lever" in remark for remark in found["remarks"]), found
    assert all(row["mpi"] is None for row in found["runs"])
    alone = stripewise("tune", "--store", store.root, "--levers", "mpi", *job, code=1)
    assert "so mpi is no lever; give --levers layout" in alone.err and "run 3" not in alone.err, alone.report


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
    (row,) = json.loads(stripewise("store", "plan", "ls", store.root, "--json").out)
    assert row["mpi"]["hints"] == data["mpi"]["hints"]
    assert "MPI-IO by 'cb_nodes=3 romio_cb_write=enable'" in stripewise("store", "plan", "ls", store.root).out
    own = store.base / "own"
    own.write_text("cb_nodes 1\n")
    given = stripewise("run", "--store", store.root, "--", *command, env=os.environ | {"ROMIO_HINTS": str(own)})
    assert given.out == "cb_nodes 1\nromio_cb_write enable\n", given.report
    assert "MPI-IO by 'romio_cb_write=enable'" in given.err
    tuned = stripewise("run", "--engine", "--store", store.root, "--", "sh", "-c", command[2], code=1)
    assert "--engine is given, so the kept plan's way of MPI-IO" in tuned.err
    # By the engine: its memory is there while the program runs, as with the option.
    data["mpi"] = {"way": "engine", "engine": True}
    plan.write_text(json.dumps(data))
    stripewise("store", "plan", "add", store.root, plan, "--application", "sh -c 'echo $STRIPEWISE_ENGINE_BOARD'")
    tuned = stripewise("run", "--store", store.root, "--", "sh", "-c", "echo $STRIPEWISE_ENGINE_BOARD")
    assert tuned.out.startswith("/dev/shm/stripewise-engine-"), tuned.report
    assert not Path(tuned.out.strip()).exists()
