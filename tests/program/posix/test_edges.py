"""Errors half way, two threads or a signal handler at once, descriptors that run out: laws of plain files hold."""

from __future__ import annotations

import pytest
from rig import NATIVE, Maker, holds


@pytest.mark.parametrize("place", ["data", "plain"])
def test_calls_that_meet_or_fail_half_way_leave_the_file_as_they_say(make_store: Maker, place: str) -> None:
    store = make_store(layout="striped")
    said = store.program(NATIVE / "edges", getattr(store, place) / "f", code=None)
    holds(said)
    if "# SKIP" in said.out:
        pytest.skip("the write that lasts was not run: userfaultfd needs root")
