"""Globs of files that are made anew: they match what they stand for, and numbers that differ are free."""

from __future__ import annotations

import datetime
import fnmatch
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stripewise.run.recreated import globs_of, names_beside
from stripewise.store.globs import matches
from stripewise.workload.series import days_around


@pytest.mark.parametrize(
    ("made", "known", "renamed", "globs"),
    [
        (["/d/a"], ["/d/a"], {}, ["/d/a"]),
        (["/d/c-1.h5"], ["/d/c-1.h5"], {}, ["/d/c-1.h5"]),
        (["/d/c-1.h5"], ["/d/c-1.h5", "/d/c-02.h5"], {}, ["/d/c-[0-9]*.h5"]),
        (["/d/r3-c1"], ["/d/r3-c1", "/d/r3-c2"], {}, ["/d/r3-c[0-9]*"]),
        (["/d/c1"], ["/d/c1", "/e/c2"], {}, ["/d/c1"]),
        (["/d/[x]1"], ["/d/[x]1", "/d/[x]2"], {}, ["/d/[[]x][0-9]*"]),
        (["/o"], ["/o.tmp"], {"/o": "/o.tmp"}, ["/o.tmp"]),
        (["/c-1"], ["/c-1.tmp", "/c-2.tmp"], {"/c-1": "/c-1.tmp"}, ["/c-[0-9]*.tmp"]),
        # Whatever would match all names of a directory is none.
        (["/d/700"], ["/d/700", "/d/701"], {}, ["/d/700"]),
        (["/d/7-1"], ["/d/7-1", "/d/8-2"], {}, ["/d/7-1"]),
        (["/d/7-1"], ["/d/7-1", "/d/7-2"], {}, ["/d/7-[0-9]*"]),
    ],
)
def test_numbers_in_which_names_differ_are_free(
    made: list[str], known: list[str], renamed: dict[str, str], globs: list[str]
) -> None:
    assert sorted(globs_of(made, known, renamed)) == sorted(globs)


#: The days around one, which runs of that day may name.
DAYS = days_around(datetime.datetime(2026, 11, 26, 9, 30, 11, tzinfo=datetime.UTC).timestamp())


@pytest.mark.parametrize(
    ("name", "glob"),
    [
        ("r_20261126-093011.h5", "r_[0-9]*-[0-9]*.h5"),
        ("r20261126.h5", "r[0-9]*.h5"),
        ("r_20261126093011123", "r_[0-9]*"),
        ("r-2026-11-26T09:30:11-v2", "r-[0-9]*-[0-9]*-[0-9]*T[0-9]*:[0-9]*:[0-9]*-v2"),
        ("r_2026_11_26_0930", "r_[0-9]*_[0-9]*_[0-9]*_[0-9]*"),
        ("r_261126.7", "r_[0-9]*.7"),
        ("093011_27.11.2026r", "[0-9]*_[0-9]*.[0-9]*.[0-9]*r"),
        # No day, none of this run, a longer number, a directory, and what would be any name.
        ("r_20261326.h5", "r_20261326.h5"),
        ("r_1795685411.h5", "r_[0-9]*.h5"),
        ("r_1795685411123.h5", "r_[0-9]*.h5"),
        # Two days before, and a number that has as many digits by chance.
        ("r_1795512611.h5", "r_1795512611.h5"),
        ("r_179568541112.h5", "r_179568541112.h5"),
        ("grid_2048_10_12", "grid_2048_10_12"),
        ("r_20251126-093011.h5", "r_20251126-093011.h5"),
        ("r_120261126.h5", "r_120261126.h5"),
        ("20261126/r1", "20261126/r1"),
        ("20261126-093011", "20261126-093011"),
    ],
)
def test_the_day_of_a_run_and_the_time_beside_it_are_free_for_tomorrow_has_others(name: str, glob: str) -> None:
    assert globs_of([f"/d/{name}"], [], {}, DAYS) == {f"/d/{glob}": f"/d/{name}"}


def test_names_of_today_are_known_as_such_without_a_trace_that_says_when_it_ran() -> None:
    name = datetime.datetime.now(datetime.UTC).strftime("/d/r-%Y%m%d.h5")
    assert list(globs_of([name], [name], {})) == ["/d/r-[0-9]*.h5"]


@pytest.mark.parametrize(
    ("made", "first", "globs"),
    [
        ("ck300.h5", None, "ck[0-9]*.h5"),
        ("ck300.h5", "ck300.h5.tmp", "ck[0-9]*.h5.tmp"),
        ("ck300.h5", ".tmp-9-ck300.h5", ".tmp-9-ck300.h5"),
        ("state.h5", None, "state.h5"),
        ("old7.h5", None, "old7.h5"),
    ],
)
def test_files_beside_it_tell_which_numbers_are_free(made: str, first: str | None, globs: str, tmp_path: Path) -> None:
    for name in ("ck100.h5", "ck200.h5", made, "old-7.h5"):
        (tmp_path / name).touch()
    # A managed file without its store is a link to nowhere.
    (tmp_path / "ck200.h5").unlink()
    (tmp_path / "ck200.h5").symlink_to("/stripewise:none/0")
    path = str(tmp_path / made)
    renamed = {} if first is None else {path: str(tmp_path / first)}
    found = globs_of([path], {renamed.get(path, path)} | names_beside([path], renamed), renamed)
    assert found == {str(tmp_path / globs): path}


def test_a_name_without_a_number_is_not_one_of_a_numbered_series() -> None:
    (glob,) = globs_of(["/d/q2.dat"], ["/d/q1.dat", "/d/q2.dat"], {})
    assert matches(glob, "/d/q15.dat") and not matches(glob, "/d/quite-different.dat")


def test_a_byte_that_is_not_utf8_is_one_in_a_glob_as_it_is_in_the_name(tmp_path: Path) -> None:
    (tmp_path / "ck\udc801.h5").touch()
    (tmp_path / "ck\udc802.h5").touch()
    path = f"{tmp_path}/ck\\x802.h5"
    assert names_beside([path], {}) == {path, path.replace("2.h5", "1.h5")}
    assert globs_of([path], names_beside([path], {}), {}) == {f"{tmp_path}/ck?[0-9]*.h5": path}


def test_a_directory_that_is_gone_has_no_names(tmp_path: Path) -> None:
    assert names_beside([str(tmp_path / "gone" / "ck1")], {}) == set()


NAME = st.text(st.sampled_from("ab1290-._[*?"), min_size=1, max_size=8).filter(lambda name: name not in {".", ".."})


@settings(max_examples=500, deadline=None)
@given(names=st.lists(NAME, min_size=1, max_size=4), directory=st.sampled_from(["/", "/d/", "/[d]7/"]))
def test_every_glob_matches_the_file_that_it_stands_for(names: list[str], directory: str) -> None:
    paths = [directory + name for name in names]
    globs = globs_of(paths, paths, {})
    for path in paths:
        assert any(fnmatch.fnmatchcase(path, glob) for glob in globs)
    assert set(globs.values()) <= set(paths)
