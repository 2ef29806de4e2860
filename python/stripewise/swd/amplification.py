"""Space gain and write amplification of static mappings in closed form (thesis, eqs. 4.1 and 4.2, figure 4.2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from .. import native
from ..errors import InvalidError, UsageError, WorkloadError
from ..report import new_figure, save_figure

#: The static mappings of chapter 4.5, in the order of the seed.
ORDERS = ("1234", "R(4123)", "124R(3)", "14R(23)")


@dataclass(frozen=True)
class Amplification:
    """What bands of N tracks gain and cost with a head W tracks wide.

    `space_gain` is W*N/(N+W-1) (eq. 4.1), `full_band` the requests per update of a full band (eq. 4.2), `orders` the
    requests per uniform update under each order at each of `shares` of the space in use, counted track by track.
    """

    band_tracks: int
    head_tracks: int
    shares: tuple[float, ...]
    space_gain: float
    full_band: float
    orders: Mapping[str, tuple[float, ...]]


def amplification(band_tracks: int, head_tracks: int, shares: Sequence[float]) -> Amplification:
    """The figures for bands of N = `band_tracks` and W = `head_tracks`, `shares` from 0 to 1.

    Raises UsageError for numbers that make no disk.
    """
    try:
        found = native.call("swd_amplification", band_tracks, head_tracks, list(shares))
    except (InvalidError, WorkloadError) as error:
        raise UsageError(f"swd war: {error}") from error
    orders = {name: tuple(found["orders"][name]) for name in ORDERS}
    return Amplification(band_tracks, head_tracks, tuple(shares), found["space_gain"], found["full_band"], orders)


def plot_amplification(found: Amplification, path: Path) -> None:
    """Figure 4.2: requests per update over the share of the space in use, a line per order."""
    figure = new_figure()
    axes = figure.add_subplot()
    used = [100 * share for share in found.shares]
    for name, values in found.orders.items():
        axes.plot(used, values, marker="o", label=name)
    axes.set_xlabel("space in use, %")
    axes.set_ylabel("requests per update")
    axes.set_ylim(bottom=0)
    title = f"write amplification, N = {found.band_tracks}, W = {found.head_tracks}"
    axes.set_title(title)
    axes.legend()
    rows = [[name, *(f"{value:.2f}" for value in values)] for name, values in found.orders.items()]
    save_figure(figure, path, title, ("order", *(f"{percent:g} %" for percent in used)), rows)
