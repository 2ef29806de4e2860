"""What is said where figures of the model are worth less: copies served reads, shared devices, processes in turns."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from stripewise.cli.plan.caveats import of_copies, of_devices, of_turns
from stripewise.cluster import Cluster, Network
from stripewise.setup.remarks import modelled_apart
from stripewise.store.copies.listed import Copies
from stripewise.workload.copied import Copied
from support import target, zipf_workload
from test_cli import a_trace, cluster_toml, stripewise

__all__ = ["a_trace", "cluster_toml"]


def test_targets_that_share_a_device_are_named_where_the_model_takes_them_apart(tmp_path: Path) -> None:
    places = [tmp_path / name for name in ("a", "b")]
    for place in places:
        place.mkdir()
    one, other = (replace(target(place.name, "hdd"), path=place) for place in places)
    (said,) = modelled_apart([one, other])
    assert said.startswith("a and b share ") and "takes them as separate devices" in said
    assert modelled_apart([one]) == modelled_apart([one, replace(other, path=tmp_path / "elsewhere")]) == []
    assert modelled_apart([replace(each, kind="emulated") for each in (one, other)]) == []
    *_, said = of_devices(Cluster(tmp_path, Network(), (one, other)), Path("/S"))
    assert said == (
        "figures of a, b are assumed, none was measured, and so is what the model makes of them; "
        "stripewise calibrate --store /S --apply"
    )


def test_a_trace_of_one_store_is_planned_for_it_and_says_what_copies_served(a_trace: Path, cluster_toml: Path) -> None:
    assert "give the devices" in stripewise("plan", a_trace, code=2).stderr
    copied = {"/data/f": Copied(3, 4096), "/data/g": Copied(1, 8192)}
    (said,) = of_copies(copied, {}, None)
    assert said.startswith("copies served 4 read(s), 12.0 KiB, of /data/g and 1 more, in the traced run")
    stands = {"/data/f": Copies("n", "/data/f", "c", 1, 4096, "in use")}
    (said,) = of_copies({}, stands, Path("/S"))
    assert said.startswith("/data/f: copies stand and may serve reads") and said.endswith(
        "store replica rm /S /data/f)"
    )


def test_processes_that_take_turns_are_told() -> None:
    """Simulated ones begin at once, so a run of groups one after another is simulated as twice as long."""
    made = zipf_workload(8, 80)
    requests = made.files[0].requests.copy()
    requests["rank"] = np.arange(len(requests)) % 4

    def told(begins: tuple[int, ...]) -> list[str]:
        requests["start_ns"] = np.array(begins)[requests["rank"]]
        requests["end_ns"] = requests["start_ns"] + 10
        return list(of_turns(replace(made, files=(replace(made.files[0], requests=requests),))))

    (said,) = told((0, 5, 10, 15))
    assert said.startswith("of its 4 processes at most 2 were at work at one time")
    assert not told((0, 5, 9, 30)) and not told((0, 0, 0, 0))
