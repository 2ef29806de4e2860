"""Whatever stands in a device table, an option, a layout or a plan to simulate: it is taken or refused in a line."""

from __future__ import annotations

import copy
import json
import math
import tomllib
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from stripewise.cluster import cluster_from_mapping
from stripewise.cluster.device import device_lines
from stripewise.errors import ClusterError, LayoutError, PlanError, StripewiseError, UsageError, WorkloadError
from stripewise.layout import parse_layout
from stripewise.plan import dump_plan, plan_from_json
from stripewise.policy import PlanOptions, policy_named
from stripewise.simulate import load_description, simulate_plan
from stripewise.simulate.sweep import changed_cluster, parse_sweep
from stripewise.units import OFFSET_BYTES_MAX, parse_age, parse_size, parse_span
from stripewise.workload.describe import Description
from support import KIB, MIB, cluster

CLUSTER = cluster(2, 1)
TARGET = {
    "name": "h", "class": "hdd", "path": "h", "startup_read_s": 0.003, "startup_write_s": 0.003,
    "per_byte_read_s": 1e-8, "per_byte_write_s": 1e-8,
}  # fmt: skip
RUN = load_description(Description("random", 2, ((64 * KIB, 1.0),), 4 * MIB, reads=5, writes=5, source="w.toml"))
PLAN = json.loads(dump_plan(policy_named("h2dp").plan(RUN.workload, CLUSTER, PlanOptions(region_bytes=MIB))))
values = st.one_of(
    st.none(), st.booleans(), st.integers(-5, 2**70), st.floats(), st.text(max_size=6),
    st.lists(st.integers(), max_size=2),
    st.sampled_from(["hdd0", "fixed", "seek", "exponential", 4096, MIB, [["hdd0", 4096]], [["nowhere", 4096]], {}]),
)  # fmt: skip
#: Text that is nearly a number, a size, a range or a list of them.
nearly = st.text("0123456789.,:-+eEinfaKMGTB s", max_size=14) | st.text(max_size=6)


def refused(error: StripewiseError, begins: str) -> None:
    text = str(error)
    assert text.startswith(begins) and len(text.splitlines()) == 1 and ";" in text, text


@settings(max_examples=150)
@given(st.dictionaries(
    st.sampled_from([
        "startup", "factor_s", "rotation_s", "capacity_bytes", "sequential_discount", "channels", "speed",
    ]),
    values, max_size=5,
), st.floats(0, 0.01))  # fmt: skip
@example({"startup": "seek", "factor_s": 0.01, "rotation_s": 0.0, "capacity_bytes": 1}, 0.002)
def test_a_device_table_is_taken_as_it_stands_or_refused_with_its_key(device, spread_s):
    target = {**TARGET, "startup_read_spread_s": min(spread_s, 0.006), "device": device}
    try:
        (taken,) = cluster_from_mapping({"target": [target]}, Path("c.toml")).targets
    except ClusterError as error:
        refused(error, "c.toml: target[0].device")
        return
    again = tomllib.loads("\n".join(["[[target]]", *device_lines(taken.device)]))["target"][0].get("device", {})
    assert again == device
    figures = (0.003, taken.startup_read_spread_s, 1e-8)
    json.dumps(taken.device.as_scenario(figures, figures), allow_nan=False)


@settings(max_examples=300)
@given(
    st.sampled_from(["processes", "alpha", "request_bytes", "hservers", "sservers", "kind", "collective", "pace"]),
    nearly,
)
@example("processes", "nan..4")
@example("alpha", "1..2:nan")
@example("hservers", "0,1")
@example("request_bytes", "9" * 5000)
@example("request_bytes", "9" * 400 + ".5GiB")
def test_a_sweep_has_finite_values_or_is_refused(key, text):
    try:
        sweep = parse_sweep(f"{key}={text}")
    except UsageError as error:
        refused(error, "--sweep")
        return
    assert sweep.values and not any(isinstance(each, float) and not math.isfinite(each) for each in sweep.values)
    if sweep.is_of_servers:
        try:
            assert changed_cluster(CLUSTER, {key: sweep.values[0]}).targets
        except UsageError as error:
            refused(error, "--sweep")


@given(nearly)
@example("9" * 5000)
@example("9" * 400 + ".5")
def test_a_size_an_age_and_a_span_are_in_range_or_refused(text):
    for parse, most in ((parse_size, OFFSET_BYTES_MAX), (parse_age, 2**62), (parse_span, 2**62)):
        try:
            assert 0 <= parse(text, "--flag") <= most
        except UsageError as error:
            refused(error, "--flag: ")


@given(
    st.fixed_dictionaries({}, optional={
        "region_bytes": st.integers(-1, 2**52).map(lambda n: n * 4096), "stripe_bytes": st.integers(-4096, 2**64),
        "sigma": st.floats(), "servers": st.sampled_from(["hdd", "ssd", "all", ""]) | st.text(max_size=4),
        "min_gain": st.floats(), "window_ns": st.integers(-5, 5),
    })
)  # fmt: skip
def test_plan_options_are_sound_or_refused_with_their_flag(given_options):
    try:
        options = PlanOptions(**given_options)
    except UsageError as error:
        refused(error, "--")
        return
    assert json.loads(json.dumps(options.as_json(), allow_nan=False)).items() >= given_options.items()
    assert 0 < options.region_bytes <= 2**50 and options.region_bytes % 4096 == 0


@given(st.data())
def test_a_mutated_layout_of_a_template_is_read_or_refused(data):
    layout = {"regions": [
        {"start": 0, "len": MIB, "stripes": [["hdd0", 4096], ["ssd0", 8192]]},
        {"start": MIB, "len": MIB, "stripes": [["hdd1", 4096]]},
    ]}  # fmt: skip
    place = data.draw(st.sampled_from([layout, *layout["regions"]]))
    place[data.draw(st.sampled_from(list(place)) | st.text(max_size=4))] = data.draw(values)
    try:
        read = parse_layout(layout, "layout.json", [target.name for target in CLUSTER.targets])
    except LayoutError as error:
        refused(error, "layout.json: ")
        return
    assert read.regions[0].start == 0 and all(region.stripes for region in read.regions)


@settings(max_examples=80)
@given(st.data())
def test_a_mutated_plan_is_simulated_or_refused(data):
    plan = copy.deepcopy(PLAN)
    file = plan["files"][0]
    place = data.draw(st.sampled_from([plan, file, *file["regions"][:2], file["regions"][-1]]))
    place[data.draw(st.sampled_from(list(place)))] = data.draw(values)
    try:
        outcome = simulate_plan(RUN, CLUSTER, plan_from_json(plan, "plan.json"))
    except (PlanError, WorkloadError) as error:
        refused(error, "")
        return
    assert outcome.report["bytes_read"] == outcome.report["bytes_written"] == 2 * 5 * 64 * KIB


@pytest.mark.parametrize("size", [2**40 + 1, 2**62])
def test_a_request_that_would_never_end_is_refused(size):
    described = Description("random", 1, ((size, 1.0),), 2**62, reads=1, writes=0, source="w.toml")
    with pytest.raises(WorkloadError, match=r"w\.toml: .*request_bytes"):
        load_description(described)
