"""Ways of MPI-IO: what a plan says of them, which there are for a run's calls, and whose hints count."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stripewise.engine.board import VARIABLE
from stripewise.errors import PlanError, StoreError, UsageError
from stripewise.plan import Plan, dump_plan, plan_from_json, read_plan, write_plan
from stripewise.plan.mpi_way import MpiWay
from stripewise.policy import PlanOptions, policy_named
from stripewise.run import ways
from stripewise.run.measure import measured, moved_bytes
from stripewise.run.ways import (
    COLLECTIVE,
    INDEPENDENT,
    ROMIO_HINTS,
    Called,
    beside_given,
    carried_out,
    levers_named,
)
from stripewise.workload.requests import REQUEST_DTYPE, FileRequests, Workload
from support import MIB, cluster, zipf_workload

WAYS = (*COLLECTIVE, *INDEPENDENT)


@pytest.fixture(scope="module")
def plan() -> Plan:
    return policy_named("def").plan(zipf_workload(4, 60), cluster(4, 2, 2 * MIB), PlanOptions(region_bytes=MIB))


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.name)
def test_a_plan_keeps_its_way(tmp_path: Path, plan: Plan, way: MpiWay) -> None:
    write_plan(replace(plan, mpi=way), tmp_path / "plan.json")
    assert read_plan(tmp_path / "plan.json") == replace(plan, mpi=way)
    assert "mpi" not in json.loads(dump_plan(plan))


@pytest.mark.parametrize(
    ("mpi", "said"),
    [
        (3, "mpi = 3 is not a table"),
        ({}, "mpi.engine says nothing"),
        ({"way": "x", "engine": "yes"}, "mpi.engine is neither true nor false"),
        ({"way": "x", "engine": True, "hints": {"a": "b"}}, "mpi.engine says nothing, or goes with hints"),
        ({"way": "x", "hints": {"a b": "c"}}, "mpi.hints.a b"),
        ({"way": "x", "hints": {"a": "b\nromio_ds_write enable"}}, "cannot be a line of a file of hints"),
        ({"way": "x", "hints": {"a": "b" * 300}}, "cannot be a line of a file of hints"),
        ({"way": "x", "hints": {"a": 1}}, "mpi.hints.a = 1 is not a string"),
        ({"way": "x", "hints": {f"k{number}": "v" for number in range(100)}}, "has more than 64 keys"),
        ({"engine": True}, "mpi.way"),
        ({"way": "x", "engine": True, "more": 1}, "mpi.more is not a known key"),
    ],
)
def test_a_bad_way_is_one_sentence_with_file_and_key(plan: Plan, mpi: Any, said: str) -> None:
    data = {**copy.deepcopy(json.loads(dump_plan(plan))), "mpi": mpi}
    with pytest.raises(PlanError) as error:
        plan_from_json(data, "plan.json")
    assert str(error.value).startswith("plan.json: ") and said in str(error.value) and "; " in str(error.value)


def test_no_way_lets_a_process_write_back_what_others_have_written_meanwhile() -> None:
    apart = [way.hints for way in WAYS if way.hints.get("romio_cb_write") == "disable"]
    assert apart and all(hints["romio_ds_write"] == "disable" for hints in apart)


def test_hints_of_the_user_count_more(tmp_path: Path) -> None:
    users = tmp_path / "users"
    users.write_text("cb_buffer_size 123\nromio_cb_read automatic")
    env = {ROMIO_HINTS: str(users)}
    way = MpiWay("x", hints={"romio_cb_read": "enable", "cb_nodes": "2"})
    left = beside_given(way, env)
    assert left == MpiWay("x", hints={"cb_nodes": "2"})
    with carried_out(left, env):
        given = Path(env[ROMIO_HINTS])
        assert given.read_text() == "cb_buffer_size 123\nromio_cb_read automatic\ncb_nodes 2\n"
    assert not given.exists()
    # Nothing is left of it; a file that is not there gives nothing, as for ROMIO.
    assert beside_given(MpiWay("y", hints={"romio_cb_read": "enable"}), {ROMIO_HINTS: str(users)}) is None
    assert beside_given(way, {ROMIO_HINTS: str(tmp_path / "none")}) == way
    assert beside_given(MpiWay("engine", engine=True), {ROMIO_HINTS: str(users)}) is not None


def test_the_memory_of_the_engine_lasts_as_long_as_the_run() -> None:
    env: dict[str, str] = {}
    with carried_out(MpiWay("engine", engine=True), env):
        memory = Path(env[VARIABLE])
        assert memory.is_file()
    assert not memory.exists()
    with carried_out(None, env := {"A": "b"}):
        assert env == {"A": "b"}


@pytest.mark.parametrize("way", [COLLECTIVE[0], COLLECTIVE[1]], ids=lambda way: way.name)
def test_a_way_that_cannot_be_ends_a_tune_and_no_run(monkeypatch: pytest.MonkeyPatch, way: MpiWay) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(ways, "Board", full)
    monkeypatch.setattr(ways.tempfile, "NamedTemporaryFile", full)
    with pytest.raises(StoreError, match=r"cannot be: .*No space left on device; leave mpi out"), carried_out(way, {}):
        pytest.fail("it was begun")
    told: list[str] = []
    env: dict[str, str] = {}
    with carried_out(way, env, told.append):
        assert len(told) == 1 and env == {}


def test_levers_are_those_that_there_are() -> None:
    assert levers_named("layout,mpi") == levers_named(" mpi , layout ") == {"layout", "mpi"}
    assert levers_named("mpi") == {"mpi"}
    for text in ("", ",", "layout,cache", "MPI"):
        with pytest.raises(UsageError, match=r"--levers: .*; give layout or mpi, or both"):
            levers_named(text)


def test_what_sieved_calls_read_below_counts_once() -> None:
    """A write call's own reads were counted as reads beside it: ways that sieve less seemed faster than they were."""
    rows = [(False, 0, 1_000_000_000, 4096), (True, 1_000_000_000, 2_000_000_000, 4096)]
    requests = np.zeros(2, dtype=REQUEST_DTYPE)
    for row, (write, start, end, size) in zip(requests, rows, strict=True):
        row["write"], row["start_ns"], row["end_ns"], row["size"] = write, start, end, size
    other = requests[:1].copy()
    other["start_ns"], other["end_ns"] = 5_000_000_000, 6_500_000_000
    workload = Workload((FileRequests("/f", requests, 8192), FileRequests("/plain", other, 4096)), 1)
    spans = {True: np.array([[0, 2_000_000_000]]), False: np.zeros((0, 2), dtype=np.int64)}
    called = Called(frozenset({"/f"}), spans, {True: 1000, False: 0}, frozenset({True}))
    found = measured("def", [], [], 9.0, {}, workload, called=called)
    assert found.io_seconds == pytest.approx(2.0 + 1.5)
    assert found.write_mb_s == pytest.approx(1000 / 2.0 / 1e6) and found.read_mb_s == pytest.approx(4096 / 1.5 / 1e6)
    # Without them: one second each, and the other file's.
    assert measured("def", [], [], 9.0, {}, workload).io_seconds == pytest.approx(1.0 + 1.0 + 1.5)
    assert moved_bytes(workload, called) == 1000 + 4096
