"""Writes docs/results.md and its first picture from the result files of all experiments: `make results`.

Nothing here computes: figures are those of the result files, sentences those of the experiments' own pages. With
--check it writes nothing and fails when the page is not what it would write.
"""

from __future__ import annotations

import json
import re
import sys
import textwrap
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from common import COMPARED
from exceptions import EXCEPTIONS, GAP_MAX, GAP_VOID, RATIO_MIN, all_broken, shown_gap
from pictures import draw_lines
from proof import MANY
from stripewise.units import format_size

HOME = Path(__file__).resolve().parent
PAGE = HOME.parent / "docs" / "results.md"
#: Columns of its prose.
WIDTH = 158
#: The picture of the first page.
FIRST = "throughput-view"
#: In this order; others behind them.
ORDER = (
    FIRST, "h2dp-fig", "h2dp-", "segment-", "drift", "mixed", "tight", "uneven", "scale", "other-half",
    "pdla-fig", "pdla-", "radar-fig", "radar-", "copy-or-home", "thesis-fig", "thesis-", "shingled-", "engine-",
    "pioneer-",
)  # fmt: skip
#: Keys of rows that say how sure, how bounded or of what a figure is, not what came out.
ASIDE = {
    "chance",
    "bounds",
    "standard_error",
    "bound_of",
    "off_published",
    "off_reference",
    "reference",
    "published",
    "published_gain",
    "h2dp_gain",
    "emulated",
    "imbalance",
    "proof",
    "many",
    "best_behind",
    "emulated_interval",
    "emulated_runs",
    "made_again",
    "requests_per_process",
    "known",
    "planned",
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


def columns_of(rows: Sequence[Row], label: str = "simulated") -> list[tuple[str, Any]]:
    """(head, how a row fills it): the axis, simulated figures, real-emulated ones, published ones.

    `label` says what the figures are: MB/s where nothing else is said.
    """
    keys = {key: value for row in rows for key, value in row.items() if key not in ASIDE}
    policies = [key for key, value in keys.items() if isinstance(value, float) and key not in SHARES]
    policies.sort(key=lambda key: key == "bound")
    scalars = [key for key, value in keys.items() if isinstance(value, str | int) or key in SHARES]
    made: list[tuple[str, Any]] = [
        (key.removesuffix("_bytes").replace("_", " "), lambda row, key=key: cell(key, row.get(key, "")))
        for key in scalars
    ]
    made += [(f"{key}, {label}", lambda row, key=key: cell(key, row.get(key, ""))) for key in policies]
    made += proof_columns(rows)
    made += [
        (f"{name}, real-emulated", lambda row, name=name: emulated_cell(row, name))
        for name in dict.fromkeys(name for row in rows for name in row.get("emulated", {}))
    ]
    made += half_columns(rows)
    made += _nested(rows, "lead", "lead, {}, simulated", "{:.2f}".format)
    made += _nested(rows, "measured", "{}, measured", _figure)
    made += _nested(rows, "of_simulation", "{}, simulated", _figure)
    made += _nested(rows, "predicted", "{}, by the equations", _figure)
    made += _nested(rows, "war", "{}, WAR, simulated", _figure)
    made += _nested(rows, "published", "{}, published", _figure)
    made += _nested(rows, "reference", "{}, reference simulation", _figure)
    made += _nested(rows, "h2dp_gain", "h2dp over {}, simulated", _percent)
    made += _nested(rows, "published_gain", "h2dp over {}, published", _percent)
    made += _nested(rows, "slal_gain", "slal over fixed stripes, {}, simulated", _percent)
    made += _nested(rows, "published_slal_gain", "slal over fixed stripes, {}, published", _percent)
    return made


def half_columns(rows: Sequence[Row]) -> list[tuple[str, Any]]:
    """Requests that a plan was made from beside those that it has not seen, policy by policy."""
    planned = _nested(rows, "planned_from", "{}, planned from, simulated", _figure)
    unseen = _nested(rows, "other_half", "{}, other half, simulated", _figure)
    return [column for pair in zip(planned, unseen, strict=True) for column in pair]


def proof_columns(rows: Sequence[Row]) -> list[tuple[str, Any]]:
    """How near best comes to what is proven."""
    heads: dict[str, tuple[str, Callable[[Any], str]]] = {
        "proven_mb_s": ("no layout beats", _figure),
        "ratio": ("best over that", "{:.2f}".format),
        "beaten": ("best over a bound that does not hold", "{:.3g}".format),
        "processes_per_server": ("processes per server", _figure),
        "ratio_many": (f"best over that at {MANY} per server", "{:.2f}".format),
        "gap": ("optimiser's gap", lambda gap: shown_gap(gap).removeprefix("gap ")),
    }
    return [
        (head, lambda row, key=key, shown=shown: shown(row["proof"][key]) if key in told_of(row) else "")
        for key, (head, shown) in heads.items()
        if any(key in told_of(row) for row in rows)
    ]


def told_of(row: Row) -> set[str]:
    """The keys of the row's proof that mean something."""
    proof = row.get("proof") or {}
    return set(proof) - ({"proven_mb_s", "ratio", "ratio_many"} if proof.get("gap", 0.0) > GAP_VOID else set())


def emulated_cell(row: Row, name: str) -> str:
    """Mean and half the 95 % interval."""
    if name not in row.get("emulated", {}):
        return ""
    mean, half = row["emulated"][name], row["emulated_interval"][name]
    return f"{mean:.0f} ± {half:.1f}" if mean >= 100 else f"{mean:.1f} ± {half:.1f}"


def _nested(rows: Sequence[Row], key: str, head: str, shown: Any) -> list[tuple[str, Any]]:
    inner = list(dict.fromkeys(name for row in rows if isinstance(row.get(key), dict) for name in row[key]))
    return [
        (
            head.format(name.replace("_", " ")),
            lambda row, name=name: shown(row[key][name]) if name in row.get(key, {}) else "",
        )
        for name in inner
    ]


def _figure(value: Any) -> str:
    return cell("", value)


def _percent(value: Any) -> str:
    return f"{100 * value:.0f} %"


def table(rows: Sequence[Row], label: str = "simulated") -> str:
    """Rows as a table of the page."""
    columns = columns_of(rows, label)
    lines = ["| " + " | ".join(head for head, _ in columns) + " |", "|" + "---|" * len(columns)]
    lines += ["| " + " | ".join(fill(row) for _, fill in columns) + " |" for row in rows]
    return "\n".join(lines)


def shown_rows(name: str, rows: Sequence[Row], label: str) -> str:
    """The table, or where it is where nobody would read it here."""
    many = f"{len(rows)} rows: [result.json](../experiments/{name}/result.json)"
    return many if len(rows) > ROWS_MAX else table(rows, label)


def orderings(result: Mapping[str, Any]) -> str:
    """What a paper says of who is ahead, and whether it comes out."""
    lines = [
        f"| {each['said']} | {'yes' if each['holds'] else '**no**'} | {each['found']} |" for each in result["orderings"]
    ]
    return "\n".join(["| stated | comes out | found, simulated |", "|---|---|---|", *lines])


def reasons(name: str) -> list[str]:
    """The paragraphs of the experiment's page on what does not come out."""
    text = (HOME / name / "README.md").read_text()
    return re.findall(r"^\*\*Does not come out: .*?(?=\n\n|\Z)", text.strip(), re.MULTILINE | re.DOTALL)


def paragraph(name: str, head: str) -> str:
    """The paragraph of the experiment's page that begins with **head."""
    found = re.search(
        rf"^\*\*{head}[^*]*\.\*\*.*?(?=\n\n|\Z)", (HOME / name / "README.md").read_text(), re.MULTILINE | re.DOTALL
    )
    return found.group(0).strip() if found else ""


def section(name: str, result: Mapping[str, Any]) -> str:
    """One experiment on the page."""
    title = (HOME / name / "README.md").read_text().splitlines()[0].removeprefix("# ")
    label = result.get("column_label", "simulated")
    parts = [f"## {title}", paragraph(name, "What is run"), shown_rows(name, result["rows"], label)]
    if result.get("published_up_to"):
        parts.append(up_to(result))
    if result.get("orderings"):
        parts.append(orderings(result))
    if result.get("stated"):
        parts.append(orderings({"orderings": result["stated"]}))
    parts.append(emulated_part(name))
    parts += [
        f"![{title}](../experiments/{name}/result.svg)",
        paragraph(name, "What comes out"),
        paragraph(name, "What the table says"),
        paragraph(name, "How far off"),
        *(reasons(name) if result.get("orderings") else []),
        f"More: [experiments/{name}](../experiments/{name}/README.md)",
    ]
    return "\n\n".join(part for part in parts if part)


def emulated_part(name: str) -> str:
    """The real-emulated part of an experiment, with the simulated figures of the very same runs."""
    file = HOME / name / "emulated.json"
    if not file.is_file():
        return ""
    result = json.loads(file.read_text())
    scene, again = result["scene"], sum(sum(row["made_again"].values()) for row in result["rows"])
    return (
        f"Real-emulated, scaled: {scene['processes']} processes of mpiio under the preloaded library on "
        f"{scene['hservers']} + {scene['sservers']} emulated devices, a file of {cell('_bytes', scene['file_bytes'])}, "
        f"regions of {cell('_bytes', scene['region_bytes'])}; mean of {result['repeats']} interleaved runs ± half the "
        f"95 % interval (Student's t), {again} runs made again because the machine held them up. Simulated columns are "
        f"of the very same runs.\n\n{table(result['rows'])}"
    )


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


def first_page(result: Mapping[str, Any], found: Sequence[tuple[str, Mapping[str, Any]]]) -> tuple[str, list[str]]:
    """What a reader in a hurry reads, and the policies of its picture."""
    rows = result["rows"]
    names = [name for name in COMPARED if name in rows[0]]
    said = [
        f"| {cell('_bytes', row['request_bytes'])} | {row['best'] / row['def']:.1f} | {row['best'] / row['h2dp']:.1f} "
        f"| {row['proof']['ratio']:.2f} | {row['proof']['ratio_many']:.2f} | {row['many']['ratio']:.2f} "
        f"| {row['proof']['gap']:.1%} |"
        for row in rows
    ]
    text = (
        "# Results\n\n"
        "![Bandwidth by request size](results.svg)\n\n"
        "32 processes read a shared file on 12 disk servers and 4 SSD servers that hold a sixth of it; some regions "
        "are hot (Zipf 0.8). One line per placement policy, simulated; above the dotted line is no layout at all: "
        "`best` proves it while it plans.\n\n"
        f"| request | best over def | best over h2dp | of the bound | same plan, {MANY} processes per server | planned "
        f"for {MANY} per server | optimiser's gap |\n|---|---|---|---|---|---|---|\n" + "\n".join(said) + "\n\n"
        "Two processes per server leave servers idle by chance, whatever the layout. That is queueing, and most of "
        f"what `best` misses of the bound: with {MANY} processes per server the same plan, or one made for so many, "
        "comes much nearer.\n\n"
        + promises(found)
        + "\n\nEvery number was run: **simulated** in the discrete-event simulator (simulator.md says what it "
        "assumes), **real-emulated** by real MPI programs on emulated devices, **measured** on this machine, "
        "**published** by a paper, **reference simulation** an earlier simulation of ours. A column is one of them, "
        "never a mixture. Made by `make results` from `experiments/*/result.json` and `emulated.json`.\n\n"
        "The columns of `best`, and of what no layout beats, are still those of the search before it followed heat to "
        "the requests' own grid and proved by cells (best.md). The present search judges plans by likely "
        "runs as well as by the traced one, so on the requests that it planned from another policy may be ahead of "
        "it. What a plan is worth on others only `other-half` tells, of the earlier search too, two seeds at "
        "most."
    )
    return text, names


def promises(found: Sequence[tuple[str, Mapping[str, Any]]]) -> str:
    """How often best keeps what it promises."""
    rows = [row for _, result in found for row in result["rows"] if "best_behind" in row]
    broken = all_broken()
    behind = sum(promise == "behind" for _, promise, _, _ in broken)
    emulated = [row for file in HOME.glob("*/emulated.json") for row in json.loads(file.read_text())["rows"]]
    lost = sum(promise == "emulated" for _, promise, _, _ in broken)
    gaps = [row["proof"]["gap"] for row in rows if row["proof"]]
    near = sum(gap <= GAP_MAX for gap in gaps)
    text = (
        f"On the requests that were planned from no policy is ahead of `best` in {len(rows) - behind} of {len(rows)} "
        "simulated rows. That is no finding: the search that made these columns ran the others' plans on these very "
        f"requests and took the quickest. In {len(emulated) - lost} of {len(emulated)} real-emulated rows, planned "
        "from the requests that are run too, none is ahead beyond the 95 % interval. The "
        f"optimiser's gap is at most {GAP_MAX:.0%} in {near} of {len(gaps)} rows, in half of them at most "
        f"{median(gaps):.1%}."
    )
    return (
        f"{text} What it does not keep has its reason at the [end](#where-best-breaks-a-promise)." if broken else text
    )


def broken_promises() -> str:
    """Every promise that best breaks, by experiment, with the reason."""
    broken = all_broken()
    lines = [
        f"- **{name}**: {'; '.join(f'{place}: {said}' for n, p, place, said in broken if (n, p) == (name, promise))}. "
        f"{EXCEPTIONS.get((name, promise), 'No reason is known.')}"
        for name, promise in dict.fromkeys((name, promise) for name, promise, _, _ in broken)
    ]
    if not lines:
        return ""
    head = (
        f"It promises that no policy is ahead, that runs with {MANY} processes per server reach {RATIO_MIN:.2f} of the "
        f"proven bound, and that the optimiser's gap is at most {GAP_MAX:.0%}."
    )
    return "\n\n".join(["## Where best breaks a promise", head, "\n".join(lines)])


def picture(result: Mapping[str, Any], names: Sequence[str]) -> None:
    """The chart of the first page."""
    rows = result["rows"]
    draw_lines(
        PAGE.with_suffix(".svg"), "Bandwidth by request size, 32 processes, simulated", "request size",
        [cell("_bytes", row["request_bytes"]) for row in rows],
        [("", {name: [row[name] for row in rows] for name in names})], None,
        [row["proof"]["proven_mb_s"] for row in rows], log=True,
    )  # fmt: skip


def _filled(part: str) -> str:
    """A paragraph or a list in lines of the page's width; tables, headings and pictures as they are."""
    if part.startswith(("|", "#", "!")):
        return part
    lines = part.split("\n")
    if any(line.startswith("|") for line in lines):
        return part
    indents = ["  " if line.startswith("- ") else "" for line in lines]
    return "\n".join(
        textwrap.fill(line, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
        for line, indent in zip(lines, indents, strict=True)
    )


def main() -> None:
    found = experiments()
    first = dict(found)[FIRST]
    text, names = first_page(first, found)
    page = (
        "\n\n".join([text, *(section(name, result) for name, result in found), *filter(None, [broken_promises()])])
        + "\n"
    )
    page = "\n\n".join(map(_filled, page.split("\n\n")))
    if sys.argv[1:] == ["--check"]:
        if not PAGE.is_file() or PAGE.read_text() != page:
            sys.exit(f"{PAGE.name}: is not what the result files say; run: make results")
        return
    PAGE.write_text(page)
    picture(first, names)


if __name__ == "__main__":
    main()
