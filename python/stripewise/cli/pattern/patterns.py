"""`stripewise patterns`: what a run did to its files, one sentence for each pattern.

Also what changed between two runs, and what a run with another number of processes would do.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from ...errors import UsageError, WorkloadError
from ...files.parts import check_output, check_output_directory
from ...pattern import (
    PatternReport,
    changes,
    fio_job,
    fio_replay,
    ior_commands,
    predicted,
    report_as_asked,
    report_of,
    store_report,
)
from ...pattern.prediction import total_text
from ...pattern.report import Described, FilePatterns
from ...workload.counted import Choice
from ...workload.trace import RunEnd, partial_reasons, run_end
from ..arguments import flattened
from ..options import JsonOption
from ..output import print_json, printable, say_partial
from ..plan.options import FileOptions, say_of_trace

FORMS = ("ior", "fio")
LAYERS = ("posix", "mpi")
#: The first line of commands some of which write; a comment to a shell and to fio.
WRITES = "# writes to the files named here: change the names first"


@dataclass(frozen=True, kw_only=True)
class PatternOptions:
    """What is told, and of what."""

    layer: Annotated[
        str | None,
        typer.Option(
            "--layer",
            metavar="LAYER",
            help="Traced layer: posix or mpi (default: posix; with --as ior mpi for files used by MPI-IO).",
        ),
    ] = None
    as_: Annotated[
        str | None,
        typer.Option(
            "--as",
            metavar="FORM",
            help="Print commands that reproduce each pattern: ior or fio; those that write do so to the run's files.",
        ),
    ] = None
    db: Annotated[
        Path | None,
        typer.Option(
            "--db",
            metavar="FILE",
            help="SQLite file to add the patterns to, by application, file and number of processes.",
        ),
    ] = None
    processes: Annotated[
        int | None,
        typer.Option("--processes", "-n", metavar="N", min=1, help="predict: number of processes to predict."),
    ] = None
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            metavar="DIR",
            help="Output directory: predicted trace (predict), or logs to replay (--as fio).",
        ),
    ] = None
    json: JsonOption = False

    def report(self, trace: Path, choice: Choice) -> PatternReport:
        """The patterns of a trace in the layer that is asked for. IOR makes calls of MPI-IO where a program did."""
        if self.layer is None and self.as_ == "ior":
            return report_as_asked(trace, choice)
        return report_of(trace, choice, self.layer or "posix")


@flattened
def patterns(
    *,
    words: Annotated[
        list[str],
        typer.Argument(
            help="Collected trace; two for diff, two or more for predict.",
            metavar="TRACE | diff A B | predict TRACE...",
        ),
    ],
    files: FileOptions,
    options: PatternOptions,
) -> None:
    """Describe the access patterns of a run, one sentence each.

    diff: the changes from run A to run B. predict: the run with --processes processes, from runs with other numbers of
    processes.
    """
    if options.layer not in (None, *LAYERS):
        raise UsageError(f"--layer: '{options.layer}' is not known; give one of {', '.join(LAYERS)}")
    if options.as_ is not None and options.as_ not in FORMS:
        raise UsageError(f"--as: '{options.as_}' is not known; give one of {', '.join(FORMS)}")
    verb, *rest = words if words[0] in ("diff", "predict") else ["", *words]
    reads_one = options.as_ is not None or options.db is not None
    if verb and reads_one:
        raise UsageError(f"{verb}: takes neither --as nor --db; give them with one trace")
    if verb != "predict" and options.processes is not None:
        raise UsageError("--processes: belongs to 'patterns predict'")
    if verb != "predict" and options.as_ != "fio" and options.output is not None:
        raise UsageError("-o: belongs to 'patterns predict' and to --as fio")
    traces = _checked(verb, rest)
    _check_results(verb, options, traces)
    choice = files.choice()
    reports = [options.report(Path(word), choice) for word in traces]
    ends = [run_end(Path(word)) for word in rest]
    for word, end in zip(rest, ends, strict=True):
        say_partial(word, partial_reasons(Path(word)))
        say_of_trace(word, ended=end.text)
    if verb == "diff":
        _diff(reports, options)
    elif verb == "predict":
        _predict(reports, options)
    else:
        _tell(reports[0], options, ends[0])


def _checked(verb: str, traces: Sequence[str]) -> Sequence[str]:
    least, most = {"": (1, 1), "diff": (2, 2), "predict": (2, 1000)}[verb]
    if not least <= len(traces) <= most:
        needed = {
            "": "one trace",
            "diff": "diff and two traces",
            "predict": "predict and two traces or more, of runs with other numbers of processes",
        }[verb]
        raise UsageError(f"patterns: give {needed}")
    return traces


def _check_results(verb: str, options: PatternOptions, traces: Sequence[str]) -> None:
    """UsageError where what is to be told is not said, or cannot be written."""
    if verb == "predict" and options.processes is None:
        raise UsageError("predict: give the number of processes with --processes")
    if options.db is not None:
        check_output(options.db, "--db")
    if options.output is None:
        return
    check_output_directory(options.output)
    if verb == "predict" and any(_is_trace_in(trace, options.output) for trace in traces):
        raise UsageError(f"-o: {options.output} has one of the traces that are predicted from; give another directory")


def _tell(report: PatternReport, options: PatternOptions, end: RunEnd) -> None:
    if options.db is not None:
        store_report(report, options.db)
    if options.json:
        print_json(report.as_json() | {"exit_status": end.status})
        return
    if options.as_ is not None:
        _tell_commands(report, options)
        return
    for file in report.files:
        typer.echo(f"{printable(file.path)}: {file.records:,} requests in {len(file.patterns)} pattern(s)")
        for each in file.patterns:
            typer.echo(f"  {each.sentence}")


def _tell_commands(report: PatternReport, options: PatternOptions) -> None:
    """Of IOR or fio, behind a warning where one of them writes."""
    lines: list[str] = []
    has_writes = False
    for file in report.files:
        if options.as_ == "ior":
            commands = list(ior_commands(file, report.processes))
            has_writes |= any(not line.startswith("#") and " -w " in line for line in commands)
            lines += commands
            continue
        for number, each in enumerate(file.patterns):
            lines.append(_fio(file, each, number, options.output))
            has_writes |= each.operation != "read" and not lines[-1].startswith("#")
    for line in [WRITES, *lines] if has_writes else lines:
        typer.echo(line)


def _fio(file: FilePatterns, each: Described, number: int, place: Path | None) -> str:
    name = printable(f"{Path(file.path).name}-{number}")
    if place is None:
        return fio_job(each, file.path, name)
    return fio_replay(each, file.path, name, place, lambda rank: file.requests(each.pattern, rank))


def _diff(reports: Sequence[PatternReport], options: PatternOptions) -> None:
    found = changes(reports[0], reports[1])
    if options.json:
        print_json(
            [
                {"file": each.path, "was": each.former or each.path, "sign": each.sign, "text": each.text}
                for each in found
            ]
        )
        return
    if not found:
        typer.echo("no difference")
    path = ""
    for each in found:
        if each.path != path:
            path = each.path
            was = f" (was {each.former})" if each.former else ""
            typer.echo(printable(f"{path}{was}"))
        typer.echo(f"{each.sign} {each.text}")


def _is_trace_in(trace: str, place: Path) -> bool:
    """Whether a trace, or the directory of one, is what would be written to `place`."""
    return os.path.realpath(trace) in (os.path.realpath(place), os.path.realpath(place / "trace.parquet"))


def _predict(reports: Sequence[PatternReport], options: PatternOptions) -> None:
    assert options.processes is not None  # checked before the traces were read
    prediction = predicted(reports, options.processes)
    doubts = prediction.doubts()
    if not any(file.patterns for file in prediction.files):
        runs = ", ".join(each.source for each in reports)
        raise WorkloadError(
            f"{runs}: no pattern that all runs have follows a formula, so nothing can be predicted; give runs of one "
            "program that differ in their number of processes"
        )
    if options.output is not None:
        prediction.write(options.output)
    if options.json:
        print_json({"processes": options.processes, "formulas": prediction.formulas(), "doubts": doubts})
        return
    typer.echo(f"{options.processes} processes: {total_text(prediction)}")
    typer.echo("by these formulas of rank r and P processes, the outermost loop first (docs/traces/patterns.md):")
    for line in prediction.formulas():
        typer.echo(printable(f"  {line}"))
    for line in doubts:
        typer.echo(printable(f"not sure: {line}"))
    if options.output is not None:
        typer.echo(f"{options.output}: written; its times are only an order")
