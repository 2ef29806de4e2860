"""A builder that never rests: gives every file below a managed directory other copies, until SIGTERM.

usage: rebuild.py STORE DIRECTORY [SEED]

Prints "made" for each file, and at the end a line of JSON: what was refused, by the error's class. Files that
vanish, shrink or are mapped are part of the game; every other error ends it with exit code 1.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from stripewise import native
from stripewise.errors import InputOutputError, InUseError, InvalidError, NotFoundError

GRANULE = 4096


def replica(chance: random.Random, size: int, targets: int) -> dict[str, Any]:
    """Strided blocks within so many bytes, under up to three loops, or one of all of them, on any layout."""
    block = chance.choice([size, chance.randint(1, min(size, 200_000))])
    base, room, reach, dims = 0, size - block, block, []
    for _ in range(chance.randint(0, 3)):
        stride = reach + chance.choice([0, 1, chance.randint(0, 9_000)])
        count = chance.randint(1, 6)
        if (count - 1) * stride > room:
            break
        dims.append([stride, count])
        room, reach = room - (count - 1) * stride, reach + (count - 1) * stride
    chance.shuffle(dims)
    base = chance.randint(0, room)
    order = chance.sample(range(targets), chance.randint(1, targets))
    stripes = [[target, GRANULE * chance.randint(1, 16)] for target in order]
    region = {"start": 0, "len": GRANULE * chance.randint(16, 256), "stripes": stripes}
    on_write = chance.choice(["update", "invalidate"])
    return {"base": base, "block": block, "dims": dims, "regions": [region], "on_write": on_write}


def size_of(error: str) -> int:
    """Bytes of a file, from the refusal of what ends behind it."""
    return int(error.rpartition("the file has ")[2].split()[0])


def below(directory: str) -> list[Path]:
    """All names of files; directories that vanish meanwhile have none."""
    return [Path(above, name) for above, _, names in os.walk(directory) for name in names]


def main(store: str, directory: str, seed: int) -> int:
    chance, made, refused, stopping = random.Random(seed), 0, Counter[str](), []
    signal.signal(signal.SIGTERM, lambda *_: stopping.append(True))
    targets = len(native.call("store_info", store)["targets"])
    huge = {"base": 1 << 50, "block": 1, "dims": [], "regions": replica(chance, GRANULE, targets)["regions"]}
    while not stopping:
        links = [path for path in below(directory) if path.is_symlink()]
        for path in chance.sample(links, len(links)):
            if stopping:
                break
            try:
                try:
                    native.call("store_copies_make", store, str(path), json.dumps({"replicas": [huge]}))
                except InvalidError as error:
                    size = size_of(str(error)) if "the file has" in str(error) else 0
                    # Of large files the beginning, where most is written.
                    size = min(size, 1 << 22)
                    if size == 0:
                        continue
                    some = [replica(chance, size, targets) for _ in range(chance.choice([1, 2, 3, 12]))]
                    native.call("store_copies_make", store, str(path), json.dumps({"replicas": some}))
                    made += 1
                    print("made", flush=True)
            except (InUseError, NotFoundError, InvalidError) as error:
                refused[type(error).__name__] += 1
                if os.environ.get("REBUILD_SAYS"):
                    print(error, file=sys.stderr, flush=True)
            except InputOutputError:
                if path.parent.exists():
                    raise
                refused["the directory has vanished"] += 1
        time.sleep(0.002)
    print(json.dumps({"made": made, "refused": refused}), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else 1))
