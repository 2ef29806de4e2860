"""Following a plan that a store keeps: new files lie as planned at once, by a rule; a mover sees to those there are."""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Callable, Iterator, Sequence

from ..errors import StoreError, UsageError
from ..plan import Plan
from ..store import Store
from ..store.kept import KeptPlan, read_kept, ruled
from .mover_process import mover_process
from .mover_session import identity_of
from .schedule import Schedule, limited_targets


@contextlib.contextmanager
def kept_plan_followed(
    store: Store, kept: KeptPlan, options: Sequence[str], say: Callable[[str], None]
) -> Iterator[None]:
    """While it lasts, a mover follows the plan, where anything is to be moved. The run goes on without one that cannot
    start, because another is at work, say.
    """
    plan = read_kept(store.root, kept)
    with contextlib.ExitStack() as held:
        moves = has_moves(store, plan)
        if moves:
            try:
                held.enter_context(mover_process(store.root, store.root / kept.plan, options, say))
            except StoreError as error:
                say(f"stripewise: files stay where they are: {str(error).removeprefix('stripewise: ')}")
        yield
    if moves and not plan.migrations and has_moves(store, plan):
        words = ("stripewise", "migrate", str(store.root / kept.plan), "--store", str(store.root))
        say(f"stripewise: not all has moved yet; the next run goes on, or now: {shlex.join(words)}")


def has_moves(store: Store, plan: Plan) -> bool:
    """Whether a run that follows the plan needs a mover: now, in a later window, or for files without a rule."""
    if plan.migrations:
        return True
    schedule = Schedule(plan, limited_targets(store.config.cluster))
    with_rule = {file.path for file in ruled(plan)}
    for file in plan.files:
        identity = identity_of(store, file.path)
        if identity is None:
            if file.path not in with_rule:
                return True
            continue
        # One that is just being made or removed has no layout.
        with contextlib.suppress(StoreError, UsageError):
            if schedule.steps(file, 0, store.layout(identity).regions):
                return True
    return False
