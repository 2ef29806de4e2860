"""A finding: a cause, what shows it, what it costs and what to do."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from ..units import seconds_text
from .price import Seconds


@dataclass(frozen=True)
class Finding:
    """One thing that makes a run slow."""

    #: The cause in one word of `choices.py`, for programs.
    cause: str
    #: The cause for people, a phrase.
    title: str
    #: Path, of several the dearest; None where it is about the whole run.
    file: str | None
    #: Figures of this trace that show it, a phrase each.
    evidence: tuple[str, ...]
    #: What it costs; None where nothing prices it.
    price: Seconds | None
    #: How it was priced.
    basis: str
    #: What to do, a sentence.
    advice: str
    #: A command that does it, or begins it; empty without one.
    command: str = ""
    #: Where it is about several files of a series, their name with `*` for the numbers that differ, and how many.
    series: str = ""
    files: int = 1
    #: What the requests took in this run, of the process that waited longest; None where that is not known.
    measured_s: float | None = None

    @property
    def where(self) -> str:
        """The file or the series, for people; empty for the whole run."""
        if self.series:
            return f"{self.files:,} files, {self.series}"
        return self.file or ""

    def price_text(self, span_s: float, why: str) -> str:
        """The price and what it is, for people; `span_s` is from the run's first request to the end of its last, `why`
        what may have made the run quicker than the price (`why_quicker`).
        """
        if self.price is None:
            return f"not priced: {self.basis}"
        if self.measured_s and span_s > 0 and self.price.low > self.measured_s:
            took = f"took {seconds_text(self.measured_s)} s in this run: {why}"
            return f"{took}; by the model it would cost {self.price.text}, {self.basis}"
        more = f"; longer than first to last request: {why}" if self.price.low > span_s > 0 else ""
        return f"costs {self.price.text}, {self.basis}{more}"

    def as_json(self) -> dict[str, Any]:
        """The fields of docs/formats.md, Findings."""
        return asdict(self)
