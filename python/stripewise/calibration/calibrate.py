"""A cluster whose figures are measured, target after target, and what came out put in the place of what was typed."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from ..cluster import PER_BYTE_S_MAX, STARTUP_S_MAX, Cluster, Network, Target
from ..cluster.calibration import Calibration, Fit
from ..devices import find
from ..errors import ClusterError, StoreError
from ..moving.retarget import write_config
from ..native import parsed
from ..store import Store
from .fit import fit_line
from .measure import Measured, Measurement, Probe, Progress

#: The figures of a target: their names there, the kind of access they are taken from, and the part of its line.
FIGURES = (
    ("startup_read_s", "random_read", "startup_s"),
    ("startup_write_s", "random_write", "startup_s"),
    ("per_byte_read_s", "random_read", "per_byte_s"),
    ("per_byte_write_s", "random_write", "per_byte_s"),
)
#: Half of a spread lies below its startup: one is never changed without the other.
SPREADS = ("startup_read_spread_s", "startup_write_spread_s")


@dataclass(frozen=True)
class Subject:
    """What is calibrated: a cluster, and the store that it belongs to if there is one."""

    cluster: Cluster
    store: Path | None

    def chosen(self, names: Sequence[str]) -> list[Target]:
        """The targets of these names, all that there are without names. ClusterError for an unknown one."""
        there = [target for target in self.cluster.targets if target.state != "removed"]
        known = {target.name for target in there}
        for name in names:
            if name not in known:
                raise ClusterError(
                    f"{self.cluster.source}: has no target '{name}'; it has {', '.join(t.name for t in there)}"
                )
        wanted = [target for target in there if not names or target.name in names]
        if self.store is None and names:
            for target in wanted:
                if target.kind == "emulated":
                    raise ClusterError(
                        f"{self.cluster.source}: target '{target.name}' is emulated, and its clock is in a store; "
                        f"make the store and give --store"
                    )
        if self.store is None:
            wanted = [target for target in wanted if target.kind != "emulated"]
        if not wanted:
            raise ClusterError(
                f"{self.cluster.source}: all targets are emulated, and their clocks are in a store; make the store and "
                f"give --store"
            )
        return wanted

    def measure(self, probe: Probe, target: Target, seconds: float, scratch_bytes: int, step: Progress) -> Measured:
        """Measures one target. StoreError with what kept it from it; nothing of it stays, however it ends."""
        if not target.path.is_dir():
            raise StoreError(f"target {target.name}: {target.path} is not a directory; create or mount it")
        parsed(probe.begin, str(target.path), self.cluster.index(target.name), scratch_bytes)
        return Measurement(probe, target.name, seconds, step).run()


def calibrated(target: Target, measured: Measured) -> Target:
    """The target with measured figures and the record of the measurement."""
    fits = tuple((kind, fit_line(sizes, times).rounded()) for kind, (sizes, times) in measured.samples.items())
    record = Calibration(
        date=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        device=f"emulated {target.klass}" if measured.method == "emulated" else find(target.path).words,
        method=measured.method,
        in_flight=measured.in_flight,
        requests=measured.requests,
        scratch_bytes=measured.scratch_bytes,
        seconds=round(measured.seconds, 3),
        sizes=measured.sizes,
        fits=fits,
    )
    figures = {name: getattr(dict(fits)[kind], part) for name, kind, part in FIGURES}
    for name, value in figures.items():
        if value > (STARTUP_S_MAX if name.startswith("startup") else PER_BYTE_S_MAX):
            raise StoreError(f"target {target.name}: {name} = {value:g} is beyond anything; look at the device")
    fitted = replace(target, **figures, calibration=record)
    return replace(
        fitted,
        startup_read_spread_s=_spread_s(dict(fits)["random_read"]),
        startup_write_spread_s=_spread_s(dict(fits)["random_write"]),
    )


def _spread_s(fit: Fit) -> float:
    """T_max - T_min of SLAL; a uniform startup cannot be spread wider than twice its mean."""
    return min(fit.startup_max_s - fit.startup_min_s, 2 * fit.startup_s)


def differences(configured: Target, measured: Target) -> dict[str, float]:
    """How far each measured figure is from the configured one, as a share of it; a configured 0 is left out."""
    return {
        name: getattr(measured, name) / getattr(configured, name) - 1
        for name, _, _ in FIGURES
        if getattr(configured, name) > 0
    }


def with_measured(cluster: Cluster, measured: Sequence[Target]) -> Cluster:
    """The cluster with these in the places of those of the same names."""
    made = {target.name: target for target in measured}
    return replace(cluster, targets=tuple(made.get(target.name, target) for target in cluster.targets))


def refigured(target: Target, measured: Target) -> Target:
    """A store's target after its measurement; an emulated one is its figures and gets only the record."""
    if target.kind == "emulated":
        return replace(target, calibration=measured.calibration)
    figures = {name: getattr(measured, name) for name in (*(name for name, _, _ in FIGURES), *SPREADS)}
    return replace(target, **figures, calibration=measured.calibration)


def apply_to_store(store: Path, measured: Sequence[Target], change_network: Callable[[Cluster], Cluster]) -> list[str]:
    """Writes measured figures into store.toml and compiles it; returns the names of targets that got new ones."""
    opened = Store(store)
    cluster = change_network(opened.config.cluster)
    made = {target.name: target for target in measured}
    targets, changed = [], []
    for target in cluster.targets:
        found = made.get(target.name)
        if found is None or target.state == "removed":
            targets.append(target)
            continue
        targets.append(refigured(target, found))
        if target.kind != "emulated":
            changed.append(target.name)
    write_config(opened, replace(opened.config, cluster=replace(cluster, targets=tuple(targets))))
    return changed


@dataclass(frozen=True)
class Calibrated:
    """What a calibration came to: measured targets, the network, the file that was written, targets changed."""

    subject: Subject
    targets: tuple[Target, ...]
    network: Network
    written: Path | None
    applied: tuple[str, ...]

    def emulated(self) -> dict[str, dict[str, float]]:
        """How far each emulated target's clock is from its configured figures, by name."""
        before = {target.name: target for target in self.subject.cluster.targets}
        return {
            target.name: differences(before[target.name], target)
            for target in self.targets
            if target.kind == "emulated"
        }

    def as_json(self) -> dict[str, Any]:
        """The calibration as `calibrate --json` prints it."""
        off = self.emulated()
        return {
            "cluster": None if self.written is None else str(self.written),
            "applied": list(self.applied),
            "network": asdict(self.network),
            "targets": [
                {**_target_json(target), **({"difference": off[target.name]} if target.name in off else {})}
                for target in self.targets
            ],
        }


def _target_json(target: Target) -> dict[str, Any]:
    record = target.calibration
    assert record is not None  # it was measured just now
    fits = {kind: {**asdict(fit), "is_unreliable": fit.is_unreliable} for kind, fit in record.fits}
    about = {key: value for key, value in asdict(record).items() if key != "fits"}
    figures = {name: getattr(target, name) for name, _, _ in FIGURES}
    return {"name": target.name, "kind": target.kind, **figures, "calibration": {**about, **fits}}
