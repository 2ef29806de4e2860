"""Writes docs/results.md and its first picture from the result files of all experiments: `make results`.

Nothing here computes: figures are those of the result files, sentences those of the experiments' own pages. With
--check it writes nothing and fails when the page is not what it would write.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from common import COMPARED
from pictures import draw_lines
from stripewise.units import format_size

HOME = Path(__file__).resolve().parent
PAGE = HOME.parent / "docs" / "results.md"
#: The picture of the first page.
FIRST = "throughput-view"
#: In this order; others behind them.
ORDER = (FIRST, "h2dp-", "segment-", "drift", "mixed", "tight", "uneven", "scale")
#: Keys of rows that say how sure, how bounded or of what a figure is, not what came out.
ASIDE = {
    "bounds",
    "standard_error",
    "bound_of",
    "off_published",
    "published",
    "published_gain",
    "h2dp_gain",
    "emulated",
    "imbalance",
}
#: Keys of the axis, or of what else came out, that are no bandwidths.
SHARES = {"ssd_share", "factor", "gain", "moved_share_of_file", "hservers_over_sservers", "imbalance"}
#: Longer tables are left to the picture.
ROWS_MAX = 40
Row = Mapping[str, Any]


def experiments() -> list[tuple[str, dict[str, Any]]]:
    """(name, result) of all experiments that were run, in the order of the page."""
    homes = [path.parent for path in HOME.glob("*/result.json") if (path.parent / "README.md").is_file()]
    found = [(home.name, json.loads((home / "result.json").read_text())) for home in homes]

    def place(name: str) -> tuple[int, str]:
        return next((number for number, head in enumerate(ORDER) if name.startswith(head)), len(ORDER)), name

    return sorted(found, key=lambda each: place(each[0]))


def cell(key: str, value: Any) -> str:
    """A value as the table shows it."""
    if key.endswith("_bytes") and isinstance(value, int):
        return format_size(value).replace(".0 ", " ")
    if isinstance(value, float):
        return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"
    return str(value)


def columns_of(rows: Sequence[Row]) -> list[tuple[str, Any]]:
    """(head, how a row fills it): the axis, simulated figures, real-emulated ones, published ones."""
    keys = {key: value for row in rows for key, value in row.items() if key not in ASIDE}
    policies = [key for key, value in keys.items() if isinstance(value, float) and key not in SHARES]
    policies.sort(key=lambda key: key == "bound")
    scalars = [key for key, value in keys.items() if isinstance(value, str | int) or key in SHARES]
    made: list[tuple[str, Any]] = [
        (key.removesuffix("_bytes").replace("_", " "), lambda row, key=key: cell(key, row.get(key, "")))
        for key in scalars
    ]
    made += [(f"{key}, simulated", lambda row, key=key: cell(key, row.get(key, ""))) for key in policies]
    made += _nested(rows, "emulated", "{}, real-emulated", _figure)
    made += _nested(rows, "published", "{}, published", _figure)
    made += _nested(rows, "h2dp_gain", "h2dp over {}, simulated", _percent)
    made += _nested(rows, "published_gain", "h2dp over {}, published", _percent)
    made += _nested(rows, "slal_gain", "slal over fixed stripes, {}, simulated", _percent)
    made += _nested(rows, "published_slal_gain", "slal over fixed stripes, {}, published", _percent)
    return made


def _nested(rows: Sequence[Row], key: str, head: str, shown: Any) -> list[tuple[str, Any]]:
    inner = list(dict.fromkeys(name for row in rows if isinstance(row.get(key), dict) for name in row[key]))
    return [
        (head.format(name), lambda row, name=name: shown(row[key][name]) if name in row.get(key, {}) else "")
        for name in inner
    ]


def _figure(value: Any) -> str:
    return cell("", value)


def _percent(value: Any) -> str:
    return f"{100 * value:.0f} %"


def table(rows: Sequence[Row]) -> str:
    """Rows as a table of the page."""
    columns = columns_of(rows)
    lines = ["| " + " | ".join(head for head, _ in columns) + " |", "|" + "---|" * len(columns)]
    lines += ["| " + " | ".join(fill(row) for _, fill in columns) + " |" for row in rows]
    return "\n".join(lines)


def shown_rows(name: str, rows: Sequence[Row]) -> str:
    """The table, or where it is where nobody would read it here."""
    many = f"{len(rows)} rows: [result.json](../experiments/{name}/result.json)"
    return many if len(rows) > ROWS_MAX else table(rows)


def paragraph(name: str, head: str) -> str:
    """The paragraph of the experiment's page that begins with **head."""
    found = re.search(
        rf"^\*\*{head}[^*]*\.\*\*.*?(?=\n\n|\Z)", (HOME / name / "README.md").read_text(), re.MULTILINE | re.DOTALL
    )
    return found.group(0).strip() if found else ""


def section(name: str, result: Mapping[str, Any]) -> str:
    """One experiment on the page."""
    title = (HOME / name / "README.md").read_text().splitlines()[0].removeprefix("# ")
    parts = [f"## {title}", paragraph(name, "What is run"), shown_rows(name, result["rows"])]
    if result.get("published_up_to"):
        parts.append(up_to(result))
    parts += [
        f"![{title}](../experiments/{name}/result.svg)",
        paragraph(name, "What comes out"),
        paragraph(name, "What the table says"),
        paragraph(name, "How far off"),
        f"More: [experiments/{name}](../experiments/{name}/README.md)",
    ]
    return "\n\n".join(part for part in parts if part)


def up_to(result: Mapping[str, Any]) -> str:
    """The largest gains of H2DP along the axis, ours beside the paper's."""
    lines = []
    for kind, published in result["published_up_to"].items():
        ours = result["up_to"].get(kind) or {
            name: max(each[name] for each in result["up_to"].values()) for name in published
        }
        said = ", ".join(f"{name} {_percent(ours[name])} ({_percent(value)})" for name, value in published.items())
        lines.append(f"{kind.replace('_', ' ')}: {said}")
    return "H2DP's gain is at most, simulated (published): " + "; ".join(lines) + "."


def first_page(result: Mapping[str, Any]) -> tuple[str, list[str]]:
    """What a reader in a hurry reads, and the policies of its picture."""
    rows = result["rows"]
    names = [name for name in COMPARED if name in rows[0]]
    ours = names[-1] if names[-1] == "best" else "h2dp"
    said = [
        f"at {cell('_bytes', row['request_bytes'])} `{ours}` has {row[ours] / row['def']:.1f} times the bandwidth of "
        f"`def`, {row[ours] / row['bound']:.2f} of the bound"
        for row in (rows[0], rows[len(rows) // 2], rows[-1])
    ]
    text = (
        "# Results\n\n"
        "Made by `make results` from `experiments/*/result.json`; every number was run. **simulated** means the"
        " discrete-event simulator (simulator.md says what it assumes), **real-emulated** real programs on emulated "
        "devices, **published** what a paper prints. A column is one of the three, never a mixture.\n\n"
        "![Bandwidth by request size](results.svg)\n\n"
        "32 processes read a shared file on 12 disk servers and 4 SSD servers that hold a sixth of it; some regions "
        "are hot (Zipf 0.8). One line per placement policy; on the best of these layouts no schedule beats the dotted "
        "line. "
        f"All simulated: {'; '.join(said)}."
    )
    return text, names


def picture(result: Mapping[str, Any], names: Sequence[str]) -> None:
    """The chart of the first page."""
    rows = result["rows"]
    draw_lines(
        PAGE.with_suffix(".svg"), "Bandwidth by request size, 32 processes, simulated", "request size",
        [cell("_bytes", row["request_bytes"]) for row in rows],
        [("", {name: [row[name] for row in rows] for name in names})], None, [row["bound"] for row in rows], log=True,
    )  # fmt: skip


def main() -> None:
    found = experiments()
    first = dict(found)[FIRST]
    text, names = first_page(first)
    page = "\n\n".join([text, *(section(name, result) for name, result in found)]) + "\n"
    if sys.argv[1:] == ["--check"]:
        if not PAGE.is_file() or PAGE.read_text() != page:
            sys.exit(f"{PAGE.name}: is not what the result files say; run: make results")
        return
    PAGE.write_text(page)
    picture(first, names)


if __name__ == "__main__":
    main()
