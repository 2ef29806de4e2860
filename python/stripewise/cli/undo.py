"""`stripewise undo`: every file of a store plain again, compared, and the store gone."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from ..cluster.described import descriptions
from ..errors import ClusterError, InUseError, StoreError, StripewiseError
from ..moving.mover_status import check_idle
from ..store.config import read_store
from ..store.undo.decide import Decision
from ..store.undo.run import Stands, Undone, look
from ..store.undo.run import undo as undo_store
from ..units import command_line, format_size, quoted
from .options import JsonOption, StoreArgument
from .output import print_json, printable, progress, say, wrapped

#: So many files are shown by --dry-run; --json has all.
SHOWN = 20
#: What init calls the description of a store's targets unless it is told otherwise.
CLUSTER_FILE = "cluster.toml"


def undo(
    store: StoreArgument,
    orphans: Annotated[
        Path | None,
        typer.Option(
            "--orphans", metavar="DIR", help="Output directory for files that no link leads to, made if missing."
        ),
    ] = None,
    search: Annotated[
        list[Path] | None,
        typer.Option("--search", metavar="DIR", help="Directory to search for links as well; repeatable."),
    ] = None,
    wait: Annotated[
        float, typer.Option("--wait", min=0, metavar="SECONDS", help="Maximum wait for files that a program has open.")
    ] = 0.0,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be done, and change nothing.")] = False,
    json: JsonOption = False,
) -> None:
    """Convert all files of a store to plain files, and remove the store.

    Checksums are compared. Safe against kills: each file is managed or plain, and complete; run it again to resume.
    """
    if os.path.realpath(store).startswith("/stripewise:"):
        layout = command_line(["stripewise", "store", "layout", str(store)])
        raise ClusterError(f"{store}: is a managed file and no store; '{layout}' names its store")
    if dry_run:
        _print_decision(store, look(store, orphans, search or []), json)
        return
    stands = Stands()
    with stands.told():
        clusters = _descriptions(Path(os.path.realpath(store)))
        with progress("making files plain") as step:
            try:
                done = undo_store(store, orphans, search or [], wait, _complain, step, stands)
            except InUseError:
                # What has a file open, or keeps the store busy, may be no program but a mover.
                check_idle(Path(os.path.realpath(store)))
                raise
        if json:
            print_json(done.as_json())
        else:
            _print(done, clusters)


def _complain(text: str) -> None:
    say(f"stripewise: {printable(text)}")


def _print_decision(store: Path, decision: Decision | None, json: bool) -> None:
    if decision is None:
        typer.echo(f"{store}: holds no file any more; resuming its removal")
        return
    if json:
        print_json(decision.as_json())
    else:
        for file in decision.files[:SHOWN]:
            kind = " (no link leads to it)" if file.is_orphan else ""
            typer.echo(f"{file.id}  {format_size(file.size):>10}  {printable(file.path)}{kind}")
            for other in file.others:
                typer.echo(f"{'':30}also {printable(other)}")
        if (more := len(decision.files) - SHOWN) > 0:
            typer.echo(f"and {more:,} more")
        typer.echo(f"{len(decision.files)} file(s), {format_size(decision.data_bytes)} of data, would become plain")
        if decision.copies:
            typer.echo(f"the copies of {decision.copies} file(s) would be dropped first; the files stay as they are")
        for text in decision.away:
            typer.echo(wrapped(printable(f"{text}; no file needs it, so that what lies there would be left")))
        _print_links(Path(os.path.realpath(store)), decision, "then")
        _print_kept(store, decision)
        for text in decision.obstacles():
            _complain(text)
    if decision.problems:
        raise StoreError(f"{store}: {len(decision.problems)} obstacle(s) to undo; see above")


def _print_links(root: Path, decision: Decision, when: str) -> None:
    """The links that lead nowhere, `when` the store is gone, and where there may be more."""
    for path in decision.dangling[:SHOWN]:
        typer.echo(f"leads nowhere {when}, for its file was removed before, or it is another user's: {printable(path)}")
    if (more := len(decision.dangling) - SHOWN) > 0:
        typer.echo(f"and {more:,} more such link(s)")
    places = ", ".join(decision.searched) or "no directory"
    finding = command_line(["find", "DIR", "-lname", f"/stripewise:{root}/*"])
    search = "; --search DIR includes them" if when == "then" else ""
    typer.echo(
        printable(
            f"links to the files were looked for below {places}, and beside the files' names; copies of links "
            f"elsewhere lead nowhere {when}{search}: {finding}"
        )
    )


def _print_kept(store: Path, decision: Decision) -> None:
    for directory in decision.unread:
        _complain(f"{directory}: cannot be read; links to the store's files there would lead nowhere")
    if decision.plans or decision.templates:
        said = (
            f"{decision.plans} kept plan(s) and {decision.templates} template(s) go with the store; to keep them, copy "
        )
        typer.echo(wrapped(f"{said}{printable(str(store))}/plans and {printable(str(store))}/layouts before"))


def _print(undone: Undone, clusters: Sequence[Path]) -> None:
    done, removed = undone.done, undone.removed
    for path in done.orphans:
        typer.echo(f"{printable(path)}: a file that had lost its name")
    if done.files:
        names = f", with {done.names} further name(s)" if done.names else ""
        said = f"{done.files} file(s), {format_size(done.bytes)}, are plain again{names}"
        typer.echo(f"{said}: each read back, and equal to what the store had")
    else:
        typer.echo("no file was left in the store")
    gone = [f"{count} {what}" for count, what in _counts(undone.decision)]
    typer.echo(f"{printable(str(undone.root))}: the store is removed{', with ' + ' and '.join(gone) if gone else ''}")
    if done.files or undone.decision.dangling:
        _print_links(undone.root, undone.decision, "now")
    for text in undone.decision.away:
        typer.echo(printable(f"left, for no file needed it: {text}"))
    for path in removed.left:
        typer.echo(f"left, for the store did not make it: {printable(path)}")
    for cluster in clusters:
        named = "" if cluster.name == CLUSTER_FILE else f" (-o {quoted(cluster)})"
        typer.echo(
            printable(
                f"left: {cluster}, for it is yours: figures of targets that a 'stripewise init' of the same "
                f"directories{named} takes again, without measuring; where none is to come, remove it"
            )
        )
    if removed.empty:
        typer.echo(f"empty now, and may be removed: {printable(' '.join(removed.empty))}")


def _descriptions(root: Path) -> list[Path]:
    """The files beside a store that describe its targets; none where it cannot be read."""
    with contextlib.suppress(StripewiseError, OSError):
        return descriptions(root, read_store(root).cluster)
    return []


def _counts(decision: Decision) -> list[tuple[int, str]]:
    pairs = [
        (decision.plans, "kept plan(s)"),
        (decision.templates, "template(s)"),
        (decision.copies, "file's copies" if decision.copies == 1 else "files' copies"),
    ]
    return [(count, what) for count, what in pairs if count]
