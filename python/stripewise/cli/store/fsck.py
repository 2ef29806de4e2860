"""`stripewise store fsck`: whether every byte of a store has one place, and mending it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from ... import native
from ...errors import StoreError, StripewiseError, UsageError
from ...files.spelling import spelled
from ...moving.trial import cure_of, cut_short
from ...run.put_back import put_back_killed
from ...run.shown import Shown
from ...store import Store
from ...store.plans import unreadable as unreadable_plans
from ...store.rewrite import put_back_compiled
from ...store.room import unwritable_targets
from ...store.store import compile_anew, recorded_name
from ...store.undo.lost import lost_names, with_links
from ...store.undo.stopped import end_stopped, stopped
from ...units import quoted
from ..options import JsonOption, StoreArgument
from ..output import print_json, printable, progress, say, standing
from . import upkeep

#: Of findings of one kind so many are shown one by one; the rest is counted (--json has all).
SHOWN = 5
#: The finding that a target's directory is missing or another's.
AWAY = "target-wrong"


def grouped(store: Store, found: Mapping[str, Any]) -> Iterator[str]:
    """The sentences of a check of the store, those of a kind after each other, and how many more of it there are."""
    kinds: dict[tuple[str, str, bool], list[Mapping[str, Any]]] = {}
    for finding in found.get("findings", []):
        if finding["severity"] != "info":
            kinds.setdefault((finding["code"], finding["cure"], finding["repaired"]), []).append(finding)
    for (code, cure, repaired), findings in kinds.items():
        end = " (mended)" if repaired else f"; {cure}"
        for finding in findings[:SHOWN]:
            yield finding["message"] + _named(end, store, finding.get("file"))
        if len(findings) > SHOWN:
            yield f"and {len(findings) - SHOWN:,} more like these ({code}){end}"


def _named(cure: str, store: Store, identity: str | None) -> str:
    """A cure for files of its kind as that of one of them: with its name in the command, if one leads to it."""
    if not identity or " rm FILE" not in cure:
        return cure
    # Whoever may write a file chooses what its record says.
    name = recorded_name(store.root, identity)
    if name and os.path.islink(name) and store.resolve(name) == identity:
        return cure.replace(" rm FILE", f" rm {quoted(name)}")
    return cure


def _mended(found: Mapping[str, Any]) -> int:
    return sum(finding["repaired"] for finding in found.get("findings", []) if finding["severity"] != "info")


def _verdict(found: Mapping[str, Any]) -> str:
    """What is true of a store in which no error stands, after what was mended."""
    mended, warnings = _mended(found), int(found.get("warnings", 0))
    said = f", {mended} finding(s) mended" if mended else ""
    if warnings:
        return f"no byte is lost or ambiguous{said}, but {warnings} warning(s) stand; see them above"
    return f"sound now{said}" if mended else "sound"


#: What a repair mended before a store could be opened.
_PUT_BACK = "store.toml was {} (mended: the one is back that verbs used last)"
_COMPILED = "store.bin was missing or damaged (mended: compiled anew from store.toml)"


@dataclass(frozen=True)
class _Before:
    """What had to be mended before a store could be checked, as only a repair does."""

    #: What store.toml was, where the one that verbs used last is back.
    toml_was: str = ""
    is_compiled: bool = False
    marked: str = ""

    def lines(self) -> Iterator[str]:
        if self.toml_was:
            yield _PUT_BACK.format(self.toml_was)
        if self.is_compiled:
            yield _COMPILED
        if self.marked:
            yield f"target {self.marked}: its directory had not its mark (mended: marked anew, and nothing else so far)"


def _opened(root: Path, repair: bool, mark: str | None) -> tuple[Store, _Before]:
    """The store, and what had to be mended before."""
    toml_was = put_back_compiled(Path(os.path.realpath(root))) if repair else ""
    is_compiled = False
    try:
        opened = Store(root)
    except StoreError:
        if not repair or not compile_anew(root):
            raise
        opened, is_compiled = Store(root), True
    is_marked = (
        mark is not None
        and bool(opened.config.target(mark))
        and bool(native.call("store_mark", str(opened.root), mark))
    )
    return opened, _Before(toml_was, is_compiled, mark or "" if is_marked else "")


def _put_back(store: Store) -> tuple[int, str]:
    """How many files of a killed tune have their former layout again, and why the others have not."""
    try:
        return put_back_killed(store, Shown(say, lambda _: None, progress))
    except StripewiseError as error:
        return 0, str(error)


def fsck(
    store: StoreArgument,
    repair: Annotated[bool, typer.Option("--repair", help="Repair what can be repaired without data loss.")] = False,
    purge: Annotated[
        bool, typer.Option("--purge", help="With --repair: also remove objects with data that belong to no file.")
    ] = False,
    mark: Annotated[
        str | None,
        typer.Option(
            "--mark",
            metavar="TARGET",
            help="With --repair: mark the directory of TARGET as its own, which lost the file that says so.",
        ),
    ] = None,
    sums: Annotated[bool, typer.Option("--scrub", help="Verify checksums afterwards, as 'store scrub' does.")] = False,
    json: JsonOption = False,
) -> None:
    """Check the consistency of a store, and repair it with --repair.

    Every byte has one place, no slices overlap, no object is missing, capacities hold.

    Exit status: 0 where no byte is lost or ambiguous (the store is sound, or all that was wrong is mended, or only
    warnings stand), 1 where an error stands.
    """
    if purge and not repair:
        raise UsageError("--purge: is part of a repair; add --repair")
    if mark is not None and not repair:
        raise UsageError("--mark: is part of a repair; add --repair")
    stands = "what was mended by then stays mended" if repair else "nothing was changed"
    with standing(lambda: f"{stands}; run the same command again for its findings"):
        opened, before = _opened(store, repair, mark)
        # What a wrong mark would take for damage is the files' own.
        repair = repair and not before.marked
        ended = end_stopped(opened.root) if repair else 0
        found = with_links(opened, opened.fsck(repair and not purge))
        if purge and repair:
            if names := lost_names(found):
                others = f" and {len(names) - 1} more" if len(names) > 1 else ""
                raise StoreError(
                    f"--purge: would free what is left of {spelled(names[0])}{others}; "
                    f"'stripewise store fsck {quoted(store)}' says what helps"
                )
            found = with_links(opened, opened.fsck(repair, purge))
        is_back, why_not = _put_back(opened) if repair else (0, "")
    problems = [str(problem) for problem in found.get("problems", [])]
    # Nothing is wrong with the store then, but its files are not where their owner wants them.
    killed, half_undone = cut_short(opened.root), stopped(opened)
    if json:
        more: dict[str, Any] = {"store_bin_compiled": before.is_compiled, "store_toml_was": before.toml_was}
        more |= {"target_marked": before.marked}
        more |= {"tune_killed": killed, "put_back": is_back, "undo_stopped": half_undone, "undo_ended": ended}
        print_json({**found, **{key: value for key, value in more.items() if value}})
    else:
        for line in before.lines():
            typer.echo(printable(line))
        for line in grouped(opened, found):
            typer.echo(printable(line))
        if is_back:
            typer.echo(f"remark: a tune was killed; {is_back} file(s) have the layout again that they had before it")
        if killed:
            cure = f"cannot be put back now: {why_not}" if why_not else cure_of(opened.root)
            typer.echo(printable(f"remark: {killed}; {cure}"))
        for line in half_undone:
            typer.echo(printable(f"remark: {line}"))
        if ended:
            typer.echo(
                f"remark: an undo was stopped while it made {ended} file(s) plain; ended, and its copies removed"
            )
        for why in unreadable_plans(opened.config):
            typer.echo(printable(f"remark: {why}"))
        for why in unwritable_targets(opened).values():
            typer.echo(printable(f"remark: {why}"))
    # Warnings are said and no failure: nothing is lost or ambiguous.
    errors = int(found.get("errors", 0 if found.get("repaired") else len(problems)))
    if errors:
        mended = f", {_mended(found)} finding(s) mended" if _mended(found) else ""
        stand = [each for each in found.get("findings", ()) if each["severity"] == "error" and not each["repaired"]]
        lost = bool(stand) and all(each["code"] == AWAY for each in stand)
        cure = "--repair cannot mend them" if repair else "--repair mends what it can"
        cure = "and where the target is lost for good, 'stripewise store drain --help'" if lost else cure
        raise StoreError(f"{store}: {errors} error(s) stand{mended}; see them above, {cure}")
    if not json:
        typer.echo(f"{store}: {_verdict(found)}")
    if sums:
        upkeep.scrub([store], json=json)
