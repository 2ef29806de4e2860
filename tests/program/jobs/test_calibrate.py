"""`stripewise calibrate` on real clocks and directories: figures that are right, and nothing left behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
from rig import MPIEXEC, STRIPEWISE, Target, dirs, kill_job, launch, stripewise, wait_until

from stripewise.cluster import read_cluster

# Times of devices are measured, to a twentieth.
pytestmark = pytest.mark.alone

HDD = Target("hdd0", "hdd", "emulated", 0, 0.003, 1e-8)
SSD = Target("ssd0", "ssd", "emulated", 0, 0.0001, 2.5e-9)


def counters(store) -> list[dict[str, object]]:
    """What `store info` counts of the devices since boot."""
    said = json.loads(stripewise("store", "info", store.root, "--json").out)
    return [{key: value for key, value in one.items() if key != "free_bytes"} for one in said["devices"]]


def plain_cluster(scratch: Path) -> Path:
    """A cluster of one directory, without figures to speak of."""
    (scratch / "t0").mkdir()
    path = scratch / "typed.toml"
    path.write_text(Target("t0", per_byte_s=0.5, startup_s=7.0).toml(scratch))
    return path


def test_emulated_figures_come_back_within_a_twentieth_and_counters_as_they_were(make_store, scratch):
    store = make_store([HDD, SSD])
    store.run("dd", "if=/dev/zero", f"of={store.data}/f", "bs=128K", "count=2", "status=none")
    before = counters(store)
    assert all(one["accesses_write"] for one in before)
    out = scratch / "measured.toml"
    said = json.loads(stripewise("calibrate", "--store", store.root, "--seconds", "2", "-o", out, "--json").out)
    measured = read_cluster(out)
    for target, real in zip(measured.targets, (HDD, SSD), strict=True):
        assert (target.startup_read_s, target.startup_write_s) == pytest.approx((real.startup_s,) * 2, rel=0.05)
        assert (target.per_byte_read_s, target.per_byte_write_s) == pytest.approx((real.per_byte_s,) * 2, rel=0.05)
        assert target.calibration is not None
        for kind in ("sequential_read", "sequential_write"):
            fit = target.calibration.fit(kind)
            assert fit is not None
            assert fit.per_byte_s == pytest.approx(real.per_byte_s, rel=0.05)
            assert fit.startup_s < 0.05 * real.startup_s
    assert all(abs(value) <= 0.05 for row in said["targets"] for value in row["difference"].values())
    assert counters(store) == before


def test_a_real_directory_and_messages_give_figures_that_stores_take(scratch):
    out = scratch / "measured.toml"
    words = ["--cluster", plain_cluster(scratch), "--seconds", "2", "--scratch", "16MiB", "-o", out]
    result = stripewise("calibrate", *words, "--plot", scratch / "plots", "--ping", f"{MPIEXEC} -n 2")
    network, target = read_cluster(out).network, read_cluster(out).targets[0]
    assert 0 < target.startup_read_s < 7 and 0 < target.startup_write_s < 7
    assert 0 <= target.per_byte_read_s < 0.5 and 0 <= target.per_byte_write_s < 0.5
    assert target.calibration is not None and target.calibration.requests > 100
    assert target.calibration.method in ("direct", "fadvise") and target.calibration.method in result.out
    assert 0 < network.establish_s < 1 and 0 < network.per_byte_s < 1e-3 and network.processes_per_node == 2
    assert "that is memory, not a network" in result.err
    assert (scratch / "plots" / "t0.svg").read_text().startswith("<?xml")
    assert list((scratch / "t0").iterdir()) == []
    (scratch / "data").mkdir()
    stripewise("store", "create", scratch / "store", "--cluster", out, "--manage", scratch / "data")
    assert read_cluster(scratch / "store").targets[0].calibration == target.calibration


def test_apply_gives_real_targets_their_figures_and_emulated_ones_only_the_record(make_store):
    store = make_store([Target("slow", startup_s=7.0, per_byte_s=0.5), SSD])
    words = ["--store", store.root, "--seconds", "1", "--scratch", "8MiB", "--apply"]
    result = stripewise("calibrate", *words)
    assert "new figures for slow" in result.out
    slow, ssd = read_cluster(store.root).targets
    assert 0 < slow.startup_read_s < 7 and slow.calibration is not None
    assert (ssd.startup_read_s, ssd.per_byte_write_s) == (SSD.startup_s, SSD.per_byte_s) and ssd.calibration is not None
    # Every writer of store.toml keeps the record, and the compiled form has the figures.
    stripewise("store", "drain", store.root, "slow")
    assert read_cluster(store.root).targets[0].calibration == slow.calibration


def test_a_store_in_use_is_not_measured(make_store, scratch):
    store = make_store(dirs(1))
    ready = scratch / "ready"
    job = launch(store, ["sh", "-c", f"exec 3> {store.data}/f; echo x > {ready}; sleep 60"])
    try:
        assert wait_until(ready.exists)
        result = stripewise("calibrate", "--store", store.root, "-o", scratch / "out.toml", code=1)
        assert "using the store" in result.err and len(result.err.strip().splitlines()) == 1
        assert not (scratch / "out.toml").exists()
    finally:
        kill_job(job)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_an_end_in_the_middle_leaves_no_scratch_file_and_no_cluster(scratch, number):
    cluster, out = plain_cluster(scratch), scratch / "out.toml"
    words = ["calibrate", "--cluster", cluster, "--seconds", "60", "--scratch", "64MiB", "-o", out]
    child = subprocess.Popen([STRIPEWISE, *map(os.fspath, words)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)

    def has_scratch() -> bool:
        links = [os.readlink(link) for link in Path(f"/proc/{child.pid}/fd").iterdir() if link.is_symlink()]
        return any(link.startswith(str(scratch / "t0")) for link in links)

    try:
        end = time.monotonic() + 30
        while time.monotonic() < end:
            try:
                if has_scratch():
                    break
            except FileNotFoundError:
                pass
            time.sleep(0.01)
        else:
            raise AssertionError("no scratch file was made")
        child.send_signal(number)
        _, err = child.communicate(timeout=30)
    finally:
        child.kill()
    assert child.returncode != 0 and b"Traceback" not in err
    assert list((scratch / "t0").iterdir()) == []
    assert sorted(path.name for path in scratch.iterdir()) == ["t0", "typed.toml"]


def test_a_launcher_of_one_process_is_told_what_is_missing(scratch):
    words = ["calibrate", "--cluster", plain_cluster(scratch), "-o", scratch / "out.toml"]
    alone = stripewise(*words, "--ping", f"{MPIEXEC} -n 1", code=1)
    assert "only one process; give mpiexec -n 2" in alone.err and not (scratch / "out.toml").exists()
