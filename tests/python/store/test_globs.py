"""Which paths a store may manage."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stripewise.errors import StoreError
from stripewise.store.globs import (
    default_manage,
    escape,
    manage_globs,
    matches,
    template_globs,
    template_rank,
    without_directory,
)


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
        ("/a/?", "/a/\\xff", True),
        ("/a/[\\]xff", "/a/\\xff", True),
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


def test_an_escaped_byte_that_is_not_utf8_may_be_any_for_a_file_of_rules_holds_none():
    glob = escape("/a/b\udcff*")
    assert glob == "/a/b?[*]" and matches(glob, "/a/b\udcff*") and not matches(glob, "/a/bc")


def test_a_pattern_in_a_directory_that_is_not_there_is_told(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    there = [f"{tmp_path}/data", f"{tmp_path}/data/*.h5", f"{tmp_path}/**", f"{tmp_path}/out", f"{tmp_path}/d*/x/*.h5"]
    assert without_directory(manage_globs(there)) == []
    for missing, place in (("dtaa/*.h5", "dtaa"), ("dtaa/x/**", "dtaa/x"), ("dtaa/out", "dtaa")):
        said = without_directory(manage_globs([*there, f"{tmp_path}/{missing}"]))
        assert [text.split(";")[0] for text in said] == [
            f"{tmp_path}/{missing}: no file goes into the store by it until there is a directory {tmp_path}/{place}"
        ]
