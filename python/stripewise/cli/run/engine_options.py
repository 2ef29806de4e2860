"""What `run` is told of IO-Engine, and what it tells of it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from ...engine.board import VARIABLE, Became, Board, Sieving, Site
from ...engine.profile import read_profile, write_profile
from ...errors import StripewiseError, UsageError
from ...files.parts import check_output
from ...units import format_size
from ..output import printable, say


@dataclass(frozen=True, kw_only=True)
class EngineOptions:
    """Whether MPI-IO is tuned while the program runs, and how."""

    engine: Annotated[
        bool,
        typer.Option(
            "--engine",
            help="Tune CMD's MPI-IO: collective calls in the mode that costs less, and in STORE new files in the "
            "stripes that its hints ask for.",
        ),
    ] = False
    by_rules: Annotated[
        bool, typer.Option("--by-rules", help="With --engine: modes by IO-Engine's rules rather than by price.")
    ] = False
    override: Annotated[
        bool, typer.Option("--override", help="With --engine: modes also where a hint of CMD's (romio_cb_*) says how.")
    ] = False
    explain: Annotated[
        bool, typer.Option("--explain", help="With --engine: say at the end how the calls of each file were made.")
    ] = False
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="With --engine: make calls as CMD does, and say what they would begin as.")
    ] = False
    profile: Annotated[
        Path | None,
        typer.Option(
            "--profile",
            metavar="FILE",
            help="With --engine: begin as FILE says of earlier runs, and write down there what this one has found.",
        ),
    ] = None

    def check(self) -> None:
        """Raises UsageError for words that make no sense together, and what `check_output` does."""
        if not self.engine:
            words = {"--by-rules": self.by_rules, "--override": self.override, "--explain": self.explain}
            more = {"--dry-run": self.dry_run, "--profile": self.profile is not None}
            for word in (word for word, is_given in (words | more).items() if is_given):
                raise UsageError(f"{word}: needs --engine, whose decisions it is about")
        if self.by_rules and self.profile is not None:
            raise UsageError("--profile: is about prices, which --by-rules takes no heed of; leave one of them out")
        if self.profile is not None and str(self.profile) == "--":
            raise UsageError("--profile: has no file behind it; name one, then -- and CMD")
        if self.by_rules and self.dry_run:
            raise UsageError("--dry-run: changes no call, by rules or by price; leave --by-rules out")
        if self.profile is not None:
            check_output(self.profile, "--profile")

    @property
    def policy(self) -> str:
        """As boards name it."""
        return "rules" if self.by_rules else "dry" if self.dry_run else "price"

    @contextlib.contextmanager
    def tuned(self, env: dict[str, str]) -> Iterator[None]:
        """While a program runs with `env`, its calls are decided on; then it is said what became of them.

        Raises what `read_profile` does.
        """
        if not self.engine:
            yield
            return
        known = () if self.profile is None else read_profile(self.profile)
        try:
            board = Board(policy=self.policy, overrides=self.override, known=known)
        except OSError as error:
            say(f"stripewise: --engine: collective calls are made as ever: {printable(str(error))}")
            yield
            return
        with board:
            env[VARIABLE] = str(board.path)
            yield
            self._tell(board)

    def _tell(self, board: Board) -> None:
        try:
            became = board.became()
        except (OSError, StripewiseError) as error:
            say(f"stripewise: --engine: {printable(str(error))}")
            return
        if self.explain or self.dry_run:
            self._explain(became)
        if became.missed:
            say(f"stripewise: --engine: {became.missed} opens or files found no room to be decided on or noted")
        if self.profile is not None and self.policy == "price":
            try:
                write_profile(self.profile, became.sites)
            except (OSError, StripewiseError) as error:
                say(f"stripewise: --engine: nothing was written down: {printable(str(error))}")

    def _explain(self, became: Became) -> None:
        sites = sorted(became.sites, key=lambda site: -site.calls)
        for site in sites[:SITES_SHOWN]:
            say(f"stripewise: {printable(_line(site, self.dry_run))}")
        left = sites[SITES_SHOWN:]
        if left:
            calls, independent = sum(site.calls for site in left), sum(site.independent for site in left)
            how = "" if self.dry_run else f", {independent:,} made independently"
            say(f"stripewise: and {len(left)} more files and operations: {calls:,} collective calls{how}")
        if not sites:
            say(
                "stripewise: --engine: no file was used by collective calls of several processes of one machine and "
                "closed by all of them"
            )


#: Lines about single files.
SITES_SHOWN = 50
#: Why calls began in their mode, by the names of the binding.
_REASONS = {
    "read": "reads are independent (IO-Engine's rule 3)",
    "contiguous": "views leave no gaps for others' data (rule 5)",
    "strided": "views leave gaps for others' data (rule 7)",
    "crowded": "there are more processes than processors",
    "scattered": "writes are of so many small pieces that an exchange takes less, by the targets' figures",
    "profile": "the profile has it so",
    "given": "a hint (romio_cb_*, romio_ds_write) says how",
    "deferred": "aggregators alone have opened the file (romio_no_indep_rw)",
    "unknown": "nothing was decided",
}


#: The mode that goes with them; a profile says which.
_BEGAN = {
    "read": "independent", "contiguous": "independent", "crowded": "independent", "strided": "collective",
    "scattered": "collective",
    "given": "as CMD makes them", "deferred": "as CMD makes them", "profile": "so", "unknown": "so",
}  # fmt: skip


def _times(number: int) -> str:
    return "once" if number == 1 else f"{number:,} times"


def _line(site: Site, is_dry: bool) -> str:
    """One line about a site."""
    what = "write" if site.write else "read"
    line = f"{site.file}: {site.calls:,} collective {what} calls of {site.processes} processes"
    if site.opens > 1:
        line += f" in {site.opens:,} opens"
    reason = _REASONS.get(site.reason, site.reason)
    if is_dry:
        return f"{line} would begin {site.mode or 'collective'}: {reason}"
    line += f", {site.independent:,} made independently"
    if site.mode is not None:
        line += (
            f"; {'they' if site.opens < 2 else 'those of the last open'} began {_BEGAN.get(site.reason, '')}: {reason}"
        )
    prices = {"collective": site.collective_s_per_byte, "independent": site.independent_s_per_byte}
    measured = [f"{mode} {price * 1e9:.3g}" for mode, price in prices.items() if price is not None]
    if measured:
        line += f"; ns a byte: {', '.join(measured)}"
    if site.contests:
        line += f"; modes compared {_times(site.contests)}, changed {_times(site.changes)}"
    if site.sieving is not None:
        line += f"; {_sieving_words(site.sieving)}"
    return line


def _sieving_words(sieving: Sieving) -> str:
    """How reads behind a view with gaps were made, and why."""
    ways = {"sieved": sieving.sieved_ns, "piece by piece": sieving.unsieved_ns}
    way, other = ways if sieving.is_sieved else reversed(ways)
    gap = max(sieving.stride_bytes - sieving.piece_bytes, 0)
    figures = (
        f"{sieving.servers} targets' figures" if sieving.servers else "of no known device: a start-up as long as 64 KiB"
    )
    return (
        f"{way} behind views: pieces of {format_size(sieving.piece_bytes)}, {format_size(gap)} between them; "
        f"ms a request: {way} {ways[way] / 1e6:.3g}, {other} {ways[other] / 1e6:.3g} ({figures})"
    )
