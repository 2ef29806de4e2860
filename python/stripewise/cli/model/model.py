"""`stripewise model`: the price list of one request under every layout, term by term, and which layout wins where."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from ...cluster import Cluster, Network, Target, read_cluster
from ...errors import UsageError
from ...model import parameters
from ...model.pricelist import Question, price_list
from ...policy.toolkit.vss import grid
from ...report.figure import check_plot_path
from ...units import MIB, OFFSET_BYTES_MAX, round_up
from ..options import JsonOption, StepOption, StripeOption, size
from ..output import print_json
from .show import as_json, print_list, print_sweep, save_plot, winners_of
from .sweep import Axis, parse_sweeps

#: The devices of cost-models section 7: 3 ms + 100 MB/s, 0.1 ms + 400 MB/s, no network cost.
HDD_STARTUP_S, HDD_PER_BYTE_S = 0.003, 1e-8
SSD_STARTUP_S, SSD_PER_BYTE_S = 0.0001, 2.5e-9
SERVERS_MAX = 4096
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
        if not 0 <= count <= SERVERS_MAX:
            raise UsageError(f"{flag}: {count} is not a number of servers from 0 to {SERVERS_MAX}")
    if not any(counts.values()):
        raise UsageError("--hservers: is 0 and so is --sservers; give at least one server")
    kinds = (("hdd", HDD_STARTUP_S, HDD_PER_BYTE_S), ("ssd", SSD_STARTUP_S, SSD_PER_BYTE_S))
    targets = [
        Target(f"{kind}{n}", kind, "emulated", Path(f"{kind}{n}"), 0, startup, startup, per_byte, per_byte)
        for (kind, startup, per_byte), count in zip(kinds, counts.values(), strict=True)
        for n in range(count)
    ]
    return Cluster(Path("documented devices"), Network(), tuple(targets))


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


def model(
    cluster: Annotated[Path | None, typer.Option("--cluster", help="cluster.toml, store.toml or a store.")] = None,
    hservers: Annotated[
        int | None, typer.Option("--hservers", help="Instead of a cluster: so many HDDs with 3 ms + 100 MB/s.")
    ] = None,
    sservers: Annotated[
        int | None, typer.Option("--sservers", help="Instead of a cluster: so many SSDs with 0.1 ms + 400 MB/s.")
    ] = None,
    request: Annotated[str | None, typer.Option("--request", help="Size of the request, e.g. 256KiB.")] = None,
    offset: Annotated[str, typer.Option("--offset", help="Where it begins in its region.")] = "0",
    write: Annotated[bool, typer.Option("--write", help="A write instead of a read.")] = False,
    processes: Annotated[int, typer.Option("--processes", help="Client processes at work.")] = 32,
    on: Annotated[str, typer.Option("--on", help=f"Only layouts on these: {', '.join(ON)}.")] = "all",
    stripe_size: StripeOption = "64KiB",
    step_size: StepOption = "4KiB",
    startup_spread: Annotated[
        float, typer.Option("--startup-spread", help="slal: startup varies by this share of its mean, 0 to 1.")
    ] = 1.0,
    sweep: Annotated[
        list[str] | None,
        typer.Option("--sweep", help="request=4KiB..16MiB or processes=1..512, doubling, or a,b,c; both for a map."),
    ] = None,
    plot: Annotated[Path | None, typer.Option("--plot", help="Draw it: a file ending in .svg or .html.")] = None,
    json: JsonOption = False,
) -> None:
    """Price one request under every layout, term by term, and say which wins where."""
    described = _devices(cluster, hservers, sservers)
    axes = parse_sweeps(sweep or [])
    swept = {axis.name for axis in axes}
    if (request is None) == ("request" not in swept):
        fault = "give the size of the request, e.g. --request 256KiB" if request is None else "is swept; leave it out"
        raise UsageError(f"--request: {fault}")
    if on not in ON:
        raise UsageError(f"--on: '{on}' is none of {', '.join(ON)}")
    if not 0 <= startup_spread <= 1:
        raise UsageError(f"--startup-spread: {startup_spread:g} is no share from 0 to 1")
    if plot is not None:
        check_plot_path(plot)
    stripe_bytes, step_bytes = size(stripe_size, "--stripe-size"), size(step_size, "--step-size")
    for flag, value in (("--stripe-size", stripe_bytes), ("--step-size", step_bytes)):
        if value < 4096 or value % 4096 or value > REQUEST_BYTES_MAX:
            raise UsageError(f"{flag}: {value} is not a positive multiple of 4096 bytes up to 1 TiB; round it up")
    begin = size(offset, "--offset")
    if begin > OFFSET_BYTES_MAX // 4:
        raise UsageError(f"--offset: {begin} is above 2^60; give the offset in the region, e.g. {MIB}")
    M, N = len(described.hservers), len(described.sservers)
    if on != "all" and not (M if on == "hservers" else N):
        raise UsageError(f"--on: the cluster has no {on}; take all")
    base = Question(parameters(described, 1), M, N, 1, begin, write, (), stripe_bytes, startup_spread)
    fixed = 0 if request is None else size(request, "--request")
    cells = {}
    for key in _keys(axes):
        at = dict(zip((axis.name for axis in axes), key, strict=True))
        question = _ask(
            base, described, step_bytes, at.get("request", fixed), at.get("processes", processes), bool(axes)
        )
        cells[key] = (question, price_list(question, on))
    if plot is not None:
        save_plot(plot, axes, cells)
    if axes:
        print_sweep(axes, cells, json)
    elif json:
        question, prices = cells[()]
        print_json(
            {"request_bytes": question.request_bytes, "offset": question.offset, "write": write,
             "processes": question.params.p, "hservers": M, "sservers": N,
             "rows": [as_json(row, question) for row in prices.rows], "winners": winners_of(prices),
             "skipped": prices.skipped}
        )  # fmt: skip
    else:
        print_list(*cells[()])


def _keys(axes: list[Axis]) -> list[tuple[int, ...]]:
    """All combinations of the axes' values; one empty one without axes."""
    keys: list[tuple[int, ...]] = [()]
    for axis in axes:
        keys = [(*key, value) for key in keys for value in axis.values]
    return keys
