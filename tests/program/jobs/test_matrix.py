"""Real programs do on managed files what they do on plain ones, or end in the error that docs/compatibility.md lists.

The cases are in `matrix/`. `make test` runs the small ones on the layout that cuts requests most, `make soak` all of
them, larger, on every layout.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from matrix.case import Case
from matrix.engine import Bench, Outcome, run_case
from matrix.families import all_cases
from matrix.inputs import make_inputs
from matrix.record import write_record
from rig import LAYOUTS, SOAK, create_store

SIZE, SCALE = ("large", 20) if SOAK else ("small", 1)
CASES = [(family, case) for family, case in all_cases() if SOAK or not case.heavy]
BenchOf = Callable[[str, bool], Bench]


@pytest.fixture(scope="module")
def inputs() -> Iterator[Path]:
    """What all cases read."""
    with tempfile.TemporaryDirectory(prefix="stripewise-matrix-") as name:
        Path(name).chmod(0o755)
        make_inputs(Path(name).resolve() / "inputs", SCALE)
        yield Path(name).resolve() / "inputs"


@pytest.fixture(scope="module")
def outcomes() -> Iterator[dict[str, list[Outcome]]]:
    """What came out, per layout; written down at the end."""
    found: dict[str, list[Outcome]] = {layout: [] for layout in LAYOUTS}
    yield found
    for layout, one in found.items():
        if one:
            write_record(layout, SIZE, one, {case.name for _, case in CASES})


@pytest.fixture(scope="module")
def bench_of(inputs: Path) -> Iterator[BenchOf]:
    """Benches by layout, made when first asked for; at the end every store must be sound."""
    with tempfile.TemporaryDirectory(prefix="stripewise-matrix-", ignore_cleanup_errors=True) as name:
        base = Path(name).resolve()
        base.chmod(0o755)
        made: dict[tuple[str, bool], Bench] = {}

        def get(layout: str, unprivileged: bool) -> Bench:
            key = (layout, unprivileged)
            if key not in made:
                targets, regions = LAYOUTS[layout]
                store = create_store(base / f"{layout}{'-user' if unprivileged else ''}", targets, regions)
                made[key] = Bench(store, inputs, layout, unprivileged)
            return made[key]

        yield get
        for bench in made.values():
            bench.store.fsck()


@pytest.mark.parametrize("layout", list(LAYOUTS) if SOAK else ["uneven"])
@pytest.mark.parametrize(("family", "case"), CASES, ids=[case.name for _, case in CASES])
def test_program_does_the_same_on_managed_files(
    bench_of: BenchOf, outcomes: dict[str, list[Outcome]], layout: str, family: str, case: Case
) -> None:
    outcome = run_case(bench_of(layout, case.unprivileged), case, family)
    outcomes[layout].append(outcome)
    if outcome.managed == "not here":
        pytest.skip(f"not here: {outcome.remark}")
    assert outcome.right, "\n".join(outcome.details)
