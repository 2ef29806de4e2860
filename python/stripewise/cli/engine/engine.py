"""`stripewise engine`: IO-Engine's rules for a traced run, and hints for runs without Stripewise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from ...engine.advice import Advice, Site, advise, ompio_parameters, romio_hints
from ...engine.rules import NUMBER_MAX, SIZE_MAX
from ...errors import UsageError, WorkloadError
from ...files.parts import check_output, write_durably
from ...units import format_size, parse_size, quoted, seconds_text
from ...workload.trace import check_no_part, partial_reasons, run_end
from ..arguments import flattened
from ..options import JsonOption
from ..output import print_json, printable, say_partial, stdout, table, wrapped
from ..plan.options import FileOptions, say_of_trace


@dataclass(frozen=True, kw_only=True)
class SiteOptions:
    """What a trace does not tell."""

    nodes: Annotated[
        int | None,
        typer.Option("--nodes", metavar="N", help="Number of nodes (default: the aggregators in force, else 1)."),
    ] = None
    lustre: Annotated[bool, typer.Option("--lustre", help="The files are on Lustre.")] = False
    stripes: Annotated[
        int | None,
        typer.Option("--stripes", metavar="N", help="Stripe count of plain files (default: by hints, else 1)."),
    ] = None
    stripe_size: Annotated[
        str | None,
        typer.Option(
            "--stripe-size", metavar="SIZE", help="Stripe size of plain files (default: by hints, else 1MiB)."
        ),
    ] = None

    def site(self) -> Site:
        """Raises UsageError."""
        for flag, count in (("--nodes", self.nodes), ("--stripes", self.stripes)):
            if count is not None and not 1 <= count <= NUMBER_MAX:
                raise UsageError(f"{flag}: {count} is not from 1 to {NUMBER_MAX}")
        size = None if self.stripe_size is None else parse_size(self.stripe_size, "--stripe-size")
        if size is not None and not 1 <= size <= SIZE_MAX:
            raise UsageError(f"--stripe-size: {size} bytes are not from 1 to {SIZE_MAX}; give e.g. 1MiB")
        return Site(nodes=self.nodes, stripes=self.stripes, stripe_bytes=size, lustre=self.lustre)


@flattened
def engine(
    *,
    trace: Annotated[Path, typer.Argument(help="Collected trace of an MPI job.", metavar="TRACE")],
    files: FileOptions,
    site: SiteOptions,
    export: Annotated[
        Path | None,
        typer.Option("--export", metavar="FILE", help="Output file for the hints, for ROMIO_HINTS=FILE."),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Show IO-Engine's rules for the MPI-IO of a run.

    Also how its collective calls were carried out. The rules are the thesis's; they know no device, and their hints may
    be slower: measure before you keep them.
    """
    if export is not None:
        check_output(export, "--export")
        check_no_part("--export", export, trace)
    found = advise(trace, site.site(), files.choice())
    say_of_trace(str(trace), ended=run_end(trace).text, left_out=found.left_out)
    say_partial(str(trace), partial_reasons(trace))
    hints, otherwise = found.hints()
    if export is not None:
        if not hints:
            raise WorkloadError(
                f"{trace}: no call is collective, and hints are for such calls; --export has none to write"
            )
        write_durably(export, romio_hints(hints))
    if json:
        print_json(
            {
                "calls": [each.as_json() for each in found.advices], "hints": hints, "otherwise": otherwise,
                "open_mpi": ompio_parameters(hints), "is_ompio": found.is_ompio,
            }
        )  # fmt: skip
        return
    _print(found.advices)
    told = " ".join(f"{key}={value}" for key, value in hints.items())
    typer.echo(f"hints: {told or 'none, for no call is collective'}")
    for line in otherwise:
        typer.echo(wrapped(f"but {printable(line)}"))
    if not hints:
        return
    if found.is_ompio:
        typer.echo("but this run's MPI-IO was Open MPI's own, which knows none of them")
    typer.echo(f"Open MPI: mpiexec {' '.join(ompio_parameters(hints))}")
    if export is not None:
        variable = f"ROMIO_HINTS={quoted(export.absolute())}"
        typer.echo(f"{printable(str(export))}: written; to use it, in every process's environment: {variable}")


def _print(advices: Sequence[Advice]) -> None:
    """A section for each kind of calls: what was asked for, how that was done, what the rules say."""
    for each in advices:
        inputs = each.ruled.inputs
        how = "collective" if each.is_collective else "independent"
        shape = "interleaved" if inputs.strided else f"in regions of {format_size(inputs.region_bytes)}"
        typer.echo(printable(each.path))
        typer.echo(
            f"  {each.calls:,} {how} {each.op}s of {format_size(inputs.request_bytes)} by {inputs.processes} "
            f"process(es), {shape}; {inputs.stripes} stripe(s) of {format_size(inputs.stripe_bytes)}"
        )
        if (done := each.carried_out) is not None:
            typer.echo(
                f"  carried out: {done.text}; {seconds_text(done.turns_s)} s from the last arrival to the last end, "
                f"{seconds_text(done.io_s)} s of it I/O, {seconds_text(done.exchange_s)} s exchange and waiting"
            )
        elif each.is_collective:
            typer.echo("  how they were carried out is not known: that takes ranks and both layers of a trace")
        made = table("", "decision", "value", "reason", keys=2)
        for row in each.ruled.steps():
            made.add_row(*row)
        stdout().print(made)
