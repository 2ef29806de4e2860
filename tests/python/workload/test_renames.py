"""Requests follow their files through renames."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from stripewise.workload.renames import Rename, as_renamed, first_names
from stripewise.workload.requests import REQUEST_DTYPE, FileRequests, Workload

STEP = st.tuples(st.sampled_from(["make", "io", "rename", "unlink"]), st.integers(0, 3), st.integers(0, 3))


@settings(max_examples=500, deadline=None)
@given(steps=st.lists(STEP, max_size=14))
def test_requests_follow_their_file_through_renames(steps: list[tuple[str, int, int]]) -> None:
    """Against names that are followed step by step; a file is opened for each of its requests."""
    names: dict[str, int] = {}
    made: list[str] = []
    asked: list[tuple[int, str, int]] = []
    renames = []
    for at, (what, one, other) in enumerate(steps):
        old, new = f"/{one}", f"/{other}"
        if what == "make" and old not in names:
            names[old] = len(made)
            made.append(old)
        elif what == "io" and old in names:
            asked.append((at, old, names[old]))
        elif what == "rename" and old in names and old != new:
            names[new] = names.pop(old)
            renames.append(Rename(at, old, new))
    by_name: dict[str, list[int]] = {}
    for at, name, _ in asked:
        by_name.setdefault(name, []).append(at)
    files = tuple(
        FileRequests(name, np.array([(at, at + 1, 0, False, 0, 1) for at in times], dtype=REQUEST_DTYPE), 1)
        for name, times in sorted(by_name.items())
    )
    found = as_renamed(Workload(files, 1), renames, lambda path: path in names)
    last = {number: name for name, number in names.items()}
    told = {int(at): file.path for file in found.files for at in file.requests["start_ns"]}
    for at, _, number in asked:
        # A file that another was renamed over is gone, and with it what its requests tell.
        if number in last:
            assert told[at] == last[number]
    first = first_names(renames)
    for number, name in last.items():
        assert first.get(name, name) == made[number]
