"""`stripewise show --html` and `--perfetto`: files in place of the page."""

from __future__ import annotations

from pathlib import Path

import typer

from ...errors import UsageError
from ...findings import findings_of
from ...view import check_target, picture_of, read_requests, write_page, write_perfetto
from ..output import check_output, printable, progress, say_partial
from .show_trace import Page


def write_pictures(page: Page, html: Path | None, perfetto: Path | None) -> None:
    """Writes the files that were asked for, and says how large they are."""
    for flag, out in (("--html", html), ("--perfetto", perfetto)):
        if out is not None:
            check_output(out, flag)
            check_target(flag, out, page.trace)
            if out.exists() and out.samefile(page.source):
                raise UsageError(f"{flag}: {out} is what is shown; give another name")
    if html is not None and perfetto is not None and html.absolute() == perfetto.absolute():
        raise UsageError("--perfetto: the same file as --html; give another name")
    on = page.priced_on()
    with progress("reading the trace") as step:
        requests = read_requests(page.trace, page.files, step)
    say_partial(str(page.source), requests.partial)
    if perfetto is not None:
        write_perfetto(requests, perfetto)
        typer.echo(f"{printable(str(perfetto))}: {perfetto.stat().st_size:,} bytes; open it in ui.perfetto.dev")
    if html is not None:
        run = page.facts(set(requests.files))
        write_page(picture_of(requests, page.trace, page.files), html, findings_of(run, on))
        typer.echo(f"{printable(str(html))}: {html.stat().st_size:,} bytes; open it in a browser")
