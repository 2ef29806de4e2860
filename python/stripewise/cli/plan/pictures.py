"""`stripewise show --html` and `--perfetto`: files in place of the page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import typer

from ...errors import NoRequestsError, UsageError
from ...files.parts import check_output
from ...findings import FileFacts, RunFacts, findings_of, span_of, waits_of, why_quicker
from ...units import seconds_text
from ...view import Shown, ViewRequests, picture_of, read_requests, write_page, write_perfetto
from ...workload.maps import maps_in, with_maps
from ...workload.trace import check_no_part
from ..output import printable, progress, say_partial
from .options import say_of_trace
from .show_trace import Page, is_quicker, priced_by


def check_pictures(sources: Sequence[Path], html: Path | None, perfetto: Path | None) -> None:
    """UsageError where a file that was asked for cannot be written, or is what is shown; before that is read."""
    for flag, out in (("--html", html), ("--perfetto", perfetto)):
        if out is not None:
            check_output(out, flag)
            for source in sources:
                check_no_part(flag, out, source)
                if out.exists() and source.exists() and out.samefile(source):
                    raise UsageError(
                        f"{flag}: {out} is a trace to be shown, which this would overwrite; give another name"
                    )
    if html is not None and perfetto is not None and html.absolute() == perfetto.absolute():
        raise UsageError("--perfetto: the same file as --html; give another name")


def write_pictures(pages: Sequence[Page], html: Path | None, perfetto: Path | None) -> None:
    """Writes the files that were asked for, and says how large they are: a page of all runs, the first one's slices."""
    if perfetto is not None:
        write_perfetto(_requests(pages[0]), perfetto)
        typer.echo(f"{printable(str(perfetto))}: {perfetto.stat().st_size:,} bytes; open it in ui.perfetto.dev")
    if html is not None:
        write_page([_shown(page, len(pages)) for page in pages], html)
        typer.echo(f"{printable(str(html))}: {html.stat().st_size:,} bytes; open it in a browser")


def _requests(page: Page) -> ViewRequests:
    with progress("reading the trace") as step:
        try:
            requests = read_requests(page.trace, page.files, step)
        except NoRequestsError as error:
            raise with_maps(error, page.trace, page.files) from error
    say_partial(str(page.source), requests.partial)
    say_of_trace(str(page.source), ended=requests.end.text)
    return replace(requests, source=str(page.source))


def _layers(run: RunFacts, file: FileFacts) -> list[str]:
    """Sentences on what was asked of MPI-IO, what came of it, and which copies served the file's reads."""
    copied = run.copied(file)
    told = [each.sentence for each in (*file.layers, file.hints) if each]
    return told if copied is None else [*told, *copied.sentences]


def _shown(page: Page, runs: int) -> Shown:
    requests = _requests(page)
    facts = page.facts(set(requests.files))
    layers = {file.path: _layers(facts, file) for file in facts.files}
    on, span_s = page.priced_on(), 0.0 if requests.end.is_predicted else span_of(facts)
    calls, seconds = waits_of(facts)
    waits = f"{seconds_text(seconds)} s in {calls:,} call(s)" if calls else ""
    picture, found, why = (
        picture_of(requests, page.trace, runs, layers),
        findings_of(facts, on),
        why_quicker(on, facts.store),
    )
    loads = [load for load in picture.document["targets"] if load["store"] == str(on.source)]
    work_s = [target["work_ns"] / 1e9 for load in loads for target in load["targets"]]
    quicker = why if is_quicker(found, work_s, span_s) else ""
    return Shown(
        picture,
        found,
        span_s,
        priced_by(facts, on, span_s, quicker),
        waits,
        why,
        maps_in(page.trace, page.files).text,
    )
