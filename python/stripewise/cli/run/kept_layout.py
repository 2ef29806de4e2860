"""The layout that `tune` keeps, below its table: where the regions of the largest files lie, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from ...plan import Plan
from ...units import format_size
from ..output import printable, regions_drawn, wrapped

#: So many files are told, so many rows of regions of each, and so many reasons.
FILES_SHOWN, ROWS_SHOWN, REASONS_SHOWN = 2, 4, 2


def kept_layout(plan: Plan) -> Iterator[str]:
    """Lines on the files with most bytes, as 'store layout' has them; the others are counted."""
    order = sorted(plan.files, key=lambda file: -file.size)
    yield f"the layout that stays, of {plan.policy}:"
    for file in order[:FILES_SHOWN]:
        yield f"{printable(file.path)}: {format_size(file.size)}, {len(file.regions):,} region(s)"
        yield from regions_drawn(file.layout, ROWS_SHOWN, file.size)
        # A reason stands at each region, most of them at many.
        bytes_of: Counter[str] = Counter()
        for region in file.regions:
            if region.reason and region.start < file.size:
                bytes_of[region.reason] += min(region.len, file.size - region.start)
        for reason, count in bytes_of.most_common(REASONS_SHOWN):
            yield wrapped(f"{format_size(count)}: {printable(reason)}", "  ")
        if len(bytes_of) > REASONS_SHOWN:
            yield f"  and {len(bytes_of) - REASONS_SHOWN:,} more reason(s)"
    if len(order) > FILES_SHOWN:
        yield f"and {len(order) - FILES_SHOWN:,} smaller file(s)"
