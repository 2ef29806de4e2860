"""The whole circle on a small scale: run traced, collect, plan, apply, run again; and the same by `tune`."""

from __future__ import annotations

import json

import pyarrow.parquet as pq
from rig import Maker, Target, dirs, mpiio_command, parse_mpiio, stripewise

#: Two slow disks and a fast one with room for a quarter of the file.
TARGETS = [
    Target("hdd0", "hdd", "emulated", 0, 1e-3, 1e-8),
    Target("hdd1", "hdd", "emulated", 0, 1e-3, 1e-8),
    Target("ssd0", "ssd", "emulated", 2 << 20, 5e-5, 2e-9),
]
JOB = (
    "--file-size",
    "8MiB",
    "--request-size",
    "64KiB",
    "--region-size",
    "256KiB",
    "--pattern",
    "zipf",
    "--requests",
    "24",
    "--if-missing-fill",
)


def test_a_traced_run_becomes_a_plan_that_is_applied_and_changes_no_byte(make_store: Maker) -> None:
    store = make_store(
        TARGETS, layout=None, regions=[{"start": 0, "len": 262144, "stripes": [["hdd0", 65536], ["hdd1", 65536]]}]
    )
    job = mpiio_command(4, store.data / "f", *JOB)
    trace, plan = store.base / "trace", store.base / "plan.json"
    parse_mpiio(stripewise("run", "--store", store.root, "--trace", trace, "--", *job))
    said = json.loads(stripewise("collect", trace, "--json").out)
    assert (trace / "trace.parquet").is_file() and said.get("dropped", 0) == 0, said
    stripewise("plan", trace, "--cluster", store.cluster, "--policy", "h2dp", "--region-size", "256KiB", "-o", plan)
    stripewise("plan", "--check", plan, "--cluster", store.cluster)
    assert "ssd0" in plan.read_text(), "H2DP leaves the SSD empty"
    stripewise("apply", plan, "--store", store.root)
    store.fsck()
    parse_mpiio(store.run(*job, *("--phases", "check")))
    parse_mpiio(store.run(*job, *("--phases", "write,read,check")))


def test_tune_prints_what_it_measured_and_ends_with_one_json_object(make_store: Maker) -> None:
    store = make_store(TARGETS)
    job = mpiio_command(4, store.data / "f", *JOB)
    said = stripewise(
        "tune",
        "--store",
        store.root,
        "--policy",
        "h2dp",
        "--repeat",
        "1",
        "--region-size",
        "256KiB",
        "--json",
        "--",
        *job,
    )
    runs = json.loads(said.out.strip().splitlines()[-1])["runs"]
    assert [run["policy"] for run in runs] == ["def", "h2dp"]
    for run in runs:
        assert run["verified_bytes"] == 4 * 24 * 65536
        assert (
            run["read_mb_s"] > 0 and run["write_mb_s"] > 0 and 0 < run["bound_ratio"] <= 1.05 and run["imbalance"] >= 0
        )
    parse_mpiio(store.run(*job, "--phases", "check"))


def test_a_program_that_is_only_traced_needs_no_store(make_store: Maker) -> None:
    store = make_store(TARGETS)
    trace = store.base / "trace"
    parse_mpiio(stripewise("run", "--trace", trace, "--", *mpiio_command(2, store.plain / "f", *JOB)))
    stripewise("collect", trace)
    shown = stripewise(
        "plan", trace, "--cluster", store.cluster, "--file", f"{store.plain}/*", "--region-size", "256KiB", "--json"
    )
    assert json.loads(shown.out)["files"] == 1


def test_renames_and_links_stand_in_the_trace_with_both_names(make_store: Maker) -> None:
    """As they were given: whole, from the working directory, from a descriptor of a directory; managed or plain."""
    store = make_store(TARGETS)
    trace = store.base / "trace"
    program = """
import os, sys
os.chdir(sys.argv[1])
open("a", "wb").write(b"x")
os.rename("a", "b")
here = os.open(".", os.O_RDONLY)
os.rename("b", "c", src_dir_fd=here, dst_dir_fd=here)
os.link("c", sys.argv[1] + "/d")
try:
    os.rename("none", "c")
except FileNotFoundError:
    pass
"""
    for place in (store.data, store.plain):
        run = trace / place.name
        run.mkdir(parents=True)
        stripewise("run", "--store", store.root, "--trace", run, "--", "python3", "-c", program, place)
        stripewise("collect", run)
        rows = pq.read_table(run / "trace.parquet", columns=["op", "file", "file2", "errno"]).to_pylist()
        found = [(row["op"], row["file"], row["file2"]) for row in rows if row["op"] in {"rename", "link"}]
        wanted = [("rename", "a", "b"), ("rename", "b", "c"), ("link", "c", "d")]
        # One that fails has no names: the kernel need not have read them.
        assert found == [*((op, str(place / old), str(place / new)) for op, old, new in wanted), ("rename", None, None)]


def test_a_file_that_is_renamed_into_place_is_planned_by_what_was_written_before(make_store: Maker) -> None:
    store = make_store(TARGETS)
    trace, plan = store.base / "trace", store.base / "plan.json"
    program = "import os, sys; a, b = sys.argv[1:]; open(a, 'wb').write(b'x' * 300_000); os.rename(a, b)"
    names = (store.data / "out.tmp", store.data / "out")
    stripewise("run", "--store", store.root, "--trace", trace, "--", "python3", "-c", program, *names)
    stripewise("collect", trace)
    stripewise("plan", trace, "--store", store.root, "--policy", "psa", "-o", plan)
    (file,) = json.loads(plan.read_text())["files"]
    assert file["path"] == str(names[1]) and file["size"] == 300_000


def test_a_command_that_cannot_be_started_ends_as_in_a_shell(make_store: Maker) -> None:
    store = make_store(dirs(2))
    said = store.run(store.base / "nosuch", code=127)
    assert "cannot be started (No such file or directory)" in said.err, said.report
    assert "Permission denied" in store.run(store.root / "store.toml", code=126).err
