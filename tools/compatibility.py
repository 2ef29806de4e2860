"""Writes docs/compatibility.md: the table of the last runs of the matrix of programs, around the part written by hand.

The records are in target/matrix (tests/program/matrix/record.py): `make test` leaves the small run, `make soak` the
large one. Where a case ran in several layouts, its row is the worst that any of them saw. What stands between the two
markers of the page is kept.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RECORDS = ROOT / "target" / "matrix"
PAGE = ROOT / "docs" / "compatibility.md"
BEGIN, END = "<!-- by hand: begin -->", "<!-- by hand: end -->"
#: From best to worst; a row shows the worst of all layouts.
ORDER = ["same", "refused", "not here", "different"]

INTRODUCTION = """\
Each job below ran three times: in a managed directory with the library, in a plain directory with it, and in a plain
directory without it. The exit code, standard output, and the name, size, mode and contents of every remaining file were
compared, and `stripewise store fsck` checked the store after each run. *same*: no difference. *refused*: on managed
files the program ends with the error in the remark. *not here*: the program is not installed. *different*: a defect.
Scripts: `tests/program/matrix`, run by `make test` and `make soak`; `tools/compatibility.py` writes the page.
"""

Row = dict[str, str]


def worst(rows: list[Row]) -> Row:
    """One row for all layouts that a case ran in."""
    return max(rows, key=lambda row: max(ORDER.index(row["managed"]), ORDER.index(row["plain"])))


def load() -> tuple[list[Row], list[str]]:
    """A row per case, and the names of the runs that they come from."""
    found: dict[str, list[Row]] = {}
    runs = sorted(RECORDS.glob("*.json"))
    for path in runs:
        for row in json.loads(path.read_text()):
            found.setdefault(row["case"], []).append(row)
    return [worst(rows) for rows in found.values()], [path.stem for path in runs]


def cell(text: str) -> str:
    """Text that does not break the table."""
    return text.replace("|", "\\|").replace("\n", " ")


def table(rows: list[Row]) -> list[str]:
    """One table per family."""
    lines: list[str] = []
    for family in dict.fromkeys(row["family"] for row in rows):
        lines += ["", f"### {family}", ""]
        lines += [
            "| program | version | job | managed | unmanaged | without library | remark |",
            "|---|---|---|---|---|---|---|",
        ]
        for row in rows:
            if row["family"] == family:
                words = [row[key] for key in ("program", "version", "job", "managed", "plain", "bare", "remark")]
                lines.append(f"| {' | '.join(cell(word) for word in words)} |")
    return lines


def kept() -> str:
    """The part written by hand, markers included."""
    page = PAGE.read_text() if PAGE.exists() else f"{BEGIN}\n{END}\n"
    return page[page.index(BEGIN) : page.index(END) + len(END)]


def render(rows: list[Row], runs: list[str]) -> str:
    """The whole page."""
    # A job that changes on plain files is a defect, too, whatever it does on managed ones.
    words = ["different" if "different" in (row["managed"], row["plain"]) else row["managed"] for row in rows]
    count = {word: words.count(word) for word in ORDER}
    counted = ", ".join(f"{number} {word}" for word, number in count.items())
    summary = f"{len(rows)} jobs: {counted}. Runs: {', '.join(runs)}."
    lines = ["# Compatibility", "", INTRODUCTION, summary, "", kept(), "", "## Programs", *table(rows)]
    return "\n".join(lines) + "\n"


def main() -> int:
    """Exit 1 where nothing was recorded."""
    rows, runs = load()
    if not rows:
        print(f"no record in {RECORDS}: run make test first", file=sys.stderr)
        return 1
    PAGE.write_text(render(rows, runs))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
