"""`stripewise store gc|scrub|upgrade`: freeing what nobody reaches, looking for bit rot, other versions."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ...errors import StoreError
from ...store import Store, upkeep
from ...units import format_size, parse_age, parse_size
from ..options import JsonOption, StoreArgument
from ..output import print_json, printable, say, standing


def gc(
    store: StoreArgument,
    purge: Annotated[bool, typer.Option("--purge", help="Also remove files whose name is gone.")] = False,
    older_than: Annotated[
        str, typer.Option("--older-than", metavar="AGE", help="Minimum age of files to purge, since their last change.")
    ] = "7d",
    search: Annotated[
        list[Path] | None,
        typer.Option("--search", metavar="DIR", help="Directory to search for their links first; repeatable."),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Free space that no file or program uses any more.

    Programs may run meanwhile. Files whose name is gone are only listed, unless --purge is given. What programs left
    goes, too: unfinished files, and the file of 64 KiB ('slot') by which each shows in the store's run directory
    that it runs, where it ended without removing it.
    """
    with standing(lambda: "what was freed is gone, the rest stands; run the same command again"):
        done = upkeep.collect(Store(store), purge, parse_age(older_than, "--older-than"), search or [])
    if json:
        print_json(done)
    else:
        parts = [f"{done[key]} {what}" for key, what in _COUNTS.items() if done[key]]
        typer.echo(f"{store}: {', '.join(parts) or 'nothing to free'}")
        for orphan in done["orphans"]:
            typer.echo(_orphan(orphan, purge, older_than))
        for problem in done["problems"]:
            say(f"stripewise: {problem}")
    if done["problems"]:
        raise StoreError(f"{store}: {len(done['problems'])} file(s) could not be checked; run store fsck")


_COUNTS = {
    "trash": "file(s) freed from the trash",
    "unlinked": "of them unlinked and closed",
    "unfinished": "of them never finished",
    "journals": "adoption(s) or export(s) settled",
    "slots": "file(s) in the store's run directory that programs left there when they ended",
    "copies": "file(s) whose copies were dropped",
}


def _orphan(orphan: dict[str, Any], purge: bool, older_than: str) -> str:
    name = printable(orphan["path"]) or "(no name)"
    text = f"file {orphan['id']} ({format_size(orphan['size'])}): its name {name} is gone"
    if orphan["purged"]:
        return f"{text}; removed"
    if orphan["found"]:
        return f"{text}, but {printable(orphan['found'])} leads to it; relink that"
    is_young = orphan["age_s"] < parse_age(older_than, "--older-than")
    if purge and not is_young:
        return f"{text}; a program has it open, so it stays: run this again when that has ended"
    if purge:
        return f"{text}; younger than {older_than}: --older-than 0s frees it now"
    young = f" (it is younger than {older_than}: --purge --older-than 0s frees it now)" if is_young else ""
    return f"{text}; relink it where it is now, or free it with --purge{young}"


def scrub(
    paths: Annotated[list[Path], typer.Argument(metavar="STORE|FILE...", help="Store, or managed files.")],
    rate: Annotated[
        str | None,
        typer.Option(
            "--rate",
            metavar="SIZE",
            help="Maximum read bandwidth in bytes per second, e.g. 100MiB (default: unlimited).",
        ),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Verify all data against stored checksums, to find silent corruption.

    Checksums are taken by scrub itself: the first one reads everything and verifies nothing, and so it is with what was
    written since the last one.
    """
    limit = 0 if rate is None else parse_size(rate, "--rate")
    with standing(lambda: "no file has changed, and checksums that were taken stay; run it again for the rest"):
        total = upkeep.scrub_paths(paths, limit)
    if json:
        print_json(total)
    else:
        for rot in total["rot"]:
            typer.echo(printable(rot["message"]))
        for line in total["suspect"]:
            typer.echo(printable(f"remark: {line}"))
        busy = f", {total['busy']} being written" if total["busy"] else ""
        copies = f" and the copies of {total['copied']}" if total["copied"] else ""
        typer.echo(
            f"{total['files']} file(s){copies}, {format_size(total['bytes'])} read: {total['verified']} object(s) "
            f"compared, {total['summed']} summed for the next time{busy}"
        )
        for why in dict.fromkeys(total["away"]):
            typer.echo(printable(f"{why}; what lies there was not read"))
    if total["rot"]:
        raise StoreError(f"{len(total['rot'])} object(s) are damaged; restore these files from a copy")
    if total["away"]:
        raise StoreError("not all was verified, because a target is away; scrub again when it is back")


def upgrade(store: StoreArgument, json: JsonOption = False) -> None:
    """Convert a store to the format of this version.

    A store of a newer version is refused and left unchanged.
    """
    done = upkeep.upgrade(store)
    if json:
        print_json(done)
    else:
        typer.echo(f"{store}: version {done['version']}, {done['files']} file(s), {done['changed']} part(s) rewritten")
