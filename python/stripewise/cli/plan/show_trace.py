"""`stripewise show` of a trace: the page."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import typer

from ...cluster import Cluster, read_cluster
from ...errors import NoRequestsError, StripewiseError
from ...findings import (
    DEFAULT_CLUSTER,
    FileCopies,
    FileFacts,
    FileLine,
    Finding,
    RunFacts,
    RunSummary,
    facts_of,
    findings_of,
    summary_of_run,
    why_quicker,
)
from ...replicas.lying import EQUAL
from ...store import Store
from ...store.config import read_store
from ...store.copies.listed import Copies, blocks_of, domains_of
from ...store.copies.of_files import copies_of_files
from ...units import format_size, seconds_text, time_text
from ...workload.copied import Copied, ReplicaBlocks, are_those, copying_store
from ...workload.counted import Choice
from ...workload.layouts import TracedStore, read_layouts, store_of_trace
from ...workload.maps import Maps, maps_in
from ...workload.requests import Workload
from ...workload.served import Served, served_by
from ...workload.summary import summary_of
from ...workload.trace import Progress, partial_reasons, read_trace, run_end
from ..output import print_json, printable, progress, say_partial, shown, stdout, table, wrapped
from .options import say_of_trace

#: What the time from the first request's start to the end of the last one is called here and in pages.
FIRST_TO_LAST = "first to last request"
#: Files in the table of the page; --json has all.
ROWS_MAX = 20


@dataclass(frozen=True)
class Page:
    """What is shown: a trace, of it the files that count, priced on a cluster.

    `source` is what the user named: the trace, or the log that it was made from for this page.
    """

    trace: Path
    files: Choice
    cluster: Path | None
    source: Path

    def priced_on(self) -> Cluster:
        """The devices of prices: those that are named, else those of the store that had the files, else usual ones."""
        if self.cluster is not None:
            return read_cluster(self.cluster)
        if (store := store_of_trace(self.trace)) is not None:
            with contextlib.suppress(StripewiseError):
                return replace(read_store(Path(store)).cluster, source=Path(store))
        return DEFAULT_CLUSTER

    def facts(self, only: set[str] | None = None) -> RunFacts:
        """Of the run."""
        run = facts_of(self.trace, self.files, only)
        run = replace(run, copies=_copies(run, self.trace))
        return run if self.source == self.trace else replace(run, source=str(self.source), is_log=True)


def _copies(run: RunFacts, trace: Path) -> dict[str, FileCopies]:
    """Those that the run's store has of its files now; none where it cannot be asked.

    A run without managed files has the store that it was started with, for those of plain files that served it.
    """
    files = run.files if run.store is not None else [file for file in run.files if file.copied is not None]
    root = run.store if run.store is not None else copying_store(trace)
    if not root or not files:
        return {}
    with contextlib.suppress(StripewiseError, OSError):
        store = Store(Path(root))
        found = copies_of_files(store, [file.path for file in files])
        return {path: _copies_of(store, root, file, found[path]) for file in files if (path := file.path) in found}
    return {}


def _copies_of(store: Store, root: str, file: FileFacts, copies: Copies) -> FileCopies:
    blocks = _blocks(store, file, copies)
    domains = domains_of(store, copies) if blocks else ()
    layout = store.layout(copies.container) if blocks else None
    return FileCopies(
        root, copies.replicas, copies.bytes, copies.stale_bytes, blocks, copies.invalidated, domains, layout
    )


def _blocks(store: Store, file: FileFacts, copies: Copies) -> tuple[ReplicaBlocks, ...]:
    """What the replicas of a file hold; nothing where they are not those that served its reads."""
    copied, replica = file.records.copied, file.records.replica
    if copied is None or replica is None:
        return ()
    blocks = blocks_of(store, copies)
    return blocks if are_those(blocks, *(each[copied] for each in (replica, file.offset, file.size))) else ()


def show_trace(page: Page, json: bool) -> None:
    """What the run did, file by file, and what was found."""
    on = page.priced_on()
    with progress("reading the trace") as step:
        workload = _workload(page.trace, page.files, step)
        run = page.facts(None if workload is None else {each.path for each in workload.files})
    summary, found = summary_of_run(run), findings_of(run, on)
    served = [] if workload is None else _served(page.trace, run)
    mapped = maps_in(page.trace, page.files)
    ended, left_out = run_end(page.trace), () if workload is None else workload.left_out
    # Times of a prediction are only an order: prices are compared with no time.
    span_s = 0.0 if ended.is_predicted else summary.span_s
    copied = _from_copies(run, None)
    say_partial(run.source, partial_reasons(page.trace))
    say_of_trace(run.source, ended=ended.text)
    if json:
        print_json(
            {
                "processes": workload.processes if workload is not None else run.processes,
                "files": [] if workload is None else [asdict(summary_of(each)) for each in workload.files],
                "partial": list(partial_reasons(page.trace)),
                "exit_status": ended.status,
                "left_out": dict(left_out),
                "run": asdict(summary),
                "mapped": mapped.as_json(),
                "targets": [row for each in served for row in _target_rows(each)],
                "requests_on_targets": sum(each.requests for each in served),
                "from_copies": {"reads": copied.reads, "bytes": copied.bytes},
                "cluster": str(on.source),
                "findings": [each.as_json() for each in found],
            }
        )
        return
    if workload is not None:
        _print_table(workload, ended.is_predicted)
    _print_run(summary, mapped, ended.is_predicted)
    for each in served:
        _print_targets(each, _from_copies(run, each.store), span_s)
    on_targets = sum(each.requests for each in served) + copied.reads
    if served and workload is not None and (rest := workload.requests - on_targets) > 0:
        typer.echo(f"and {rest:,} requests on files that lie elsewhere, or whose layout is not known")
    for line in summary.files:
        _print_file(line, run.patterns)
    why = why_quicker(on, run.store)
    work = {each.store.root: each.work_s.tolist() for each in served}
    quicker = why if is_quicker(found, work.get(str(on.source), []), span_s) else ""
    _print_findings(found, priced_by(run, on, span_s, quicker), span_s, why)


def _workload(trace: Path, files: Choice, step: Progress) -> Workload | None:
    """The requests that a plan would be made of; None where the run has calls by name alone."""
    try:
        return read_trace(trace, files, step)
    except NoRequestsError:
        return None


def _print_table(workload: Workload, is_predicted: bool) -> None:
    rows = sorted(map(summary_of, workload.files), key=lambda row: -(row.read_bytes + row.written_bytes))
    made = table(
        f"{workload.requests:,} requests of {workload.processes} process(es)",
        "file", "furthest byte", "reads", "writes", "read", "written", "median request", FIRST_TO_LAST,
    )  # fmt: skip
    for row in rows[:ROWS_MAX]:
        made.add_row(
            printable(row.path),
            *(format_size(row.size_bytes), f"{row.reads:,}", f"{row.writes:,}"),
            *(format_size(count) for count in (row.read_bytes, row.written_bytes, row.request_bytes_median)),
            "-" if is_predicted else time_text(row.span_s),
        )
    stdout().print(made)
    if len(rows) > ROWS_MAX:
        typer.echo(f"and {len(rows) - ROWS_MAX:,} files with fewer bytes; --file and --json tell of them")


def _served(trace: Path, run: RunFacts) -> list[Served]:
    """What the targets of each store did as homes, where the trace knows how its files lay."""
    homes = [(each, each.from_home) for each in run.files]
    files = [(each.path, each.offset[home], each.size[home], each.write[home]) for each, home in homes]
    found = [served_by(store, files) for store in read_layouts(trace)]
    return [each for each in found if each.requests]


def _from_copies(run: RunFacts, store: TracedStore | None) -> Copied:
    """Reads that copies served, of the files of one store, or of all; on which targets these lie no trace tells."""
    found = [each for each in run.files if store is None or each.path in store.layouts]
    masks = [(each, each.records.copied) for each in found if each.records.copied is not None]
    return Copied(sum(int(mask.sum()) for _, mask in masks), sum(int(each.size[mask].sum()) for each, mask in masks))


def _target_rows(served: Served) -> Iterator[dict[str, Any]]:
    for number, target in enumerate(served.store.targets):
        reads, writes = served.accesses[number].tolist()
        read, written = served.bytes[number].tolist()
        yield {
            "store": served.store.root, "name": target.name, "class": target.klass, "reads": reads, "writes": writes,
            "read": read, "written": written, "work_s": float(served.work_s[number]),
        }  # fmt: skip


def _print_targets(served: Served, copied: Copied, span_s: float) -> None:
    typer.echo(f"targets of {printable(served.store.root)}, {served.store.as_read}:")
    made = table("", "target", "class", "accesses", "read", "written", "at work by the model, s")
    order = sorted(range(len(served.names)), key=lambda number: -served.work_s[number])
    rows = list(_target_rows(served))
    for row in (rows[number] for number in sorted(order[:ROWS_MAX])):
        made.add_row(
            *(printable(str(row["name"])), str(row["class"]), f"{row['reads'] + row['writes']:,}"),
            *(format_size(row[key]) for key in ("read", "written")),
            "-" if row["work_s"] > span_s > 0 else shown(row["work_s"], 3),
        )
    if copied.reads:
        made.add_row("from copies", "-", f"{copied.reads:,}", format_size(copied.bytes), format_size(0), "-")
    stdout().print(made)
    typer.echo("by the model each access pays its startup; a device that goes on where it last ended takes less")
    if any(float(work_s) > span_s > 0 for work_s in served.work_s):
        typer.echo(
            wrapped(
                "-: by the model longer than first to last request took. Memory served accesses then, or they went on "
                "where others ended, and the other seconds of this column are upper limits"
            )
        )
    if len(rows) > ROWS_MAX:
        typer.echo(f"and {len(rows) - ROWS_MAX:,} targets with less work; --json tells of them")


def _print_run(run: RunSummary, mapped: Maps, is_predicted: bool) -> None:
    moved = f"{format_size(run.bytes)} in {run.requests:,} requests"
    if is_predicted:
        typer.echo(f"{moved}; nothing ran: times are the prediction's order")
        return
    typer.echo(f"{moved}; {FIRST_TO_LAST}: {seconds_text(run.span_s)} s")
    typer.echo(
        f"in requests: {seconds_text(run.io_s)} s of all processes, {seconds_text(run.longest_io_s)} s of the busiest"
    )
    if run.syncs:
        typer.echo(f"in {run.syncs:,} calls that sync: {seconds_text(run.syncs_s)} s of all processes")
    typer.echo(f"in {run.calls:,} calls by name: {seconds_text(run.calls_s)} s of all processes")
    if mapped.files:
        typer.echo(wrapped(mapped.text))


def _print_file(line: FileLine, patterns: str) -> None:
    if not line.sentences:
        return
    typer.echo(f"{printable(line.path)}:")
    for sentence in line.sentences:
        typer.echo(f"  {sentence}")
    for layer in line.layers:
        typer.echo(f"  {layer.sentence}")
    if line.hints is not None:
        typer.echo(f"  {line.hints.sentence}")
    for sentence in () if line.copied is None else line.copied.sentences:
        typer.echo(f"  {sentence}")
    if line.more:
        typer.echo(f"  and {line.more:,} pattern(s) more: {printable(patterns)}")
    said = [] if line.mb_s is None else [f"{line.mb_s:,.0f} MB/s while requests were under way"]
    if line.latency_ms is not None:
        half, most = line.latency_ms
        said.append(f"a request takes {time_text(half / 1e3)} (median), 99 of 100 up to {time_text(most / 1e3)}")
    if said:
        typer.echo(f"  {'; '.join(said)}")


def is_quicker(found: Sequence[Finding], work_s: Iterable[float], span_s: float) -> bool:
    """Whether a run of `span_s` contradicts the model: its targets' `work_s`, or a finding's price, exceeds it."""
    return span_s > 0 and (any(each > span_s for each in work_s) or any(each.exceeds(span_s) for each in found))


def priced_by(run: RunFacts, on: Cluster, span_s: float, quicker: str = "") -> str:
    """What prices of findings are, beside the run's own seconds; `quicker`: why the run was quicker than the model."""
    devices = f"the devices of {on.source}" if str(on.source) == run.store else str(on.source)
    itself = f"; {FIRST_TO_LAST} of this run: {seconds_text(span_s)} s" if span_s > 0 else ""
    unknown = sum(file.layout is None for file in run.files)
    which = "files" if unknown == len(run.files) else "files whose layout is not known"
    lie = f"; {which} taken to lie {EQUAL}" if unknown else ""
    limits = f"; upper limits, for the run was faster than the model ({quicker})" if quicker else ""
    return f"prices by the model on {devices}{lie}{itself}{limits}"


def _print_findings(found: Sequence[Finding], prices: str, span_s: float, why: str) -> None:
    if not found:
        typer.echo("findings: none; whether another layout is faster, 'stripewise plan' says")
        return
    typer.echo(printable(f"findings ({prices}):"))
    for number, each in enumerate(found, 1):
        where = f" in {printable(each.where)}" if each.where else ""
        typer.echo(f"{number}. {each.title}{where}")
        for evidence in each.evidence:
            typer.echo(f"   - {printable(evidence)}")
        typer.echo(printable(f"   {each.price_text(span_s, why)}"))
        typer.echo(f"   {each.advice[0].upper()}{each.advice[1:]}.")
        if each.command:
            typer.echo(f"   $ {printable(each.command)}")
