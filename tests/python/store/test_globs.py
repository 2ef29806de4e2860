"""Which paths a store may manage."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stripewise.errors import StoreError
from stripewise.store.globs import default_manage, escape, manage_globs, matches, template_globs, template_rank


@pytest.mark.parametrize("place", ["/dev/shm/data", "/dev/shm/*.h5", "/proc", "/sys/kernel"])
def test_a_place_where_nothing_is_managed_is_refused(place):
    for asked in (manage_globs, lambda patterns: template_globs(*patterns)):
        with pytest.raises(StoreError, match="never managed"):
            asked([place])


def test_so_is_a_store_beside_which_nothing_is_managed():
    with pytest.raises(StoreError, match="/dev/shm: files below /dev are never managed"):
        default_manage(Path("/dev/shm/store"))


def test_names_that_only_begin_alike_are_managed():
    assert manage_globs(["/devices/data"]) == ["/devices/data", "/devices/data/**"]


@pytest.mark.parametrize(
    ("glob", "path", "is_meant"),
    [
        ("/a/*.dat", "/a/x.dat", True),
        ("/a/*.dat", "/a/b/x.dat", False),
        ("/a/**", "/a/b/c", True),
        ("/a/**", "/b/x", False),
        ("/a/**/x", "/a/x", True),
        ("/a/**/x", "/a/b/c/x", True),
        ("/a/?[0-9]", "/a/b7", True),
        ("/a/?", "/a/", False),
        ("/a/[!x]", "/a/b", True),
        ("/a/[!x]", "/a/x", False),
        ("/a/[!x]b", "/a//b", False),
        ("/a/\\*", "/a/*", True),
        ("/a/\\*", "/a/b", False),
        ("/a/[", "/a/[", True),
        ("/a/[]-a]", "/a/^", True),
        ("/a/[z-a]", "/a/m", False),
    ],
)
def test_globs_match_as_in_the_library(glob: str, path: str, is_meant: bool) -> None:
    # The table of crates/store, names.rs, and classes at their edges.
    assert matches(glob, path) is is_meant


names = st.text("ab*?[]!\\-\xe9\n", max_size=4)


@given(names, names)
def test_an_escaped_path_means_itself_and_nothing_else(name: str, other: str) -> None:
    path = f"/a/{name}"
    assert matches(escape(path), path)
    assert matches(escape(path), f"/a/{other}") == (name == other)
    assert template_rank(escape(path)) == (0, 0)
