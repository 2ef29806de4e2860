"""What is said where figures of the model are worth less: copies served reads, shared devices, processes in turns."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from stripewise.cli.plan.caveats import of_copies, of_devices, of_regions
from stripewise.cluster import Cluster, Network
from stripewise.plan import Expected, FilePlan, Plan, RegionPlan
from stripewise.setup.remarks import modelled_apart
from stripewise.store.copies.listed import Copies
from stripewise.units import MIB, seconds_text
from stripewise.workload.copied import Copied
from support import cluster, target
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


def test_what_moving_thousands_of_regions_takes_is_told() -> None:
    on = cluster(2, 1)
    hdd, ssd = on.targets[0], on.targets[-1]

    def said(count: int) -> list[str]:
        regions = tuple(
            RegionPlan(number * MIB, MIB, ((hdd.name, MIB),) if number % 2 else ((ssd.name, MIB),))
            for number in range(count)
        )
        plan = Plan("best", {}, "", (), 1, (), (FilePlan("/f", None, count * MIB, regions),), {}, Expected(1.0, 1.0))
        return list(of_regions(plan, on))

    assert said(499) == []
    read_s = sum(each.startup_read_s for each in on.targets) / 3
    seconds = 1000 * read_s + 500 * (hdd.startup_write_s + ssd.startup_write_s)
    (text,) = said(1000)
    assert text.startswith("the layout has 1,000 regions, each of which moves by itself")
    assert f"has startups of some {seconds_text(seconds)} s beside the bytes" in text, text
