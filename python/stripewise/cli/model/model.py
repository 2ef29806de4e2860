"""`stripewise model`: the price list of one request under every layout, term by term, and which layout wins where."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import typer

from ...cluster import Cluster, read_cluster
from ...errors import UsageError
from ...layout import STRIPES_MAX
from ...model import parameters
from ...model.documented import documented_cluster
from ...model.price_sweep import Cell, PriceSweep, keys_of, parse_sweeps
from ...model.pricelist import Question, price_list
from ...policy.toolkit.vss import grid
from ...report.figure import check_plot_path
from ...units import MIB, OFFSET_BYTES_MAX, nearest_granules, parse_size, round_up
from ..arguments import flattened
from ..options import JsonOption, StepOption, StripeOption
from ..output import print_json
from .show import print_list, print_sweep, save_plot

PROCESSES_MAX = 1 << 24
REQUEST_BYTES_MAX = 1 << 40
#: Along a sweep Algorithm 1's steps are widened so that s takes at most so many values.
SWEPT_STEPS = 64
ON = ("all", "hservers", "sservers")


def _devices(cluster: Path | None, hservers: int | None, sservers: int | None) -> Cluster:
    """The cluster of the command line, from a file or of the documented devices."""
    if cluster is not None:
        if hservers is not None or sservers is not None:
            raise UsageError("--cluster: says what the servers are; leave out --hservers and --sservers")
        return read_cluster(cluster)
    if hservers is None and sservers is None:
        raise UsageError("model: give --cluster cluster.toml, or --hservers M --sservers N for the documented devices")
    counts = {"--hservers": hservers or 0, "--sservers": sservers or 0}
    for flag, count in counts.items():
        if not 0 <= count <= STRIPES_MAX:
            raise UsageError(f"{flag}: {count} is not a number of servers from 0 to {STRIPES_MAX}")
    if not any(counts.values()):
        raise UsageError("--hservers: is 0 and so is --sservers; give at least one server")
    return documented_cluster(*counts.values())


def _ask(
    base: Question, cluster: Cluster, step_bytes: int, request_bytes: int, processes: int, swept: bool
) -> Question:
    """The question for one request size and number of processes."""
    if not 0 < request_bytes <= REQUEST_BYTES_MAX:
        raise UsageError(f"--request: {request_bytes} bytes are not from 1 to {REQUEST_BYTES_MAX}; give e.g. 256KiB")
    if not 0 < processes <= PROCESSES_MAX:
        raise UsageError(f"--processes: {processes} is not from 1 to {PROCESSES_MAX}; give e.g. 32")
    if swept and base.N:
        step_bytes = round_up(max(step_bytes, request_bytes // base.N // SWEPT_STEPS), step_bytes)
    return replace(
        base,
        params=parameters(cluster, processes),
        request_bytes=request_bytes,
        pairs=grid(request_bytes, base.M, base.N, step_bytes),
    )


@dataclass(frozen=True, kw_only=True)
class DeviceOptions:
    """The servers: a cluster, or so many of the documented devices."""

    cluster: Annotated[
        Path | None, typer.Option("--cluster", metavar="CLUSTER", help="cluster.toml, store.toml or store directory.")
    ] = None
    hservers: Annotated[
        int | None,
        typer.Option("--hservers", metavar="N", help="Number of HDDs (3 ms + 100 MB/s), in place of --cluster."),
    ] = None
    sservers: Annotated[
        int | None,
        typer.Option("--sservers", metavar="N", help="Number of SSDs (0.1 ms + 400 MB/s), in place of --cluster."),
    ] = None


@dataclass(frozen=True, kw_only=True)
class RequestOptions:
    """The request, and what is tried for it."""

    request: Annotated[str | None, typer.Option("--request", metavar="SIZE", help="Request size, e.g. 256KiB.")] = None
    offset: Annotated[str, typer.Option("--offset", metavar="OFFSET", help="Request offset in its region.")] = "0"
    write: Annotated[bool, typer.Option("--write", help="Price a write (default: a read).")] = False
    processes: Annotated[int, typer.Option("--processes", metavar="N", help="Number of client processes.")] = 32
    on: Annotated[str, typer.Option("--on", metavar="SERVERS", help=f"Servers of the layouts: {', '.join(ON)}.")] = (
        "all"
    )
    stripe_size: StripeOption = "64KiB"
    step_size: StepOption = "4KiB"
    startup_spread: Annotated[
        float,
        typer.Option(
            "--startup-spread",
            metavar="SHARE",
            help="SLAL: variation of the startup time as a share of its mean, 0 to 1.",
        ),
    ] = 1.0


@flattened
def model(
    *,
    devices: DeviceOptions,
    asked: RequestOptions,
    sweep: Annotated[
        list[str] | None,
        typer.Option(
            "--sweep",
            metavar="KEY=VALUES",
            help="Values: request=4KiB..16MiB, processes=1..512 (doubling), or a,b,c; give both for a map.",
        ),
    ] = None,
    plot: Annotated[
        Path | None, typer.Option("--plot", metavar="FILE", help="Plot of the result: out.svg or out.html.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Compare the modelled cost of a request on all layouts.

    Term by term; with --sweep, over request sizes and numbers of processes. 'stripewise model engine' shows what
    IO-Engine's rules say of calls of MPI-IO.
    """
    described = _devices(devices.cluster, devices.hservers, devices.sservers)
    axes = parse_sweeps(sweep or [])
    swept = {axis.name for axis in axes}
    if (asked.request is None) == ("request" not in swept):
        missing = asked.request is None
        fault = "give the size of the request, e.g. --request 256KiB" if missing else "is swept; leave it out"
        raise UsageError(f"--request: {fault}")
    _check(asked)
    if plot is not None:
        check_plot_path(plot)
    base, step_bytes = _base(asked, described)
    fixed = 0 if asked.request is None else parse_size(asked.request, "--request")
    cells = {}
    for key in keys_of(axes):
        at = dict(zip((axis.name for axis in axes), key, strict=True))
        question = _ask(
            base, described, step_bytes, at.get("request", fixed), at.get("processes", asked.processes), bool(axes)
        )
        cells[key] = Cell(question, price_list(question, asked.on))
    answer = PriceSweep(tuple(axes), cells)
    if plot is not None:
        save_plot(plot, answer)
    if axes and json:
        print_json(answer.as_json())
    elif axes:
        print_sweep(answer)
    elif json:
        print_json(cells[()].alone_json())
    else:
        print_list(cells[()])


def _check(asked: RequestOptions) -> None:
    if asked.on not in ON:
        raise UsageError(f"--on: '{asked.on}' is not one of {', '.join(ON)}")
    if not 0 <= asked.startup_spread <= 1:
        raise UsageError(f"--startup-spread: {asked.startup_spread:g} is not a share from 0 to 1")


def _base(asked: RequestOptions, cluster: Cluster) -> tuple[Question, int]:
    """What all questions have in common, and the step of the search for pairs. Raises UsageError."""
    stripe_bytes, step_bytes = (
        parse_size(asked.stripe_size, "--stripe-size"),
        parse_size(asked.step_size, "--step-size"),
    )
    for flag, value in (("--stripe-size", stripe_bytes), ("--step-size", step_bytes)):
        if value < 4096 or value % 4096 or value > REQUEST_BYTES_MAX:
            near = min(nearest_granules(value), REQUEST_BYTES_MAX)
            raise UsageError(f"{flag}: {value} is not a multiple of 4096 bytes up to 1 TiB; the nearest one is {near}")
    begin = parse_size(asked.offset, "--offset")
    if begin > OFFSET_BYTES_MAX // 4:
        raise UsageError(f"--offset: {begin} is above 2^60; give the offset in the region, e.g. {MIB}")
    M, N = len(cluster.hservers), len(cluster.sservers)
    if asked.on != "all" and not (M if asked.on == "hservers" else N):
        raise UsageError(f"--on: the cluster has no {asked.on}; take all")
    base = Question(parameters(cluster, 1), M, N, 1, begin, asked.write, (), stripe_bytes, asked.startup_spread)
    return base, step_bytes
