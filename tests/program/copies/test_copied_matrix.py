"""Real programs do on files with copies what they do on plain ones: the matrix of programs, with a builder that never
rests, in `make soak` once more beside a mover that never rests either.

A dozen cases here, all of them in `make soak`. The plain places of the engine are the oracle.
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
from rebuilding import Rebuilder
from rig import LAYOUTS, SOAK, create_store, stripewise

FEW = (
    *("fio-psync", "fio-pvsync2", "fio-psync-jobs", "h5py", "mpi4py", "numpy", "git", "tar"),
    *("sqlite-rollback", "sqlite-writers", "python-processes", "truncate", "rsync"),
)
#: Of programs that refuse to run as root files and copies would be another user's than the builder's.
CASES = [(family, case) for family, case in all_cases() if (SOAK or case.name in FEW) and not case.unprivileged]
#: Size of their inputs.
SCALE = 4 if SOAK else 1


class Copied:
    """A bench, and who makes copies in its store."""

    def __init__(self, bench: Bench, is_moving: bool) -> None:
        self.bench, self.builder = bench, Rebuilder(bench.store, 1)
        self.churner = Churner(bench.store) if is_moving else None
        self.cases = self.made = 0

    def check(self) -> None:
        """Builder and mover are still at work."""
        assert self.builder.process.poll() is None, self.builder.errors.read_text()[-3000:]
        assert self.churner is None or self.churner.process.poll() is None, self.churner.lines()[-1:]


@pytest.fixture(scope="module", params=("resting", "moving") if SOAK else ("resting",))
def copied(request: pytest.FixtureRequest) -> Iterator[Copied]:
    """At the end files must have had copies, and the store be sound."""
    with tempfile.TemporaryDirectory(prefix="stripewise-matrix-", ignore_cleanup_errors=True) as name:
        base = Path(name).resolve()
        base.chmod(0o755)
        make_inputs(base / "inputs", SCALE)
        targets, regions = LAYOUTS["uneven"]
        bench = Bench(create_store(base / "store", targets, regions), base / "inputs", "uneven")
        one = Copied(bench, request.param == "moving")
        try:
            yield one
            print(f"{one.made} times copies were made under programs; {one.builder.end()}")
            if one.churner:
                print(one.churner.end())
            # Who moves a file keeps the builder waiting.
            assert one.made >= one.cases // (10 if one.churner else 1), (
                "programs ran, but their files hardly had copies"
            )
        finally:
            one.builder.kill()
            if one.churner:
                one.churner.kill()
        stripewise("store", "gc", one.bench.store.root)
        one.bench.store.fsck()


@pytest.mark.parametrize(("family", "case"), CASES, ids=[case.name for _, case in CASES])
def test_program_does_the_same_on_files_with_copies(copied: Copied, family: str, case: Case) -> None:
    before = copied.builder.made()
    outcome = run_case(copied.bench, case, family)
    copied.check()
    made = copied.builder.made() - before
    print(f"{case.name}: {made} times copies")
    copied.made += made
    copied.cases += 1
    # Only the files of the case that runs are there to be copied.
    copied.bench.store.program("rm", "-rf", copied.bench.where("managed", case))
    if outcome.managed == "not here":
        pytest.skip(f"not here: {outcome.remark}")
    assert outcome.right, "\n".join(outcome.details)
