"""Formulas of the number of processes P as people read and edit them in a profile: `4096`, `65536 x P`, `2 x P + 1`.

Sums of products of numbers, fractions, and the terms that pattern/scaling.py finds (P, side(P), P/side(P), cube1(P),
...), with `/` for a quotient and `div` for its whole part. All arithmetic is exact.
"""

from __future__ import annotations

import re
from fractions import Fraction

from ...pattern.scaling import TERMS

#: A number, or a formula as text.
Number = int | str
#: Characters of a formula, at most.
TEXT_MAX = 200
_TOKEN = re.compile(
    r"\s*(?:(\d{1,19})|(side\(P\)|cube[123]\(P\)|P)|(x(?![A-Za-z])|\*|/|div(?![A-Za-z])|\+|-|\(|\)))", re.ASCII
)
_NAMED = {term.text: term for term in TERMS}


def value_at(number: Number, processes: int) -> int:
    """The value at so many processes. Raises ValueError for what is no formula, or has no whole value there."""
    if isinstance(number, int):
        return number
    found = _Reader(number, processes).whole()
    if found.denominator != 1:
        raise ValueError(f"'{number}' has no whole value at {processes} processes")
    return int(found)


class _Reader:
    """A formula from left to right: sums of products of what stands alone or in brackets."""

    def __init__(self, text: str, processes: int) -> None:
        if len(text) > TEXT_MAX:
            raise ValueError(f"'{text[:40]}...' is longer than {TEXT_MAX} characters")
        self.text, self.processes, self.at, self.depth = text, processes, 0, 0
        self.tokens: list[str] = []
        at = 0
        while text[at:].strip():
            if (found := _TOKEN.match(text, at)) is None:
                raise ValueError(f"'{text}' is no formula of P")
            self.tokens.append(found.group(found.lastindex or 0))
            at = found.end()

    def whole(self) -> Fraction:
        found = self.sum()
        if self.at < len(self.tokens):
            raise self.wrong()
        return found

    def wrong(self) -> ValueError:
        return ValueError(f"'{self.text}' is no formula of P")

    def next(self, *wanted: str) -> str | None:
        if self.at < len(self.tokens) and self.tokens[self.at] in wanted:
            self.at += 1
            return self.tokens[self.at - 1]
        return None

    def sum(self) -> Fraction:
        found = self.product()
        while sign := self.next("+", "-"):
            found += self.product() if sign == "+" else -self.product()
        return found

    def product(self) -> Fraction:
        found = self.single()
        while how := self.next("x", "*", "/", "div"):
            other = self.single()
            if how in ("x", "*"):
                found *= other
            elif not other:
                raise ValueError(f"'{self.text}' divides by 0 at {self.processes} processes")
            else:
                found = found / other if how == "/" else Fraction(found // other)
        return found

    def single(self) -> Fraction:
        if self.next("-"):
            return -self.single()
        if self.next("("):
            self.depth += 1
            if self.depth > 20:
                raise self.wrong()
            found = self.sum()
            if not self.next(")"):
                raise self.wrong()
            return found
        if self.at >= len(self.tokens):
            raise self.wrong()
        token = self.tokens[self.at]
        self.at += 1
        if token.isdigit():
            return Fraction(int(token))
        if token in _NAMED:
            return _NAMED[token].value(self.processes)
        raise self.wrong()
