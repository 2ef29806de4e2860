"""IO-Engine's rules by their binding and in words; their numbers are in crates/engine."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stripewise.engine.rules import Inputs, ruled
from stripewise.errors import InvalidError
from support import KIB, MIB
from test_cli import stripewise

#: 128 processes on 16 nodes write requests of 1 MiB that interleave, on 8 servers of Lustre: the thesis's runs.
RUN = Inputs(
    write=True, strided=True, processes=128, nodes=16, cb_nodes=None, request_bytes=MIB, region_bytes=MIB, stripes=8,
    stripe_bytes=MIB, is_aligned=True, targets=8, lustre=True, is_new=False,
)  # fmt: skip


@pytest.mark.parametrize(("cb_nodes", "buffer_bytes"), [(4, 32 * MIB), (8, 16 * MIB), (None, 16 * MIB)])
def test_hints_of_a_strided_write(cb_nodes: int | None, buffer_bytes: int) -> None:
    found = ruled(replace(RUN, cb_nodes=cb_nodes))
    assert found.hints() == {
        "romio_cb_write": "enable", "cb_buffer_size": str(buffer_bytes), "romio_lustre_co_ratio": "1",
    }  # fmt: skip
    assert (found.mode, found.why, found.contention) == ("collective", "strided write", "aligned")


def test_hints_of_reads_and_of_regions() -> None:
    assert ruled(replace(RUN, write=False)).hints() == {"romio_cb_read": "disable", "romio_lustre_co_ratio": "4"}
    own = ruled(replace(RUN, strided=False, request_bytes=64 * KIB, region_bytes=16 * MIB, lustre=False))
    assert own.hints() == {"romio_cb_write": "disable"} and own.contention == "least"


def test_a_chasm_is_left_or_not_made() -> None:
    old = replace(RUN, nodes=12, stripes=13, targets=60)
    assert (ruled(old).mode, ruled(old).aggregators, ruled(old).why) == ("independent", 1, "chasm")
    new = ruled(replace(old, is_new=True))
    assert (new.count, new.count_why, new.mode, new.aggregators) == (16, "rounded", "collective", 8)
    assert new.hints()["striping_factor"] == "16"
    # Without Lustre no driver counts its aggregators by stripes.
    assert ruled(replace(old, is_new=True, lustre=False)).count == 13
    assert ruled(replace(old, is_new=True, lustre=False, targets=7)).count_why == "cut"


def test_a_zero_is_an_error_that_says_so() -> None:
    for name in ("processes", "request_bytes", "stripe_bytes", "cb_nodes"):
        with pytest.raises(InvalidError, match="is 0"):
            ruled(replace(RUN, **{name: 0}))


NUMBERS = st.integers(1, 1 << 20)
SIZES = st.integers(1, 1 << 40)


@settings(max_examples=100, deadline=None)
@given(
    inputs=st.builds(
        Inputs, write=st.booleans(), strided=st.booleans(), processes=NUMBERS, nodes=NUMBERS,
        cb_nodes=st.none() | NUMBERS, request_bytes=SIZES, region_bytes=SIZES, stripes=st.integers(1, 4096),
        stripe_bytes=SIZES, is_aligned=st.booleans(), targets=NUMBERS, lustre=st.booleans(), is_new=st.booleans(),
    )
)  # fmt: skip
def test_every_decision_has_its_reasons_and_its_hint(inputs: Inputs) -> None:
    found = ruled(inputs)
    steps = {name: value for name, value, reason in found.steps() if reason}
    assert steps["mode"] == found.mode
    key = "romio_cb_write" if inputs.write else "romio_cb_read"
    assert found.hints()[key] == ("enable" if found.mode == "collective" else "disable")
    assert ("cb_buffer_size" in steps) == ("cb_buffer_size" in found.hints()) == (found.mode == "collective")
    assert ("co_ratio" in steps) == ("romio_lustre_co_ratio" in found.hints()) == inputs.lustre
    assert json.loads(json.dumps(found.as_json()))["hints"] == found.hints()


def test_the_verb_tells_steps_and_hints() -> None:
    words = [
        "model",
        "engine",
        "--request",
        "1MiB",
        "--processes",
        "128",
        "--nodes",
        "16",
        "--stripes",
        "8",
        "--lustre",
    ]
    told = stripewise(*words, "--write", "--cb-nodes", "4").stdout
    assert "writes of 1.0 MiB by 128 process(es) on 16 node(s), interleaved; existing file, 8 stripe(s)" in told
    assert "hints: romio_cb_write=enable cb_buffer_size=33554432 romio_lustre_co_ratio=1\n" in told
    said = json.loads(stripewise(*words, "--json").stdout)
    assert said["decision"]["co_ratio"] == 4 and said["inputs"]["processes"] == 128


@pytest.mark.parametrize(
    ("words", "fault"),
    [
        (("--request", "0", "--processes", "4"), "--request: 0 bytes are not from 1"),
        (("--request", "1MiB", "--processes", "0"), "--processes: 0 is not from 1"),
        (
            ("--request", "1MiB", "--region", "1KiB", "--processes", "4"),
            "--region: 1024 bytes are less than the 1048576 of one request; give 1048576 or more",
        ),
        (("--request", "1MiB", "--processes", "4", "--nodes", "5"), "--nodes: 5 nodes have more than 4"),
        (("--request", "1MiB", "--processes", "4", "--targets", "5"), "--targets: bounds the stripes of a file"),
        (("--request", "1MiB", "--processes", "4", "--stripes", "-1"), "--stripes: -1 is not from 1"),
        (("--request", "1MiB", "--processes", "4", "--new", "--targets", "48"), "--new: give the stripe count"),
        (("--request", "x", "--processes", "4"), "--request"),
    ],
)
def test_bad_figures_are_one_line(words: tuple[str, ...], fault: str) -> None:
    said = stripewise("model", "engine", *words, code=2)
    assert said.stderr.count("\n") == 1 and fault in said.stderr


def test_one_process_interleaves_with_nobody() -> None:
    told = stripewise("model", "engine", "--request", "1MiB", "--processes", "1", "--write").stdout
    assert "interleaved" not in told and "contention" not in told and "romio_cb_write=disable" in told
