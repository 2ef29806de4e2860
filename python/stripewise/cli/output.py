"""How the command line speaks: results on stdout, everything else on stderr (its end, and errors: `main.py`).

Exit codes: 0 ok, 1 failed, 2 usage. A verb that finds all as it is asked for says so and ends with 0; a name that leads
to nothing is a failure, for it may be mistyped. A verb prints JSON with --json, tables and sentences without.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import re
import shutil
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import typer

from ..files.spelling import is_byte, spelled
from ..layout import Region, Stripes, is_rotation
from ..units import exact_size
from .signals import ENDED_BY
from .tables import Table

#: Width of tables where nobody says how wide the screen is.
WIDTH_WITHOUT_TERMINAL = 120
#: Plain lines end here at the latest, but for words that are longer.
COLUMNS_MAX = 80
#: Least columns of a cell whose words are wrapped.
_CELL_MIN = 12
#: So many targets in a row whose names count up are written as the first and the last.
_NAMES_FOLDED = 4
#: Seconds before the first line about progress where stderr is no terminal, and between two of them.
PROGRESS_FIRST_S, PROGRESS_EVERY_S = 10.0, 30.0
#: Rows that come at least so many times, one behind the other or by turns of up to so many, are drawn once.
TIMES_MIN, PERIOD_MAX = 3, 16
#: How a region begins that is one stripe.
WHOLE = "whole on "
#: In place of a number of bytes: of those that a file may grow by.
GROWTH = "growth"


def screen_width() -> int:
    """Columns of the screen, or what COLUMNS says."""
    return shutil.get_terminal_size((WIDTH_WITHOUT_TERMINAL, 24)).columns


class Results:
    """Where results for people go."""

    def print(self, made: Table) -> None:
        """A table, as wide as the screen, or as COLUMNS says."""
        for line in made.lines(screen_width()):
            typer.echo(line)


def stdout() -> Results:
    """The place for results."""
    return Results()


def say_all_anew() -> None:
    """A new verb begins: what `say_once` has said it says again."""
    _SAID.clear()


def say(text: str) -> None:
    """One line to stderr."""
    typer.echo(text, err=True)


#: What this command has said of what is said once.
_SAID: set[str] = set()


def say_once(text: str, about: str) -> None:
    """One line to stderr, unless this command has said one `about` the same already."""
    if about not in _SAID:
        _SAID.add(about)
        say(text)


def say_partial(source: str, reasons: Sequence[str]) -> None:
    """One line where a trace is not the whole run."""
    if reasons:
        text = f"stripewise: {printable(source)}: the trace is partial: {printable('; '.join(reasons))}"
        say_once(text, text)


def print_json(value: Any) -> None:
    """One line of JSON on stdout; infinities and NaN do not occur."""
    typer.echo(json.dumps(value, allow_nan=False))


def printable(text: str) -> str:
    """A name as one line that no terminal stumbles over; bytes that are not UTF-8 as traces spell them."""
    return "".join(
        char if char.isprintable() else spelled(char) if is_byte(char) else ascii(char)[1:-1] for char in text
    )


def table(title: str, *columns: str, keys: int = 1) -> Table:
    """A table whose columns after the first are right-aligned; the first `keys` tell rows apart."""
    return Table(title, columns, keys)


def wrapped(text: str, indent: str = "") -> str:
    """Sentences in lines that fit 80 columns, cut between words only, never between a number and its unit."""
    whole = re.sub(r"(?<=\d) (?=(?:[KMGT]i)?B\b)", "\xa0", text)
    lines = [
        textwrap.fill(
            each,
            COLUMNS_MAX,
            initial_indent=indent,
            subsequent_indent=indent,
            break_long_words=False,
            break_on_hyphens=False,
        )
        for each in whole.split("\n")
    ]
    return "\n".join(lines).replace("\xa0", " ")


def aligned(
    header: Sequence[str], rows: Iterable[Sequence[str]], left: int = 1, indent: str = "", words: bool = False
) -> Iterator[str]:
    """Lines of a plain table: the first `left` columns begin at the left, the others end at the right.

    With `words` the last column holds words, which go on in the next line, below themselves.
    """
    cells = [header, *rows]
    widths = [max(map(len, column)) for column in zip(*(row[:-1] for row in cells), strict=True)]
    before = len(indent) + sum(widths) + 2 * len(widths)
    room = max(COLUMNS_MAX - before, _CELL_MIN)
    last_width = 0 if words else max(len(row[-1]) for row in cells)
    for row in cells:
        start = indent + "".join(
            f"{cell:{'<' if number < left else '>'}{width}}  "
            for number, (cell, width) in enumerate(zip(row[:-1], widths, strict=True))
        )
        lines = textwrap.wrap(row[-1], room, break_long_words=False, break_on_hyphens=False) if words else [row[-1]]
        yield f"{start}{lines[0] if lines else '':>{last_width}}".rstrip()
        yield from (f"{'':{before}}{line}" for line in lines[1:])


def stripes_text(stripes: Stripes, region_bytes: int | None = None) -> str:
    """A cycle in its order: each width with the targets that have it, those that count up as first and last. Of a
    region of `region_bytes` that is one stripe the width says nothing.
    """
    if region_bytes is not None and len(stripes) == 1 and stripes[0][1] >= region_bytes:
        return f"{WHOLE}{printable(stripes[0][0])}"
    groups: list[tuple[int, list[str]]] = []
    for name, width in stripes:
        if not groups or groups[-1][0] != width:
            groups.append((width, []))
        groups[-1][1].append(printable(name))
    return ", ".join(f"{exact_size(width)} on {' '.join(_folded(names))}" for width, names in groups)


def targets_text(names: Iterable[str]) -> str:
    """Targets in the order of their numbers, those that count up as first and last."""

    def key(name: str) -> list[tuple[int, str]]:
        return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.findall(r"[0-9]+|[^0-9]+", name)]

    return " ".join(_folded([printable(name) for name in sorted(names, key=key)]))


def _folded(names: Sequence[str]) -> Iterator[str]:
    """`t0..t5` for t0 t1 t2 t3 t4 t5; other names as they are."""
    run: list[str] = []
    for name in [*names, ""]:
        if run and name == _next_name(run[-1]):
            run.append(name)
            continue
        yield from [f"{run[0]}..{run[-1]}"] if len(run) >= _NAMES_FOLDED else run
        run = [name]


def _next_name(name: str) -> str | None:
    found = re.fullmatch(r"(.*?)(0|[1-9][0-9]*)", name, re.ASCII)
    return f"{found[1]}{int(found[2]) + 1}" if found else None


@dataclass
class _Row:
    """Regions that are drawn in a row: where the first begins, how long each is, and where they lie."""

    start: int
    lengths: list[int]
    stripes: str


def regions_drawn(regions: Iterable[Region], rows_max: int, size: int | None = None) -> Iterator[str]:
    """Where bytes lie: the first byte, the one behind the last, and the stripes of neighbouring regions that share them
    in a row; the regions beyond `rows_max` rows are counted.

    Regions whose cycles differ only in the target that they begin with share a row, too, which says so, and so do those
    of rows that come again and again. Of a file of `size` bytes only the regions that hold some are counted; what
    begins at its end or behind it is for growth, and so is what the last row has behind its end, for the last region
    repeats. A row that goes on behind it says to which byte.
    """
    rows = list(_rows(regions, size))
    left = sum(len(row.lengths) for row in rows[rows_max:])
    rows = rows[:rows_max]
    cells = []
    for number, row in enumerate(rows):
        end, of = row.start + sum(row.lengths), len(row.lengths)
        to = f"{end:,}"
        if size is not None:
            held = sum(before < size - row.start for before in itertools.accumulate(row.lengths[:-1], initial=0))
            last = number == len(rows) - 1 and not left
            to = GROWTH if not held else f"end, {GROWTH}" if last else f"end, {GROWTH} to {end:,}" if end > size else to
            of = held or of
        cells.append((f"{row.start:,}", to, f"{of:,}", row.stripes))
    yield from aligned(("from", "to", "regions", "stripes"), cells, 0, "  ", words=True)
    if left:
        yield f"  and {left:,} more region(s)"


def _rows(regions: Iterable[Region], size: int | None) -> Iterator[_Row]:
    """Neighbours whose cycles are rotations of each other in a row, and what repeats of these, too: but for the last
    one, whose region goes on, and what is behind a file of `size` bytes.
    """
    alike: list[list[Region]] = []
    for region in regions:
        if alike and is_rotation(alike[-1][0].stripes, region.stripes):
            alike[-1].append(region)
        else:
            alike.append([region])
    held = sum(size is None or row[0].start < size for row in alike[:-1])
    keys = [(turned(row[0].stripes), [region.len for region in row]) for row in alike[:held]]
    for first, period, times in [*repeated(keys), *((number, 1, 1) for number in range(held, len(alike)))]:
        of = alike[first : first + period * times]
        flat = [region for row in of for region in row]
        text = (
            _row_text(flat)
            if times == 1
            else repeated_text(times, [list(itertools.chain(*of[at::period])) for at in range(period)])
        )
        yield _Row(flat[0].start, [region.len for region in flat], text)


def _row_text(regions: Sequence[Region]) -> str:
    """The stripes of a row."""
    rotated = ", rotated" if any(region.stripes != regions[0].stripes for region in regions) else ""
    return stripes_text(regions[0].stripes, max(region.len for region in regions)) + rotated


def repeated_text(times: int, parts: Sequence[Sequence[Region]]) -> str:
    """What comes so many times, part for part: how long it is, and where it lies; `parts` are the regions of all
    times.
    """
    said = []
    for part in parts:
        text = _row_text(part)
        length = exact_size(sum(region.len for region in part) // times)
        said.append(f"{length} {text if text.startswith(WHOLE) else f'in stripes of {text}'}")
    return f"{times:,} times: " + ", then ".join(said)


def repeated(keys: Sequence[Any]) -> Iterator[tuple[int, int, int]]:
    """What comes again and again in the same order, as (first, how many keys, how many times); what does not, as one
    key that comes once. O(keys * PERIOD_MAX).
    """
    first = 0
    while first < len(keys):
        for period in range(1, PERIOD_MAX + 1):
            end = first + period
            while end < len(keys) and keys[end] == keys[end - period]:
                end += 1
            times = (end - first) // period
            if times >= TIMES_MIN:
                break
        else:
            period = times = 1
        yield first, period, times
        first += period * times


def turned(stripes: Stripes) -> Stripes:
    """The cycle from the target on that is first by name: the same for all of its rotations."""
    at = min(range(len(stripes)), key=stripes.__getitem__)
    return stripes[at:] + stripes[:at]


def regions_counted(regions: Sequence[Region], size: int) -> tuple[int, int]:
    """The regions that hold bytes of a file of `size` bytes, and those behind them that are for its growth alone, as
    `regions_drawn` counts them: what shares the last row of the others is no region of its own.
    """
    held = sum(region.start < size for region in regions)
    behind = list(regions[held:])
    if held:
        last = regions[held - 1].stripes
        behind = list(itertools.dropwhile(lambda region: is_rotation(last, region.stripes), behind))
    return held, len(behind)


def regions_text(regions: Sequence[Region], size: int) -> str:
    """How many regions a file of `size` bytes has, as `regions_counted` counts them."""
    held, growth = regions_counted(regions, size)
    return f"{held:,} region(s)" + (f", and {growth:,} for growth" if growth else "")


def shown(value: float | None, digits: int = 1) -> str:
    """A number for a table; a dash where there is none."""
    return "-" if value is None else f"{value:,.{digits}f}"


@contextlib.contextmanager
def _progress_lines(what: str) -> Iterator[Callable[[int, int], None]]:
    """A line on stderr after `PROGRESS_FIRST_S`, then every `PROGRESS_EVERY_S`: the share that is done where it is
    known, else the seconds so far; after such lines one more, when it is done.
    """
    begun, ended = time.monotonic(), threading.Event()
    so_far, is_told = (0, 0), False

    def step(done: int, total: int) -> None:
        nonlocal so_far
        so_far = (done, total)

    def seconds() -> str:
        return f"{time.monotonic() - begun:.0f}"

    def tell() -> None:
        nonlocal is_told
        wait_s = PROGRESS_FIRST_S
        while not ended.wait(wait_s):
            done, total = so_far
            # Work goes on where nobody reads of it any more.
            with contextlib.suppress(OSError):
                say(f"{what}: {f'{100 * done / total:.0f} %' if total else f'{seconds()} s so far'}")
            is_told = True
            wait_s = PROGRESS_EVERY_S

    # A thread, for some work says nothing until it has ended.
    teller = threading.Thread(target=tell, daemon=True)
    teller.start()
    try:
        yield step
    finally:
        ended.set()
        teller.join()
    if is_told:
        with contextlib.suppress(OSError):
            say(f"{what}: ended after {seconds()} s")


@contextlib.contextmanager
def progress(what: str) -> Iterator[Callable[[int, int], None]]:
    """A bar on stderr for what takes long, with the seconds so far where nobody can say how much is left; where stderr
    is no terminal, a line now and then.
    """
    if not sys.stderr.isatty():
        with _progress_lines(what) as step:
            yield step
        return
    # Loaded where it is used: that takes as long as what most verbs do.
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    begin = TextColumn("{task.description}"), BarColumn()
    so_far = (*begin, TextColumn("{task.elapsed:.0f} s"))
    left = (*begin, TextColumn("{task.percentage:>3.0f}%"), TimeRemainingColumn())
    with Progress(*so_far, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=None)

        def step(done: int, total: int) -> None:
            bar.columns = left if total else so_far
            bar.update(task, completed=done, total=total or None)

        yield step


def moves_ended(
    ended: int, laid_out: int, count: int, regions: tuple[int, int] = (0, 0), has_copies: bool = False
) -> str:
    """What stands of moves to other layouts that a signal ended, and what the same command does then.

    `regions`: of the file that was under way, those that had moved and all; `has_copies`: the command also makes
    copies, when all has moved.
    """
    ending = ENDED_BY.get(ended, "ended by a signal")
    if laid_out == count:
        then = "; the same command again makes the copies" if has_copies else ""
        return f"{ending}; all {count} file(s) have the new layout by then{then}"
    then = "moves the rest, then makes the copies" if has_copies else "moves the rest"
    again = f"the same command again {then}, what was under way from its first byte"
    moved, of = regions
    if moved:
        said = f"and of the next one {moved:,} of {of:,} region(s); what has moved stays, every file has all its bytes"
    else:
        said = f"{'the others have' if laid_out else 'each has'} the old one and all its bytes"
    return f"{ending}; {laid_out} of {count} file(s) have the new layout, {said}; {again}"


@contextlib.contextmanager
def standing(text: Callable[[], str]) -> Iterator[None]:
    """Where a signal ends the body, the line that says so goes on with what is done and what stands, as the innermost
    of these tells it.
    """
    try:
        yield
    except KeyboardInterrupt as error:
        if not getattr(error, "__notes__", ()):
            error.add_note(text())
        raise
