"""`synth` killed at each of its changes on disk, and a rank of a played path at each of its own."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from paths import PLAYER, all_operations, played, said
from rig import MPIEXEC, SOAK, STRIPEWISE, execute, stripewise

needs_strace = pytest.mark.skipif(shutil.which("strace") is None, reason="not run: needs strace")
#: What synth changes on disk, and what the player does.
SYNTH = "write,pwrite64,ftruncate,rename,renameat,renameat2,link,linkat,unlink,unlinkat,flock"
PLAY = "openat,read,write,pread64,pwrite64,ftruncate,fallocate,mkdir,rename,link,symlink,unlink,rmdir,fsync,close"
HAND = {
    "version": 1,
    "processes": 4,
    "classes": {
        "shared": {"OS": 2, "FS": 1 << 20, "sessions": {"mpi-write": {"D": 400, "SIZE": {"mpi_write_at": 4096}}}}
    },
}


def killed_at(calls: str, number: int) -> list[str]:
    return f"strace -f -o /dev/null -e trace={calls} -e inject={calls}:signal=KILL:when={number}".split()


@needs_strace
def test_a_killed_synth_leaves_the_old_path_or_the_new_one(scratch: Path) -> None:
    profile, out, other = (scratch / name for name in ("p.json", "out.swp", "other.swp"))
    profile.write_text(json.dumps(HAND))
    words = ["synth", profile, "-n", "4", "-o"]
    stripewise(*words, other, "--seed", "2")
    stripewise(*words, out)
    old, new = out.read_bytes(), other.read_bytes()
    assert old != new
    number = ended = 1
    while ended:
        killed = [*killed_at(SYNTH, number), STRIPEWISE, *words, out, "--seed", "2"]
        ended = subprocess.run(killed, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode
        assert out.read_bytes() in (old, new), f"killed at change {number}"
        number += 1
    assert number > 5 and out.read_bytes() == new
    stripewise(*words, out, "--seed", "2")
    assert sorted(place.name for place in scratch.iterdir()) == ["other.swp", "out.swp", "p.json"]


@needs_strace
def test_a_rank_killed_anywhere_ends_the_run_and_its_files_are_played_again(scratch: Path) -> None:
    path, place = all_operations().write(scratch / "all.swp"), scratch / "files"
    place.mkdir()
    job = [MPIEXEC, "-n", "1", PLAYER, "--replace", path, place, ":", "-n", "1"]
    number = ended = 1
    while ended:
        killed = [*job, *killed_at(PLAY, number), PLAYER, "--replace", path, place]
        ended = execute(killed, code=None, timeout_s=60).code
        result = said(played(path, place, 2, "--replace", "--as-fast-as-possible"))
        assert result["wrong_bytes"] == 0, f"killed at call {number}"
        number += 1 if SOAK else 53
    assert number > 300, "the kills did not hit"
