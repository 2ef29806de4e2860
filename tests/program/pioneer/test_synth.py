"""Profiles become paths that the player plays: from the command line, by hand and from a trace, at several sizes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from rig import stripewise

from stripewise.pioneer import path as paths

HAND = {
    "version": 1,
    "processes": 4,
    "classes": {
        "shared": {
            "OS": 1,
            "OT": 2,
            "FS": 1 << 20,
            "RT2": {"stat": 3},
            "AM": {"first": {"mpi-write": 1}, "next": {"mpi-write": {"mpi-read": 1}}},
            "sessions": {
                "mpi-write": {"D": 17, "SIZE": {"mpi_write_at_all": 16384}, "SHIFT": 262144,
                              "RT1": {"": {"mpi_write_at_all": 1}, "mpi_write_at_all": {"mpi_write_at_all": 15}}},
                "mpi-read": {"D": 17, "SIZE": {"mpi_read_at": 16384}, "SHIFT": 262144},
            },
        },
        "private": {
            "OS": 5,
            "OT": 2,
            "RT2": {"stat": 5, "unlink": 5, "mkdir": 2, "rmdir": 2, "rename": 1, "symlink": 1},
            "AM": {"first": {"posix-write": 1}, "next": {"posix-write": {"posix-read": 1}}},
            "sessions": {
                "posix-write": {"D": 4, "SIZE": {"write0": 1000}},
                "posix-read": {"D": 4, "SIZE": {"read0": 1000}},
            },
        },
        "root": {"OS": 1, "sessions": {"posix-read": {"D": 3, "SIZE": {"read0": 512}}}},
    },
}  # fmt: skip


def played(path: Path, processes: int, place: Path) -> dict[str, object]:
    place.mkdir()
    said = stripewise(
        "play", path, "-n", str(processes), "--directory", place, "--as-fast-as-possible", "--json"
    ).out  # fmt: skip
    return dict(json.loads(said.strip().splitlines()[-1]))


@pytest.mark.parametrize("processes", [1, 4])
def test_a_profile_written_by_hand_is_played_and_no_byte_is_wrong(scratch: Path, processes: int) -> None:
    profile, path = scratch / "hand.json", scratch / "out.swp"
    profile.write_text(json.dumps(HAND))
    stripewise("synth", profile, "-o", path, "-n", str(processes), "--seed", "7")
    told = played(path, processes, scratch / "d")
    assert told["wrong_bytes"] == 0
    expected = [len(paths.requests(path, processes, rank)) for rank in range(processes)]
    assert told["requests"] == sum(expected)


def test_knobs_change_the_path(scratch: Path) -> None:
    profile, path = scratch / "hand.json", scratch / "out.swp"
    profile.write_text(json.dumps(HAND))
    stripewise("synth", profile, "-o", path)
    before = paths.requests(path, 4, 1)
    stripewise("synth", profile, "-o", path, "--set", "SIZE.private=*2")
    after = paths.requests(path, 4, 1)
    assert after["op"].tolist() == before["op"].tolist()
    small = before["size"] == 1000
    assert (after["size"][small] == 2000).all() and (after["size"][~small] == before["size"][~small]).all()
