"""Following a plan that a store keeps: new files lie as planned at once, by a rule; a mover sees to those there are."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence

from ..errors import StoreError, UsageError
from ..files.parts import is_locked
from ..plan import Plan
from ..store import Store
from ..store.config import TUNE_LOCK, KeptPlan
from ..store.kept import ruled
from ..units import command_line
from .mover_process import MoverBeside, mover_process
from .mover_session import identity_of
from .schedule import Schedule, limited_targets


@contextlib.contextmanager
def kept_plan_followed(
    store: Store, kept: KeptPlan, plan: Plan, options: Sequence[str], say: Callable[[str], None]
) -> Iterator[MoverBeside]:
    """While it lasts, a mover follows the plan, where anything is to be moved. The run goes on without one that cannot
    start, because another is at work, say; while a tune is at work, nothing moves under it.
    """
    path = store.root / kept.plan
    with contextlib.ExitStack() as held:
        began, beside = False, MoverBeside(say)
        if has_moves(store, plan) and is_locked(store.root, TUNE_LOCK):
            say("stripewise: files stay where they are: a tune is at work on this store and measures")
        elif has_moves(store, plan):
            try:
                beside = held.enter_context(mover_process(store.root, path, options, say))
                began = True
            except StoreError as error:
                say(f"stripewise: files stay where they are: {str(error).removeprefix('stripewise: ')}")
        yield beside
    if began and not plan.migrations and _lies_otherwise(store, plan):
        words = ("stripewise", "migrate", str(path), "--store", str(store.root), "--missing-ok")
        say(f"stripewise: not all has moved yet; the next run moves the rest, or now: {command_line(words)}")


def has_moves(store: Store, plan: Plan) -> bool:
    """Whether a run that follows the plan needs a mover: now, in a later window, or for files without a rule."""
    if plan.migrations:
        return True
    with_rule = {file.path for file in ruled(plan)}
    without = (file.path for file in plan.files if file.path not in with_rule)
    return any(identity_of(store, path) is None for path in without) or _lies_otherwise(store, plan)


def _lies_otherwise(store: Store, plan: Plan) -> bool:
    """Whether a file that is there does not lie as window 0 wants it."""
    schedule = Schedule(plan, limited_targets(store.config.cluster))
    for file in plan.files:
        # One that is just being made or removed has no layout, or no identity any more.
        with contextlib.suppress(StoreError, UsageError):
            identity = identity_of(store, file.path)
            if identity is not None and schedule.steps(file, 0, store.layout(identity).regions):
                return True
    return False
