"""Options of the verbs of `stripewise swd` that say where block requests come from."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import typer

from ...errors import UsageError
from ...swd.disk import read_disk
from ...swd.simulate import (
    AREA_SHARE,
    SCHEMES,
    Fill,
    Scheme,
    Setup,
    area_bytes,
    parse_fill,
    parse_schemes,
    parse_share,
)
from ...swd.workload import BEYOND, FORMATS, LOOK_ALIKES, BlockWorkload, made_workload, trace_workload

WorkloadOption = Annotated[
    str | None,
    typer.Option(
        "--workload",
        metavar="WORKLOAD",
        help="Generated requests, in place of a trace: uniform, zipf, syn or look-alike:NAME "
        f"({', '.join(LOOK_ALIKES)}), then ,key=value (docs/formats.md, Block workload), e.g. "
        "zipf,alpha=0.8,arrivals=normal:5:2.",
    ),
]
FormatOption = Annotated[
    str | None,
    typer.Option("--format", metavar="FORMAT", help=f"Trace format: {', '.join(FORMATS)} (default: detected)."),
]
DeviceOption = Annotated[
    str | None,
    typer.Option("--device", metavar="DEVICE", help="Device of the trace to take requests of (default: all)."),
]
ActionOption = Annotated[
    str, typer.Option("--action", metavar="EVENT", help="Event of a blkparse trace: Q (queued) or D (issued).")
]
RequestsOption = Annotated[
    int | None, typer.Option("--requests", metavar="N", min=1, help="Maximum number of requests.")
]
StretchOption = Annotated[
    float, typer.Option("--stretch", metavar="FACTOR", min=0, help="Factor of all arrival times.")
]
BeyondOption = Annotated[
    str,
    typer.Option(
        "--beyond", metavar="TREATMENT", help="Treatment of requests beyond the space: fold (modulo) or clip (drop)."
    ),
]
LbaFactorOption = Annotated[
    int,
    typer.Option(
        "--lba-factor", metavar="N", min=1, max=1 << 16,
        help="Factor of start blocks before folding; 512 spreads a trace over the whole space.",
    ),
]  # fmt: skip
SeedOption = Annotated[int, typer.Option("--seed", metavar="N", min=0, help="Seed of generated requests.")]

#: How many requests a generator that does not end makes where nobody says.
REQUESTS = 100_000
#: Random access zone and E-region where nobody says.
AREA = f"{AREA_SHARE:.0%}"


TraceOption = Annotated[Path | None, typer.Option("--trace", metavar="TRACE", help="Block trace.")]
DiskOption = Annotated[
    str, typer.Option("--disk", metavar="DISK", help="Disk file (docs/formats.md, Disk), or generic.")
]
SchemeOption = Annotated[
    str,
    typer.Option(
        "--scheme",
        metavar="SCHEME,...",
        help=f"Schemes, separated by commas: {', '.join(SCHEMES)}; parameters as ,key=value after a scheme.",
    ),
]
UsedOption = Annotated[
    str,
    typer.Option(
        "--used",
        metavar="SHARE|SIZE,...",
        help="Space in use, as a share of the scheme's (50%) or a size (60GB); several with commas.",
    ),
]
FilledOption = Annotated[
    str | None,
    typer.Option(
        "--filled",
        metavar="SHARE",
        help="Share of that space filled at the start, e.g. 100% (default: all; none for syn).",
    ),
]
RandomAccessOption = Annotated[
    str,
    typer.Option(
        "--random-access", metavar="SHARE|SIZE", help="Random access zone, as a share of the disk (1%) or a size (2GB)."
    ),
]
ERegionOption = Annotated[
    str,
    typer.Option(
        "--e-region", metavar="SHARE|SIZE", help="E-region of scheme 'is', as a share of the disk (1%) or a size (2GB)."
    ),
]


@dataclass(frozen=True, kw_only=True)
class SourceOptions:
    """Where requests come from, a trace or a generator."""

    trace: TraceOption = None
    workload: WorkloadOption = None


@dataclass(frozen=True, kw_only=True)
class TakenOptions:
    """What is taken of a trace, and how many requests."""

    format: FormatOption = None
    device: DeviceOption = None
    action: ActionOption = "Q"
    requests: RequestsOption = None


@dataclass(frozen=True, kw_only=True)
class FoldOptions:
    """How requests are brought into the space of a disk, and the seed of generated ones."""

    lba_factor: LbaFactorOption = 1
    beyond: BeyondOption = "fold"
    seed: SeedOption = 0


@dataclass(frozen=True, kw_only=True)
class DriveOptions:
    """The drive, the schemes and fills that are compared on it, and its areas."""

    disk: DiskOption = "generic"
    scheme: SchemeOption = "hdd,R(4123),tstl-smart"
    used: UsedOption = "50%"
    filled: FilledOption = None
    random_access: RandomAccessOption = AREA
    e_region: ERegionOption = AREA

    @property
    def schemes(self) -> list[Scheme]:
        return parse_schemes(self.scheme)

    @property
    def fills(self) -> list[Fill]:
        return [parse_fill(text) for text in self.used.split(",")]

    def setup(self, workload: BlockWorkload) -> Setup:
        """The drive with its areas, filled as the workload wants it."""
        drive = read_disk(self.disk)
        random_access = area_bytes(self.random_access, drive, "--random-access")
        e_region = area_bytes(self.e_region, drive, "--e-region")
        filled = workload.filled_share if self.filled is None else parse_share(self.filled, "--filled")
        return Setup(drive, random_access, e_region, filled)


def chosen_workload(
    trace: Path | None, workload: str | None, taken: TakenOptions, folded: FoldOptions, stretch: float = 1.0
) -> BlockWorkload:
    """The workload of the command line. Raises UsageError when not exactly one is given, or options do not fit it."""
    if (trace is None) == (workload is None):
        raise UsageError("swd: give either a trace, or --workload uniform, zipf, syn or look-alike:NAME")
    if folded.beyond not in BEYOND:
        raise UsageError(f"--beyond: '{folded.beyond}' is not known; give one of {', '.join(BEYOND)}")
    if trace is not None:
        read = trace_workload(trace, taken.format, taken.device, taken.action, taken.requests, stretch, folded.beyond)
        return replace(read, lba_factor=folded.lba_factor)
    for flag, value in (("--format", taken.format), ("--device", taken.device)):
        if value is not None:
            raise UsageError(f"{flag}: applies to traces; leave it out with --workload")
    assert workload is not None  # one of the two was given
    made = made_workload(workload, taken.requests, stretch, folded.beyond, folded.seed)
    limit = taken.requests if taken.requests is not None or made.is_finite else REQUESTS
    return replace(made, lba_factor=folded.lba_factor, requests=limit)
