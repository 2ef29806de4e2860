"""The page of `show --html`: one file that loads nothing, in which names of files are data and never markup.

A policy in the page itself forbids all loading; scripts and styles run by their digests alone.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..files.parts import write_durably
from ..findings import Finding
from .picture import Picture

ASSETS = Path(__file__).parent / "assets"
SCRIPTS = ("uPlot.iife.min.js", "values.js", "plot.js", "pictures.js", "main.js")
STYLES = ("uPlot.min.css", "page.css")


def told(finding: Finding, span_s: float, why: str) -> dict[str, str]:
    """A finding of a run of so many seconds as the page takes it: texts; `why` as `Finding.price_text` has it."""
    where = f" in {finding.where}" if finding.where else ""
    return {
        "title": f"{finding.title}{where}",
        "evidence": "\n".join(finding.evidence),
        "price": finding.price_text(span_s, why),
        "command": finding.command,
        "advice": f"{finding.advice[0].upper()}{finding.advice[1:]}.",
    }


@dataclass(frozen=True)
class Shown:
    """A run on the page."""

    picture: Picture
    findings: Sequence[Finding] = ()
    #: Of the run, in seconds.
    span_s: float = 0.0
    #: What prices of findings are.
    prices: str = ""
    #: In calls that wait for the devices: seconds and number, for people; empty without any.
    waits: str = ""
    #: What may have made the run quicker than prices.
    why: str = ""
    #: What was mapped, and so is not drawn; empty without any.
    maps: str = ""

    def document(self) -> dict[str, Any]:
        """As the page takes it."""
        findings = [told(each, self.span_s, self.why) for each in self.findings]
        own: dict[str, Any] = {"findings": findings, "prices": self.prices, "waits": self.waits, "maps": self.maps}
        own["span_ns"] = round(self.span_s * 1e9)
        return self.picture.document | own


def write_page(runs: Sequence[Shown], out: Path) -> None:
    """Writes the page durably, of a run or of two side by side. Raises OSError that names `out`."""
    write_durably(out, page_text(runs))


def page_text(runs: Sequence[Shown]) -> str:
    """HTML; the first run gives it its title."""
    first = runs[0].picture.document
    document = {"runs": [run.document() for run in runs]}
    script = "\n".join(_asset(name) for name in SCRIPTS)
    style = "\n".join(_asset(name) for name in STYLES)
    policy = (
        f"default-src 'none'; script-src '{_digest(script)}'; style-src '{_digest(style)}'; base-uri 'none'; "
        "form-action 'none'"
    )
    title = html.escape(_clean(" ".join(first["command"]) or first["source"]))
    licence = _asset("uPlot.LICENSE").replace("--", "- -")
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title} - Stripewise</title>\n<!-- uPlot 1.6.32, in this page:\n{licence}-->\n"
        f"<style>{style}</style>\n</head>\n{_asset('body.html')}"
        f'<script type="application/json" id="data">{_embedded(document)}</script>\n'
        f"<script>{script}</script>\n</body>\n</html>\n"
    )


def _asset(name: str) -> str:
    return (ASSETS / name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _clean(text: str) -> str:
    """Without lone surrogates, which UTF-8 cannot hold."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _embedded(document: object) -> str:
    """JSON that cannot end its element: no `<`, `>` or `&`; whatever is not ASCII is escaped."""
    text = json.dumps(document, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
