"""Plain tables for any screen: a word is never broken, and what a line has no room for goes on in another.

A table that is too wide first breaks its headings and sentences between words; then long names get a line of their own,
and at last the columns are drawn in several parts, each with the columns that tell its rows apart.
"""

from __future__ import annotations

import textwrap
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

#: Between two columns.
_GAP = "  "
#: A cell up to so many columns is kept whole. A longer one is a sentence, at the left and as wide as this at least; in
#: the first column a word that is longer gets a line of its own.
_WHOLE_MAX = 24
_SENTENCE_MIN = 20


@dataclass
class Table:
    """Rows under headings; columns after the first end at the right."""

    title: str
    columns: tuple[str, ...]
    #: Columns at the beginning that tell rows apart.
    keys: int = 1
    rows: list[tuple[str, ...]] = field(default_factory=list)
    #: Rows before which a line is left empty.
    sections: set[int] = field(default_factory=set)

    def add_row(self, *cells: str) -> None:
        """One row: a cell for each column."""
        if len(cells) != len(self.columns):
            raise ValueError(f"{len(cells)} cells for {len(self.columns)} columns")
        self.rows.append(cells)

    def add_section(self) -> None:
        """Rows that follow stand apart from those before."""
        self.sections.add(len(self.rows))

    def lines(self, width: int) -> Iterator[str]:
        """The table in lines of at most `width` columns, unless one word is longer."""
        yield from _wrapped(self.title, width)
        every = list(range(len(self.columns)))
        apart = self._room(every) > width and self._least(0) > _WHOLE_MAX
        for number, part in enumerate(self._parts(every[1 if apart else 0 :], width, apart)):
            if number:
                yield ""
            yield from self._drawn(part, width, apart)

    def _parts(self, columns: list[int], width: int, apart: bool) -> list[list[int]]:
        """Columns that are drawn together, those that tell rows apart in each part; with `apart`, behind an indent."""
        room = width - len(_GAP) if apart else width
        keys = [each for each in columns if each < self.keys]
        parts: list[list[int]] = [[*keys]]
        for column in columns[len(keys) :]:
            if len(parts[-1]) > len(keys) and self._room([*parts[-1], column]) > room:
                parts.append([*keys])
            parts[-1].append(column)
        return parts

    def _room(self, columns: Sequence[int]) -> int:
        """The least width of these columns."""
        return sum(map(self._least, columns)) + len(_GAP) * (len(columns) - 1)

    def _least(self, column: int) -> int:
        return max([_longest_word(self.columns[column]), *(_least(row[column]) for row in self.rows)])

    def _most(self, column: int) -> int:
        return max([_span(self.columns[column]), *(_span(row[column]) for row in self.rows)])

    def _is_left(self, column: int) -> bool:
        return not column or any(_span(row[column]) > _WHOLE_MAX for row in self.rows)

    def _drawn(self, part: list[int], width: int, apart: bool) -> Iterator[str]:
        indent = _GAP if apart else ""
        widths = self._widths(part, width - len(indent))
        left = [self._is_left(each) for each in part]
        if apart:
            yield self.columns[0]
        for line in _row([self.columns[each] for each in part], widths, left, at_end=True):
            yield indent + line
        yield indent + _GAP.join("-" * each for each in widths)
        for number, row in enumerate(self.rows):
            if number and number in self.sections:
                yield ""
            if apart:
                yield row[0]
            for line in _row([row[each] for each in part], widths, left):
                yield indent + line

    def _widths(self, columns: Sequence[int], width: int) -> list[int]:
        """Columns as wide as they want to be where there is room; else the widest give way first, in the end between
        the words of what is kept whole elsewhere.
        """
        widths = list(map(self._most, columns))
        for least in (list(map(self._least, columns)), list(map(self._longest_word, columns))):
            while sum(widths) + len(_GAP) * (len(widths) - 1) > width:
                wider = [each for each, wide in enumerate(widths) if wide > least[each]]
                if not wider:
                    break
                widths[max(wider, key=widths.__getitem__)] -= 1
        return widths

    def _longest_word(self, column: int) -> int:
        return max(_longest_word(text) for text in (self.columns[column], *(row[column] for row in self.rows)))


def _row(cells: Sequence[str], widths: Sequence[int], left: Sequence[bool], at_end: bool = False) -> Iterator[str]:
    """The lines of one row; of headings, which stand on their columns, `at_end`."""
    texts = [_wrapped(cell, width) or [""] for cell, width in zip(cells, widths, strict=True)]
    height = max(map(len, texts), default=0)
    for each in texts:
        each[0 if at_end else len(each) : 0 if at_end else len(each)] = [""] * (height - len(each))
    for line in zip(*texts, strict=True):
        padded = (
            text + " " * (width - _span(text)) if is_left else " " * (width - _span(text)) + text
            for text, width, is_left in zip(line, widths, left, strict=True)
        )
        yield _GAP.join(padded).rstrip()


def _wrapped(text: str, width: int) -> list[str]:
    if _span(text) <= width:
        return [text] if text else []
    return textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False)


def _least(cell: str) -> int:
    return _span(cell) if _span(cell) <= _WHOLE_MAX else max(_SENTENCE_MIN, _longest_word(cell))


def _longest_word(text: str) -> int:
    return max(map(_span, text.split()), default=0)


def _span(text: str) -> int:
    """Columns that a terminal gives a text."""
    if text.isascii():
        return len(text)
    return sum(0 if unicodedata.combining(c) else 1 + (unicodedata.east_asian_width(c) in "WF") for c in text)
