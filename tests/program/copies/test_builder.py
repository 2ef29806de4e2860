"""Whoever makes copies keeps out of the programs' way as a mover does, and is on emulated devices' clocks."""

from __future__ import annotations

import json
import random
import subprocess
import time
from pathlib import Path

import pytest
from rig import Maker, Store, Target, dirs, stripewise

from stripewise import native
from stripewise.limits import Limits

SIZE = 8 << 20


def with_file(store: Store) -> Path:
    """A managed file of random bytes."""
    plain, file = store.plain / "plain", store.data / "file"
    plain.write_bytes(random.Random(1).randbytes(SIZE))
    stripewise("run", "--store", store.root, "--", "cp", plain, file)
    return file


def spec(targets: int) -> str:
    """The second half of each 64 KiB, on all targets."""
    region = {"start": 0, "len": 1 << 20, "stripes": [[target, 64 << 10] for target in range(targets)]}
    blocks = {"base": 32 << 10, "block": 32 << 10, "dims": [[64 << 10, SIZE >> 16]], "regions": [region]}
    return json.dumps({"replicas": [blocks]})


def make(store: Store, file: Path, limits: Limits, targets: int = 4) -> float:
    """Makes copies; how long that took."""
    begun = time.monotonic()
    native.call("store_copies_make", str(store.root), str(file), spec(targets), True, limits.as_json())
    return time.monotonic() - begun


def test_a_cap_spreads_the_bytes_over_the_time_they_may_take(make_store: Maker) -> None:
    store = make_store(dirs(4))
    # The last of the chunks, a tenth of a second's, is not waited for.
    assert make(store, with_file(store), Limits(4 << 20)) >= 0.9


@pytest.mark.parametrize("max_slowdown", [0.0, 1.5])
def test_emulated_devices_take_their_time_for_copies(make_store: Maker, max_slowdown: float) -> None:
    # 10 MB/s: 4 MiB are read, and written.
    store = make_store([Target("slow", kind="emulated", per_byte_s=1e-7)])
    file = with_file(store)
    assert make(store, file, Limits(0, max_slowdown), 1) >= 2 * (4 << 20) * 1e-7
    same = "import os, sys; f = os.open(sys.argv[1], 0); sys.stdout.buffer.write(os.pread(f, 1 << 15, 1 << 15))"
    read = subprocess.run(["python3", "-c", same, file], env=store.environment(), capture_output=True, check=True)
    assert read.stdout == (store.plain / "plain").read_bytes()[1 << 15 : 1 << 16]
