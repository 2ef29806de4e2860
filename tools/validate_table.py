"""The report of `make validate` as the table of docs/simulator.md: two points a line, measured, simulated, ratio.

tools/validate_table.py target/validate.json
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

COLUMNS = 2


def cells(row: Mapping[str, Any]) -> list[str]:
    """One point; what does not count is in italics, and stands beside its other simulations."""

    def cell(name: str, simulated_mb_s: float, ratio: float) -> str:
        return f"{name} | {row['measured_mb_s']:.1f} | {simulated_mb_s:.1f} | {ratio:.3f}"

    if row["counts"]:
        return [cell(row["point"], row["simulated_mb_s"], row["ratio"])]
    others = [cell(f"*with {name}*", mb_s, row["measured_mb_s"] / mb_s) for name, mb_s in row["beside"].items()]
    return [cell(f"*{row['point']}*", row["simulated_mb_s"], row["ratio"]), *others]


def table(report: Mapping[str, Any]) -> list[str]:
    """The lines of the table, down the first column and then the next."""
    rows = [each for row in report["points"] for each in cells(row)]
    height = -(-len(rows) // COLUMNS)
    heads = ["point", "measured", "simulated", "ratio"] * COLUMNS
    lines = [f"| {' | '.join(heads)} |", f"|{'---|---:|---:|---:|' * COLUMNS}"]
    for line in range(height):
        beside = [rows[at] if at < len(rows) else " | | | " for at in range(line, height * COLUMNS, height)]
        lines.append(f"| {' | '.join(beside)} |")
    return lines


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("validate_table: give the report, target/validate.json")
    try:
        print("\n".join(table(json.loads(Path(sys.argv[1]).read_text()))))
    except (OSError, ValueError, KeyError) as error:
        sys.exit(f"validate_table: {sys.argv[1]}: {error}; give the report that make validate writes")
