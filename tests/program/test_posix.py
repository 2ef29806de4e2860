"""The table of system-call cases says on managed files what it says on plain ones, but for documented differences."""

from __future__ import annotations

import os
import tempfile
import tomllib
from pathlib import Path

import pytest
from conftest import Maker
from rig import LAYOUTS, NATIVE, Store, execute

POSIX = NATIVE / "posix"
DIFFERENCES = Path(__file__).with_name("posix_differences.toml")
CASES_MIN = 400

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
    if os.geteuid() != 0:
        pytest.skip("not run: the cases about permissions need root; make soak as root runs them")
    assert POSIX.exists(), "not built: posix; run make test"
    with tempfile.TemporaryDirectory(prefix="stripewise-test-") as directory:
        Path(directory).chmod(0o755)
        return outcomes(execute([POSIX, directory]).out)


def open_to_all(store: Store) -> Store:
    """Other users may make files in it, as its owner would set it up for them."""
    for directory in (store.root / "files", store.root / "trash", *(store.base / "targets").iterdir()):
        directory.mkdir(exist_ok=True)
        directory.chmod(0o1777)
    return store


def test_the_table_is_large_and_says_something_in_every_case(plain: Outcomes) -> None:
    assert len(plain) >= CASES_MIN
    silent = {
        case for case, outcome in plain.items() if not outcome or "cannot begin" in outcome or "time limit" in outcome
    }
    assert not silent


def test_the_library_changes_nothing_on_plain_files(make_store: Maker, plain: Outcomes) -> None:
    store = open_to_all(make_store(layout="uneven"))
    under = outcomes(store.program(POSIX, store.plain).out)
    changed = [as_toml(case, plain[case], under.get(case, "")) for case in plain if under.get(case) != plain[case]]
    assert not changed, "\n".join(changed)
    assert store.files() == []


@pytest.mark.parametrize("layout", [name for name in LAYOUTS if name != "emulated"])
def test_managed_files_differ_from_plain_ones_exactly_as_documented(
    make_store: Maker, plain: Outcomes, layout: str
) -> None:
    store = open_to_all(make_store(layout=layout))
    managed = outcomes(store.program(POSIX, store.data).out)
    assert managed.keys() == plain.keys()
    documented = tomllib.loads(DIFFERENCES.read_text())
    assert all(entry["why"] for entry in documented.values())
    wrong = []
    for case, outcome in plain.items():
        known = documented.get(case, {"plain": outcome, "managed": outcome})
        if (outcome, managed[case]) != (known["plain"], known["managed"]):
            wrong.append(as_toml(case, outcome, managed[case]))
    assert not wrong, "\n".join(wrong)
    assert documented.keys() <= plain.keys()
