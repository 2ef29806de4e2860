"""The MPI workload, traced, issues the very requests that the simulator generates; its trace can be simulated."""

from __future__ import annotations

import json
import sys

import pytest
from rig import Maker, Target, mpiio_command, parse_mpiio, stripewise

from stripewise.workload.describe import Description
from stripewise.workload.generated import requests_of
from stripewise.workload.trace import read_trace

KIB, MIB = 1 << 10, 1 << 20
#: Else MPI-IO reads and writes the holes between pieces too.
NO_SIEVING = ("--hint", "romio_ds_read=disable", "--hint", "romio_ds_write=disable")


@pytest.mark.parametrize("kind", ["random", "strided", "nested", "tiles"])
def test_a_run_issues_what_its_description_generates(make_store: Maker, kind: str) -> None:
    store = make_store(layout="striped")
    file, trace = store.data / "f", store.base / "trace"
    described = Description(
        kind, 4, ((48 * KIB, 1.0),), 4 * MIB, path=str(file), pieces=4, reads=7, writes=9, seed=11
    )  # fmt: skip
    words = [
        *("--pattern", kind, "--file-size", "4MiB", "--request-size", "48KiB", "--pieces", "4"),
        *("--reads", "7", "--writes", "9", "--seed", "11", *NO_SIEVING),
    ]
    parse_mpiio(store.run(*mpiio_command(4, file, *words, "--phases", "fill")))
    job = mpiio_command(4, file, *words, "--phases", "write,read")
    parse_mpiio(stripewise("run", "--store", store.root, "--trace", trace, "--", *job))
    stripewise("collect", trace)
    issued = read_trace(trace).files[0].requests
    for rank in range(4):
        mine, made = issued[issued["rank"] == rank], requests_of(described, rank)
        for key in ("write", "offset", "size"):
            assert mine[key].tolist() == made[key].tolist(), (kind, rank, key)

    said = stripewise("simulate", "--trace", trace, "--cluster", store.cluster, "--policy", "def", "--json")
    row = json.loads(said.out)["rows"][0]
    on_store = stripewise("simulate", "--trace", trace, "--store", store.root, "--policy", "def", "--json")
    assert json.loads(on_store.out)["rows"][0] == row
    assert "is not a store" in stripewise("simulate", "--trace", trace, "--store", store.cluster, code=1).err
    assert row["requests"] == len(issued) and row["processes"] == 4
    assert row["bytes_read"] + row["bytes_written"] == 4 * 16 * 48 * KIB


def test_policies_have_the_room_that_is_left_in_a_store_as_plan_has_it(make_store: Maker) -> None:
    ssds = [Target(name, "ssd", capacity_bytes=4 * MIB, startup_s=1e-5, per_byte_s=1e-9) for name in ("s0", "s1")]
    disks = [Target(f"d{number}", startup_s=4e-3, per_byte_s=1e-8) for number in range(2)]
    store = make_store([*disks, *ssds])
    file, trace, plan = store.data / "f", store.base / "trace", store.base / "plan.json"
    store.program("dd", "if=/dev/zero", f"of={file}", "bs=1M", "count=16")
    store.program("dd", "if=/dev/zero", f"of={store.data / 'other'}", "bs=1M", "count=2")
    stripewise("store", "set-layout", store.data / "other", "--targets", "s0", "--stripe-size", "64KiB")
    script = f"import os\nfd = os.open({str(file)!r}, os.O_RDONLY)\nfor k in range(256): os.pread(fd, 4096, k * 65536)"
    stripewise("run", "--store", store.root, "--trace", trace, "--", sys.executable, "-c", script)
    stripewise("collect", trace)
    stripewise("plan", trace, "--store", store.root, "--policy", "h2dp", "--region-size", "1MiB", "-o", plan)
    made = json.loads(plan.read_text())
    assert made["options"]["reserved_bytes"] == {"s0": 2 * MIB} and 0 < made["target_bytes"]["s0"] <= 2 * MIB

    def io_s(*words: object) -> dict[str, float]:
        said = stripewise(
            "simulate", "--trace", trace, *words, "--policy", "def,h2dp", "--region-size", "1MiB", "--json"
        )
        return {row["policy"]: row["io_s"] for row in json.loads(said.out)["rows"]}

    expected = made["expected"]
    left = io_s("--store", store.root)
    assert left["def"] == pytest.approx(expected["simulated_io_def_s"], rel=1e-9)
    assert left["h2dp"] == pytest.approx(expected["simulated_io_s"], rel=1e-9)
    # Devices alone are empty.
    assert io_s("--cluster", store.cluster)["h2dp"] < left["h2dp"]
