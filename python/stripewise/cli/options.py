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
MinGainOption = Annotated[
    float | None,
    typer.Option(
        "--min-gain",
        help="Move a region between windows only if its modelled gain is more than so many times the copy's.",
    ),
]
FileOption = Annotated[
    list[str] | None,
    typer.Option(
        "--file", help="Only files whose path matches this glob (default: managed files, else the program's own)."
    ),
]
#: What programs are slowed down by at most unless somebody says otherwise.
SLOWDOWN = 1.5
#: The program's own options follow its name without a --.
COMMAND_SETTINGS = {"allow_interspersed_args": False}


@dataclass(frozen=True, kw_only=True)
class MoverOptions:
    """What a mover may take while programs run."""

    bandwidth: BandwidthOption = None
    max_slowdown: SlowdownOption = SLOWDOWN

    @property
    def bytes_per_s(self) -> int:
        """The most that is copied in a second; 0 without a limit."""
        return 0 if self.bandwidth is None else parse_size(self.bandwidth, "--bandwidth")

    def words(self) -> list[str]:
        """The same on the command line of another mover."""
        return ["--max-slowdown", str(self.max_slowdown), *(["--bandwidth", self.bandwidth] if self.bandwidth else [])]
