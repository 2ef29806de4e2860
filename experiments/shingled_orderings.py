"""What the thesis says of the order of the schemes, and whether the rows of an experiment say so too.

Pure functions of rows: run.py keeps their verdicts in the result file, and the tests ask them again. An ordering that
does not come out has its reason on the experiment's page, in a paragraph that begins with **Does not come out: KEY.**
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from shingled import NEAR, NEW

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Ordering:
    """`said` is the thesis's statement with our number for its words, `found` what came out."""

    key: str
    said: str
    found: str
    holds: bool


def as_json(orderings: Sequence[Ordering]) -> list[dict[str, Any]]:
    """For a result file."""
    return [asdict(each) for each in orderings]


def place(row: Row) -> str:
    """A row in words."""
    return f"{row['workload']} at {row['used']}"


def every(key: str, said: str, rows: Sequence[tuple[str, float]], limit: float, shown: str = "{:.2f}") -> Ordering:
    """Holds if no figure is above the limit; tells how many are not, and the largest."""
    over = [(name, value) for name, value in rows if value > limit]
    largest = max(rows, key=lambda each: each[1])
    found = f"in {len(rows) - len(over)} of {len(rows)}; most: {shown.format(largest[1])} ({largest[0]})"
    return Ordering(key, said, found, not over)


def over_hdd(rows: Sequence[Row], names: Sequence[str]) -> list[tuple[str, float]]:
    """Mean response over the HDD's."""
    return [(f"{name}, {place(row)}", row[name] / row["hdd"]) for row in rows for name in names if name in row]


NEAR_SAID = f"(at most {1 + NEAR:g} times its mean response)"


def static(rows: Sequence[Row]) -> list[Ordering]:
    """Thesis, figures 4.3 and 4.4."""
    updates = [row for row in rows if not row["workload"].startswith("SYN")]
    syn = [row for row in rows if row["workload"].startswith("SYN")]
    low = [row for row in updates if row["used"] in ("25 %", "50 %")]
    below = [row for row in updates if row["used"] != "100 %"]
    behind = [(f"{name}, {place(row)}", row[name] / row["1234"]) for row in below for name in NEW]
    no_extra = [(f"{name}, {place(row)}", row["war"][name]) for row in low for name in ("R(4123)", "14R(23)")]
    of_124 = [(f"{name}, {place(row)}", row[name] / row["124R(3)"]) for row in low for name in ("R(4123)", "14R(23)")]
    sequential = [(f"{name}, {place(row)}", row["1234"] / row[name]) for row in syn for name in NEW]
    full = [row for row in updates if row["used"] == "100 %"]
    wars = [(f"{name}, {place(row)}", abs(row["war"][name] / 4 - 1)) for row in full for name in ("1234", *NEW)]
    half = over_hdd(low, ("R(4123)", "14R(23)"))
    return [
        every("new-near-hdd-to-50", f"R(4123) and 14R(23) are near the HDD {NEAR_SAID} up to 50 % used",
              half, 1 + NEAR),
        every("new-near-hdd-to-75", f"all new mappings are near the HDD {NEAR_SAID} up to 75 % used",
              over_hdd(below, NEW), 1 + NEAR),
        every("new-ahead-of-1234", "up to 75 % used the new mappings respond sooner than 1234 (ratio below 1)",
              behind, 1.0),
        every("war-1-to-50", "WAR of R(4123) and 14R(23) is 1 up to 50 % used", no_extra, 1.0 + 1e-9),
        every("ahead-of-124r-to-50", "R(4123) and 14R(23) respond sooner than 124R(3) up to 50 % used (ratio below 1)",
              of_124, 1.0),
        every("war-4-when-full", "WAR is about 4 (within a quarter) for every mapping at 100 % used", wars, 0.25,
              "{:.0%} off"),
        every("1234-best-on-syn", "1234 is no slower than the new mappings on SYN (ratio at most 1.01)",
              sequential, 1.01),
    ]  # fmt: skip


SMART, GREEDY = "tstl-smart", "tstl-greedy"


def dynamic(rows: Sequence[Row]) -> list[Ordering]:
    """Thesis, figures 5.3 and 5.5."""
    uniform = [row for row in rows if row["workload"].startswith("uniform")]
    local = [row for row in rows if row not in uniform]
    half = [row for row in local if row["used"] in ("30 GB", "60 GB")]
    above = [row for row in local if row["used"] in ("90 GB", "120 GB")]
    ahead = [(place(row), row[SMART] / row[GREEDY]) for row in above]
    even = [row for row in uniform if row["used"] in ("90 GB", "120 GB")]
    behind = [(place(row), abs(row[SMART] / row[GREEDY] - 1.055)) for row in even]
    lowest = [(place(row), row["war"]["R(4123)"]) for row in rows if row["used"] == "30 GB"]
    wars = [(place(row), abs(row["war"]["R(4123)"] / 1.3 - 1)) for row in rows if row["used"] == "60 GB"]
    last = [
        (f"{name}, {place(row)}", row[name] / row["is"])
        for row in rows
        for name in ("hdd", GREEDY, SMART, "R(4123)")
        if name in row
    ]
    best = min(ahead, key=lambda each: each[1])
    gain = Ordering(
        "smart-up-to-25-percent-ahead",
        "above 50 % used Smart responds up to 25 % sooner than Greedy (20 to 30 % somewhere)",
        f"at best {1 - best[1]:.0%} ({best[0]})", 0.20 <= 1 - best[1] <= 0.30,
    )  # fmt: skip
    return [
        every("smart-near-hdd-to-50", f"Smart is near the HDD {NEAR_SAID} at 30 and 60 GB",
              over_hdd(half, (SMART,)), 1 + NEAR),
        every("smart-ahead-when-local",
              "at 90 and 120 GB Smart responds sooner than Greedy on local workloads (ratio below 1)",
              ahead, 1.0),
        gain,
        every("smart-5-to-6-percent-behind-on-uniform",
              "on uniform writes Smart is 5 to 6 % behind Greedy at 90 and 120 GB (2 to 9 %)",
              behind, 0.035, "{:.3f} off"),
        every("r4123-war-1-at-30", "WAR of R(4123) is 1 at 30 GB", lowest, 1.0 + 1e-9),
        every("r4123-war-1.3-at-60", "WAR of R(4123) is about 1.3 at 60 GB (within a fifth)",
              wars, 0.2, "{:.0%} off"),
        every("is-behind-all", "IS responds later than every other scheme everywhere (ratio below 1)", last, 1.0),
    ]  # fmt: skip


def sequential(rows: Sequence[Row]) -> list[Ordering]:
    """Thesis, figure 5.7."""
    said = "Smart responds like the HDD on SYN at every fill (at most 1.1 times its mean response)"
    cold = [(row["used"], row["tstl-smart, cold mode"] / row["hdd"]) for row in rows]
    warm = [(row["used"], row[SMART] / row["hdd"]) for row in rows]
    return [
        every("smart-like-hdd-on-syn", said, warm, 1.1, "{:.3g}"),
        every("cold-smart-like-hdd-on-syn", f"{said}, in its cold mode (5.2.5)", cold, 1.1),
    ]


#: By experiment.
ORDERINGS: Mapping[str, Callable[[Sequence[Row]], list[Ordering]]] = {
    "thesis-fig43": static,
    "thesis-fig53": dynamic,
    "thesis-fig57": sequential,
}
