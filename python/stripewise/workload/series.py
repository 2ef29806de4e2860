"""Series of files: names of one directory that differ in numbers alone, as a program's checkpoints do."""

from __future__ import annotations

import datetime
import functools
import re
from collections.abc import Callable, Iterable
from pathlib import PurePath

_NUMBER = re.compile(r"[0-9]+")
#: Orders in which names have the parts of a day, and what stands between them.
_ORDERS = (("%Y", "%m", "%d"), ("%y", "%m", "%d"), ("%d", "%m", "%Y"), ("%m", "%d", "%Y"))
_BETWEEN = ("", "-", "_", ".")
#: A time of day as names have it beside a day: 0930, 093011, 093011123, 09:30, 09-30-11, 09:30:11.123456.
_TIME = r"[0-2][0-9](?:[-_.:h]?[0-5][0-9]){1,2}(?:[.,]?[0-9]{3}(?:[0-9]{3})?)?"


def shape_of(name: str) -> tuple[str, str]:
    """What the names of a series have in common: the directory, and the name with each number as 0."""
    path = PurePath(name)
    return str(path.parent), _NUMBER.sub("0", path.name)


def renumbered(name: str, like: str) -> str | None:
    """The name with the numbers of the name `like`; None where it has not as many."""
    path, numbers = PurePath(name), _NUMBER.findall(PurePath(like).name)
    found = iter(numbers)
    if len(_NUMBER.findall(path.name)) != len(numbers):
        return None
    return str(path.with_name(_NUMBER.sub(lambda _: next(found), path.name)))


def pattern_of(
    name: str,
    alike: Iterable[str],
    quote: Callable[[str], str] = str,
    any_number: str = "*",
    days: frozenset[datetime.date] = frozenset(),
) -> str | None:
    """The name with `any_number` for each number in which names of its shape differ; all else as `quote` gives it.

    Numbers that are one of the `days`, or the time of day beside it, or the seconds since 1970 of one of them, count as
    such in which names differ: those of tomorrow will. None where nothing but numbers would be left: that would be any
    name of the directory.
    """
    path = PurePath(name)
    columns = zip(*(_NUMBER.findall(PurePath(each).name) for each in {name, *alike}), strict=True)
    dated = _dated(path.name, days) if days else set()
    differs = [number in dated or len(set(column)) > 1 for number, column in enumerate(columns)]
    kept = [text for text, free in zip(_NUMBER.findall(path.name), differs, strict=True) if not free]
    if not any(char.isalnum() for char in _NUMBER.sub("", path.name) + "".join(kept)):
        return None
    parts, at = [], 0
    for number, free in zip(_NUMBER.finditer(path.name), differs, strict=True):
        parts += [quote(path.name[at : number.start()]), any_number if free else number.group()]
        at = number.end()
    return "".join([quote(f"{path.parent}/" if path.parent != PurePath("/") else "/"), *parts, quote(path.name[at:])])


def days_around(unix_s: float) -> frozenset[datetime.date]:
    """The day of a time by UTC, the one before and the one after: a run may be elsewhere, and go on past midnight."""
    day = datetime.datetime.fromtimestamp(unix_s, datetime.UTC).date()
    return frozenset(day + datetime.timedelta(days) for days in (-1, 0, 1))


def _dated(name: str, days: frozenset[datetime.date]) -> set[int]:
    """Which of a name's numbers are of one of the days, or of the time of day beside it."""
    spans = [found.span() for found in _day_pattern(days).finditer(name)]
    return {
        number
        for number, found in enumerate(_NUMBER.finditer(name))
        if _of_unix_time(found.group(), days) or any(begin <= found.start() < end for begin, end in spans)
    }


def _of_unix_time(number: str, days: frozenset[datetime.date]) -> bool:
    """Whether a number is the seconds, or the thousandths or millionths of one, since 1970 of one of the days."""
    if len(number) not in (10, 13, 16):
        return False
    return datetime.datetime.fromtimestamp(int(number[:10]), datetime.UTC).date() in days


@functools.lru_cache(maxsize=4)
def _day_pattern(days: frozenset[datetime.date]) -> re.Pattern[str]:
    spelled = {day.strftime(between.join(order)) for day in days for order in _ORDERS for between in _BETWEEN}
    day = "|".join(map(re.escape, sorted(spelled)))
    return re.compile(rf"(?<![0-9])(?:{_TIME}[-_.T ])?(?:{day})(?:[-_.T ]?{_TIME})?(?![0-9])")
