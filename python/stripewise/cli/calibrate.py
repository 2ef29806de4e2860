"""`stripewise calibrate`: measures targets and network, and writes the cluster with what came out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import typer

from ..calibration.calibrate import Calibrated, Subject, apply_to_store, calibrated, with_measured
from ..calibration.measure import Probe, open_probe
from ..calibration.network import Ping, ping
from ..calibration.plot import draw
from ..cluster import PER_BYTE_S_MAX, STARTUP_S_MAX, Cluster, Network, Target, cluster_text, read_cluster
from ..cluster.calibration import Fit
from ..errors import UsageError
from ..files.parts import check_output, check_output_directory, write_durably
from ..report.figure import require_matplotlib
from ..setup.remarks import on_one_device
from ..store import Store
from ..units import MB, parse_size
from .arguments import flattened
from .options import JsonOption
from .output import print_json, printable, progress, say, stdout, table

#: What is written where neither -o nor --apply is given.
DEFAULT_OUTPUT = Path("cluster.toml")
#: A measured figure of an emulated target that is further off than this is pointed out.
EMULATED_TOLERANCE = 0.05


@dataclass(frozen=True, kw_only=True)
class SubjectOptions:
    """What is measured."""

    store: Annotated[Path | None, typer.Option("--store", metavar="STORE", help="Store whose targets to measure.")] = (
        None
    )
    cluster: Annotated[
        Path | None,
        typer.Option(
            "--cluster", metavar="CLUSTER", help="cluster.toml whose directories to measure, without a store."
        ),
    ] = None
    target: Annotated[
        list[str] | None,
        typer.Option(
            "--target",
            metavar="TARGET",
            help="Target to measure; repeatable (default: all). Others keep their figures.",
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class WrittenOptions:
    """Where the figures go."""

    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="Output file (default: cluster.toml).")
    ] = None
    force: Annotated[bool, typer.Option("--force", help="Replace an existing output file.")] = False
    apply: Annotated[bool, typer.Option("--apply", help="Set the measured figures of the store's real targets.")] = (
        False
    )

    def path(self) -> Path | None:
        """The file to be written, if any. Raises UsageError where it cannot be, or must not be replaced."""
        written = self.output if self.output is not None else (None if self.apply else DEFAULT_OUTPUT)
        if written is not None:
            check_output(written)
            if written.exists() and not self.force:
                raise UsageError(f"-o: {written} exists; give --force to replace it, or another name")
        return written


@dataclass(frozen=True, kw_only=True)
class MeasureOptions:
    """How each target is measured."""

    seconds: Annotated[
        float,
        typer.Option("--seconds", metavar="SECONDS", min=1, max=86_400, help="Measuring time per target in seconds."),
    ] = 60.0
    scratch: Annotated[
        str, typer.Option("--scratch", metavar="SIZE", help="Size of the scratch file, at most 1/16 of the free space.")
    ] = "256MiB"
    plot: Annotated[
        Path | None, typer.Option("--plot", metavar="DIR", help="Output directory for plots of the measured times.")
    ] = None


@dataclass(frozen=True, kw_only=True)
class NetworkOptions:
    """The network's figures, measured or given."""

    ping_by: Annotated[
        str | None,
        typer.Option(
            "--ping", metavar="LAUNCHER", help='Launcher to measure the network with, e.g. "mpiexec -n 2 --hosts a,b".'
        ),
    ] = None
    establish_s: Annotated[
        float | None,
        typer.Option(
            "--establish-s", metavar="SECONDS", min=0, max=STARTUP_S_MAX, help="Connection set-up time in seconds."
        ),
    ] = None
    per_byte_s: Annotated[
        float | None,
        typer.Option("--per-byte-s", metavar="SECONDS", min=0, max=PER_BYTE_S_MAX, help="Network seconds per byte."),
    ] = None
    processes_per_node: Annotated[
        int | None,
        typer.Option("--processes-per-node", metavar="N", min=1, max=2**31, help="Client processes per node."),
    ] = None

    def changed(self, before: Network, pinged: Ping | None) -> Network:
        """The network with what was measured, and over that what was given."""
        found = before if pinged is None else pinged.network
        return Network(
            found.establish_s if self.establish_s is None else self.establish_s,
            found.per_byte_s if self.per_byte_s is None else self.per_byte_s,
            found.processes_per_node if self.processes_per_node is None else self.processes_per_node,
        )


@flattened
def calibrate(
    *,
    asked: SubjectOptions,
    result: WrittenOptions,
    measuring: MeasureOptions,
    network: NetworkOptions,
    json: JsonOption = False,
) -> None:
    """Measure targets and network for cluster.toml.

    docs/calibration.md explains what is measured and how well the models fit.
    """
    subject = _subject(asked, result.apply)
    scratch_bytes = parse_size(measuring.scratch, "--scratch")
    written, plot = result.path(), measuring.plot
    if network.ping_by is not None and (network.establish_s is not None or network.per_byte_s is not None):
        raise UsageError("--ping: measures what --establish-s and --per-byte-s say; give one or the other")
    if plot is not None:
        require_matplotlib()
        check_output_directory(plot, "--plot")
    wanted = subject.chosen(asked.target or [])
    if plot is not None:
        plot.mkdir(parents=True, exist_ok=True)
    if asked.cluster is not None:
        for line in on_one_device(subject.cluster.targets):
            say(f"warning: {printable(line)}")
    pinged = None if network.ping_by is None else _ping(network.ping_by)

    def network_of(there: Cluster) -> Cluster:
        return replace(there, network=network.changed(there.network, pinged))

    with open_probe(subject.store) as probe:
        measured = [_measure(subject, probe, one, measuring.seconds, scratch_bytes, plot) for one in wanted]
    if asked.store is None:
        for one in subject.cluster.targets:
            if one.kind == "emulated":
                say(f"target {one.name}: is emulated and keeps its figures; with --store its clock can be measured")
    made = network_of(with_measured(subject.cluster, measured))
    if written is not None:
        write_durably(
            written, "# Written by stripewise calibrate; docs/calibration.md explains it.\n" + cluster_text(made)
        )
    changed = apply_to_store(subject.store, measured, network_of) if result.apply and subject.store is not None else []
    found = Calibrated(subject, tuple(measured), made.network, written, tuple(changed))
    if json:
        print_json(found.as_json())
    else:
        _print(found)


def _subject(asked: SubjectOptions, apply: bool) -> Subject:
    store, cluster = asked.store, asked.cluster
    if (store is None) == (cluster is None):
        raise UsageError("calibrate: needs either --store or --cluster")
    if store is not None:
        opened = Store(store)
        return Subject(opened.config.cluster, opened.root)
    if apply:
        raise UsageError("--apply: changes a store; give --store, or write the file with -o")
    assert cluster is not None
    # What is to be measured need not be said beforehand.
    measured = asked.target or []
    return Subject(read_cluster(cluster, lambda name: not measured or name in measured), None)


def _ping(launcher: str) -> Ping:
    found = ping(launcher)
    if found.is_local:
        say(f"--ping: all processes were on {printable(found.hosts[0])}: that is memory, not a network")
    if found.fit.is_unreliable:
        say(f"--ping: unreliable, {_off(found.fit)}; is the network idle, and of one kind over all sizes?")
    return found


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


def _print(made: Calibrated) -> None:
    rows = table(
        "", "target", "access", "startup ms", "5-95 %", "MB/s", "ns/KiB", "residual", "misfit", "samples", keys=2
    )
    for target in made.targets:
        assert target.calibration is not None
        for kind, fit in target.calibration.fits:
            rate = f"{1 / fit.per_byte_s / MB:,.1f}" if fit.per_byte_s else "-"
            rows.add_row(
                printable(target.name), kind.replace("_", " "), f"{fit.startup_s * 1e3:.4f}",
                f"{fit.startup_min_s * 1e3:.3f}-{fit.startup_max_s * 1e3:.3f}", rate, f"{fit.per_byte_s * 1024e9:,.1f}",
                f"{fit.residual:.1%}{' !' if fit.is_unreliable else ''}", f"{fit.misfit:.0%}", str(fit.samples),
            )  # fmt: skip
    stdout().print(rows)
    _each(made.targets, lambda t: f"{printable(t.name)}: {t.calibration.device}, {t.calibration.method}")  # type: ignore[union-attr]
    for name, found in made.emulated().items():
        worst = max(found.values(), key=abs, default=0.0)
        told = "as configured" if abs(worst) <= EMULATED_TOLERANCE else "NOT as configured: the machine is too busy"
        each = ", ".join(f"{key} {value:+.1%}" for key, value in found.items())
        typer.echo(f"{printable(name)}: {told} ({each or 'nothing configured'})")
    network = made.network
    typer.echo(
        f"network: {network.establish_s:.3g} s and {network.per_byte_s:.3g} s per byte, "
        f"{network.processes_per_node} processes on a node"
    )
    if made.written is not None:
        typer.echo(f"written to {made.written}")
    if made.applied:
        typer.echo(f"{made.subject.store}: new figures for {', '.join(map(printable, made.applied))}")


def _each(targets: Sequence[Target], line: Callable[[Target], str]) -> None:
    for target in targets:
        typer.echo(line(target))
