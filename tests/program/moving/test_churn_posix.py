"""The table of system-call cases says on moving files what it says on files that stay."""

from __future__ import annotations

from churning import Churner
from rig import SOAK, Maker
from test_posix import POSIX, outcomes

RUNS = 20 if SOAK else 1


def test_system_calls_do_on_moving_files_what_they_do_on_files_that_stay(make_store: Maker) -> None:
    store = make_store(layout="uneven", shared=True)
    still = outcomes(store.program(POSIX, store.data).out)
    churner = Churner(store)
    try:
        for _ in range(RUNS):
            moving = outcomes(store.program(POSIX, store.data).out)
            changed = [
                f"{case}: {still[case]} / {moving.get(case)}" for case in still if moving.get(case) != still[case]
            ]
            assert not changed, "\n".join(changed)
        moved = churner.published()
        print(churner.end())
    finally:
        churner.kill()
    assert moved >= RUNS
