"""`stripewise simulate --replicas`: a traced run from its files as they lie, and from replicas beside them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import typer

from ..cluster import read_cluster
from ..pattern import report_as_asked
from ..replicas import Setting, accesses_of
from ..replicas.simulated import ORIGINAL, Served, simulate_served
from ..replicas.stored import read_choices
from ..simulate import Settings
from ..units import seconds_text
from ..workload.layouts import read_layouts
from ..workload.trace import partial_reasons, read_trace, run_end
from .output import print_json, progress, say_partial, shown, stdout, table, wrapped
from .plan.options import FileOptions, say_of_trace

_COLUMNS = ("manager", "replicas", "% from replicas", "simulated seconds", "MB/s", "times original")
_NOTE = (
    "% from replicas: the bytes that replicas served, of all read and written; simulated seconds: of the whole run, "
    "replicas built before it; times original: the first row's seconds over the row's"
)


def compare_replicas(
    trace: Path, cluster: Path, replicas: Path, files: FileOptions, settings: Settings, json: bool
) -> None:
    """Simulates and prints the comparison."""
    choices = read_choices(replicas)
    described = read_cluster(cluster)
    with progress("reading the trace") as step:
        workload = read_trace(trace, files.choice(), step)
    say_partial(str(trace), partial_reasons(trace))
    say_of_trace(str(trace), ended=run_end(trace).text)
    traced = {path: layout for store in read_layouts(trace) for path, layout in store.layouts.items()}
    setting = Setting(described, traced)
    layouts = {file.path: setting.original(file.path) for file in workload.files}
    with progress("simulating"):
        views = accesses_of(report_as_asked(trace, files.choice())).views
        runs = simulate_served(workload, described, layouts, choices, settings, views=views)
    if json:
        rows = [each.as_json(runs[0]) for each in runs]
        print_json({"simulated": True, "workload": str(trace), "cluster": str(cluster), "rows": rows})
        return
    _tell(f"simulated: {workload.source} on {len(described.active)} servers of {described.source}", runs)


def _tell(title: str, runs: Sequence[Served]) -> None:
    made = table(title, *_COLUMNS)
    for each in runs:
        is_original = each.name == ORIGINAL
        made.add_row(
            each.name,
            "-" if is_original else f"{each.replicas:,}",
            "-" if is_original else shown(100 * each.replica_share),
            seconds_text(each.seconds),
            shown(each.mb_s),
            shown(each.times(runs[0]), 2),
        )
    stdout().print(made)
    typer.echo(wrapped(_NOTE))
