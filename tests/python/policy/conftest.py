"""`best` and what it is held against count their own time: what runs beside a test takes none of it."""

from __future__ import annotations

import time
from types import SimpleNamespace

import pytest
from portfolio import compare, heuristics

from stripewise.policy.best import best, finish, judge, trial


@pytest.fixture(autouse=True)
def own_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seconds of a time limit are those that all threads of this process were busy for."""
    clock = SimpleNamespace(monotonic=time.process_time)
    for module in (best, finish, judge, trial, compare, heuristics):
        monkeypatch.setattr(module, "time", clock)
