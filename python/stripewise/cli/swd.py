"""`stripewise swd`: shingled write disks, simulated. Each verb is a file of its own beside this one."""

from __future__ import annotations

import typer

from . import swd_map, swd_simulate, swd_trace, swd_war

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
app.command("simulate")(swd_simulate.simulate)
app.command("map")(swd_map.map_)
app.command("trace")(swd_trace.trace)
app.command("war")(swd_war.war)
