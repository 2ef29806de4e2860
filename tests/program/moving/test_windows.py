"""A hot set that moves: the MPI workload in windows, its trace planned window by window, and the plan applied."""

from __future__ import annotations

import json

import numpy as np
from rig import Maker, Target, mpiio_command, parse_mpiio, stripewise

from stripewise.plan import read_plan
from stripewise.store import Store as PythonStore
from stripewise.workload.trace import read_trace
from stripewise.workload.zipf import READ, WRITE, ZipfRun

TARGETS = [
    Target("hdd0", "hdd", "emulated", 0, 1e-3, 1e-8),
    Target("hdd1", "hdd", "emulated", 0, 1e-3, 1e-8),
    Target("ssd0", "ssd", "emulated", 2 << 20, 5e-5, 2e-9),
]
RUN = ZipfRun(
    processes=4, file_bytes=8 << 20, region_bytes=256 << 10, request_bytes=64 << 10, reads=48, writes=24, alpha=1.2,
    windows=3, shift=8, window_s=0.5, seed=3,
)  # fmt: skip


def test_a_moving_hot_set_is_traced_planned_and_applied_without_a_wrong_byte(make_store: Maker) -> None:
    store = make_store(
        TARGETS, layout=None, regions=[{"start": 0, "len": 262144, "stripes": [["hdd0", 65536], ["hdd1", 65536]]}]
    )
    file, trace, plan = store.data / "f", store.base / "trace", store.base / "plan.json"
    parse_mpiio(store.run(*mpiio_command(4, file, *RUN.mpiio_options(), "--phases", "fill")))
    job = mpiio_command(4, file, *RUN.mpiio_options())
    said = parse_mpiio(stripewise("run", "--store", store.root, "--trace", trace, "--", *job, "--phases", "write,read"))
    assert len(list(said["read_window_seconds"])) == len(list(said["write_window_seconds"])) == 3
    stripewise("collect", trace)

    # The run issued the very requests that the pattern's arithmetic in Python gives.
    requests = read_trace(trace).files[0].requests
    for rank in range(4):
        mine = requests[requests["rank"] == rank]
        for phase, writing in ((WRITE, True), (READ, False)):
            assert mine["offset"][mine["write"] == writing].tolist() == RUN.offsets(rank, phase).tolist()
    # A window begins no earlier than its time.
    reads = np.sort(requests["start_ns"][~requests["write"]])
    assert reads[-1] - reads[0] >= 0.9 * 10**9

    stripewise("plan", trace, "--cluster", store.cluster, "--region-size", "256KiB", "--window", "500ms", "-o", plan)
    checked = json.loads(stripewise("plan", "--check", plan, "--cluster", store.cluster, "--json").out)
    assert checked["remarks"] == [] and sum(row["moves_in"] for row in checked["windows"]) > 0
    stripewise("apply", plan, "--store", store.root)
    store.fsck()
    opened = PythonStore(store.root)
    assert opened.layout(str(opened.resolve(str(file)))).regions == read_plan(plan).layout_in_window(str(file), 0)
    parse_mpiio(store.run(*job, "--phases", "check"))
    parse_mpiio(store.run(*job, "--phases", "write,read,check"))
