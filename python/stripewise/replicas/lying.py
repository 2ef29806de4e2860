"""How the files of a trace are taken to lie: a store's own as they lie in it now, others as they lay in the run.

A file may have been laid out anew since, by `apply` say: copies are worth what they save of the layout that it has.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ..errors import StripewiseError
from ..layout import Layout
from ..store import Store
from ..workload.layouts import read_layouts

EQUAL = "in stripes of 64 KiB over all targets"


@dataclass(frozen=True)
class Lying:
    """Layouts by path."""

    layouts: Mapping[str, Layout] = field(default_factory=dict)
    #: Files that a store has now, and those of them that lay otherwise in the run.
    now: frozenset[str] = frozenset()
    anew: frozenset[str] = frozenset()

    def text(self, paths: Collection[str], known: Collection[str]) -> str:
        """How the files of `paths` were taken to lie, those that are not `known` in equal stripes, for people."""
        now, lay = [each for each in known if each in self.now], [each for each in known if each not in self.now]
        anew = sum(each in self.anew for each in now)
        how = f"{anew:,} of them laid out anew since the run" if anew < len(now) else "laid out anew since the run"
        parts = [f"as they lie now{f' ({how})' if anew else ''}"] if now else []
        parts += ["as they lay in the run"] if lay else []
        if not parts:
            return f"files taken to lie {EQUAL}"
        parts += [EQUAL] if len(known) < len(paths) else []
        return f"files {', others '.join(parts)}"


def lying(trace: Path, files: Collection[str], store: Path | None) -> Lying:
    """How these files lie in the store, if one is given that has them, else as the trace has it.

    Raises WorkloadError for a trace whose layouts are damaged.
    """
    lay = {path: layout for each in read_layouts(trace) for path, layout in each.layouts.items()}
    present: dict[str, Layout] = {}
    if store is not None:
        # A store that cannot be asked tells nothing of today.
        with contextlib.suppress(StripewiseError):
            opened = Store(store)
            for path in files:
                if (held := opened.resolve(path)) is not None:
                    present[path] = opened.layout(held)
    anew = {path for path, layout in present.items() if path in lay and lay[path] != layout}
    return Lying(lay | present, frozenset(present), frozenset(anew))
