"""`stripewise calibrate`: measures targets and network, and writes the cluster with what came out."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from ..calibration.calibrate import FIGURES, Subject, apply_to_store, calibrated, differences, with_measured
from ..calibration.measure import Probe, open_probe
from ..calibration.network import Ping, ping
from ..calibration.plot import draw
from ..cluster import PER_BYTE_S_MAX, STARTUP_S_MAX, Cluster, Network, Target, cluster_text, read_cluster
from ..cluster.calibration import Fit
from ..errors import UsageError
from ..files.durable import write_durably
from ..report.figure import check_plot_path
from ..store import Store
from ..units import MIB
from .options import JsonOption, size
from .output import check_output, print_json, printable, progress, say, stdout, table

#: What is written where neither -o nor --apply is given.
DEFAULT_OUTPUT = Path("cluster.toml")
#: A measured figure of an emulated target that is further off than this is pointed out.
EMULATED_TOLERANCE = 0.05


def calibrate(
    store: Annotated[Path | None, typer.Option("--store", help="Measure the targets of this store.")] = None,
    cluster: Annotated[
        Path | None, typer.Option("--cluster", help="Measure the directories of this cluster.toml, without a store.")
    ] = None,
    target: Annotated[
        list[str] | None, typer.Option("--target", help="Only this target; the others keep what they have.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Write the cluster here (default: cluster.toml).")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the file of -o.")] = False,
    apply: Annotated[
        bool, typer.Option("--apply", help="Give the store's real targets their measured figures.")
    ] = False,
    seconds: Annotated[float, typer.Option("--seconds", min=1, max=86_400, help="Time for each target.")] = 60.0,
    scratch: Annotated[
        str, typer.Option("--scratch", help="Size of the scratch file; a sixteenth of what is free at most.")
    ] = "256MiB",
    plot: Annotated[Path | None, typer.Option("--plot", help="Draw each target's times into this directory.")] = None,
    ping_by: Annotated[
        str | None,
        typer.Option("--ping", metavar="LAUNCHER", help='Measure the network, e.g. "mpiexec -n 2 --hosts a,b".'),
    ] = None,
    establish_s: Annotated[
        float | None, typer.Option("--establish-s", min=0, max=STARTUP_S_MAX, help="Seconds to open a connection.")
    ] = None,
    per_byte_s: Annotated[
        float | None, typer.Option("--per-byte-s", min=0, max=PER_BYTE_S_MAX, help="The network's seconds per byte.")
    ] = None,
    processes_per_node: Annotated[
        int | None, typer.Option("--processes-per-node", min=1, max=2**31, help="Client processes on one node.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Measure targets and network; write cluster.toml with the figures, how well they fit, and the date."""
    subject = _subject(store, cluster, apply)
    scratch_bytes = size(scratch, "--scratch")
    written = output if output is not None else (None if apply else DEFAULT_OUTPUT)
    if written is not None:
        check_output(written)
        if written.exists() and not force:
            raise UsageError(f"-o: {written} exists; give --force to replace it, or another name")
    if ping_by is not None and (establish_s is not None or per_byte_s is not None):
        raise UsageError("--ping: measures what --establish-s and --per-byte-s say; give one or the other")
    if plot is not None:
        plot.mkdir(parents=True, exist_ok=True)
        check_plot_path(plot / "target.svg")
    wanted = subject.chosen(target or [])
    pinged = None if ping_by is None else _ping(ping_by)

    def network_of(there: Cluster) -> Cluster:
        return dataclasses.replace(
            there, network=_network(there.network, pinged, establish_s, per_byte_s, processes_per_node)
        )

    with open_probe(subject.store) as probe:
        measured = [_measure(subject, probe, one, seconds, scratch_bytes, plot) for one in wanted]
    if store is None:
        for one in subject.cluster.targets:
            if one.kind == "emulated":
                say(f"target {one.name}: is emulated and keeps its figures; with --store its clock can be measured")
    made = network_of(with_measured(subject.cluster, measured))
    if written is not None:
        write_durably(
            written, "# Written by stripewise calibrate; docs/calibration.md explains it.\n" + cluster_text(made)
        )
    changed = apply_to_store(subject.store, measured, network_of) if apply and subject.store is not None else []
    if json:
        print_json(_as_json(subject, measured, made.network, written, changed))
    else:
        _print(subject, measured, made.network, written, changed)


def _subject(store: Path | None, cluster: Path | None, apply: bool) -> Subject:
    if (store is None) == (cluster is None):
        raise UsageError("calibrate: needs --store or --cluster, one of them; see 'stripewise calibrate --help'")
    if store is not None:
        opened = Store(store)
        return Subject(opened.config.cluster, opened.root)
    if apply:
        raise UsageError("--apply: changes a store; give --store, or write the file with -o")
    assert cluster is not None
    return Subject(read_cluster(cluster), None)


def _ping(launcher: str) -> Ping:
    found = ping(launcher)
    if found.is_local:
        say(f"--ping: all processes were on {printable(found.hosts[0])}: that is memory, not a network")
    if found.fit.is_unreliable:
        say(f"--ping: unreliable, {_off(found.fit)}; is the network idle, and of one kind over all sizes?")
    return found


def _network(
    before: Network, pinged: Ping | None, establish: float | None, per_byte: float | None, processes: int | None
) -> Network:
    found = before if pinged is None else pinged.network
    return Network(
        found.establish_s if establish is None else establish,
        found.per_byte_s if per_byte is None else per_byte,
        found.processes_per_node if processes is None else processes,
    )


def _measure(
    subject: Subject, probe: Probe, target: Target, seconds: float, scratch_bytes: int, plot: Path | None
) -> Target:
    with progress(f"measuring {printable(target.name)}") as step:
        samples = subject.measure(probe, target, seconds, scratch_bytes, step)
    made = calibrated(target, samples)
    drawn = None if plot is None else draw(made, samples, plot)
    assert made.calibration is not None
    for kind in made.calibration.unreliable:
        fit = made.calibration.fit(kind)
        assert fit is not None
        where = f"; see {drawn}" if drawn is not None else "; --plot DIR shows the times"
        say(f"target {target.name}: {kind} is unreliable, {_off(fit)}{where}")
    return made


def _off(fit: Fit) -> str:
    return f"residual {fit.residual:.0%} and one size {fit.misfit:.0%} off the line"


def _emulated_pairs(subject: Subject, measured: list[Target]) -> list[tuple[Target, dict[str, float]]]:
    before = {target.name: target for target in subject.cluster.targets}
    return [(one, differences(before[one.name], one)) for one in measured if one.kind == "emulated"]


def _as_json(
    subject: Subject, measured: list[Target], network: Network, written: Path | None, changed: list[str]
) -> dict[str, Any]:
    off = {target.name: found for target, found in _emulated_pairs(subject, measured)}
    rows = []
    for target in measured:
        record = target.calibration
        assert record is not None
        fits = {kind: {**dataclasses.asdict(fit), "is_unreliable": fit.is_unreliable} for kind, fit in record.fits}
        about = {key: value for key, value in dataclasses.asdict(record).items() if key != "fits"}
        figures = {name: getattr(target, name) for name, _, _ in FIGURES}
        row: dict[str, Any] = {"name": target.name, "kind": target.kind, **figures, "calibration": {**about, **fits}}
        if target.name in off:
            row["difference"] = off[target.name]
        rows.append(row)
    return {
        "cluster": None if written is None else str(written),
        "applied": changed,
        "network": dataclasses.asdict(network),
        "targets": rows,
    }


def _print(
    subject: Subject, measured: list[Target], network: Network, written: Path | None, changed: list[str]
) -> None:
    rows = table("", "target", "access", "startup ms", "5-95 %", "MiB/s", "ns/KiB", "residual", "misfit", "samples")
    for target in measured:
        assert target.calibration is not None
        for kind, fit in target.calibration.fits:
            rate = f"{1 / fit.per_byte_s / MIB:,.1f}" if fit.per_byte_s else "-"
            rows.add_row(
                printable(target.name), kind.replace("_", " "), f"{fit.startup_s * 1e3:.4f}",
                f"{fit.startup_min_s * 1e3:.3f}-{fit.startup_max_s * 1e3:.3f}", rate, f"{fit.per_byte_s * 1024e9:,.1f}",
                f"{fit.residual:.1%}{' !' if fit.is_unreliable else ''}", f"{fit.misfit:.0%}", str(fit.samples),
            )  # fmt: skip
    stdout().print(rows)
    _each(measured, lambda t: f"{printable(t.name)}: {t.calibration.device}, {t.calibration.method}")  # type: ignore[union-attr]
    for target, found in _emulated_pairs(subject, measured):
        worst = max(found.values(), key=abs, default=0.0)
        told = "as configured" if abs(worst) <= EMULATED_TOLERANCE else "NOT as configured: the machine is too busy"
        each = ", ".join(f"{name} {value:+.1%}" for name, value in found.items())
        typer.echo(f"{printable(target.name)}: {told} ({each or 'nothing configured'})")
    typer.echo(
        f"network: {network.establish_s:.3g} s and {network.per_byte_s:.3g} s per byte, "
        f"{network.processes_per_node} processes on a node"
    )
    if written is not None:
        typer.echo(f"written to {written}")
    if changed:
        typer.echo(f"{subject.store}: new figures for {', '.join(map(printable, changed))}")


def _each(targets: list[Target], line: Callable[[Target], str]) -> None:
    for target in targets:
        typer.echo(line(target))
