"""Files go back to where they lay before a circle of `tune`: where nothing was faster, after Ctrl-C, after an error.

Where they cannot, the layouts that they had are written as a plan, which one command applies.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from ..errors import StoreError, StripewiseError
from ..files.parts import locked_part
from ..files.spelling import path_meant
from ..layout import GIVEN, OWN, Layout, target_bytes
from ..moving.mover_status import check_idle
from ..moving.plan_applier import Wanted, lay_out
from ..moving.trial import cut_short, former_layouts, made_by_trial, settle
from ..plan import Expected, FilePlan, Plan, write_plan
from ..plan.document import RegionPlan
from ..signals import go_on_unless
from ..store import Store
from ..store.config import TUNE_LOCK
from ..store.globs import matches
from ..store.room import is_given, own_layout, room_bytes
from ..units import command_line
from .shown import Shown
from .traces_place import remove_left

#: Where each file lay, by path.
Before = Mapping[str, Layout]


def put_back(store: Store, before: Before, show: Shown) -> int | None:
    """Lays out the files that are there as they were; the signal that ended it, if one did."""
    sizes = {file.spelled: file.size for file in store.files() if file.spelled in before}
    there: dict[str, Wanted] = {}
    for path, layout in before.items():
        # A file may be noted by several names.
        if (identity := store.resolve(path)) is not None and identity not in there:
            there[identity] = Wanted(path, identity, layout.regions, sizes.get(path, 0), _origin(store, layout))
    with show.working("moving") as step:
        return lay_out(store, list(there.values()), progress=step, verb="tune").signal


def _origin(store: Store, layout: Layout) -> str:
    """Whose layout it was; of one from before that was kept, by its regions."""
    template = store.config.layout(store.config.default_layout)
    return layout.origin or (GIVEN if is_given(layout, template) else OWN)


def put_back_killed(store: Store, show: Shown) -> tuple[int, str]:
    """Puts the files of a killed tune back to where they lay before it, those that its runs made as new files lie, and
    removes its traces; how many files that were, and why another one could not move. Those whose former layout was not
    noted stay, and are told as before. Raises StoreError where none can move now.
    """
    if not cut_short(store.root):
        return 0, ""
    remove_left()
    try:
        with locked_part(store.root, TUNE_LOCK, wait=False):
            check_idle(store.root)
            before = former_layouts(store.root, [each.name for each in store.config.cluster.active])
            made = [path for path in made_by_trial(store.root) if path not in before]
            before |= {path: layout for path in made if (layout := _as_new(store, path)) is not None}
            done, why_not = _each_put_back(store, before, show)
    except StripewiseError:
        raise
    except BlockingIOError as error:
        raise StoreError(f"{store.root}: a tune is at work on this store; wait until it ends") from error
    except OSError as error:
        raise StoreError(f"{store.root / TUNE_LOCK}: {error.strerror}; remove it where nothing tunes here") from error
    gone = {path for path in made if path not in before}
    settle(store.root, {*done, *gone})
    return len({store.resolve(path) for path in done} - {None}), why_not


def _each_put_back(store: Store, before: Before, show: Shown) -> tuple[set[str], str]:
    """All of them at once, or else one by one: the paths of those that lie there now, and why another one does not."""
    try:
        go_on_unless(put_back(store, before, show))
        return set(before), ""
    except StripewiseError:
        done, why_not = set(), ""
    for path, layout in before.items():
        try:
            go_on_unless(put_back(store, {path: layout}, show))
            done.add(path)
        except StripewiseError as error:
            why_not = why_not or str(error)
    return done, why_not


def _as_new(store: Store, path: str) -> Layout | None:
    """How a file would lie that a program made now; None where there is none of that name."""
    if (identity := store.resolve(path)) is None:
        return None
    return own_layout(store, room_bytes(store), identity)


def put_back_or_tell(store: Store, before: Before, applied: Plan, show: Shown) -> None:
    """The same where a circle ends early. What keeps it from that, another signal among it, is told with the files that
    lie elsewhere and the command that puts them back.
    """
    if not _elsewhere(store, before):
        show.say("the files have their former layout: nothing to put back")
        return
    show.say("moving the files back to their former layout")
    try:
        why = "" if put_back(store, before, show) is None else "stopped by a signal"
    except StripewiseError as error:
        why = str(error)
    except KeyboardInterrupt:
        why = "stopped by a signal"
    left = _elsewhere(store, before) if why else []
    if not left:
        return
    try:
        way = f"to put them back: {_command(store, before, applied)}"
    except (StripewiseError, OSError) as error:
        way = f"their former layouts are lost, too ({error}); lay them out with 'stripewise store set-layout'"
    which = f"{len(left)} of {len(before)} file(s) have another layout, {left[0]} among them"
    show.say(f"not all files are back ({why}): {which}; {way}")


def _elsewhere(store: Store, before: Before) -> list[str]:
    """The files that are there and have another layout than before; all where that cannot be asked."""
    try:
        ids = {path: store.resolve(path) for path in before}
        return [path for path, each in ids.items() if each and store.layout(each) != before[path]]
    except StripewiseError:
        return list(before)


def where_back(store: Store, before: Before, baseline: Plan) -> str:
    """Where files go back that lay somewhere before a tune which its `baseline` won, and where that is another layout
    than the baseline's, what gives them that.
    """
    sizes = {file.spelled: file.size for file in store.files()}
    other = [
        file.path
        for file in baseline.files
        if file.path in before
        and target_bytes(before[file.path].regions, size := sizes.get(file.path, file.size))
        != target_bytes(file.layout, size)
    ]
    if not other:
        return "the files go back to their former layout"
    more = f" and {len(other) - 1} more" if len(other) > 1 else ""
    said = f"the files go back to their former layout, which is not {baseline.policy} ({other[0]}{more})"
    if baseline.policy != "def":
        return said
    words = ["stripewise", "store", "set-layout", path_meant(other[0]), "--layout", "def"]
    said += f"; to give it to one: {command_line(words)}"
    glob = next((each.glob for each in store.config.rules if each.layout and matches(each.glob, other[0])), None)
    if glob is None:
        return said
    remove = command_line(["stripewise", "store", "template", "rm", str(store.root), glob])
    return f"{said}; to give it to new files: {remove}"


def standing(store: Store, plan: Plan) -> str:
    """How files lie that nothing puts back, for the first run made them: as the plan has them, or not."""
    sizes = {file.spelled: file.size for file in store.files()}
    there = [(file, each) for file in plan.files if (each := store.resolve(file.path)) is not None]
    planned = [
        file
        for file, each in there
        if target_bytes(store.layout(each).regions, size := sizes.get(file.path, file.size))
        == target_bytes(file.layout, size)
    ]
    made = "the files were made by the first run, so there is no earlier layout to put back"
    if len(planned) == len(there):
        return f"{made}; they lie as {plan.policy}"
    first = next(file.path for file, _ in there if file not in planned)
    return f"{made}; {len(planned)} of {len(there)} lie as {plan.policy}, the others as new files do ({first})"


def _command(store: Store, before: Before, applied: Plan) -> str:
    """The command that lays the files out as they were, by a plan that is left for it."""
    handle, name = tempfile.mkstemp(prefix="stripewise-before-tune-", suffix=".json")
    os.close(handle)
    write_plan(plan_of(before, applied, {file.spelled: file.size for file in store.files()}), Path(name))
    return command_line(["stripewise", "apply", name, "--store", str(store.root), "--no-templates"])


def plan_of(before: Before, applied: Plan, sizes: Mapping[str, int]) -> Plan:
    """A plan that puts the files where they lay; of their run and store it says what `applied` says."""
    files = tuple(
        FilePlan(
            path, None, sizes[path], tuple(RegionPlan(each.start, each.len, each.stripes) for each in layout.regions)
        )
        for path, layout in before.items()
        if path in sizes
    )
    plan = replace(applied, policy="before", files=files, expected=Expected(0.0, 0.0, 0.0, 0.0), comment="")
    plan = replace(plan, migrations=(), windows=applied.windows[:1], leave=False)
    return replace(plan, target_bytes=plan.bytes_per_target())
