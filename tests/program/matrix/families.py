"""All families, in the order of the table."""

from __future__ import annotations

from . import archives, coreutils, databases, development, fio, languages, parallel, python, science, text
from .case import Case

FAMILIES: dict[str, list[Case]] = {
    "Files and streams": coreutils.CASES,
    "Text and search": text.CASES,
    "Archives and transfer": archives.CASES,
    "Development": development.CASES,
    "Databases": databases.CASES,
    "Python": python.CASES,
    "Science": science.CASES,
    "MPI and parallel formats": parallel.CASES,
    "I/O benchmarks": fio.CASES,
    "Languages": languages.CASES,
}


def all_cases() -> list[tuple[str, Case]]:
    """Family and case; names are unique."""
    pairs = [(family, case) for family, cases in FAMILIES.items() for case in cases]
    names = [case.name for _, case in pairs]
    assert len(set(names)) == len(names), "two cases of one name"
    return pairs
