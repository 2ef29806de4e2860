"""Globs of files that are made anew: they match what they stand for, and numbers that differ are free."""

from __future__ import annotations

import fnmatch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stripewise.run.recreated import Rename, as_renamed, first_names, globs_of
from stripewise.workload.requests import REQUEST_DTYPE, FileRequests, Workload


@pytest.mark.parametrize(
    ("made", "known", "renamed", "globs"),
    [
        (["/d/a"], ["/d/a"], {}, ["/d/a"]),
        (["/d/c-1.h5"], ["/d/c-1.h5"], {}, ["/d/c-1.h5"]),
        (["/d/c-1.h5"], ["/d/c-1.h5", "/d/c-02.h5"], {}, ["/d/c-*.h5"]),
        (["/d/r3-c1"], ["/d/r3-c1", "/d/r3-c2"], {}, ["/d/r3-c*"]),
        (["/d/c1"], ["/d/c1", "/e/c2"], {}, ["/d/c1"]),
        (["/d/[x]1"], ["/d/[x]1", "/d/[x]2"], {}, ["/d/[[]x]*"]),
        (["/o"], ["/o.tmp"], {"/o": "/o.tmp"}, ["/o.tmp"]),
        (["/c-1"], ["/c-1.tmp", "/c-2.tmp"], {"/c-1": "/c-1.tmp"}, ["/c-*.tmp"]),
        # Whatever would match all names of a directory is none.
        (["/d/700"], ["/d/700", "/d/701"], {}, ["/d/700"]),
        (["/d/7-1"], ["/d/7-1", "/d/8-2"], {}, ["/d/7-1"]),
        (["/d/7-1"], ["/d/7-1", "/d/7-2"], {}, ["/d/7-*"]),
    ],
)
def test_numbers_in_which_names_differ_are_free(
    made: list[str], known: list[str], renamed: dict[str, str], globs: list[str]
) -> None:
    assert sorted(globs_of(made, known, renamed)) == sorted(globs)


NAME = st.text(st.sampled_from("ab1290-._[*?"), min_size=1, max_size=8).filter(lambda name: name not in {".", ".."})


@settings(max_examples=500, deadline=None)
@given(names=st.lists(NAME, min_size=1, max_size=4), directory=st.sampled_from(["/", "/d/", "/[d]7/"]))
def test_every_glob_matches_the_file_that_it_stands_for(names: list[str], directory: str) -> None:
    paths = [directory + name for name in names]
    globs = globs_of(paths, paths, {})
    for path in paths:
        assert any(fnmatch.fnmatchcase(path, glob) for glob in globs)
    assert set(globs.values()) <= set(paths)


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
