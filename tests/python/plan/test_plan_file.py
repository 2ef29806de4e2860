"""plan.json and layouts in JSON: round trip, hand edits, and one sentence for everything that is wrong."""

from __future__ import annotations

import copy
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stripewise.errors import LayoutError, PlanError
from stripewise.glossary import found
from stripewise.layout import (
    Region,
    from_indexes,
    parse_layout,
    rotate,
    share_bytes,
    target_bytes,
    to_indexes,
    whole_file,
)
from stripewise.plan import dump_plan, plan_from_json, read_plan, write_plan
from stripewise.plan.check import check_plan
from stripewise.policy import PlanOptions, policy_named
from stripewise.policy.toolkit.elsewhere import Place, with_seconds
from support import MIB, cluster, walk, zipf_workload

ON = cluster(4, 2, 2 * MIB)
PLAN = policy_named("h2dp").plan(zipf_workload(8, 60), ON, PlanOptions(region_bytes=MIB))
DATA = json.loads(dump_plan(PLAN))


def test_a_plan_is_written_and_read_back_unchanged(tmp_path):
    write_plan(PLAN, tmp_path / "plan.json")
    assert read_plan(tmp_path / "plan.json") == PLAN
    assert check_plan(PLAN, ON, "plan.json") == []


def test_a_plan_has_one_line_per_region():
    lines = [line for line in dump_plan(PLAN).splitlines() if '"stripes"' in line]
    assert len(lines) == len(PLAN.files[0].regions)


def test_a_reason_says_why_a_place_that_would_be_busy_for_less_was_not_taken():
    here = Place("one hdd", 0.4, 0.2, 0.1)
    others = [Place("6 mixed", 0.9, 0.1, 0.0), Place("2 ssd", 0.01, 0.1, 0.3), Place("one ssd", 0.02, 0.3, 0.1)]
    assert with_seconds("4 reads: whole on hdd0", here, others) == (
        "4 reads: whole on hdd0, busy for up to 400 ms (2 ssd: 10 ms, but its room goes to what gains more; "
        "one ssd: 20 ms, but its time goes to what gains more)"
    )
    cheap = Place("one ssd", 0.02, 0.1, 0.1)
    assert with_seconds("4 reads", here, [cheap]).endswith("20 ms, but all regions together are quicker so)")
    assert (
        with_seconds("4 reads", cheap, [here], several=True) == "4 reads, the busiest for about 20 ms (one hdd: 400 ms)"
    )
    assert found("busy for")["busy for"].text


def test_hand_edits_survive_and_are_remarked():
    data = copy.deepcopy(DATA)
    data["files"][0]["regions"][0]["stripes"] = [["hdd3", 8192]]
    data["files"][0]["regions"][0]["comment"] = "moved by hand"
    data["comment"] = "mine"
    plan = plan_from_json(data, "plan.json")
    again = plan_from_json(json.loads(dump_plan(plan)), "plan.json")
    assert again == plan and again.files[0].regions[0].comment == "moved by hand"
    assert any("target_bytes differs" in remark for remark in check_plan(plan, ON, "plan.json"))


def test_a_plan_for_other_devices_is_remarked():
    assert any("other targets or figures" in remark for remark in check_plan(PLAN, cluster(4, 2, 3 * MIB), "p"))


def test_an_edit_that_overfills_a_target_is_refused():
    data = copy.deepcopy(DATA)
    for region in data["files"][0]["regions"]:
        region["stripes"] = [["ssd0", 65536]]
    with pytest.raises(PlanError, match=r"puts 8\.0 MiB on 'ssd0', .* MiB more than its capacity_bytes"):
        check_plan(plan_from_json(data, "plan.json"), ON, "plan.json")


def test_a_target_that_is_not_there_is_named():
    with pytest.raises(PlanError, match=r"names the target 'ssd\d', which cluster.toml does not have"):
        check_plan(PLAN, cluster(4, 0), "plan.json")


def broken(change):
    data = copy.deepcopy(DATA)
    change(data)
    return data


REGION = ("files", 0, "regions", 0)
BAD = [
    ((), [], "the top level is [], not a table"),
    (("version",), 2, "version = 2 is newer"),
    (("version",), None, "version = None is not a whole number"),
    (("polcy",), "x", "polcy is not a known key; did you mean policy?"),
    (("files",), [], "files is empty"),
    (("files",), {}, "files = {} is not a list"),
    (("files", 0, "path"), 3, "files[0].path = 3 is not a string"),
    (("files", 0, "size"), -1, "files[0].size = -1 is out of range"),
    (("files", 0, "size"), 2**63, "is out of range"),
    (("files", 0, "regions"), [], "files[0].regions is empty"),
    (
        (*REGION, "start"),
        4096,
        "files[0].regions[0].start = 4096 leaves a gap or an overlap; the region must start at 0",
    ),
    ((*REGION, "len"), 1000, "files[0].regions[0].len = 1000 is not a multiple of 4096"),
    ((*REGION, "len"), 0, "files[0].regions[0].len = 0 is out of range"),
    ((*REGION, "stripes"), [], "files[0].regions[0].stripes has 0 entries"),
    ((*REGION, "stripes"), [["hdd0", 5000]], "files[0].regions[0].stripes[0] has a bad width"),
    ((*REGION, "stripes"), [["hdd0", True]], "has a bad width"),
    ((*REGION, "stripes"), [["hdd0", 4096], ["hdd0", 4096]], "names 'hdd0' twice in one cycle"),
    ((*REGION, "stripes"), ["hdd0"], "stripes[0] is not a pair"),
    ((*REGION, "cost_s"), float("nan"), "cost_s = nan is out of range"),
    ((*REGION, "stipes"), [], "files[0].regions[0].stipes is not a known key; did you mean stripes?"),
    (("windows",), [{"start_ns": 5, "end_ns": 1}], "windows[0].end_ns = 1 is out of range"),
    (("application", "command"), "ls", "application.command is not a list of strings"),
    (("target_bytes", "hdd0"), "many", "target_bytes.hdd0 = 'many' is not a whole number"),
]


BAD += [
    (("files", 0, "made_as"), value, said)
    for value, said in [
        (3, "files[0].made_as = 3 is not a string"),
        ("w/*", "files[0].made_as = 'w/*' is not absolute"),
        *((f"/w/{char}", "holds a control character") for char in "\0\n\x1b\x7f\x9b"),
        *((f"/w/{char}", "files[0].made_as = '/w/") for char in ("\ud800", "\udc41", "\udfff")),
        ("/" + "\xe9" * 2048, "has 4,097 bytes"),
        ("/" * 100_000, "has 100,000 bytes"),
        *((glob, "has a component that is empty or ..") for glob in ("//x", "/a//b", "/a/", "/a/../b", "/..")),
    ]
]


@pytest.mark.parametrize("glob", ["/w/ckpt-*.h5", "/w/[[]a]", "/w/..x/.y", "/\udcff", "/" + "a" * 4095])
def test_a_glob_of_files_that_are_made_anew_is_kept(glob):
    (file, *_) = plan_from_json(broken(lambda data: data["files"][0].update(made_as=glob)), "plan.json").files
    assert file.made_as == glob


@pytest.mark.parametrize(("where", "value", "said"), BAD)
def test_a_bad_plan_is_one_sentence_with_file_and_key(where, value, said):
    data = copy.deepcopy(DATA)
    place = data
    for key in where[:-1]:
        place = place[key]
    if where:
        place[where[-1]] = value
    else:
        data = value
    with pytest.raises(PlanError) as caught:
        plan_from_json(data, "plan.json")
    text = str(caught.value)
    assert text.startswith("plan.json: ") and said in text and "; " in text and "\n" not in text


def test_a_file_planned_twice_is_refused():
    data = copy.deepcopy(DATA)
    data["files"].append(data["files"][0])
    with pytest.raises(PlanError, match="is planned twice"):
        plan_from_json(data, "plan.json")


def test_json_of_something_else_is_no_plan():
    with pytest.raises(PlanError, match=r"^p: is no plan, .*; give a plan that 'stripewise plan -o' wrote$"):
        plan_from_json({"a": 1}, "p")


@pytest.mark.parametrize("content", [b"", b"{", b"\xff", b"[" * 100_000, b'{"version": 1}', b"null"])
def test_files_that_are_no_plan(tmp_path, content):
    (tmp_path / "plan.json").write_bytes(content)
    with pytest.raises(PlanError) as caught:
        read_plan(tmp_path / "plan.json")
    assert str(tmp_path / "plan.json") in str(caught.value)


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)


def read_or_refused_when_mutated(data, plan, place):
    """Drops or replaces a key of `place`, an object in `plan`: it is read all the same, or refused in one sentence."""
    key = data.draw(st.sampled_from(list(place)) | st.text(max_size=8))
    if data.draw(st.booleans()):
        place.pop(key, None)
    else:
        place[key] = data.draw(values)
    try:
        dump_plan(plan_from_json(plan, "plan.json"))
    except PlanError as error:
        assert str(error).startswith("plan.json: ") and len(str(error).splitlines()) == 1


@given(st.data())
def test_a_mutated_plan_is_read_or_refused_in_one_sentence(data):
    plan = {**copy.deepcopy(DATA), "mpi": {"way": "x", "engine": False, "hints": {"cb_nodes": "1"}}}
    places = [plan, plan["files"][0], plan["files"][0]["regions"][1], plan["application"], plan["expected"]]
    place = data.draw(st.sampled_from([*places, plan["mpi"], plan["mpi"]["hints"]]))
    read_or_refused_when_mutated(data, plan, place)


@given(st.binary(max_size=200))
def test_any_bytes_are_refused_as_a_plan(tmp_path_factory, content):
    path = tmp_path_factory.getbasetemp() / "fuzz.json"
    path.write_bytes(content)
    with pytest.raises(PlanError):
        read_plan(path)


stripes = st.lists(st.integers(1, 8).map(lambda n: n * 4096), min_size=1, max_size=5).map(
    lambda widths: tuple((f"t{i}", width) for i, width in enumerate(widths))
)


@given(stripes, st.integers(1, 50).map(lambda n: n * 4096), st.integers(1, 400_000))
def test_shares_are_those_of_the_slow_map(cycle, length, size):
    slow = walk(list(cycle), 0, length)
    assert {k: v for k, v in share_bytes(cycle, length).items() if v} == slow
    # A repeating last region: each repetition starts its cycle anew.
    held: dict[str, int] = {}
    for start in range(0, size, length):
        for name, share in walk(list(cycle), 0, min(length, size - start)).items():
            held[name] = held.get(name, 0) + -(-share // 4096) * 4096
    counted = target_bytes([Region(0, length, cycle)], size)
    assert {k: v for k, v in counted.items() if v} == held


def test_a_whole_file_layout_goes_on_where_a_repetition_ends():
    layout = whole_file(ON.targets, 65536, 64 * MIB)
    assert layout.regions[0].len % (65536 * 6) == 0 and layout.regions[0].len >= 64 * MIB


def test_names_and_numbers_of_targets_convert_both_ways():
    layout = whole_file(rotate(ON.targets, 4), 8192, MIB)
    numbered = to_indexes(layout.regions, ON)
    assert numbered["regions"][0]["stripes"][0] == [4, 8192]
    assert from_indexes(numbered, ON) == layout
    with pytest.raises(LayoutError, match="has no target 'ssd0'"):
        to_indexes(layout.regions, cluster(4, 0))


def test_a_layout_for_unknown_targets_is_refused():
    data = {"regions": [{"start": 0, "len": 4096, "stripes": [["tape", 4096]]}]}
    with pytest.raises(LayoutError, match="names the unknown target 'tape'; use one of hdd0"):
        parse_layout(data, "layout.json", ["hdd0"])
