"""`synth` killed at each of its changes on disk, and a rank of a played path at each of its own."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from paths import PLAYER, all_operations, played, said
from rig import MPIEXEC, SOAK, STRIPEWISE, execute, stripewise


def may_trace() -> bool:
    """Whether strace is there and may trace: in many containers it may not."""
    words = ["strace", "-o", "/dev/null", "true"]
    return (
        shutil.which("strace") is not None and subprocess.run(words, capture_output=True, check=False).returncode == 0
    )


needs_strace = pytest.mark.skipif(not may_trace(), reason="not run: needs strace, and the right to trace")
#: Changes of one synth, at most, and kills of a played path where not all are tried.
CHANGES_MAX, KILLS = 500, 12
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
    for number in range(1, CHANGES_MAX):
        killed = [*killed_at(SYNTH, number), STRIPEWISE, *words, out, "--seed", "2"]
        ended = subprocess.run(killed, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode
        assert out.read_bytes() in (old, new), f"killed at change {number}"
        if ended == 0:
            break
    assert ended == 0 and number > 5 and out.read_bytes() == new
    stripewise(*words, out, "--seed", "2")
    assert sorted(place.name for place in scratch.iterdir()) == ["other.swp", "out.swp", "p.json"]


@needs_strace
def test_a_rank_killed_anywhere_ends_the_run_and_its_files_are_played_again(scratch: Path) -> None:
    """Where others wait for it in a barrier as well. Kills begin at the first call on a file of the path."""
    made = all_operations()
    for at in (*range(0, 20, 4), *range(40, len(made.nodes), 8)):
        if made.nodes[at].get("who", "all") == "all" and "rounds" not in made.nodes[at]:
            made.nodes[at]["together_first"] = True
    path, place, log = made.write(scratch / "all.swp"), scratch / "files", scratch / "log"
    place.mkdir()
    job = [MPIEXEC, "-n", "1", PLAYER, "--replace", path, place, ":", "-n", "1"]
    played_words = [PLAYER, "--replace", path, place]
    execute([*job, "strace", "-f", "-o", log, "-e", f"trace={PLAY}", *played_words], timeout_s=60)
    lines = log.read_text().splitlines()
    own = [line for line in lines if line.split()[0] == lines[0].split()[0] and "resumed>" not in line]
    on_files = [at for at, line in enumerate(own, 1) if f'"{place}/' in line]
    first, last = on_files[0], on_files[-1]
    assert last - first > 50, (first, last)
    kills = hits = 0
    names = [line.split()[1].split("(")[0] for line in own]
    for number in range(first, last, 1 if SOAK else (last - first) // KILLS):
        # strace counts each kind of call for itself.
        name = names[number - 1]
        killed = [*job, *killed_at(name, names[:number].count(name)), *played_words]
        hits += execute(killed, code=None, timeout_s=60).code != 0
        kills += 1
        result = said(played(path, place, 2, "--replace", "--as-fast-as-possible"))
        assert result["wrong_bytes"] == 0, f"killed at call {number}"
    # What an MPI library calls differs by some from run to run, so the last may come too late.
    assert kills >= KILLS and hits > 0.8 * kills, (hits, kills)
