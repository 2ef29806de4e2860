"""A mover that never rests: gives every region of every file of a store another home, and back, until SIGTERM.

usage: churn.py STORE [SEED] [FILE-ID...]

Prints a line "ID SPANS BYTES" for every layout that it has published, "refused ID" for every refusal, and at the end
one of JSON: what moved and what was refused, by reason. Files that vanish, files that are mapped and writers that would
not wait are part of the game; every other error ends it with exit code 1. It runs as a process of its own, because the
tests stop and kill it.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from stripewise import _stripewise as native
from stripewise.errors import StripewiseError

GRANULE = 4096
REGIONS_MAX = 6
#: How many layouts a file gets before its first one comes again.
WANDERINGS = 3
#: Parts of the sentences of errors that a busy store may answer with.
REFUSALS = {
    "mapped": "has the file mapped",
    "writers": "would not wait",
    "alone": "has it for itself",
    "vanished": "was removed while it moved",
    "another mover": "is moving files of the store",
}

#: What is said of a file that a program is just making.
UNFINISHED = ("the store has no layout of file", "fewer than its header", "head is missing")
MAKING_S = 5.0

Layout = dict[str, list[dict[str, Any]]]


class Churn:
    """One store, its seed, and what came of it."""

    def __init__(self, store: Path, seed: int, only: list[str]) -> None:
        self.store, self.only = store, set(only)
        self.rng = random.Random(seed)
        self.targets = len(json.loads(native.store_info(str(store)))["targets"])
        self.stopping = False
        self.refused: Counter[str] = Counter()
        self.applied = self.spans = self.moved_bytes = 0

    def stripes(self) -> list[list[int]]:
        """A cycle over some of the targets in any order."""
        chosen = self.rng.sample(range(self.targets), self.rng.randint(1, self.targets))
        return [[target, GRANULE * self.rng.choice((1, 1, 2, 3, 8, 16, 64))] for target in chosen]

    def layout(self, size: int) -> Layout:
        """Regions that divide `size` bytes (and what may still be written) anyhow."""
        granules = max(2, size // GRANULE + 2)
        count = self.rng.randint(1, min(REGIONS_MAX, granules - 1))
        cuts = sorted(self.rng.sample(range(1, granules), count))
        starts = [0, *cuts[:-1]]
        return {
            "regions": [
                {"start": start * GRANULE, "len": (end - start) * GRANULE, "stripes": self.stripes()}
                for start, end in zip(starts, cuts, strict=True)
            ]
        }

    def files(self) -> Iterator[dict[str, Any]]:
        """Those there are now, in any order."""
        with contextlib.suppress(StripewiseError):
            found = [
                file
                for file in json.loads(native.store_files(str(self.store)))["files"]
                if not self.only or file["id"] in self.only
            ]
            self.rng.shuffle(found)
            yield from found

    def round(self) -> None:
        """Every file wanders and comes back."""
        rested = True
        for file in self.files():
            try:
                home = json.loads(native.store_layout(str(self.store), file["id"]))["regions"]
            except StripewiseError as error:
                self.refuse(file["id"], error)
                continue
            keys = ("start", "len", "stripes")
            layouts = [self.layout(int(file.get("size") or 0)) for _ in range(WANDERINGS)]
            for layout in (*layouts, {"regions": [{key: region[key] for key in keys} for region in home]}):
                if self.stopping:
                    return
                if not self.apply(file["id"], layout):
                    break
                rested = False
        if rested:
            # Nothing there, or all of it held: looking on would only take the processor from whoever holds it.
            time.sleep(0.005)

    def apply(self, identity: str, layout: Layout) -> bool:
        """One move of a file; false when it was refused."""
        try:
            done = json.loads(native.store_apply(str(self.store), identity, json.dumps(layout)))
        except StripewiseError as error:
            self.refuse(identity, error)
            return False
        self.applied += 1
        self.spans += done["spans"]
        self.moved_bytes += done["moved_bytes"]
        print(identity, done["spans"], done["moved_bytes"], flush=True)
        return True

    def refuse(self, identity: str, error: Exception) -> None:
        """Counts a refusal that is part of the game; raises any other."""
        reasons = [reason for reason, words in REFUSALS.items() if words in str(error)]
        if not reasons and any(words in str(error) for words in UNFINISHED) and self.is_made(identity):
            reasons = ["just being made"]
        if not reasons and os.path.lexists(self.store / "files" / identity / "layout"):
            raise error
        self.refused[reasons[0] if reasons else "vanished"] += 1
        print("refused", identity, flush=True)

    def is_made(self, identity: str) -> bool:
        """Whether a file of which a part was missing is whole before long."""
        end = time.monotonic() + MAKING_S
        while time.monotonic() < end and (self.store / "files" / identity).exists():
            with contextlib.suppress(StripewiseError):
                native.store_layout(str(self.store), identity)
                if (self.store / "files" / identity / "head").exists():
                    return True
            time.sleep(0.01)
        return False

    def stop(self, *_: object) -> None:
        """Ends after the move that is under way."""
        self.stopping = True


def main() -> None:
    """The command line."""
    churn = Churn(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1, sys.argv[3:])
    signal.signal(signal.SIGTERM, churn.stop)
    error: Exception | None = None
    try:
        while not churn.stopping:
            churn.round()
    except StripewiseError as raised:
        error = raised
    said = {"applied": churn.applied, "spans": churn.spans, "moved_bytes": churn.moved_bytes}
    print(json.dumps(said | {"refused": churn.refused, "error": error and str(error)}), flush=True)
    sys.exit(error is not None)


if __name__ == "__main__":
    main()
