"""Damaged paths: the player's check never crashes, hangs or reads outside its file, and agrees with Rust's."""

from __future__ import annotations

import os
import random
import subprocess
from pathlib import Path

import pytest
from paths import all_operations
from rig import BIN, ROOT, execute

from stripewise.errors import WorkloadError
from stripewise.pioneer import path as workpath

ROUNDS = 2_000
SOURCES = sorted((ROOT / "workloads" / "player").rglob("*.c"))


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The player under the sanitizers for addresses and undefined behaviour."""
    program = tmp_path_factory.mktemp("player") / "player"
    flags = ["-O1", "-g", "-std=c11", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    made = subprocess.run([BIN / "mpicc", *flags, "-o", program, *SOURCES], capture_output=True, text=True)
    assert made.returncode == 0, f"the sanitizers' libraries are needed: {made.stderr}"
    return program


def path_bytes(scratch: Path) -> bytes:
    made = all_operations()
    made.tables |= {
        "groups": [{"span": [0, 9]}, {"congruent": [3, 1]}], "processes": 4,
        "distributions": [{"values": [[1, 2], [3, 4]]}, {"quantiles": [1, 2, 9]}],
        "numbers": [[[1, 2, 3]] * 4],
    }  # fmt: skip
    made.loop(3, [{"op": "pwrite", "file": 1, "table": 1, "slack_first": 1, "slack_rest": 2, "who": {"group": 1}}])
    return made.write(scratch / "good.swp").read_bytes()


def test_damaged_paths_are_refused_or_are_other_paths(scratch: Path, watched: Path) -> None:
    chance = random.Random(4)
    good = path_bytes(scratch)
    names = []
    for number in range(ROUNDS):
        damaged = bytearray(good)
        # Mostly where a number counts or leads somewhere: the header, and the tables behind the nodes.
        begin, end = chance.choice([(0, 128), (128, len(good)), (len(good) - 1200, len(good))])
        for _ in range(chance.choice([1, 1, 2, 5])):
            damaged[chance.randrange(begin, end)] = chance.choice([0, 1, 2, 127, 128, 255, chance.randrange(256)])
        if chance.random() < 0.1:
            del damaged[chance.randrange(len(damaged)) :]
        names.append(scratch / f"{number}.swp")
        names[-1].write_bytes(damaged)
    env = {**os.environ, "ASAN_OPTIONS": "detect_leaks=0"}
    said: list[str] = []
    for begin in range(0, ROUNDS, 500):
        result = execute([watched, "--check", "4", *names[begin : begin + 500]], env, code=None, timeout_s=60)
        assert result.code in (0, 1) and not result.err, result.report
        said += result.out.splitlines()
    assert len(said) == ROUNDS and 100 < said.count("ok") < ROUNDS - 100
    for name, word in zip(names, said, strict=True):
        try:
            workpath.info(name)
            workpath.requests(name, 4, 0) if word != "ok" else None
        except WorkloadError as error:
            # Rust alone looks at the header's checksum.
            assert word != "ok" or "checksum" in str(error), (str(error), word)
        else:
            assert word == "ok" or "node" in word, word
