"""Knobs change what they name and nothing else, and say what there is where they name nothing."""

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stripewise.errors import UsageError
from stripewise.pioneer.characterization.profile_reader import profile_of
from stripewise.pioneer.synthesis.knobs import turned, waits_lost

HAND = {
    "version": 1,
    "processes": 4,
    "classes": {
        "shared": {
            "OS": 2,
            "FS": {"values": [4096, 8192], "weights": [1, 1]},
            "RT2": {"stat": 3},
            "ST2": {"stat": 0.5},
            "sessions": {
                "mpi-write": {
                    "D": {"values": [2, 11], "weights": [1, 3]},
                    "SIZE": {"mpi_write_at": 4096},
                    "OFF": {"uniform": [0, 8192]},
                    "SHIFT": 4096,
                    "ST": {"mpi_write_at": {"short": 0.25, "long": 2, "every": 8}},
                }
            },
        },
        "private": {"OS": 3, "sessions": {"posix-read": {"SIZE": {"read0": {"exponential": {"mean": 512}}}}}},
    },
}


def complete():
    return profile_of(HAND, "hand.json").as_json()


def differences(one, other, place=()):
    """Where two JSON values differ."""
    if isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys():
        return {each for key in one for each in differences(one[key], other[key], (*place, key))}
    return set() if one == other else {".".join(place)}


WRITES = "classes.shared.sessions.mpi-write"


@pytest.mark.parametrize(
    ("knobs", "changed"),
    [
        ({"scale": ["requests=4"]}, {f"{WRITES}.D.values", "classes.private.sessions.posix-read.D.constant"}),
        ({"scale": ["files=2"]}, {"classes.shared.OS", "classes.private.OS", "classes.shared.RT2.stat"}),
        ({"scale": ["sessions=3"]}, {"classes.shared.OT.constant", "classes.private.OT.constant"}),
        ({"scale": ["slack=0.5"]}, {f"{WRITES}.ST.mpi_write_at.{key}.constant" for key in ("short", "long")}
         | {"classes.shared.ST2.stat.constant"}),
        ({"fs": "10x"}, {"classes.shared.FS.values", f"{WRITES}.OFF.uniform", f"{WRITES}.SHIFT.constant"}),
        ({"sets": ["SIZE.shared=*2"]}, {f"{WRITES}.SIZE.mpi_write_at.constant"}),
        ({"sets": ["SIZE.shared.mpi-write.mpi_write_at=1MiB"]}, {f"{WRITES}.SIZE.mpi_write_at.constant"}),
        ({"sets": ["SIZE.private=*2"]},
         {"classes.private.sessions.posix-read.SIZE.read0.exponential.mean"}),
        ({"sets": ["OT.private=3"]}, {"classes.private.OT.constant"}),
        ({"sets": ["ST=*0.5"]}, {f"{WRITES}.ST.mpi_write_at.{key}.constant" for key in ("short", "long")}),
        ({"sets": ["OS.shared=7"]}, {"classes.shared.OS"}),
    ],
)  # fmt: skip
def test_a_knob_changes_what_it_names_and_nothing_else(knobs, changed):
    before = complete()
    kept = copy.deepcopy(before)
    after = turned(before, **{"scale": [], "sets": [], "fs": None} | knobs)
    assert differences(before, after) == changed
    assert before == kept
    assert profile_of(after, "turned").as_json() == after


MARKED = {
    "version": 1,
    "processes": 4,
    "classes": {
        "shared": {
            "OS": 1,
            "RT2": {"stat": 3, "stat@root": 5},
            "sessions": {
                "posix-write": {
                    "RT1": {"": {"pwrite@root": 1}, "pwrite@root": {"pwrite": 1}},
                    "SIZE": {"pwrite": 4096, "pwrite@root": 512},
                    "OFF": 4096,
                    "OFF@root": 64,
                },
                "posix-read@root": {"SIZE": {"read0": 512}},
            },
        }
    },
}


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        ("SIZE=*2", {"posix-write.SIZE.pwrite", "posix-write.SIZE.pwrite@root", "posix-read@root.SIZE.read0"}),
        ("SIZE.pwrite=*2", {"posix-write.SIZE.pwrite", "posix-write.SIZE.pwrite@root"}),
        ("SIZE.pwrite@root=*2", {"posix-write.SIZE.pwrite@root"}),
        ("SIZE.pwrite@all=*2", {"posix-write.SIZE.pwrite"}),
        ("OFF=*2", {"posix-write.OFF", "posix-write.OFF@root"}),
        ("OFF@root.shared=*2", {"posix-write.OFF@root"}),
        ("D.posix-read=7", {"posix-read@root.D"}),
        ("D.posix-read@root=7", {"posix-read@root.D"}),
    ],
)
def test_a_knob_means_whoever_makes_it_and_one_with_a_mark_that_alone(text, changed):
    before = profile_of(MARKED, "hand.json").as_json()
    after = turned(before, [], [text], None)
    found = differences(before, after)
    assert found == {f"classes.shared.sessions.{each}.constant" for each in changed}
    assert profile_of(after, "turned").as_json() == after


def test_larger_files_have_the_roots_own_requests_further_on_too():
    after = turned(profile_of(MARKED, "hand.json").as_json(), [], [], "10x")
    assert after["classes"]["shared"]["sessions"]["posix-write"]["OFF@root"] == {"constant": 640}


def test_the_close_of_a_session_stays_one_where_requests_are_scaled():
    after = turned(complete(), ["requests=4"], [], None)
    assert after["classes"]["shared"]["sessions"]["mpi-write"]["D"] == {"values": [5, 41], "weights": [1, 3]}


def waiting():
    """A profile whose ranks wait before writes, in shared and private files, and before opens; and not before reads."""
    short, long = {"mpi_write_at": 0.001, "mpi_read_at": 0.5}, {"mpi_write_at": 0.25, "open": 2.5}
    data = {
        "version": 1,
        "processes": 4,
        "together": {"mpi_write_at": 0.01, "mpi_open": 2, "mpi_read_at": 1},
        "classes": {
            name: {"OS": 1, "sessions": {"mpi-readwrite": {"SIZE": {"mpi_write_at": 1, "mpi_read_at": 1}, "ST": slack}}}
            for name, slack in (("shared", long), ("private", long | {"mpi_write_at": 0.02}), ("root", short))
        },
    }
    return profile_of(data, "hand.json").as_json()


@pytest.mark.parametrize(
    ("knobs", "limits", "lost"),
    [
        (["ST=*0.5"], (0.005, 1, 0.5), []),
        (["ST.mpi_write_at=*0.5"], (0.005, 2, 1), []),
        (["ST.open=*0.5"], (0.01, 1, 1), []),
        (["ST.private=*0.75"], (0.01, 2, 1), ["mpi_open"]),
        (["ST.private.mpi_write_at=*0.25"], (0.01, 2, 1), ["mpi_write_at"]),
        (["ST.mpi_write_at=0.009"], (0.01, 2, 1), ["mpi_write_at"]),
        (["ST=0.02"], (0.01, 2, 1), ["mpi_open"]),
        (["SIZE=*2"], (0.01, 2, 1), []),
    ],
)
def test_limits_of_waiting_go_with_all_of_an_operations_slack_and_waits_that_end_are_told(knobs, limits, lost):
    before = waiting()
    after = turned(before, [], knobs, None)
    assert after["together"] == dict(zip(before["together"], limits, strict=True))
    assert waits_lost(before, after) == lost


@pytest.mark.parametrize(
    ("knobs", "said"),
    [
        ({"scale": ["speed=4"]}, "--scale: 'speed=4' scales nothing"),
        ({"scale": ["requests=0"]}, "has no factor above 0"),
        ({"fs": "big"}, "--fs: 'big' has no factor"),
        ({"sets": ["SPEED=4"]}, "names no characteristic"),
        ({"sets": ["SIZE.root=*2"]}, "there is SIZE.shared.mpi-write.mpi_write_at"),
        ({"sets": ["SIZE.shared.mpi-read=1"]}, "changes nothing"),
        ({"sets": ["SIZE.shared.colour=1"]}, "'colour', which is no class"),
        ({"sets": ["D=many"]}, "gives no value"),
        ({"sets": ["SIZE.mpi_write_at@root=1"]}, "changes nothing"),
        ({"sets": ["D=0"]}, "below 1"),
        ({"sets": ["SEQ=1.5"]}, "no share"),
    ],
)
def test_a_knob_of_what_is_not_there_is_told_with_what_there_is(knobs, said):
    with pytest.raises(UsageError, match=said.replace("(", r"\(")):
        turned(complete(), **{"scale": [], "sets": [], "fs": None} | knobs)


@given(st.text(max_size=40), st.sampled_from(["scale", "sets", "fs"]))
def test_any_text_turns_a_profile_or_is_a_usage_error(text, knob):
    given_ = {"scale": [], "sets": [], "fs": None, knob: text if knob == "fs" else [text]}
    try:
        assert turned(complete(), **given_).keys() == complete().keys()
    except UsageError as error:
        assert str(error).startswith("--")
