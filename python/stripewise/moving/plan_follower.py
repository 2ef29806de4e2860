"""Carrying out a plan in time: window after window, what makes room first, and what could not be moved again later.

What is done is read from the files' layouts, so a mover that was killed is simply started again. Only the clock has to
outlive it: a mover of the same plan that finds its predecessor killed goes on with that one's.
"""

from __future__ import annotations

import contextlib
import hashlib
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..errors import StoreError, UsageError
from ..layout import GIVEN, Layout, Region
from ..plan import FilePlan, Plan
from ..store import Store
from .mover_session import MoverSession, identity_of
from .mover_status import read_status
from .schedule import Schedule, Step, in_order, with_region
from .trial import settle

#: A move that failed is tried again after so long; each failure doubles it.
RETRY_S = 0.5
RETRY_S_MAX = 15.0
#: Between two looks for files that are not there yet, seconds.
LOOK_S = 0.5
#: So many files that are waited for are named.
AWAITED_SHOWN = 5
#: How the line about them begins, and the way round.
AWAITS = "waiting"
NO_WAIT = "--patience 0s does not wait"
NOT_THERE = "is not a file of this store now"
#: Why a step is left that was called off while it was made.
CUT_SHORT = "stopped while its bytes were copied; the copy is dropped, the file is whole"
#: A step that has to be made more often than this within a window is undone by somebody else.
MADE_MAX = 5

Say = Callable[[str], None]


@dataclass
class Failure:
    """Why a step has not been made yet."""

    step: Step
    message: str
    retry_at: float
    attempts: int = 1
    #: No step, but something that stands in the way of all of a file's.
    is_standing: bool = False
    #: The file is not there.
    is_missing: bool = False

    def as_json(self) -> dict[str, Any]:
        """For `mover.json` and --json."""
        return {"file": self.step.path, "start": self.step.start, "len": max(self.step.len, 0), "why": self.message}


@dataclass
class Result:
    """What a mover did: its moves, and of a plan with several windows how many bring files to where it begins."""

    moves: int = 0
    first_moves: int = 0
    moved_bytes: int = 0
    seconds: float = 0.0
    left: list[dict[str, Any]] = field(default_factory=list)
    signal: int | None = None
    stopped: bool = False
    #: Whether nothing was left to move.
    is_complete: bool = False

    def as_json(self) -> dict[str, Any]:
        """The result as `migrate --json` prints it."""
        return {
            "moves": self.moves,
            "first_moves": self.first_moves,
            "moved_bytes": self.moved_bytes,
            "seconds": self.seconds,
            "left": self.left,
            "stopped": self.stopped,
        }


def plan_digest(path: Path) -> str:
    """SHA-256 of a plan file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def clock_of_killed(root: Path, digest: str) -> float | None:
    """Unix time at which the run began whose mover of the same plan was killed; None when there is none."""
    with contextlib.suppress(StoreError):
        said = read_status(root)
        if said["state"] == "killed" and said.get("plan_sha256") == digest and said.get("begun_unix"):
            return float(said["begun_unix"])
    return None


def clock_of(root: Path, digest: str, start_at_s: float | None, now: bool) -> tuple[float, float | None]:
    """When the run's clock was 0, in Unix time, and for a mover that goes on for a killed one how long ago that was."""
    if start_at_s is None and not now and (before := clock_of_killed(root, digest)) is not None:
        return before, time.time() - before
    return time.time() - (start_at_s or 0.0), None


class PlanFollower:
    """One plan on one store. `begun` is when the run's clock was 0, in Unix time; `now` ignores the clock.

    With `missing_ok`, files that are not there are waited for, and nothing is said of those that never come.
    """

    def __init__(
        self,
        store: Store,
        plan: Plan,
        schedule: Schedule,
        session: MoverSession,
        say: Say,
        begun: float,
        now: bool = False,
        patience_s: float = 60.0,
        missing_ok: bool = False,
    ) -> None:
        self.store = store
        self.plan = plan
        self.schedule = schedule
        self.session = session
        self.say = say
        self.begun = begun
        self.now = now
        self.patience_s = patience_s
        self.missing_ok = missing_ok
        self.result = Result()
        self._failures: dict[tuple[str, int, int], Failure] = {}
        self._said: set[tuple[str, str]] = set()
        self._awaited: set[str] = set()
        self._window: int | None = None
        self._made: dict[tuple[str, int, int], int] = {}
        self._is_finishing = False
        self._cut_short: tuple[str, int, int] | None = None

    def run(self) -> Result:
        """Follows the plan to its end, or until it is stopped."""
        started = time.monotonic()
        progress_at = started
        while not self.session.stopped:
            window = self._enter_window()
            if window is None:
                self.session.wait(self._until_next())
                continue
            if self.session.finishing and not self._is_finishing:
                # What the program stood in the way of is tried once more.
                self._is_finishing = True
                self._failures.clear()
            steps = self._ready(window)
            moved = False
            for step in steps:
                if self._make(step):
                    moved, progress_at = True, time.monotonic()
                if self.session.stopped or self._due() != self._window:
                    break
            if moved or self.session.stopped or self._due() != self._window:
                continue
            is_over = window == self.schedule.last and (
                not self._failures or time.monotonic() - progress_at >= self.patience_s
            )
            if is_over:
                break
            self._tell_awaited(window)
            self.session.wait(min(self._until_next(), LOOK_S))
        self.result.left = [failure.as_json() for failure in self._failures.values() if self._counts(failure)]
        self.result.left += self._undone()
        self.result.stopped = self.session.stopped
        self.result.is_complete = not (self.result.left or self._failures) and self._is_last()
        if self.result.is_complete:
            settle(self.store.root, {file.path for file in self.plan.files})
        self.result.signal = self.session.signal
        self.result.seconds = time.monotonic() - started
        self._tell_moves(left=self.result.left, complete=self.result.is_complete)
        return self.result

    def _tell_moves(self, **said: Any) -> None:
        made = self.result
        self.session.tell(moves=made.moves, first_moves=made.first_moves, moved_bytes=made.moved_bytes, **said)

    def _count(self, step: Step) -> None:
        """One move more."""
        self.result.moves += 1
        self.result.first_moves += bool(self.plan.migrations) and not self.schedule.is_planned(step, self._window)

    def _tell_awaited(self, window: int) -> None:
        """Says which files are waited for, each once, and how long."""
        awaited = dict.fromkeys(failure.step.path for failure in self._failures.values() if failure.is_missing)
        new = [path for path in awaited if path not in self._awaited]
        if not new:
            return
        self._awaited.update(new)
        names = ", ".join(new[:AWAITED_SHOWN]) + (f" and {len(new) - AWAITED_SHOWN} more" * (len(new) > AWAITED_SHOWN))
        limit = f"up to {self.patience_s:g} s" + (
            "" if window == self.schedule.last else " after the last window began"
        )
        self.say(f"{AWAITS} {limit} for {len(new)} file(s) that are not in the store yet: {names}; {NO_WAIT}")

    def _is_last(self) -> bool:
        """Whether no window moves anything after the one that the mover is in."""
        if self._window is None:
            return not self.schedule.starts_s
        return not any(moves for window, moves in self.schedule.moves.items() if window > self._window)

    def _due(self) -> int | None:
        if self._is_finishing:
            return self._window
        return self.schedule.last if self.now else self.schedule.window_at(time.time() - self.begun)

    def _until_next(self) -> float:
        following = None if self.now else self.schedule.next_start_s(time.time() - self.begun)
        return LOOK_S if following is None else max(0.0, self.begun + following - time.time())

    def _enter_window(self) -> int | None:
        window = self._due()
        if window != self._window:
            self._window = window
            self._failures.clear()
            self._made.clear()
            self.session.tell(window=window, windows=sorted(self.schedule.starts_s))
            if window is not None:
                self.session.expect(sum(step.bytes for step in self._steps(window)))
        return window

    def _steps(self, window: int) -> list[Step]:
        """What is left of the window, without looking at when it is to be tried again."""
        steps: list[Step] = []
        for file in self.plan.files:
            regions = self._layout(file)
            if regions is not None:
                try:
                    steps += self.schedule.steps(file, window, regions)
                except UsageError as error:
                    self._fail(Step(file.path, 0, 0, file.layout, "restripe", file.size), str(error), is_standing=True)
        return in_order(steps)

    def _ready(self, window: int) -> list[Step]:
        now = time.monotonic()
        steps = self._steps(window)
        left = {step.key for step in steps}
        self._failures = {k: failure for k, failure in self._failures.items() if k in left or failure.is_standing}
        return [s for s in steps if s.key not in self._failures or self._failures[s.key].retry_at <= now]

    def _layout(self, file: FilePlan) -> tuple[Region, ...] | None:
        """The file's regions now; None, and noted, when it is not there."""
        missing = Step(file.path, 0, -1, file.layout, "restripe", file.size)
        identity = identity_of(self.store, file.path)
        if identity is None:
            self._fail(missing, NOT_THERE, is_standing=True)
            return None
        try:
            regions = self.store.layout(identity).regions
        except StoreError as error:
            self._fail(missing, str(error), is_standing=True)
            return None
        self._failures.pop(missing.key, None)
        return regions

    def _make(self, step: Step) -> bool:
        """Makes one step; notes why when it cannot be made now."""
        identity = identity_of(self.store, step.path)
        if identity is None:
            self._fail(step, NOT_THERE)
            return False
        try:
            wanted = with_region(self.store.layout(identity).regions, step)
        except StoreError as error:
            self._fail(step, str(error))
            return False
        moved = self.session.move(step.path, identity, Layout(wanted, GIVEN), step.start, step.bytes)
        if moved.was_stopped:
            # It may have been at its end by then; what has moved stays.
            self.result.moved_bytes += moved.moved_bytes
            if self._is_made(step):
                self._count(step)
            self._cut_short = step.key
            return False
        if moved.error:
            self._fail(step, moved.message)
            return False
        self._failures.pop(step.key, None)
        self._made[step.key] = self._made.get(step.key, 0) + 1
        if self._made[step.key] > MADE_MAX:
            self._fail(step, "somebody else moves it back; let one mover or policy have the file")
            return False
        self._count(step)
        self.result.moved_bytes += moved.moved_bytes
        self._tell_moves()
        return True

    def _is_made(self, step: Step) -> bool:
        """Whether none of its bytes is left; how the file grows may be."""
        left = self._steps(self._window) if self._window is not None else []
        return not any(
            each.path == step.path
            and each.bytes
            and each.start < step.start + step.bytes
            and step.start < each.start + each.bytes
            for each in left
        )

    def _fail(self, step: Step, message: str, is_standing: bool = False) -> None:
        before = self._failures.get(step.key)
        attempts = 1 if before is None else before.attempts + 1
        wait = min(RETRY_S * 2 ** (attempts - 1), RETRY_S_MAX)
        failure = Failure(step, message, time.monotonic() + wait, attempts, is_standing, message == NOT_THERE)
        self._failures[step.key] = failure
        # Each reason once: a file that is mapped for an hour is tried a hundred times.
        if not failure.is_missing and (step.path, message) not in self._said:
            self._said.add((step.path, message))
            where = step.path if step.len <= 0 else f"{step.path}, bytes {step.start} on"
            self.say(f"{where}: stays where it is for now ({message})")

    def _counts(self, failure: Failure) -> bool:
        return not (self.missing_ok and failure.is_missing)

    def _undone(self) -> list[dict[str, Any]]:
        """What was called off, if anything was."""
        if not self.session.stopped or self._window is None:
            return []
        known = set(self._failures)
        left = [step for step in self._steps(self._window) if step.key not in known]
        return [Failure(s, CUT_SHORT if s.key == self._cut_short else "not begun", 0.0).as_json() for s in left]
