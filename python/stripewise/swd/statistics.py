"""Statistics of block requests (thesis, tables 4.1 and 5.2, figures 5.6 and 5.8), and requests as trace files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ..errors import UsageError
from ..report import new_figure, save_figure
from .workload import BlockWorkload

#: Blocks of a track in chapter 4.6.1, and the distance that chapter 5.3.4 calls small.
TRACK_BLOCKS, NEAR_BLOCKS = 1000, 10_000
EXPORTS = ("msr", "disksim")
Progress = Callable[[int, int], None]


def statistics(
    workload: BlockWorkload,
    space_blocks: int | None = None,
    track_blocks: int = TRACK_BLOCKS,
    near_blocks: int = NEAR_BLOCKS,
    progress: Progress | None = None,
) -> Mapping[str, Any]:
    """`{"format", "summary"}` of all requests, as docs/formats.md draws it (Block statistics).

    `space_blocks` folds them into so many blocks first; None leaves traces and look-alikes in their own space. Raises
    WorkloadError with file or name, key and cure.
    """
    result: Mapping[str, Any] = workload.call("block_statistics", space_blocks, track_blocks, near_blocks, progress)
    return result


def export(
    workload: BlockWorkload,
    path: Path,
    format: str = "disksim",
    space_blocks: int | None = None,
    progress: Progress | None = None,
) -> int:
    """Writes all requests as a trace file in `format`, `msr` or `disksim`, and returns how many.

    Raises UsageError for another format, WorkloadError for requests that cannot be had or a file that cannot be made.
    """
    if format not in EXPORTS:
        raise UsageError(f"--export-format: '{format}' is not known; give one of {', '.join(EXPORTS)}")
    return int(workload.call("block_export", space_blocks, format, str(path), progress))


def plot_locality(workloads: Mapping[str, Mapping[str, Any]], path: Path) -> None:
    """Figures 5.6 and 5.8: distributions of stack distances of track updates and of distances of successive writes.

    `workloads` are summaries by name. Raises UsageError for a path that is no picture.
    """
    figure = new_figure(9.0, 4.0)
    left, right = figure.subplots(1, 2, sharey=True)
    sides = (
        (left, "stack_distances", "other tracks updated between two updates of a track"),
        (right, "write_distances", "blocks from a write to the next"),
    )
    rows = []
    for axes, key, label in sides:
        for name, summary in workloads.items():
            steps = summary[key]["steps"]
            axes.plot([step["below"] for step in steps], [step["share"] for step in steps], marker=".", label=name)
            rows += [[name, key.replace("_", " "), step["below"], f"{step['share']:.4f}"] for step in steps]
        axes.set_xscale("log", base=2)
        axes.set_xlabel(label)
        axes.set_ylim(0, 1.02)
        axes.grid(alpha=0.3)
    left.set_ylabel("share below")
    left.legend()
    save_figure(figure, path, "Locality of writes", ("workload", "of", "below", "share"), rows)


def share_below(steps: list[dict[str, Any]], below: int) -> float | None:
    """Share of a distribution below `below`, a power of two; None for an empty one."""
    return max((step["share"] for step in steps if step["below"] <= below), default=0.0) if steps else None
