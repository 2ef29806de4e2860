"""Byte-range locks and flock on managed files obey the laws that they obey on plain ones."""

from __future__ import annotations

import pytest
from rig import NATIVE, Maker, holds


@pytest.mark.parametrize("place", ["data", "plain"])
def test_locks_exclude_across_processes_and_end_as_posix_says(make_store: Maker, place: str) -> None:
    store = make_store(layout="striped")
    holds(store.program(NATIVE / "locks", getattr(store, place) / "f", code=None))
