"""`stripewise swd`: shingled write disks, simulated. Each verb is a file of its own in this folder."""

from __future__ import annotations

import typer

from . import map, simulate, trace, war

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
app.command("simulate")(simulate.simulate)
app.command("map")(map.map_)
app.command("trace")(trace.trace)
app.command("war")(war.war)
