"""Options that several verbs share, so that one name means one thing everywhere."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from ..units import parse_size

StoreArgument = Annotated[Path, typer.Argument(help="The store's directory.", metavar="STORE")]
StoreOption = Annotated[Path, typer.Option("--store", help="The store's directory.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]
ManageOption = Annotated[
    list[str] | None,
    typer.Option("--manage", help="Put new files under this directory or matching this glob into the store."),
]
CommandArgument = Annotated[list[str], typer.Argument(metavar="-- CMD...", help="The program and its arguments.")]
RegionOption = Annotated[str, typer.Option("--region-size", help="Size of a region, e.g. 64MiB.")]
StripeOption = Annotated[str, typer.Option("--stripe-size", help="Stripe of DEF.")]
StepOption = Annotated[str, typer.Option("--step-size", help="Step of the search for stripe pairs.")]
BandwidthOption = Annotated[
    str | None, typer.Option("--bandwidth", help="Copy so much per second at most, e.g. 100MiB.")
]
SlowdownOption = Annotated[
    float,
    typer.Option("--max-slowdown", min=0, help="Yield when the programs' I/O takes so many times as long; 0: never."),
]
PatienceOption = Annotated[
    str, typer.Option("--patience", help="At the end, try for so long what could not be moved, e.g. 10min.")
]
WindowOption = Annotated[
    str | None,
    typer.Option("--window", help="Plan for every time window of this length anew, e.g. 30s or 10min (default: one)."),
]
MinGainOption = Annotated[
    float | None,
    typer.Option(
        "--min-gain",
        help="Move a region between windows only if its modelled gain is more than so many times the copy's.",
    ),
]
SeedOption = Annotated[int, typer.Option("--seed", help="Seed of the random orders of DEF, PADP and PSA.")]
SigmaOption = Annotated[
    float | None,
    typer.Option("--sigma", help="SLAL: the imbalance of servers above which another stripe is tried (default: 0.2)."),
]
ServersOption = Annotated[
    str | None,
    typer.Option("--servers", help="SLAL: the servers that it takes as equals, hdd, ssd or all (default: hdd)."),
]
TimeLimitOption = Annotated[
    str | None, typer.Option("--time-limit", help="best: how long it may search, e.g. 10s or 5min (default: 60s).")
]
SmoothOption = Annotated[
    bool | None,
    typer.Option(
        "--smooth/--no-smooth",
        help="best: plan for runs like the traced one (default), or for one that repeats its very requests.",
    ),
]
FileOption = Annotated[
    list[str] | None, typer.Option("--file", help="Only files whose path matches this glob (default: managed files).")
]
#: What programs are slowed down by at most unless somebody says otherwise.
SLOWDOWN = 1.5
#: The program's own options follow its name without a --.
COMMAND_SETTINGS = {"allow_interspersed_args": False}


def size(text: str, option: str) -> int:
    """Bytes of a size option."""
    return parse_size(text, option)


@dataclass(frozen=True, kw_only=True)
class SizeOptions:
    """Sizes that planners go by."""

    region_size: RegionOption = "64MiB"
    stripe_size: StripeOption = "64KiB"
    step_size: StepOption = "4KiB"


@dataclass(frozen=True, kw_only=True)
class WindowOptions:
    """Time windows, and what moves between them must gain."""

    window: WindowOption = None
    min_gain: MinGainOption = None


@dataclass(frozen=True, kw_only=True)
class SearchOptions:
    """Options that single policies take for their search."""

    sigma: SigmaOption = None
    servers: ServersOption = None
    time_limit: TimeLimitOption = None
    smooth: SmoothOption = None


@dataclass(frozen=True, kw_only=True)
class MoverOptions:
    """What a mover may take while programs run."""

    bandwidth: BandwidthOption = None
    max_slowdown: SlowdownOption = SLOWDOWN

    @property
    def bytes_per_s(self) -> int:
        """The most that is copied in a second; 0 without a limit."""
        return 0 if self.bandwidth is None else size(self.bandwidth, "--bandwidth")

    def words(self) -> list[str]:
        """The same on the command line of another mover."""
        return ["--max-slowdown", str(self.max_slowdown), *(["--bandwidth", self.bandwidth] if self.bandwidth else [])]
