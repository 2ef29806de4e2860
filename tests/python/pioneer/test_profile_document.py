"""The profile: what is written is read, what is left out gets its default, what is wrong is told with key and cure."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stripewise.errors import WorkloadError
from stripewise.pioneer.characterization.distribution import Quantiles, Values, constant, empirical
from stripewise.pioneer.characterization.profile import FileClass, Profile, write_profile
from stripewise.pioneer.characterization.profile_reader import profile_of, read_profile

HAND = {
    "version": 1, "processes": 4,
    "classes": {"shared": {"OS": 1, "sessions": {"mpi-write": {"D": 9, "SIZE": {"mpi_write_at": 65536}}}}},
}  # fmt: skip


def changed(*path, to):
    data = json.loads(json.dumps(HAND))
    at = data
    for key in path[:-1]:
        at = at.setdefault(key, {})
    at[path[-1]] = to
    return data


def test_a_profile_by_hand_gets_its_defaults():
    profile = profile_of(HAND, "p")
    shared = profile.classes["shared"]
    kind = shared.sessions["mpi-write"]
    assert kind.following == {"": {"mpi_write_at": 1}, "mpi_write_at": {"mpi_write_at": 1}}
    assert (kind.duration, kind.request_gap, kind.sequential, kind.shift) == tuple(map(constant, (9, 1, 1, 0)))
    assert (shared.open_times, shared.first, kind.communicators) == (constant(1), {"mpi-write": 1}, {"world": 1})


def test_what_was_read_is_written_and_read_again(tmp_path):
    profile = profile_of(HAND, "p")
    write_profile(profile, tmp_path / "p.json")
    assert read_profile(tmp_path / "p.json") == profile
    assert read_profile(tmp_path / "p.json").as_json() == json.loads((tmp_path / "p.json").read_text())


CLASS = ("classes", "shared")
KIND = (*CLASS, "sessions", "mpi-write")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (changed("version", to=2), "p: version = 2 is newer than this program knows (1); upgrade stripewise"),
        (changed("proceses", to=2), "p: proceses is not a known key; did you mean processes?"),
        (changed("processes", to=0), "p: processes = 0 is out of range; give a whole number from 1 to"),
        (changed("classes", to={}), "p: classes have no file (OS); write e.g."),
        (changed(*CLASS, "OS", to=-1), "p: classes.shared.OS = -1 is out of range"),
        (changed(*CLASS, "sessions", to={}), "p: classes.shared.sessions are missing; describe"),
        (changed(*CLASS, "RT2", to={"read0": 1}), "p: classes.shared.RT2.read0 is not an operation that stands"),
        (changed(*CLASS, "names", to=["../x"]), "p: classes.shared.names[0] = '../x' leads outside; give a path below"),
        (changed(*CLASS, "AM", to={"first": {"posix-read": 1}}), "classes.shared.AM.first.posix-read is not a kind"),
        (changed(*KIND, "D", to="9"), "p: classes.shared.sessions.mpi-write.D = '9' is no distribution; give a number"),
        (changed(*KIND, "D", to=0), "sessions.mpi-write.D has 0, which is out of range; give numbers from 1 to"),
        (changed(*KIND, "SEQ", to={"uniform": [0, 2]}), "mpi-write.SEQ.uniform has 2, which is out of range"),
        (changed(*KIND, "D", to={"values": [1, 2], "weights": [1]}), "D.weights has 1 numbers for 2 values; give each"),
        (changed(*KIND, "D", to={"values": [1], "weights": [0]}), "D.weights are all 0; give at least one value"),
        (changed(*KIND, "D", to={"quantiles": [3, 2]}), "D.quantiles are not two numbers or more in ascending order"),
        (changed(*KIND, "D", to={"pareto": {"scale": 1}}), "D.pareto.shape is missing; add it"),
        (changed(*KIND, "D", to=float("nan")), "D has nan, which is no number; give a finite number"),
        (changed(*KIND, "RT1", to={"": {"mpi_read_at": 1}}), "RT1..mpi_read_at is not an operation of this kind"),
        (changed(*KIND, "RT1", to={"mpi_sync": {"mpi_sync": 1}}), "does not say what comes after the open"),
        (changed(*KIND, "SIZE", to={}), "SIZE.mpi_write_at is missing; add its bytes"),
        (changed(*KIND, "ST", to={"open": {"short": 1, "long": 2}}), "ST.open.every is missing; give all of short"),
        (changed(*KIND, "comm", to={"blocks-0": 1}), "comm.blocks-0 is no communicator; use world, self"),
        (changed(*KIND, "VIEW", to=[{"piece": 8, "distance": 4}]), "VIEW[0].distance = 4 is out of range"),
        (changed(*KIND, "RT1", to={"": {"mpi_write_at@boss": 1}}), "mpi_write_at@boss has the mark @boss, which means"),
        (changed(*KIND, "RT1", to={"": {"mpi_write_at@group-1": 1}}), "use @root, @others, or describe the group"),
        (changed(*KIND, "RT1", to={"": {"mpi_sync@root": 1}}), "mpi_sync@root is a collective call, which all ranks"),
        (changed(*KIND, "OFF@boss", to=1), "sessions.mpi-write.OFF@boss has the mark @boss, which means nobody here"),
        (changed(*KIND, "D@root", to=1), "sessions.mpi-write.D@root is not a known key"),
        (changed(*CLASS, "RT2", to={"stat@root@root": 1}), "stat@root@root has the mark @root@root, which means"),
        (changed("classes", "root", to={"OS": 1, "RT2": {"stat@root": 1}}), "leave it out: files of this class are"),
        (changed(*CLASS, "sessions", "posix-read@root", to={"SIZE": {"read0@root": 1}}), "leave it out: all in these"),
        (changed(*CLASS, "sessions", "mpi-write@root", to={"SIZE": {"mpi_write_at": 1}, "comm": {"world": 1}}),
         "mpi-write@root.comm names ranks that do not open the file; remove it"),
        (changed(*CLASS, "AM", to={"first": {"mpi-write@root": 1}}), "first.mpi-write@root has the mark @root"),
        (changed("subgroups", to=[{"ranks": "1", "share": 1, "group": {"span": [5, 5]}}]),
         "p: subgroups[0].group.span = [5, 5] names no ranks; give two of 0 to 65536, ascending"),
        (changed("subgroups", to=[{"ranks": "1", "share": 1, "group": {}}]), "subgroups[0].group has 0 keys in place"),
        ([], "p: the top level is [], not a table of keys"),
    ],
)  # fmt: skip
def test_a_wrong_edit_is_told_with_the_key_and_the_cure(data, message):
    with pytest.raises(WorkloadError) as caught:
        profile_of(data, "p")
    assert message in str(caught.value) and "; " in str(caught.value)


MARKED = {
    "version": 1, "processes": 4, "subgroups": [{"ranks": "1,3", "share": 0.5, "group": {"congruent": [2, 1]}}],
    "classes": {"shared": {"OS": 1, "RT2": {"stat@root": 2, "stat@group-1": 1}, "sessions": {
        "mpi-write": {"RT1": {"": {"mpi_write_at@root": 1}, "mpi_write_at@root": {"mpi_write_at": 1}},
                      "SIZE": {"mpi_write_at": 65536}, "OFF@root": 0, "SHIFT@others": 8},
        "mpi-read@others": {"SIZE": {"mpi_read_at": 10}},
        "posix-read@group-1": {"SIZE": {"read0": 10}}}}},
}  # fmt: skip


def test_what_is_left_out_of_marked_operations_is_as_without_the_mark(tmp_path):
    profile = profile_of(MARKED, "p")
    sessions = profile.classes["shared"].sessions
    assert sessions["mpi-write"].size == dict.fromkeys(["mpi_write_at", "mpi_write_at@root"], constant(65536))
    assert sessions["mpi-write"].own == {"OFF@root": constant(0), "SHIFT@others": constant(8)}
    # Who opens a file without the others does so by itself.
    assert sessions["mpi-read@others"].communicators == {"self": 1}
    write_profile(profile, tmp_path / "p.json")
    assert read_profile(tmp_path / "p.json") == profile


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
KEYS = st.sampled_from(
    ["version", "classes", "root", "shared", "OS", "OT", "ISG", "FS", "RT2", "ST2", "names", "AM", "first", "next",
     "sessions", "mpi-write", "posix-read", "D", "IRG", "SEQ", "RT1", "", "OFF", "SIZE", "SHIFT", "ST", "comm", "VIEW",
     "mpi_write_at", "mpi_write_at@root", "mpi-write@others", "OFF@root", "group",
     "open", "values", "weights", "quantiles", "constant", "pareto", "subgroups", "programs", "tool"]
)  # fmt: skip


@given(st.lists(st.tuples(st.lists(KEYS, min_size=1, max_size=6), JSON), min_size=1, max_size=3))
@settings(max_examples=400, deadline=None)
def test_whatever_is_edited_is_a_profile_or_a_workload_error(edits):
    data = json.loads(json.dumps(HAND))
    for path, value in edits:
        at = data
        for key in path[:-1]:
            if not isinstance(at.get(key), dict):
                at[key] = {}
            at = at[key]
        at[path[-1]] = value
    try:
        profile = profile_of(data, "p")
    except WorkloadError:
        return
    assert profile_of(profile.as_json(), "p").as_json() == profile.as_json()


@given(st.lists(st.integers(0, 1 << 40), min_size=1, max_size=3000))
def test_a_sample_keeps_its_ends_and_nearly_its_mean(sample):
    found = empirical(np.array(sample))
    spread = max(sample) - min(sample)
    assert abs(found.mean() - np.mean(sample)) <= spread / 100 + 1e-6 * max(sample)


def test_many_values_become_quantiles_and_few_stay():
    many = empirical(np.arange(1000))
    assert isinstance(many, Quantiles) and (many.quantiles[0], many.quantiles[-1]) == (0, 999)
    assert empirical(np.array([3, 1, 3])) == Values((1, 3), (1, 2))
    assert empirical(np.array([5, 5])) == constant(5)


def test_text_is_json_that_fits_on_a_screen():
    text = Profile(classes={"root": FileClass(files=1)}).text()
    assert json.loads(text)["classes"]["root"]["OS"] == 1 and max(map(len, text.splitlines())) <= 120
