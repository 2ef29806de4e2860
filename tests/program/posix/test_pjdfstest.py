"""pjdfstest, a published suite of POSIX file system semantics, says of managed files what it says of plain ones.

It is not part of this tree: `cargo install pjdfstest --locked` brings it.
"""

from __future__ import annotations

import grp
import os
import pwd
import shutil
from pathlib import Path

import pytest
from matrix.engine import manage_hidden_directories
from rig import Maker, Store, execute

#: Cases that start the file that they made: the kernel opens a program past the C library.
CANNOT_START = {"open::etxtbsy", "truncate::etxtbsy"}
CASES_MIN = 350
OUTCOMES = ("ok", "skipped", "FAILED")
#: Of a file system whose times are as fine as the kernel's tick.
NAP_S = 0.02

Outcomes = dict[str, str]


def program() -> str:
    """The suite, where it is installed."""
    found = shutil.which("pjdfstest") or shutil.which("pjdfstest", path=Path.home() / ".cargo" / "bin")
    if found is None:
        pytest.skip("not run: needs pjdfstest (cargo install pjdfstest --locked)")
    if os.geteuid() != 0:
        pytest.skip("not run: pjdfstest's cases of other users need root")
    return found


def users() -> list[list[str]]:
    """Two users, each with a group of his own, as whom the suite acts beside root."""
    groups = {group.gr_gid: group.gr_name for group in grp.getgrall()}
    found = [[user.pw_name, groups[user.pw_gid]] for user in pwd.getpwall() if user.pw_uid and user.pw_gid in groups]
    first = found[0]
    return [first, next(pair for pair in found if pair[1] != first[1])]


def settings(store: Store) -> Path:
    """The suite's configuration: all that Linux has, another file system for EXDEV, no remounts."""
    features = "rename_ctime", "posix_fallocate", "stat_st_birthtime", "utime_now", "utimensat"
    path = store.base / "pjdfstest.toml"
    path.write_text(
        "[features]\n"
        + "".join(f"{feature} = {{}}\n" for feature in features)
        + 'secondary_fs = "/dev/shm"\n'
        + f"[settings]\nnaptime = {NAP_S}\n[dummy_auth]\nentries = {users()}\n"
    )
    return path


def outcomes(text: str) -> Outcomes:
    """Each case's outcome; beside them stand words of explanation."""
    lines = (line.split() for line in text.splitlines() if "::" in line)
    return {words[0]: words[1] for words in lines if len(words) == 2 and words[1] in OUTCOMES}


def test_the_suite_finds_of_managed_files_what_it_finds_of_plain_ones(make_store: Maker) -> None:
    suite = program()
    store = make_store(layout="uneven", shared=True)
    # The suite works in directories whose names begin with a dot.
    manage_hidden_directories(store)
    configuration = settings(store)
    plain = outcomes(execute([suite, "-c", configuration, "-p", store.plain]).out)
    assert sum(outcome == "ok" for outcome in plain.values()) >= CASES_MIN and "FAILED" not in plain.values(), plain
    under = outcomes(store.program(suite, "-c", configuration, "-p", store.plain).out)
    assert under == plain and store.files() == []
    said = store.program(suite, "-c", configuration, "-p", store.data, code=None)
    managed = outcomes(said.out)
    different = {case for case in plain if managed.get(case) != plain[case]}
    assert managed.keys() == plain.keys() and different == CANNOT_START, said.report
