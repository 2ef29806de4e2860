"""A picture per target: times over sizes, and the lines through them, one panel per order and direction."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
from numpy.random import default_rng

from ..cluster import Target
from ..report.figure import new_figure, save_figure
from ..units import KIB, MB, MIB
from .measure import Measured

#: Points of a panel; of more samples, so many at chance.
POINTS_MAX = 600
_TITLES = {
    "random_read": "random reads",
    "random_write": "random writes",
    "sequential_read": "sequential reads",
    "sequential_write": "sequential writes",
    "saturated_read": "random reads, saturated",
    "saturated_write": "random writes, saturated",
}


def plot_path(directory: Path, name: str) -> Path:
    """Where the picture of the target `name` goes."""
    return directory / f"{re.sub(r'[^A-Za-z0-9._-]', '_', name)}.svg"


def draw(target: Target, measured: Measured, directory: Path) -> Path:
    """Saves the picture; returns its path."""
    kinds = list(measured.samples)
    figure = new_figure(4.2 * ((len(kinds) + 1) // 2), 7.0)
    axes = figure.subplots(2, (len(kinds) + 1) // 2, squeeze=False, sharex=True, sharey=True)
    assert target.calibration is not None
    chance = default_rng(1)
    rows = []
    for number, kind in enumerate(kinds):
        panel = axes[number % 2][number // 2]
        fit = target.calibration.fit(kind)
        assert fit is not None
        sizes, times = (np.asarray(values, dtype=float) for values in measured.samples[kind])
        if sizes.size > POINTS_MAX:
            drawn = np.sort(chance.choice(sizes.size, POINTS_MAX, replace=False))
            sizes, times = sizes[drawn], times[drawn]
        spread = np.exp(chance.uniform(-0.2, 0.2, sizes.size))
        panel.plot(sizes * spread, times * 1e3, ".", markersize=2, alpha=0.35)
        line = np.geomspace(measured.sizes[0], measured.sizes[-1], 100)
        panel.plot(line, (fit.startup_s + fit.per_byte_s * line) * 1e3, color="C3", linewidth=1.2)
        panel.set_xscale("log", base=2)
        panel.set_yscale("log")
        panel.set_xticks(measured.sizes, [_size(size) for size in measured.sizes])
        panel.minorticks_off()
        flag = " UNRELIABLE" if fit.is_unreliable else ""
        rate = f"{1 / fit.per_byte_s / MB:,.0f} MB/s" if fit.per_byte_s else "no slope"
        panel.set_title(
            f"{_TITLES[kind]}\n{fit.startup_s * 1e3:.4g} ms + {rate}, residual {fit.residual:.0%}{flag}", fontsize=9
        )
        if number // 2 == 0:
            panel.set_ylabel("ms per request")
        if number % 2:
            panel.set_xlabel("request")
        rows.append((kind, fit.startup_s, fit.per_byte_s, fit.residual, fit.misfit, fit.samples))
    figure.suptitle(f"{target.name}: {target.calibration.device}, method {measured.method}", fontsize=10)
    path = plot_path(directory, target.name)
    columns = ("kind", "startup_s", "per_byte_s", "residual", "misfit", "samples")
    save_figure(figure, path, f"Calibration of {target.name}", columns, rows)
    return path


def _size(size: int) -> str:
    return f"{size // MIB} MiB" if size >= MIB else f"{size // KIB} KiB"
