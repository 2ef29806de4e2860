"""The inputs of all cases: text, numbers, random and sparse bytes, and a tree of small files; the same in every run."""

from __future__ import annotations

import os
import random
from pathlib import Path

WORDS = [
    "stripe",
    "region",
    "segment",
    "extent",
    "target",
    "replica",
    "hint",
    "band",
    "track",
    "window",
    "offset",
    "width",
]


def text(rng: random.Random, lines: int) -> str:
    """Lines of words, with a number in front so that no two are equal."""
    return "".join(f"{number} {' '.join(rng.choices(WORDS, k=rng.randrange(1, 12)))}\n" for number in range(lines))


def make_tree(rng: random.Random, root: Path, files: int) -> None:
    """Directories with small files of odd sizes, an empty one, an executable, a link and names with spaces."""
    for number in range(files):
        place = root / f"d{number % 5}" / f"e{number % 3}"
        place.mkdir(parents=True, exist_ok=True)
        file = place / (f"file {number}.txt" if number % 7 == 0 else f"f{number}.dat")
        file.write_bytes(rng.randbytes(rng.choice((0, 1, 100, 4095, 4096, 4097, 30_000, 70_001))))
    (root / "run.sh").write_text("#!/bin/sh\necho ran\n")
    (root / "run.sh").chmod(0o755)
    (root / "pointer").symlink_to("run.sh")
    for path in sorted(root.rglob("*")):
        os.utime(path, (1_600_000_000, 1_600_000_000 + len(path.name)), follow_symlinks=False)


def make_inputs(root: Path, scale: int) -> None:
    """`scale` 1 is what `make test` uses."""
    rng = random.Random(20)
    root.mkdir(parents=True)
    (root / "text").write_text(text(rng, 8_000 * scale))
    numbers = list(range(10_000 * scale))
    rng.shuffle(numbers)
    (root / "numbers").write_text("".join(f"{number}\n" for number in numbers))
    (root / "random").write_bytes(rng.randbytes(1_500_007 * scale))
    with (root / "sparse").open("wb") as file:
        file.write(b"head")
        file.seek(2_000_000 * scale)
        file.write(b"tail")
    make_tree(rng, root / "tree", 30 * min(scale, 10))
    root.chmod(0o755)
