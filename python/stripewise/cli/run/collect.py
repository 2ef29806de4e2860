"""`stripewise collect`: raw logs of a traced run become one Parquet file, and what is worth planning is listed."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from ...files.parts import check_output_directory
from ...files.spelling import path_meant
from ...run.collect import collect_logs
from ...units import format_size, quoted
from ..options import JsonOption
from ..output import print_json, printable, say_partial

#: Files that count are listed up to so many.
FILES_SHOWN = 5
NOTHING_MOVED = "nothing to plan: no read or write moved a byte"
UNNAMED = "nothing to plan: nobody knows the files of these records; trace the run again"
NONE_COUNTS = "nothing to plan: no file counts, those read or written are all left out; --all-files includes them"


def collect(
    tracedir: Annotated[Path, typer.Argument(help="Directory written by 'run --trace'.", metavar="TRACEDIR")],
    out: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="DIR", help="Output directory (default: TRACEDIR).")
    ] = None,
    lenient: Annotated[bool, typer.Option("--lenient", help="Skip and count damaged parts.")] = False,
    json: JsonOption = False,
) -> None:
    """Convert the raw logs of a traced run to a trace.

    It is trace.parquet and meta.json, with layouts.json where files lay in a store.
    """
    place = (out if out is not None else tracedir).absolute()
    if out is not None:
        check_output_directory(out)
    account = collect_logs(tracedir, place, lenient)
    if json:
        print_json(account)
        return
    typer.echo(f"{printable(str(place))}/trace.parquet: {account.get('records', 0):,} records")
    # Brings pyarrow, which the verbs that run programs do without.
    from ...workload.layouts import store_of_trace
    from ...workload.maps import maps_in
    from ...workload.trace import is_mpi_alone, partial_reasons, run_end, trace_file
    from ..plan.options import say_of_trace

    say_partial(f"{place}/trace.parquet", partial_reasons(place))
    say_of_trace(f"{place}/trace.parquet", ended=run_end(place).text)
    listed = _list(account, place)
    if mapped := maps_in(place).text:
        typer.echo(mapped)
        if not listed and not is_mpi_alone(trace_file(place)):
            typer.echo(UNNAMED if account.get("unnamed") else NOTHING_MOVED)
            return
    trace = printable(quoted(place))
    if is_mpi_alone(trace_file(place)):
        patterns = f"stripewise patterns {trace} --layer mpi"
        typer.echo(f"next: trace the run with --layers both, to plan for it; now: {patterns}")
        return
    if not listed:
        typer.echo(NONE_COUNTS if _has_moved(account) else UNNAMED if account.get("unnamed") else NOTHING_MOVED)
        return
    store, run_in = store_of_trace(place), _quoted(account.get("store"))
    devices = f"--cluster {run_in or 'CLUSTER'}" if store is None else f"--store {_quoted(store)}"
    typer.echo(f"next: stripewise plan {trace} {devices} -o plan.json")
    plain = next(filter(_is_plain, listed), None) if store is None else None
    if plain is not None:
        adopt = f"stripewise store adopt --store {run_in or 'STORE'} {quoted(path_meant(plain))}"
        typer.echo(f"plain files, in no store: '{adopt}' takes one in where it is,")
        typer.echo(
            f"'stripewise replicate {trace} --store {run_in or 'STORE'}' makes copies of what is read beside them"
        )


def _list(account: Mapping[str, Any], place: Path) -> Sequence[str]:
    """Lists the files that count, most bytes first, and how many do not; the former."""
    from ...workload.counted import Choice, Touched, left_out_text
    from ...workload.trace import run_place, wanted_files
    from ..plan.options import user_list

    own, least_bytes = user_list()
    touched = {
        file["path"]: Touched(file["bytes_read"] + file["bytes_written"], file["managed"], file["bytes_written"] > 0)
        for file in account.get("files", [])
        if file["bytes_read"] + file["bytes_written"]
    }
    counted = wanted_files(touched, Choice(own=own, least_bytes=least_bytes), place=run_place(account))
    for name in counted.files[:FILES_SHOWN]:
        typer.echo(f"  {format_size(touched[name].bytes):>10} moved  {printable(name)}")
    if len(counted.files) > FILES_SHOWN:
        typer.echo(f"  and {len(counted.files) - FILES_SHOWN:,} files with fewer bytes")
    if counted.left_out:
        typer.echo(f"{left_out_text(counted.numbers)}; see 'stripewise files {printable(quoted(place))}'")
    return counted.files


def _has_moved(account: Mapping[str, Any]) -> bool:
    return any(file["bytes_read"] + file["bytes_written"] for file in account.get("files", []))


def _quoted(root: str | None) -> str:
    """A store's directory for a shell; empty for none, and for one that is gone."""
    return printable(quoted(root)) if root and os.path.isdir(root) else ""


def _is_plain(path: str) -> bool:
    path = path_meant(path)
    return os.path.isfile(path) and not os.path.islink(path)
