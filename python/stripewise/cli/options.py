"""Options that several verbs share, so that one name means one thing everywhere."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from ..errors import UsageError
from ..limits import Limits
from ..units import parse_size


def names_completed(names: Iterable[str], with_commas: bool = False) -> Callable[[str], list[str]]:
    """What a shell proposes for an option of names, or of names with commas between them."""
    known = tuple(names)

    def proposed(incomplete: str) -> list[str]:
        before, comma, begun = incomplete.rpartition(",") if with_commas else ("", "", incomplete)
        return [f"{before}{comma}{name}" for name in known if name.startswith(begun)]

    return proposed


StoreArgument = Annotated[Path, typer.Argument(help="Store directory.", metavar="STORE")]
StoreOption = Annotated[Path, typer.Option("--store", metavar="STORE", help="Store directory.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]
ManageOption = Annotated[
    list[str] | None,
    typer.Option(
        "--manage",
        metavar="DIR|GLOB",
        help="Directory or glob whose new files go into the store ('*' is within a directory, '**' not); repeatable.",
    ),
]
CommandArgument = Annotated[list[str], typer.Argument(metavar="-- CMD...", help="Program and its arguments.")]
RegionOption = Annotated[str, typer.Option("--region-size", metavar="SIZE", help="Region size, e.g. 64MiB.")]
StripeOption = Annotated[
    str, typer.Option("--stripe-size", metavar="SIZE", help="Stripe width of DEF, the equal layout.")
]
StepOption = Annotated[str, typer.Option("--step-size", metavar="SIZE", help="Step of the stripe width search.")]
BandwidthOption = Annotated[
    str | None,
    typer.Option(
        "--bandwidth",
        metavar="SIZE",
        help="Maximum copy bandwidth in bytes per second, e.g. 100MiB (default: unlimited).",
    ),
]
SlowdownOption = Annotated[
    float,
    typer.Option(
        "--max-slowdown",
        metavar="FACTOR",
        min=0,
        help="Throttle above this latency multiple of the programs' I/O; 0: never.",
    ),
]
PatienceOption = Annotated[
    str, typer.Option("--patience", metavar="TIME", help="Time to keep retrying failed moves at the end, e.g. 10min.")
]
MinGainOption = Annotated[
    float | None,
    typer.Option(
        "--min-gain",
        metavar="RATIO",
        help="Minimum ratio of modelled gain to copy cost for moving a region between windows.",
    ),
]
FileOption = Annotated[
    list[str] | None,
    typer.Option(
        "--file",
        metavar="GLOB",
        help="Only files whose path matches this glob; repeatable (default: managed files, else the program's own).",
    ),
]
#: Default throttle: latency of the programs' I/O as a multiple of that without the mover.
SLOWDOWN = 1.5
#: The program's own options follow its name without a --.
COMMAND_SETTINGS = {"allow_interspersed_args": False}


@dataclass(frozen=True, kw_only=True)
class MoverOptions:
    """What whoever moves files or makes copies may take while programs run."""

    bandwidth: BandwidthOption = None
    max_slowdown: SlowdownOption = SLOWDOWN

    @property
    def limits(self) -> Limits:
        """The same as numbers. Raises UsageError for a bad one."""
        rate = 0 if self.bandwidth is None else parse_size(self.bandwidth, "--bandwidth")
        if self.bandwidth is not None and not rate:
            raise UsageError("--bandwidth: 0 would move nothing; give at least 1, or leave it out for no limit")
        return Limits(rate, self.max_slowdown)

    def words(self) -> list[str]:
        """The same on the command line of another mover. Raises UsageError for a bad one."""
        limit = [] if self.bandwidth is None else ["--bandwidth", str(self.limits.bandwidth_bytes_per_s)]
        return ["--max-slowdown", str(self.max_slowdown), *limit]
