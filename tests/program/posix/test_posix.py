"""The table of system-call cases says on managed files what it says on plain ones, but for documented differences."""

from __future__ import annotations

import tempfile
import tomllib
from pathlib import Path

import pytest
from rig import LAYOUTS, NATIVE, Maker, execute

POSIX = NATIVE / "posix"
DIFFERENCES = Path(__file__).with_name("posix_differences.toml")
CASES_MIN = 400
#: What a case about other users' rights says when it is not run by root.
NEEDS_ROOT = "needs root"

Outcomes = dict[str, str]


def outcomes(text: str) -> Outcomes:
    """`subject.case: outcome` lines as a table."""
    said = dict(line.split(":", 1) for line in text.splitlines())
    assert len(said) == len(text.splitlines()), "a case is there twice"
    return {case: outcome.strip() for case, outcome in said.items()}


def as_toml(case: str, plain: str, managed: str) -> str:
    return f'["{case}"]\nplain = "{plain}"\nmanaged = "{managed}"\nwhy = ""\n'


@pytest.fixture(scope="module")
def plain() -> Outcomes:
    """What the kernel does, without the library."""
    assert POSIX.exists(), "not built: posix; run make test"
    with tempfile.TemporaryDirectory(prefix="stripewise-test-") as directory:
        Path(directory).chmod(0o755)
        return outcomes(execute([POSIX, directory]).out)


def test_the_table_is_large_and_says_something_in_every_case(plain: Outcomes) -> None:
    assert len(plain) >= CASES_MIN
    silent = {
        case for case, outcome in plain.items() if not outcome or "cannot begin" in outcome or "time limit" in outcome
    }
    assert not silent


def test_the_library_changes_nothing_on_plain_files(make_store: Maker, plain: Outcomes) -> None:
    store = make_store(layout="uneven", shared=True)
    under = outcomes(store.program(POSIX, store.plain).out)
    changed = [as_toml(case, plain[case], under.get(case, "")) for case in plain if under.get(case) != plain[case]]
    assert not changed, "\n".join(changed)
    assert store.files() == []


@pytest.mark.parametrize("layout", [name for name in LAYOUTS if name != "emulated"])
def test_managed_files_differ_from_plain_ones_exactly_as_documented(
    make_store: Maker, plain: Outcomes, layout: str
) -> None:
    store = make_store(layout=layout, shared=True)
    managed = outcomes(store.program(POSIX, store.data).out)
    assert managed.keys() == plain.keys()
    documented = tomllib.loads(DIFFERENCES.read_text())
    assert all(entry["why"] for entry in documented.values())
    wrong = []
    for case, outcome in plain.items():
        known = {} if outcome.startswith(NEEDS_ROOT) else documented.get(case, {})
        known = {"plain": outcome, "managed": outcome, **known}
        if (outcome, managed[case]) != (known["plain"], known["managed"]):
            wrong.append(as_toml(case, outcome, managed[case]))
    assert not wrong, "\n".join(wrong)
    assert documented.keys() <= plain.keys()
