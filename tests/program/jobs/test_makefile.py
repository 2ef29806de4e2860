"""Every command of the Makefile in a short form: it runs to its end and writes its file. Figures mean nothing here.

What has a test elsewhere is named with it; a target that is neither run here nor named fails the first test.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from rig import LIBRARY, NATIVE, ROOT, Maker, children, dirs, execute, is_managed, is_running, wait_until

#: Targets, and the test that runs a short form of each.
TESTED = {
    "bench": "test_bench_writes_its_file",
    "demo": "test_the_demo_ends_in_what_to_do_next",
    "simgrid": "test_simgrid_is_compared_or_says_what_it_needs",
    "figures": "test_figure11.py, test_figure11_is_modelled_in_short",
    "validate": "test_validation.py",
    "experiment": "tests/python/test_experiments.py",
    "experiments": "tests/python/test_experiments.py",
    "results": "tests/python/test_experiments.py",
    "wheel": "test_wheel.py",
}
#: What runs the tests themselves or checks the sources, makes what they need, or removes it.
NOT_COMMANDS = {"help", "build", "test", "pytest", "lint", "check", "soak", "soak-moving", "soak-best", "clean"}
PHASES = ["create", "stat", "open_close", "read", "readdir", "rename", "unlink"]
KEYS = {"name", "value", "unit", "baseline", "ratio"}
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT / "python"), "CARGO_TARGET_DIR": str(ROOT / "target")}


def test_every_command_of_the_makefile_is_run_by_a_test() -> None:
    targets = set(re.findall(r"^([a-z][a-z-]*):(?!=)", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert targets == set(TESTED) | NOT_COMMANDS


BENCHES = ("calls", "metadata", "mpi", "play")


@pytest.fixture
def calls() -> None:
    """What `make bench` builds for itself."""
    made = subprocess.run(
        ["make", "-s", *(f"target/native/{name}" for name in BENCHES)], cwd=ROOT, capture_output=True, text=True
    )
    assert made.returncode == 0 and all((NATIVE / name).exists() for name in BENCHES), made.stderr


#: Figures of the benchmark that are differences.
DIFFERENCES = {
    "runtime.pread_4k_managed_added_ns", "runtime.pread_4k_unmanaged_added_ns", "runtime.startup_ms",
    "trace.mpi_idle_added_ns", "trace.mpi_record_added_ns", "trace.mpi_strided_added_ns",
    "trace.mpi_pointer_added_ns", "trace.mpi_small_overhead", "trace.mpi_job_overhead", "replica.nohit_added_ns",
    "engine.added_ns_per_call", "engine.decided_added_ns", "replica.hit_added_ns", "play.added_us_per_call",
}  # fmt: skip


def bench(scratch: Path, *options: str | Path) -> dict[str, dict[str, object]]:
    """The entries that a run writes, by name."""
    program = ROOT / "tools" / "bench" / "bench.py"
    tool = [sys.executable, program, "--quick", "--json", scratch / "bench.json", *options]
    said = execute(tool, ENVIRONMENT, 0, timeout_s=550)
    entries = json.loads((scratch / "bench.json").read_text())
    assert len(said.out.splitlines()) == len(entries)
    assert all(entry.keys() >= KEYS for entry in entries)
    # The difference of two times may come out on the other side of nothing.
    assert all(entry["ratio"] >= 0 for entry in entries if entry["name"] not in DIFFERENCES)
    return {entry["name"]: entry for entry in entries}


def test_bench_writes_its_file(scratch: Path, calls: None) -> None:
    names = bench(scratch)
    parts = {name.split(".")[0] for name in names}
    assert parts == {
        "runtime",
        "metadata",
        "emulated",
        "migrate",
        "plan",
        "model",
        "best",
        "swd",
        "import",
        "show",
        "trace",
        "replica",
        "engine",
        "play",
        "pioneer",
    }
    # Which fill is the slowest is a matter of time.
    assert names["swd.smart_updates_per_s"]["fill_percent"] in (30, 65, 85, 90)


def test_bench_sets_small_files_beside_plain_ones_and_beside_another_library(scratch: Path, calls: None) -> None:
    kinds = ("open_close", "stat", "create_unlink", "pread_4k")
    names = bench(scratch, "--small", "--against", LIBRARY)
    assert set(names) == {f"runtime.{kind}_{what}" for kind in kinds for what in ("ratio", "against")}
    for kind in kinds:
        assert "plain " in str(names[f"runtime.{kind}_ratio"]["baseline"])
        assert str(LIBRARY) in str(names[f"runtime.{kind}_against"]["unit"])


def test_bench_sets_many_small_files_beside_plain_ones_and_fuse(scratch: Path, calls: None) -> None:
    names = bench(scratch, "--metadata")
    assert set(names) == {f"metadata.{mode}_{phase}" for mode in ("own", "shared") for phase in PHASES}
    places = {"plain", "unmanaged", "managed"} | ({"fuse"} if shutil.which("bindfs") else set())
    for name, entry in names.items():
        rates = entry["operations_per_s"]
        # Where bindfs may not mount, its column is missing.
        assert isinstance(rates, dict) and places - {"fuse"} <= rates.keys() <= places and min(rates.values()) > 0
        plain = {"create": 3, "stat": 1, "open_close": 2, "read": 3, "rename": 1, "unlink": 1}.get(
            name.split("_", 1)[1]
        )
        counted = entry["system_calls"]
        if shutil.which("strace") and plain:
            assert isinstance(counted, dict) and counted["plain"] == plain and counted["managed"] > 2 * plain


@pytest.mark.parametrize("options", [(), ("--shared", "--depth", "2")])
def test_many_small_files_are_counted_and_none_stays(make_store: Maker, calls: None, options: tuple[str, ...]) -> None:
    store = make_store(dirs(2))
    command = [NATIVE / "metadata", "--processes", "2", "--files", "50", *options]
    for place in (store.plain, store.data):
        said = json.loads(store.program(*command, place).out)
        trees, of_each = (1, 21) if options else (2, 5)
        assert (said["processes"], said["files"], said["directories"]) == (2, 100, trees * of_each)
        assert list(said["operations_per_s"]) == PHASES and min(said["operations_per_s"].values()) > 0
        assert not list(place.iterdir())
    assert not list((store.root / "files").iterdir())
    assert not [path for name in store.targets for path in (store.base / "targets" / name.name).glob("*.data*")]


def test_a_process_that_dies_among_many_small_files_ends_the_others(make_store: Maker, calls: None) -> None:
    store = make_store(dirs(2))
    command = [NATIVE / "metadata", store.data, "--processes", "3", "--files", "100000"]
    with subprocess.Popen(command, env=store.environment(), stderr=subprocess.PIPE, text=True) as program:
        first = store.data / "metadata" / "0" / "f0.0"
        assert wait_until(lambda: is_managed(first))
        workers = children(program.pid)
        assert len(workers) == 3
        os.kill(workers[1], signal.SIGKILL)
        said = program.communicate(timeout=60)[1]
    assert program.returncode == 1 and "a process failed" in said and str(store.data / "metadata") in said
    assert not any(is_running(worker) for worker in workers)
    again = store.program(NATIVE / "metadata", store.data, code=1)
    assert "File exists" in again.err
    store.repair()


def test_the_demo_ends_in_what_to_do_next(scratch: Path) -> None:
    short = {"DEMO_MIB": "24", "DEMO_REQUESTS": "4", "TMPDIR": str(scratch)}
    said = execute(["sh", ROOT / "tools" / "demo.sh"], {**ENVIRONMENT, **short}, 0)
    made = Path(said.out.splitlines()[-1].removeprefix("  rm -r "))
    figures = json.loads((made / "result.json").read_text().splitlines()[-1])
    assert [run["policy"] for run in figures["runs"]] == ["def", "h2dp", "best"]
    assert "{" not in said.out[said.out.index("To go on:") :]


def test_figure11_is_modelled_in_short(scratch: Path) -> None:
    short = {
        "file-size": "64MiB", "region-size": "1MiB", "processes": "2", "windows": "2", "shift": "3", "window": "1s",
        "size": "64KiB",
    }  # fmt: skip
    words = [word for key, value in short.items() for word in (f"--{key}", value)]
    tool = [sys.executable, ROOT / "tools" / "figure11.py", *words, "--json", scratch / "rows.json"]
    execute(tool, ENVIRONMENT, 0)
    (row,) = json.loads((scratch / "rows.json").read_text())
    assert row["modelled"] and row["request_bytes"] == 65536


def test_simgrid_is_compared_or_says_what_it_needs(scratch: Path) -> None:
    built = subprocess.run(["make", "-s", "target/simgrid/replay"], cwd=ROOT, capture_output=True, text=True)
    if built.returncode:
        assert "libsimgrid-dev" in built.stderr
        pytest.skip("needs a C++ compiler and SimGrid 3.32 or newer (Debian: g++, libsimgrid-dev)")
    tool = [sys.executable, ROOT / "tools" / "simgrid" / "compare.py", "--requests", "5", "--tolerance", "1"]
    execute([*tool, "--json", scratch / "simgrid.json"], ENVIRONMENT, 0)
    assert json.loads((scratch / "simgrid.json").read_text())
