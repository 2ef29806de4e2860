"""Threads and processes that get into each other's way: laws of plain files hold, and every file has a name."""

from __future__ import annotations

import pytest
from rig import NATIVE, Maker, holds


@pytest.mark.parametrize("layout", ["striped", "emulated"])
@pytest.mark.parametrize("place", ["data", "plain"])
def test_a_call_ends_on_the_file_that_it_began_on(make_store: Maker, place: str, layout: str) -> None:
    store = make_store(layout=layout)
    holds(store.program(NATIVE / "rivals", "closers", getattr(store, place), code=None))


@pytest.mark.parametrize("place", ["data", "plain"])
def test_rivals_for_a_name_leave_nothing_behind(make_store: Maker, place: str) -> None:
    store = make_store(layout="striped")
    holds(store.program(NATIVE / "rivals", "names", getattr(store, place), code=None))
    assert list((store.base / "store" / "files").iterdir()) == []
    assert [object_ for target in (store.base / "targets").iterdir() for object_ in target.glob("*.data*")] == []
