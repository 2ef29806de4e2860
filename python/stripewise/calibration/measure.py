"""What is asked of a target, and for how long: sizes, orders and directions in turn, so that a drift meets all.

One at a time a request's time is its own latency. With several in flight, and on emulated targets, it is the distance
of completions: the share of the device that a request takes.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.random import default_rng

from .. import native
from ..cluster.calibration import KINDS
from ..errors import StoreError
from ..units import KIB, MIB

SIZES = (4 * KIB, 16 * KIB, 64 * KIB, 256 * KIB, MIB, 4 * MIB)
#: Requests of one size and kind that are made where there is time: as many as the figures get better by.
REQUESTS_MAX = 400
#: Turns of one size and kind on an emulated target, which has no tail.
EMULATED_TURNS_MAX = 8
#: Of a size and kind in one turn.
BATCH = 20
#: A saturated device has so many requests in flight.
IN_FLIGHT = 8
#: Completions between the two that a saturated time is taken from.
LAG = 16
#: A turn on an emulated target lasts so long at least: a timer's lateness (50 us, more when busy) is little of it.
EMULATED_TURN_S = 0.04
#: Requests of an emulated turn, all in flight: so many at first, so many at most.
EMULATED_TURN_MIN = 17
EMULATED_TURN_MAX = 8192
#: Windows that an emulated turn is cut into.
WINDOWS = 4
#: Offsets are multiples of it.
GRANULE = 4096
#: The scratch file is filled for at most this share of the time.
FILL_SHARE = 1 / 3
#: The largest size fits so many times into the scratch file, and there are so many sizes at least.
FITS = 8
SIZES_MIN = 3
_STEP_NS = 200_000_000
_LIMIT_MIN_NS = 20_000_000
#: What is reserved on a clock is reserved at once: its time is bounded by how much is asked for.
_UNLIMITED_S = 3600.0

Progress = Callable[[int, int], None]


class Probe(Protocol):
    """What the native module's Probe does; see crates/python."""

    def begin(self, directory: str, target: int, scratch_bytes: int) -> None:
        """Turns to a target of the store, or to a directory that is of none."""

    def fill(self, limit_ns: int) -> str:
        """Fills the scratch file for a while: JSON of method, bytes and filled_bytes."""

    def run(self, requests: list[tuple[int, int]], write: bool, in_flight: int, limit_ns: int) -> list[tuple[int, int]]:
        """Makes (offset, bytes) requests; (start, end) in ns of those made within the limit."""

    def close(self) -> None:
        """Gives everything back."""


@contextlib.contextmanager
def open_probe(store: Path | None) -> Iterator[Probe]:
    """A probe of the targets of `store`, which nobody else has as long as it lives, or of directories of none.

    Raises StoreError, InUseError when programs use the store.
    """
    probe: Probe = native.make("Probe", None if store is None else str(store))
    try:
        yield probe
    finally:
        probe.close()


@dataclass
class Cell:
    """One kind at one size: the times so far, seconds."""

    kind: str
    size: int
    times: list[float] = field(default_factory=list)
    #: Those made so far.
    requests: int = 0
    #: On an emulated target, requests of a turn and seconds that one takes; 0 = not known yet.
    turn: int = 0
    expected_s: float = 0.0

    @property
    def write(self) -> bool:
        return self.kind.endswith("_write")

    @property
    def is_sequential(self) -> bool:
        """Whether each request continues the last one."""
        return self.kind.startswith("sequential")

    @property
    def is_saturated(self) -> bool:
        """Whether several are in flight."""
        return self.kind.startswith("saturated")


@dataclass(frozen=True)
class Measured:
    """Samples of one target: per kind the sizes (bytes) and times (seconds)."""

    method: str
    in_flight: int
    requests: int
    scratch_bytes: int
    seconds: float
    sizes: tuple[int, ...]
    samples: dict[str, tuple[list[int], list[float]]]


class Measurement:
    """One target under measurement for about `seconds`; `step` is told milliseconds done and in all."""

    def __init__(self, probe: Probe, name: str, seconds: float, step: Progress, seed: int = 1) -> None:
        self.probe = probe
        self.name = name
        self.seconds = seconds
        self.step = step
        self.begin = time.monotonic()
        self.chance = default_rng(seed)
        self.method = ""
        self.bytes = 0
        self.in_flight_max = 0

    def run(self) -> Measured:
        """Measures. Raises StoreError when the time does not suffice for a line, or with what the target says."""
        self._fill()
        is_emulated = self.method == "emulated"
        sizes = tuple(size for size in SIZES if size * FITS <= self.bytes and not (is_emulated and size > MIB))
        if len(sizes) < SIZES_MIN:
            raise StoreError(
                f"target {self.name}: only {self.bytes} bytes of its scratch file could be written in time; "
                f"give --seconds more than {self.seconds:g}"
            )
        kinds = [kind for kind in KINDS if not (is_emulated and kind.startswith("saturated"))]
        cells = [Cell(kind, size) for size in sizes for kind in kinds]
        enough = EMULATED_TURNS_MAX * WINDOWS if is_emulated else REQUESTS_MAX
        turn = self._emulated_turn if is_emulated else self._turn
        for cell, left in self._rounds(cells, enough, is_emulated):
            turn(cell, max(self._left_s() / left, _LIMIT_MIN_NS / 1e9))
        samples = {
            kind: (
                [cell.size for cell in cells if cell.kind == kind for _ in cell.times],
                [value for cell in cells if cell.kind == kind for value in cell.times],
            )
            for kind in kinds
        }
        for kind, (found, _) in samples.items():
            if len(set(found)) < SIZES_MIN:
                raise StoreError(f"target {self.name}: too slow for {self.seconds:g} s ({kind}); give --seconds more")
        return Measured(
            method=self.method,
            in_flight=self.in_flight_max,
            requests=sum(cell.requests for cell in cells),
            scratch_bytes=0 if is_emulated else self.bytes,
            seconds=time.monotonic() - self.begin,
            sizes=sizes,
            samples=samples,
        )

    def _left_s(self) -> float:
        return self.begin + self.seconds - time.monotonic()

    def _told(self) -> None:
        done = min(time.monotonic() - self.begin, self.seconds)
        self.step(int(done * 1000), int(self.seconds * 1000))

    def _fill(self) -> None:
        filled = -1
        while True:
            found = native.parsed(self.probe.fill, _STEP_NS)
            self.method, self.bytes = str(found["method"]), int(found["filled_bytes"])
            self._told()
            is_over = self._left_s() < self.seconds * (1 - FILL_SHARE)
            if self.bytes >= int(found["bytes"]) or (is_over and filled >= 0):
                return
            filled = self.bytes

    def _rounds(self, cells: list[Cell], enough: int, is_emulated: bool) -> Iterator[tuple[Cell, int]]:
        """Cells in turn, each with how many the time that is left is for; the first round is made whole."""
        is_first = True
        while True:
            wanted = [cell for cell in cells if (len(cell.times) if is_emulated else cell.requests) < enough]
            for number, cell in enumerate(wanted):
                if not is_first and self._left_s() <= 0:
                    return
                yield cell, len(wanted) - number
                self._told()
            if not wanted or self._left_s() <= 0:
                return
            is_first = False

    def _requests(self, cell: Cell, count: int) -> list[tuple[int, int]]:
        """`count` requests at chance (none continues its predecessor) or one after the other."""
        if cell.is_sequential:
            count = min(count, self.bytes // cell.size)
            room = (self.bytes - count * cell.size) // GRANULE
            start = int(self.chance.integers(0, room + 1)) * GRANULE
            return [(start + number * cell.size, cell.size) for number in range(count)]
        places = (self.bytes - cell.size) // GRANULE + 1
        offsets = self.chance.integers(0, places, count) * GRANULE
        # One that would continue its predecessor goes back to the front, which no request ends at.
        for number in range(1, count):
            if offsets[number] == offsets[number - 1] + cell.size:
                offsets[number] = 0
        return [(int(offset), cell.size) for offset in offsets]

    def _ask(self, cell: Cell, count: int, in_flight: int, limit_s: float) -> list[tuple[int, int]]:
        requests = self._requests(cell, count)
        done = native.parsed(self.probe.run, requests, cell.write, in_flight, int(limit_s * 1e9))
        cell.requests += len(done)
        self.in_flight_max = max(self.in_flight_max, in_flight)
        return list(done)

    def _turn(self, cell: Cell, limit_s: float) -> None:
        """A turn on a real target."""
        if not cell.is_saturated:
            # The first of a sequence had to be gone to.
            skip = 1 if cell.is_sequential else 0
            done = self._ask(cell, BATCH + skip, 1, limit_s)
            cell.times += [(end - start) / 1e9 for start, end in done[skip:]]
            return
        done = self._ask(cell, IN_FLIGHT + 2 * LAG + 1, IN_FLIGHT, limit_s)
        ends = np.sort(np.array([end for _, end in done], dtype=float))[IN_FLIGHT - 1 :]
        cell.times += _windows(ends, min(LAG, len(ends) - 1))

    def _emulated_turn(self, cell: Cell, limit_s: float) -> None:
        """A turn on an emulated target: all of it in flight, so that the device does not rest.

        Turns grow until they last long enough, from whole durations: distances of few completions say nothing.
        """
        count = cell.turn or EMULATED_TURN_MIN
        if cell.expected_s:
            count = min(count, max(WINDOWS + 1, int(limit_s / cell.expected_s)))
        while True:
            done = self._ask(cell, count, count, _UNLIMITED_S)
            lasted_s = (done[-1][1] - done[0][0]) / 1e9
            longer = min(EMULATED_TURN_MAX, 8 * count, math.ceil(count * EMULATED_TURN_S / lasted_s))
            if cell.expected_s or longer < 2 * count:
                break
            count = longer
        if not cell.expected_s:
            cell.turn, cell.expected_s = count, lasted_s / count
        cell.times += _windows(np.array([end for _, end in done], dtype=float), (len(done) - 1) // WINDOWS)


def _windows(ends_ns: np.ndarray[Any, Any], lag: int) -> list[float]:
    """Seconds per request over windows of `lag` completions, one after the other."""
    if lag < 1:
        return []
    marks = ends_ns[::lag]
    return [float(value) for value in np.maximum(np.diff(marks), 0.0) / (lag * 1e9)]
