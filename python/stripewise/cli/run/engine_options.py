"""What `run` is told of IO-Engine, and what it tells of it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from ...engine.board import VARIABLE, Board, Site
from ...engine.profile import read_profile, write_profile
from ...errors import StripewiseError, UsageError
from ...files.parts import check_output
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
            if self.profile is not None and not self.dry_run:
                write_profile(self.profile, became.sites)
        except (OSError, StripewiseError) as error:
            say(f"stripewise: --engine: {printable(str(error))}")
            return
        if self.explain or self.dry_run:
            for site in became.sites:
                say(f"stripewise: {printable(_line(site, self.dry_run))}")
            if not became.sites:
                say("stripewise: --engine: no file was used by collective calls of several processes of one machine")
        if became.missed:
            say(f"stripewise: --engine: {became.missed} opens or files found no room to be decided on or noted")


#: Why calls began in their mode, by the names of the binding.
_REASONS = {
    "read": "reads are independent (rule 3)",
    "contiguous": "each process writes a region of its own (rule 5)",
    "strided": "requests leave gaps for others' (rule 7)",
    "crowded": "there are more processes than processors",
    "profile": "the profile has it so",
    "given": "a hint says how",
    "deferred": "aggregators alone have opened the file (romio_no_indep_rw)",
    "unknown": "nothing was decided",
}


def _line(site: Site, is_dry: bool) -> str:
    """One line about a site."""
    what = "write" if site.write else "read"
    line = f"{site.file}: {site.calls:,} collective {what} calls of {site.processes} processes"
    if site.opens > 1:
        line += f" in {site.opens:,} opens"
    reason = _REASONS.get(site.reason, site.reason)
    if is_dry:
        return f"{line} would begin {site.mode or 'collective'}: {reason}"
    line += f", {site.independent:,} made independently; {'began' if site.opens < 2 else 'the last open began'} so: {reason}"
    prices = {"collective": site.collective_s_per_byte, "independent": site.independent_s_per_byte}
    measured = [f"{mode} {price * 1e9:.3g}" for mode, price in prices.items() if price is not None]
    if measured:
        line += f"; ns a byte: {', '.join(measured)}"
    if site.contests:
        line += f"; {site.contests} comparisons, {site.changes} changes"
    return line
