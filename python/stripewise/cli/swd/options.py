"""Options of the verbs of `stripewise swd` that say where block requests come from."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from ...errors import UsageError
from ...swd.disk import Disk, read_disk
from ...swd.simulate import AREA_SHARE, SCHEMES, parse_share
from ...swd.workload import BEYOND, FORMATS, LOOK_ALIKES, BlockWorkload, made_workload, trace_workload
from ..options import size

WorkloadOption = Annotated[
    str | None,
    typer.Option(
        "--workload",
        help=f"Instead of a trace: uniform, zipf, syn or look-alike:NAME ({', '.join(LOOK_ALIKES)}), then ,key=value "
        "(docs/formats.md, Block workload), e.g. zipf,alpha=0.8,arrivals=normal:5:2.",
    ),
]
FormatOption = Annotated[
    str | None, typer.Option("--format", help=f"Of the trace: {', '.join(FORMATS)} (default: recognised).")
]
DeviceOption = Annotated[
    str | None, typer.Option("--device", help="Only requests of this device, as the trace calls it (default: all).")
]
ActionOption = Annotated[str, typer.Option("--action", help="Of a blkparse trace: Q (queued) or D (issued).")]
RequestsOption = Annotated[int | None, typer.Option("--requests", min=1, help="At most so many requests.")]
StretchOption = Annotated[float, typer.Option("--stretch", min=0, help="Multiply all times of arrival by this.")]
BeyondOption = Annotated[
    str, typer.Option("--beyond", help="Requests beyond the space: fold (modulo) or clip (leave out).")
]
LbaFactorOption = Annotated[
    int,
    typer.Option(
        "--lba-factor", min=1, max=1 << 16,
        help="Multiply first blocks before folding; 512 spreads a trace over all of the space.",
    ),
]  # fmt: skip
SeedOption = Annotated[int, typer.Option("--seed", min=0, help="Seed of generated requests.")]

#: How many requests a generator that does not end makes where nobody says.
REQUESTS = 100_000
#: Random access zone and E-region where nobody says.
AREA = f"{AREA_SHARE:.0%}"


def chosen_workload(
    trace: Path | None,
    workload: str | None,
    format: str | None,
    device: str | None,
    action: str,
    requests: int | None,
    stretch: float,
    beyond: str,
    seed: int,
    lba_factor: int = 1,
) -> BlockWorkload:
    """The workload of the command line. Raises UsageError when not exactly one is given, or options do not fit it."""
    if (trace is None) == (workload is None):
        raise UsageError("swd: give either a trace, or --workload uniform, zipf, syn or look-alike:NAME")
    if beyond not in BEYOND:
        raise UsageError(f"--beyond: '{beyond}' is not known; give one of {', '.join(BEYOND)}")
    if trace is not None:
        read = trace_workload(trace, format, device, action, requests, stretch, beyond)
        return replace(read, lba_factor=lba_factor)
    for flag, value in (("--format", format), ("--device", device)):
        if value is not None:
            raise UsageError(f"{flag}: is about a trace; leave it out with --workload")
    assert workload is not None  # one of the two was given
    made = made_workload(workload, requests, stretch, beyond, seed)
    ends = made.origin["kind"] == "syn" and not made.origin.get("again")
    return replace(made, lba_factor=lba_factor, requests=requests if requests is not None or ends else REQUESTS)


TraceOption = Annotated[Path | None, typer.Option("--trace", help="A block trace.")]
DiskOption = Annotated[str, typer.Option("--disk", help="A disk file (docs/formats.md, Disk), or generic.")]
SchemeOption = Annotated[
    str,
    typer.Option(
        "--scheme",
        help=f"Of {', '.join(SCHEMES)}; several with commas, parameters as ,key=value behind the scheme's name.",
    ),
]
UsedOption = Annotated[
    str,
    typer.Option("--used", help="Space that requests go to: of the scheme's, e.g. 50%, or 60GB; several with commas."),
]
FilledOption = Annotated[
    str | None,
    typer.Option("--filled", help="How much of it holds data before, e.g. 100% (default: all; nothing for syn)."),
]
RandomAccessOption = Annotated[
    str, typer.Option("--random-access", help="Random access zone: of the disk, e.g. 1%, or 2GB.")
]
ERegionOption = Annotated[
    str, typer.Option("--e-region", help="E-region, which only is uses: of the disk, e.g. 1%, or 2GB.")
]


def chosen_disk(disk: str, random_access: str, e_region: str) -> tuple[Disk, int, int]:
    """The drive, and bytes of its random access zone and its E-region."""
    drive = read_disk(disk)

    def area(text: str, flag: str) -> int:
        if text.strip().endswith("%"):
            return int(parse_share(text, flag) * drive.size_bytes)
        return size(text, flag)

    return drive, area(random_access, "--random-access"), area(e_region, "--e-region")


def chosen_fill(filled: str | None, workload: BlockWorkload) -> float | None:
    """The share of the used space that holds data before a run; SYN goes to an empty disk (chapter 4.6.3)."""
    if filled is not None:
        return parse_share(filled, "--filled")
    return 0.0 if workload.origin["kind"] == "syn" else None
