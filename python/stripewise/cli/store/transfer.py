"""`stripewise store adopt|export|cat|relink`: files into a store and out of it, and which link is a file's name."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from ...cluster.described import describes
from ...errors import InUseError, StoreError, StripewiseError, UsageError
from ...moving.mover_status import check_idle
from ...store import Store, transfer
from ...store.config import check_untuned, manages
from ...store.copies.build import is_container
from ...store.copies.listed import copies_of
from ...store.room import Room
from ...store.upkeep import lost
from ...units import command_line, format_size, parse_size, quoted
from ..options import JsonOption, StoreOption
from ..output import print_json, printable, say, standing

WaitOption = Annotated[
    float, typer.Option("--wait", min=0, metavar="SECONDS", help="Maximum wait for a file that a program has open.")
]
FilesArgument = Annotated[list[Path] | None, typer.Argument(metavar="FILE...", help="Files to convert.")]


@dataclass(frozen=True)
class Work:
    """What is done with each of several files; `word` says of one that it is done, `is_done` whether it is."""

    do: Callable[[Path], dict[str, Any]]
    word: str
    is_done: Callable[[Path], bool]
    #: Whether the same command passes over files that are done: it looks for its files itself.
    goes_on: bool = False
    #: Said of a file whose copies went with it.
    without_copies: str = "its copies are dropped"


#: Of a file that was as asked: what the result of the work says, and what is said for people.
_ALREADY = {"was_managed": "is a managed file already", "was_plain": "is a plain file already"}


def each(paths: Iterable[Path], work: Work, json: bool) -> None:
    """Does the work on every path, goes on after single failures, and sums up."""
    paths = list(paths)
    done: list[dict[str, Any]] = []
    failed = begun = 0
    with standing(lambda: _stands(paths, begun, len(done), work)):
        for number, path in enumerate(paths):
            begun = number
            try:
                result = work.do(path)
            except StripewiseError as error:
                if len(paths) == 1:
                    raise
                failed += 1
                say(f"stripewise: {error}")
                continue
            done.append({"path": str(path), **result})
            if not json:
                typer.echo(f"{printable(str(path))}: {_said(work, result)}")
    if json:
        print_json(done)
    if failed:
        raise StoreError(f"{failed} of {len(paths)} file(s) could not be {work.word}; see above")


def _said(work: Work, result: dict[str, Any]) -> str:
    """What became of a file."""
    for key, already in _ALREADY.items():
        if result.get(key):
            return f"{already}; nothing is to be done"
    copies = f"; {work.without_copies}" if result.get("dropped_copies") else ""
    # Nothing else tells that programs without the library find no bytes at a place far from the store.
    outside = "; outside of all that the store's rules manage, where new files stay plain" * bool(result.get("outside"))
    return f"{work.word}, {format_size(int(result['size']))}{copies}{outside}"


def _stands(paths: list[Path], begun: int, done: int, work: Work) -> str:
    """What stands where a signal ended the work: it is heard when the file that is under way is done."""
    rest = paths[begun:]
    if rest and work.is_done(rest[0]):
        done, rest = done + 1, rest[1:]
    said = f"{done} of {len(paths)} file(s) are {work.word}, each is whole"
    if not rest:
        return said
    again = "the same command" if work.goes_on or not done else f"the same command from {rest[0]} on"
    return f"{said}; {again} does the rest"


def _say_lost(path: Path) -> None:
    """What is gone of a managed file that goes out as it is; one that cannot be read says so itself."""
    if _is_managed(path):
        opened, identity = transfer.store_of(path)
        for what, cure in lost(opened, [identity]).get(identity, ()):
            if cure:
                say(f"stripewise: {printable(what)}; taken out as it is")


def _is_managed(path: Path) -> bool:
    return path.is_symlink()


def _is_plain(path: Path) -> bool:
    return path.is_file() and not path.is_symlink()


def adopt(
    store: StoreOption,
    files: FilesArgument = None,
    below: Annotated[
        list[Path] | None, typer.Option("-r", "--recursive", metavar="DIR", help="All plain files below DIR.")
    ] = None,
    layout: Annotated[
        str | None,
        typer.Option(
            "--layout",
            metavar="LAYOUT",
            help="Layout: def (all targets), hservers or a layout JSON (default: the store's).",
        ),
    ] = None,
    without_lease: Annotated[
        bool, typer.Option("--without-lease", help="Take no lease: you make sure that no program opens the files.")
    ] = False,
    wait: WaitOption = 0.0,
    json: JsonOption = False,
) -> None:
    """Convert plain files to managed files, in place.

    Safe against kills: each file is plain or managed, and complete.
    """
    opened = Store(store)
    found = [path for directory in below or [] for path in transfer.plain_files(opened, directory)]
    kept = [path for path in found if describes(path, opened.config.cluster)]
    paths = [*(files or []), *(path for path in found if path not in kept)]
    if not paths and not below:
        raise UsageError("store adopt: no file given; name files, or a directory with -r")
    for path in kept:
        say(printable(f"stripewise: {path}: stays plain, for it describes the targets of the store"))
    if not paths:
        say("stripewise: no plain files there, so there is nothing to adopt")
    text = transfer.layout_text(opened, layout)
    room = Room(opened)

    def come_in(path: Path) -> dict[str, Any]:
        if path.is_dir() and not path.is_symlink():
            raise StoreError(f"{path}: is a directory; -r {path} takes all plain files below it")
        done = transfer.retry_while_open(lambda: transfer.adopt(opened, path, text, not without_lease, room), wait)
        place = os.path.join(os.path.realpath(path.parent), path.name)
        return dict(done) | {"outside": not manages(opened.config.rules, place)}

    anew = "its copies as a plain file are dropped, 'stripewise replicate' makes them anew"
    each(paths, Work(come_in, "adopted", _is_managed, goes_on=not files, without_copies=anew), json)


def export(
    files: FilesArgument = None,
    to: Annotated[
        Path | None, typer.Option("--to", metavar="FILE", help="Copy one file to this path, and keep it in the store.")
    ] = None,
    everything: Annotated[
        Path | None, typer.Option("--all", metavar="STORE", help="All files of a store, at their recorded names.")
    ] = None,
    wait: WaitOption = 0.0,
    json: JsonOption = False,
) -> None:
    """Convert managed files to plain files, in place; copies of them are dropped.

    No program may have them open, and no tune be at work on the store; with --to one may.
    """
    paths = list(files or [])

    def go_out(path: Path) -> dict[str, Any]:
        _say_lost(path)
        try:
            return transfer.retry_while_open(lambda: transfer.export(path), wait)
        except InUseError:
            # What has the file open may be no program but a mover, which may be a tune's.
            if _is_managed(path):
                root = transfer.store_of(path)[0].root
                check_untuned(root, waits=True)
                check_idle(root, str(path.absolute()))
            raise

    if bool(paths) == (everything is not None):
        raise UsageError("store export: name files, or a store with --all")
    if to is not None:
        if len(paths) != 1:
            raise UsageError("store export: --to takes exactly one file")
        target = to
        _say_lost(paths[0])
        each(paths, Work(lambda path: transfer.export_to(path, target), "exported", lambda _: target.exists()), json)
        return
    for root in transfer.roots_of(paths) if everything is None else [Store(everything).root]:
        # Of many files it is said once.
        transfer.retry_while_open(functools.partial(check_untuned, root, waits=True), wait)
    if everything is not None:
        opened = Store(everything)
        # Those that hold copies are the store's own.
        held = [file for file in opened.files() if not is_container(opened.root, file.path)]
        if not held:
            say(f"stripewise: {everything}: holds no files, so there is nothing to export")
        nameless = [file for file in held if not file.path]
        for file in nameless:
            say(f"stripewise: file {file.id} has no recorded name; find its link and relink it")
        work = Work(go_out, "exported", _is_plain, goes_on=True)
        each([Path(file.path) for file in held if file.path], work, json)
        if copies := len(copies_of(opened)):
            say(
                f"stripewise: the copies of {copies} file(s) that no store manages stay in this one; "
                f"stripewise store replica ls {quoted(everything)}"
            )
        if nameless:
            raise StoreError(f"{everything}: {len(nameless)} file(s) without a name stay in the store; see above")
        return
    each(paths, Work(go_out, "exported", _is_plain), json)


def cat(
    file: Annotated[str, typer.Argument(metavar="FILE|ID", help="Managed file, or file id with --store.")],
    store: Annotated[Path | None, typer.Option("--store", metavar="STORE", help="Store of the file id.")] = None,
    offset: Annotated[str, typer.Option("--offset", metavar="OFFSET", help="Offset of the first byte.")] = "0",
    length: Annotated[
        str | None, typer.Option("--length", metavar="SIZE", help="Maximum number of bytes (default: to the end).")
    ] = None,
) -> None:
    """Write a managed file to standard output, without the preloaded library.

    Nothing is written unless all that is needed can be opened; an error on the way says that the output is incomplete.
    """
    opened, identity = transfer.file_or_id(file, store)
    for what, cure in lost(opened, [identity]).get(identity, ()):
        if cure:
            say(f"stripewise: {printable(what)}; written as it is")
    sys.stdout.flush()
    limit = None if length is None else parse_size(length, "--length")
    transfer.cat(opened, identity, sys.stdout.fileno(), parse_size(offset, "--offset"), limit)


def relink(
    paths: Annotated[
        list[Path] | None, typer.Argument(metavar="PATH...", help="Links; with --moved: directories to search.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a recorded name that is still valid.")] = False,
    moved: Annotated[
        Path | None,
        typer.Option("--moved", metavar="STORE", help="Point links and targets to STORE after it or they were moved."),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Update recorded names after mv, cp or tar without the library.

    After a store was moved, --moved finds targets that moved with it, and writes paths and rules of store.toml anew.
    """
    if moved is not None:
        result = transfer.relink_moved(moved, paths or [])
        if json:
            print_json(result)
        else:
            for name, place in result["targets"].items():
                typer.echo(printable(f"target {name}: is in {place} now"))
            if globs := list(result["globs"].items()):
                was, glob = globs[-1]
                typer.echo(printable(f"{len(globs)} rule(s) of store.toml follow, that for {was} to {glob}"))
            if result["plans"]:
                ls = command_line(["stripewise", "store", "plan", "ls", str(moved)])
                typer.echo(f"{result['plans']} kept plan(s) stay as they are, and may name the former place: {ls}")
            typer.echo(f"{moved}: {result['rewritten']} link(s) rewritten, {result['current']} already correct")
            for row in Store(moved).devices():
                if why := row.get("away"):
                    say(f"stripewise: target {printable(str(row['name']))} is away still: {printable(str(why))}")
            for identity, name in result["missing"]:
                say(f"stripewise: file {identity}: no link at {printable(name)}; name the directory it is in now")
            for what, why in result["left"]:
                say(f"stripewise: left: {printable(what)}: {printable(why)}")
        if result["left"]:
            raise StoreError(
                f"{moved}: {len(result['left'])} place(s) or file(s) could not be looked at or changed; run the same "
                f"command as root, or as who may"
            )
        return
    if not paths:
        raise UsageError("store relink: no link given; name links, or a moved store with --moved")
    for path in paths:
        identity = transfer.relink(path, force)
        if not json:
            typer.echo(f"{printable(str(path))}: now the name of file {identity}")
    if json:
        print_json([str(path) for path in paths])
