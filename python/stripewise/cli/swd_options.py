"""Options of the verbs of `stripewise swd` that say where block requests come from."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..errors import UsageError
from ..swd.workload import BEYOND, FORMATS, LOOK_ALIKES, BlockWorkload, made_workload, trace_workload

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
SeedOption = Annotated[int, typer.Option("--seed", min=0, help="Seed of generated requests.")]

#: How many requests a generator that does not end makes where nobody says.
REQUESTS = 100_000


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
) -> BlockWorkload:
    """The workload of the command line. Raises UsageError when not exactly one is given, or options do not fit it."""
    if (trace is None) == (workload is None):
        raise UsageError("swd: give either a trace or --workload uniform, zipf, syn or look-alike:NAME")
    if beyond not in BEYOND:
        raise UsageError(f"--beyond: '{beyond}' is not known; give one of {', '.join(BEYOND)}")
    if trace is not None:
        return trace_workload(trace, format, device, action, requests, stretch, beyond)
    for flag, value in (("--format", format), ("--device", device)):
        if value is not None:
            raise UsageError(f"{flag}: is about a trace; leave it out with --workload")
    assert workload is not None  # one of the two was given
    made = made_workload(workload, requests, stretch, beyond, seed)
    ends = made.origin["kind"] == "syn" and not made.origin.get("again")
    return made if requests is not None or ends else made_workload(workload, REQUESTS, stretch, beyond, seed)
