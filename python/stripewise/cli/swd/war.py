"""`stripewise swd war`: what static mappings cost in closed form, before anything is simulated."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ...report.figure import check_plot_path
from ...swd.amplification import amplification, plot_amplification
from ...swd.simulate import parse_share
from ..options import JsonOption
from ..output import print_json, stdout, table


def war(
    band_tracks: Annotated[
        int, typer.Option("--band-tracks", metavar="N", min=1, help="Data tracks per band (N).")
    ] = 4,
    head_tracks: Annotated[
        int, typer.Option("--head-tracks", metavar="N", min=1, help="Tracks covered by a write (W).")
    ] = 2,
    used: Annotated[
        str, typer.Option("--used", metavar="PERCENT,...", help="Percentages of the space in use, separated by commas.")
    ] = "25,50,75,100",
    plot: Annotated[
        Path | None, typer.Option("--plot", metavar="FILE", help="Plot of the result: out.svg or out.html.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Compute the write amplification of static mappings.

    Requests per uniform update, and the space gained (equations 4.1 and 4.2).
    """
    shares = [parse_share(text, "--used") for text in used.split(",")]
    if plot is not None:
        check_plot_path(plot)
    found = amplification(band_tracks, head_tracks, shares)
    if plot is not None:
        plot_amplification(found, plot)
    if json:
        print_json(
            {
                "band_tracks": band_tracks,
                "head_tracks": head_tracks,
                "used": shares,
                "space_gain": found.space_gain,
                "full_band": found.full_band,
                "orders": {name: list(values) for name, values in found.orders.items()},
            }
        )
        return
    typer.echo(
        f"space gain {found.space_gain:.2f} (eq. 4.1), requests per update of a full band {found.full_band:g} (eq. 4.2)"
    )
    made = table(
        f"requests per update, N = {band_tracks}, W = {head_tracks}",
        "mapping",
        *(f"{100 * share:g} % used" for share in shares),
    )
    for name, values in found.orders.items():
        made.add_row(name, *(f"{value:.2f}" for value in values))
    stdout().print(made)
    if plot is not None:
        typer.echo(f"{plot}: written")
