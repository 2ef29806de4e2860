"""`stripewise model engine`: what IO-Engine decides by rule for given figures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from ...engine.rules import NUMBER_MAX, SIZE_MAX, Inputs, Ruled, ruled
from ...errors import UsageError
from ...units import format_size, parse_size
from ..arguments import flattened
from ..options import JsonOption
from ..output import print_json, stdout, table


@dataclass(frozen=True, kw_only=True)
class CallOptions:
    """The calls of all processes on one file."""

    request: Annotated[str, typer.Option("--request", metavar="SIZE", help="Bytes of one process in one call.")]
    processes: Annotated[int, typer.Option("--processes", metavar="N", help="Number of processes.")]
    write: Annotated[bool, typer.Option("--write", help="Decide for writes (default: reads).")] = False
    region: Annotated[
        str | None,
        typer.Option(
            "--region", metavar="SIZE", help="Bytes of one process in one piece (default: requests interleave)."
        ),
    ] = None
    unaligned: Annotated[bool, typer.Option("--unaligned", help="Requests begin within stripes.")] = False


@dataclass(frozen=True, kw_only=True)
class FileOptions:
    """The file, the machine and the MPI."""

    stripes: Annotated[
        int | None,
        typer.Option("--stripes", metavar="N", help="Stripe count of the file, on Lustre its OSTs (default: 1)."),
    ] = None
    stripe_size: Annotated[str, typer.Option("--stripe-size", metavar="SIZE", help="Stripe size of the file.")] = "1MiB"
    new: Annotated[bool, typer.Option("--new", help="The file is to be made: its stripes can be chosen.")] = False
    targets: Annotated[
        int | None,
        typer.Option("--targets", metavar="N", help="Targets (OSTs) that there are (default: the stripe count)."),
    ] = None
    nodes: Annotated[int, typer.Option("--nodes", metavar="N", help="Number of nodes.")] = 1
    cb_nodes: Annotated[
        int | None, typer.Option("--cb-nodes", metavar="N", help="Hint cb_nodes, at most one a node (default: that).")
    ] = None
    lustre: Annotated[bool, typer.Option("--lustre", help="The file is on Lustre.")] = False


@flattened
def engine(*, call: CallOptions, file: FileOptions, json: JsonOption = False) -> None:
    """Show what IO-Engine decides by rule: stripes, mode, aggregators, buffer.

    Step by step, with reasons, and the hints that carry it out.
    """
    decided = ruled(_inputs(call, file))
    if json:
        print_json(decided.as_json())
    else:
        _print(decided)


def _inputs(call: CallOptions, file: FileOptions) -> Inputs:
    """Raises UsageError."""
    if file.new and file.stripes is None:
        raise UsageError("--new: give the stripe count that is asked for, e.g. --stripes 16")
    stripes = 1 if file.stripes is None else file.stripes
    request = _size("--request", call.request)
    region = request if call.region is None else _size("--region", call.region)
    if region < request:
        raise UsageError(f"--region: {region} bytes are less than the {request} of one request; give {request} or more")
    counts = {
        "--processes": call.processes, "--stripes": stripes, "--nodes": file.nodes,
        "--targets": stripes if file.targets is None else file.targets,
    }  # fmt: skip
    if file.cb_nodes is not None:
        counts["--cb-nodes"] = file.cb_nodes
    for flag, count in counts.items():
        if not 1 <= count <= NUMBER_MAX:
            raise UsageError(f"{flag}: {count} is not from 1 to {NUMBER_MAX}")
    if file.targets is not None and not file.new:
        raise UsageError("--targets: bounds the stripes of a file that is to be made; give --new too")
    if file.nodes > call.processes:
        raise UsageError(f"--nodes: {file.nodes} nodes have more than {call.processes} processes; give fewer")
    return Inputs(
        write=call.write,
        # One process has the file to itself.
        strided=call.region is None and call.processes > 1,
        processes=call.processes,
        nodes=file.nodes,
        cb_nodes=file.cb_nodes,
        request_bytes=request,
        region_bytes=region,
        stripes=stripes,
        stripe_bytes=_size("--stripe-size", file.stripe_size),
        is_aligned=not call.unaligned,
        targets=counts["--targets"],
        lustre=file.lustre,
        is_new=file.new,
    )


def _size(flag: str, text: str) -> int:
    size = parse_size(text, flag)
    if not 1 <= size <= SIZE_MAX:
        raise UsageError(f"{flag}: {size} bytes are not from 1 to {SIZE_MAX}; give e.g. 1MiB")
    return size


def _print(decided: Ruled) -> None:
    inputs = decided.inputs
    op, state = "writes" if inputs.write else "reads", "new" if inputs.is_new else "existing"
    kind = "interleaved" if inputs.strided else f"in regions of {format_size(inputs.region_bytes)}"
    where = f"{inputs.stripes} stripe(s) of {format_size(inputs.stripe_bytes)}{' on Lustre' if inputs.lustre else ''}"
    who = f"{inputs.processes} process(es) on {inputs.nodes} node(s)"
    typer.echo(f"{op} of {format_size(inputs.request_bytes)} by {who}, {kind}; {state} file, {where}")
    made = table("IO-Engine's rules", "decision", "value", "reason", keys=2)
    for row in decided.steps():
        made.add_row(*row)
    stdout().print(made)
    typer.echo("hints: " + " ".join(f"{name}={value}" for name, value in decided.hints().items()))
