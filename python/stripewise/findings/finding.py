"""A finding: a cause, what shows it, what it costs and what to do."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from ..units import seconds_text
from .price import Seconds

#: Causes whose price is what their calls took in this run.
MEASURED = ("sync", "metadata")


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
    def rank_s(self) -> float:
        """What findings are ranked by: the most that it costs, and no more than the requests took; below 0 if nothing
        prices it.
        """
        if self.price is None:
            return -1.0
        return min(self.price.high, self.measured_s or self.price.high)

    @property
    def where(self) -> str:
        """The file or the series, for people; empty for the whole run."""
        if self.series:
            return f"{self.files:,} files, {self.series}"
        return self.file or ""

    def exceeds(self, span_s: float) -> bool:
        """Whether its least price by the model is more than its requests took, or the run, of `span_s` (0: unknown)."""
        if self.price is None or self.cause in MEASURED or not span_s > 0:
            return False
        return self.price.low > (self.measured_s or span_s)

    def price_text(self, span_s: float, why: str) -> str:
        """The price and what it is, for people; `span_s` is from the run's first request to the end of its last, `why`
        what may have made the run quicker than the price (`why_quicker`).
        """
        if self.price is None:
            return f"not priced: {self.basis}"
        price, most_s = self.price, self.measured_s or span_s
        if self.cause in MEASURED or not span_s > 0:
            return f"costs {price.text}, {self.basis}"
        if self.exceeds(span_s):
            took = "took" if self.measured_s else "took no more than"
            return f"{took} {seconds_text(most_s)} s of the run; no price, for by the model it would be more ({why})"
        # No cure saves more than the requests took.
        return f"costs {Seconds(price.low, min(price.high, most_s)).text}, {self.basis}"

    def as_json(self) -> dict[str, Any]:
        """The fields of docs/formats.md, Findings."""
        return asdict(self)
