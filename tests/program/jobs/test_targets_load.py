"""The load of targets that `show` tells of a real run, against what the devices counted."""

from __future__ import annotations

import json

import pytest
from rig import Maker, Target, mpiio_command, parse_mpiio, region, stripes, stripewise

from stripewise.store import Store as Opened

TARGETS = [
    Target("h0", "hdd", "emulated", 0, 1e-4, 1e-9),
    Target("h1", "hdd", "emulated", 0, 1e-4, 1e-9),
    Target("s0", "ssd", "emulated", 0, 1e-5, 1e-9),
]
LAYOUTS = {
    "cycles": [
        region(0, 256, stripes(("h0", 16), ("h1", 32))),
        region(256, 64, stripes(("s0", 64))),
        region(320, 512, stripes(("h1", 8), ("s0", 64), ("h0", 4))),
    ],
    # Neighbours on one target, as H2DP lays out hot data: what follows each other is one access.
    "whole regions": [
        region(0, 64, stripes(("h0", 64))),
        region(64, 16, stripes(("h0", 16))),
        region(80, 32, stripes(("h1", 64), ("h0", 4))),
        region(112, 64, stripes(("h1", 16), ("s0", 16))),
        region(176, 16, stripes(("s0", 64))),
    ],
}
JOB = ("--file-size", "3MiB", "--request-size", "48KiB", "--region-size", "1MiB", "--pattern", "interleaved")

#: What devices count, and what `show` calls it.
KEYS = {"bytes_read": "read", "bytes_written": "written", "accesses_read": "reads", "accesses_write": "writes"}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_shown_loads_are_what_the_devices_counted(make_store: Maker, layout: str) -> None:
    store = make_store(TARGETS, regions=LAYOUTS[layout])
    trace, file = store.base / "trace", store.data / "f"
    opened = Opened(store.root)
    before = {row["name"]: row for row in opened.devices()}
    parse_mpiio(stripewise("run", "--store", store.root, "--trace", trace, "--", *mpiio_command(3, file, *JOB)))
    after = {row["name"]: row for row in opened.devices()}
    stripewise("collect", trace)
    # Where its files go later is not where they were.
    stripewise(
        "apply",
        store.plan(store.base / "p.json", file, [region(0, 64, stripes(("h0", 64)))], 3 << 20),
        "--store",
        store.root,
    )
    shown = {row["name"]: row for row in json.loads(stripewise("show", trace, "--json").out)["targets"]}
    startup_s = {target.name: target.startup_s for target in TARGETS}
    for name in startup_s:
        counted = {key: after[name][key] - before[name][key] for key in KEYS}
        assert {key: shown[name][ours] for key, ours in KEYS.items()} == counted, name
        assert sum(counted.values()) > 0
        busy, startups = (
            sum(after[name][key] - before[name][key] for key in keys)
            for keys in (("busy_read_ns", "busy_write_ns"), ("startups",))
        )
        # A device that goes on where its last access ended has no startup; the model has one for each.
        spared = (counted["accesses_read"] + counted["accesses_write"] - startups) * startup_s[name]
        assert shown[name]["work_s"] - spared == pytest.approx(busy / 1e9, rel=1e-3), name
