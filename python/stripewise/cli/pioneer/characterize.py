"""`stripewise characterize`: from a trace to the profile of its workload."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ...errors import UsageError
from ...files.parts import check_output
from ...pioneer.characterization.profile import write_profile
from ...pioneer.characterize import Characterized, characterize_traces
from ...units import quoted
from ...workload.trace import check_no_part, partial_reasons, run_end
from ..arguments import flattened
from ..options import JsonOption
from ..output import print_json, printable, say_partial, stdout, table, wrapped
from ..plan.options import FileOptions, say_of_trace

DEFAULT_OUT = Path("profile.json")


@flattened
def characterize(
    *,
    traces: Annotated[
        list[Path], typer.Argument(help="Collected traces: one, or one each of several job sizes.", metavar="TRACE...")
    ],
    out: Annotated[Path, typer.Option("-o", "--output", metavar="FILE", help="Output file.")] = DEFAULT_OUT,
    files: FileOptions,
    anonymous: Annotated[
        bool, typer.Option("--anonymous", help="Keep no names, hosts, users, commands or absolute times.")
    ] = False,
    subgroups: Annotated[
        str | None,
        typer.Option(
            "--subgroups", metavar="RANKS/RANKS", help="Children that do alike, e.g. 1-3/4-7 (default: found)."
        ),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Describe the workload of a traced run.

    Writes a profile: what the run asked for, file by file class, without its data. 'stripewise synth' makes a workload
    of any size from it. Rank 0 and one other rank of each group are enough in the trace.
    """
    check_output(out)
    for trace in traces:
        check_no_part("-o", out, trace)
    if len({str(trace.resolve()) for trace in traces}) < len(traces):
        raise UsageError("TRACE: one is given twice; give traces of different numbers of processes")
    for trace in traces:
        say_of_trace(str(trace), ended=run_end(trace).text, left_out=())
        say_partial(str(trace), partial_reasons(trace))
    found = characterize_traces(traces, files.choice(), subgroups, anonymous)
    write_profile(found.profile, out)
    if json:
        print_json(found.profile.as_json())
        return
    _print(found, out)


def _print(found: Characterized, out: Path) -> None:
    profile = found.profile
    groups = len(profile.subgroups)
    typer.echo(
        f"{printable(str(out))}: {profile.requests:,} requests of {profile.processes:,} process(es) in "
        f"{profile.duration_s:.3f} s, from {found.records:,} records; {groups} group(s) of children"
    )
    shown = table("", "files", "number", "sessions each", "kinds", "outside", keys=1)
    for name, each in profile.classes.items():
        if each.files:
            kinds = ", ".join(each.sessions) or "never opened"
            outside = ", ".join(f"{op} {count:,}" for op, count in each.outside.items()) or "none"
            shown.add_row(name, f"{each.files:,}", f"{each.open_times.mean():.3g}", kinds, outside)
    stdout().print(shown)
    known = (profile.programs or {}).get("processes", [])
    if found.traces > 1 and len(known) < 2:
        typer.echo(
            wrapped(
                "the symbolic patterns are of the first trace alone: no formulas of P fit all of them"
                if known
                else "there are no symbolic patterns: the run is not regular"
            )
        )
    typer.echo(f"next: stripewise synth {quoted(out)} -o workload.swp")
