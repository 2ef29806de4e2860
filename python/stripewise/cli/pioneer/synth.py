"""`stripewise synth`: a path to play, from a profile."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from ...errors import UsageError
from ...files.parts import check_output
from ...pioneer.characterization.profile_reader import read_profile
from ...pioneer.synthesis.likeness import Likeness
from ...pioneer.synthesis.synthesize import (
    MIXTURE,
    SEED_MAX,
    STATISTICS,
    SYMBOLIC,
    WAYS,
    Knobs,
    Synthetic,
    synthesize,
)
from ...units import quoted
from ..arguments import flattened
from ..options import JsonOption
from ..output import aligned, print_json, printable, progress, wrapped

#: Files that are listed of either way; `--json` lists more, and counts all.
FILES_SHOWN_MAX = 10
#: Ways as sentences have them.
_HOW = {
    STATISTICS: "statistics",
    SYMBOLIC: "symbolic patterns",
    MIXTURE: "symbolic patterns of the regular files and statistics of the others",
}


@dataclass(frozen=True, kw_only=True)
class KnobOptions:
    """What is changed of the profile."""

    scale: Annotated[
        list[str] | None,
        typer.Option("--scale", metavar="WHAT=FACTOR", help="Multiply requests, files, sessions or slack; repeatable."),
    ] = None
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="KEY=VALUE", help="Set a characteristic, or multiply it: SIZE.shared=*2; repeatable."
        ),
    ] = None
    fs: Annotated[
        str | None, typer.Option("--fs", metavar="FACTOR", help="Make files larger, offsets with them, e.g. 10x.")
    ] = None

    def knobs(self) -> Knobs:
        """As synthesis takes them."""
        return Knobs(tuple(self.scale or ()), tuple(self.set_ or ()), self.fs)


@flattened
def synth(
    *,
    profile: Annotated[Path, typer.Argument(help="Profile of a workload (profile.json).", metavar="PROFILE")],
    output: Annotated[Path, typer.Option("-o", "--output", metavar="FILE", help="Path to write, e.g. out.swp.")],
    processes: Annotated[
        int | None, typer.Option("-n", "--processes", metavar="N", help="Processes (default: the profile's).")
    ] = None,
    seed: Annotated[int, typer.Option("--seed", metavar="N", help="Seed of all draws.")] = 1,
    by: Annotated[
        str | None, typer.Option("--by", metavar="WAY", help=f"{', '.join(WAYS)} (default: what fits better).")
    ] = None,
    knobs: KnobOptions,
    json: JsonOption = False,
) -> None:
    """Make a workload path of any size from a profile."""
    if not 0 <= seed <= SEED_MAX:
        raise UsageError(f"--seed: {seed} is not from 0 to 2^64 - 1")
    check_output(output)
    data = read_profile(profile).as_json()
    with progress("making the path"):
        made = synthesize(data, str(profile), output, processes, seed, knobs.knobs(), by)
    if json:
        print_json(made.as_json())
        return
    _print(made)


def _print(made: Synthetic) -> None:
    typer.echo(
        f"{printable(str(made.path))}: {made.requests:,} requests of the root to {made.files:,} file(s), by "
        f"{_HOW[made.way]}, for {made.processes} process(es)"
    )
    if made.way == MIXTURE:
        for line in aligned(("file", "class", "by"), _rows(made), left=3):
            typer.echo(line)
    for way, likeness in made.likeness.items():
        if likeness is not None:
            typer.echo(f"expected by {way + ':':<11} K-S {_text(likeness)}")
    if made.floor is not None:
        typer.echo(f"two ranks of the run:   K-S {_text(made.floor)}")
    if made.is_edited:
        typer.echo(
            wrapped(
                "the classes, together or subgroups were edited after the symbolic patterns were made: "
                f"--by {made.patterns} takes these as they were"
            )
        )
    if made.waits_lost:
        typer.echo(
            wrapped(
                f"ranks wait for each other no more before {', '.join(made.waits_lost)} where slack is now below the "
                "limits in the profile's key together; lower them there, too, or give --scale slack=FACTOR"
            )
        )
    if made.is_guess:
        typer.echo(
            wrapped(
                "the patterns are of one number of processes, and grow by a guess; of two numbers 'characterize' "
                f"finds formulas, where any fit; or give --by {STATISTICS}"
            )
        )
    typer.echo(f"to play it: stripewise play {quoted(made.path)} -n {made.processes} --directory DIR")


def _rows(made: Synthetic) -> Iterator[tuple[str, str, str]]:
    """Of either way the first files, and how many more there are."""
    for way, count in made.files_by.items():
        for each in [each for each in made.ways if each.way == way][:FILES_SHOWN_MAX]:
            yield printable(each.name), each.file_class, _HOW[way]
        if count > FILES_SHOWN_MAX:
            yield f"... {count - FILES_SHOWN_MAX:,} more", "", _HOW[way]


def _text(likeness: Likeness) -> str:
    return (
        f"{likeness.throughput:.3f} of throughput, {likeness.ratio:.3f} of the data operation ratio, "
        f"{likeness.arrivals:.3f} of arrivals"
    )
