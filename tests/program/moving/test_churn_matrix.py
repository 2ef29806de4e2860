"""Real programs do on moving files what they do on plain ones: the matrix of programs, with a mover that never rests.

A dozen cases here, all of them in `make soak`. The plain places of the engine stay where they are and are the oracle.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from churning import Churner
from matrix.case import Case
from matrix.engine import Bench, run_case
from matrix.families import all_cases
from matrix.inputs import make_inputs
from rig import LAYOUTS, SOAK, create_store

FEW = (
    *("fio-psync", "fio-pvsync2", "fio-psync-jobs", "h5py", "mpi4py", "numpy", "git", "tar"),
    *("sqlite-rollback", "sqlite-writers", "python-processes", "truncate", "rsync"),
)
CASES = [(family, case) for family, case in all_cases() if SOAK or case.name in FEW]
#: Size of their inputs.
SCALE = 4 if SOAK else 1


class Moving:
    """A bench and the mover on its store."""

    def __init__(self, bench: Bench, seed: int) -> None:
        self.bench, self.churner, self.moves = bench, Churner(bench.store, seed), 0
        self.cases = 0


@pytest.fixture(scope="module")
def moving() -> Iterator[dict[bool, Moving]]:
    """Benches by whether an ordinary user's; at the end their files must have moved, and every store be sound."""
    with tempfile.TemporaryDirectory(prefix="stripewise-matrix-", ignore_cleanup_errors=True) as name:
        base = Path(name).resolve()
        base.chmod(0o755)
        make_inputs(base / "inputs", SCALE)
        made: dict[bool, Moving] = {}
        for unprivileged in sorted({case.unprivileged for _, case in CASES}):
            targets, regions = LAYOUTS["uneven"]
            store = create_store(base / ("user" if unprivileged else "root"), targets, regions)
            made[unprivileged] = Moving(Bench(store, base / "inputs", "uneven", unprivileged), len(made))
        try:
            yield made
            for one in made.values():
                said = one.churner.end()
                print(f"{one.moves} moves under programs; {said}")
            cases = sum(one.cases for one in made.values())
            assert sum(one.moves for one in made.values()) >= cases, "programs ran, but their files hardly moved"
        finally:
            for one in made.values():
                one.churner.kill()
        for one in made.values():
            one.bench.store.fsck()


@pytest.mark.parametrize(("family", "case"), CASES, ids=[case.name for _, case in CASES])
def test_program_does_the_same_on_moving_files(moving: dict[bool, Moving], family: str, case: Case) -> None:
    one = moving[case.unprivileged]
    before = one.churner.published()
    outcome = run_case(one.bench, case, family)
    assert one.churner.process.poll() is None, f"the mover has ended: {one.churner.lines()[-1:]}"
    moves = one.churner.published() - before
    print(f"{case.name}: {moves} moves")
    one.moves += moves
    one.cases += 1
    # Only the files of the case that runs are there to be moved.
    one.bench.store.program("rm", "-rf", one.bench.where("managed", case))
    if outcome.managed == "not here":
        pytest.skip(f"not here: {outcome.remark}")
    assert outcome.right, "\n".join(outcome.details)
