"""What a plan moves between its windows, and where every region then lies (H2DP, Algorithm 2).

A migration belongs to a later window and is carried out when that window begins, move by move in the order given. A
move gives one region of a file's grid new stripes. The schema is drawn in docs/formats.md.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import PlanError
from ..files.fields import Fields
from ..layout import Region, Stripes, parse_stripes, share_bytes
from ..units import OFFSET_BYTES_MAX, round_up

#: Out of hybrid servers, into them, or other stripes on the same class.
DIRECTIONS = ("out", "in", "restripe")
#: Gains and costs in seconds stay far below this; larger ones are slips.
SECONDS_MAX = 1e15
#: What `pays` demands where nobody says: break-even.
MIN_GAIN_DEFAULT = 1.0
#: A file's regions by path.
Grid = Mapping[str, Sequence[Region]]


@dataclass(frozen=True)
class Move:
    """The region [start, start + len) of `file` goes on `stripes`; `bytes` of it hold data.

    `gain_s` is what the window's requests are expected to save by it, `cost_s` what the copy costs, both in the models'
    seconds (sums of request costs); a move that only makes room has no gain or a negative one.
    """

    file: str
    start: int
    len: int
    stripes: Stripes
    direction: str
    bytes: int
    gain_s: float = 0.0
    cost_s: float = 0.0
    reason: str = ""
    comment: str = ""


@dataclass(frozen=True)
class Migration:
    """The moves at the beginning of `window`, which is `start_ns` after the beginning of the trace."""

    window: int
    start_ns: int
    moves: tuple[Move, ...]
    comment: str = ""

    @property
    def moved_bytes(self) -> int:
        """Bytes that its moves copy."""
        return sum(move.bytes for move in self.moves)


def moved_layout(regions: Iterable[Region], moves: Iterable[Move]) -> tuple[Region, ...]:
    """`regions` of one file after `moves` of that file, in their order."""
    stripes = {(move.start, move.len): move.stripes for move in moves}
    return tuple(Region(r.start, r.len, stripes.get((r.start, r.len), r.stripes)) for r in regions)


@dataclass(frozen=True)
class Held:
    """Bytes per target after a move, and while both of its copies exist."""

    migration: int
    move: int
    after: Mapping[str, int]
    during: Mapping[str, int]


def pays(gain_s: float, cost_s: float, min_gain: float | None = None) -> bool:
    """Whether moves are worth their copies: they gain more than `min_gain` times what the copies cost, in seconds.

    That is what --min-gain means wherever it is given; without it, a gain above the cost.
    """
    return gain_s > (MIN_GAIN_DEFAULT if min_gain is None else min_gain) * cost_s


def replay(
    migrations: Sequence[Migration], files: Grid, sizes: Mapping[str, int], held: dict[str, int]
) -> Iterator[Held]:
    """Carries out the moves one by one from `held` bytes per target on; slices are rounded up to 4 KiB.

    `held` is changed in place and `after` is that very mapping; `during` names the move's targets only.
    """
    now = {(path, r.start): r.stripes for path, regions in files.items() for r in regions}
    for number, migration in enumerate(migrations):
        for position, move in enumerate(migration.moves):
            valid = max(0, min(move.len, sizes[move.file] - move.start))
            during = {}
            for name, share in share_bytes(move.stripes, valid).items():
                held[name] = held.get(name, 0) + round_up(share)
                during[name] = held[name]
            for name, share in share_bytes(now[move.file, move.start], valid).items():
                held[name] = held.get(name, 0) - round_up(share)
            now[move.file, move.start] = move.stripes
            yield Held(number, position, held, during)


def dump_migrations(migrations: Sequence[Migration]) -> list[str]:
    """The lines of the key `migrations`, one move per line, without a comma after the last."""
    lines = ['  "migrations": [']
    for number, migration in enumerate(migrations):
        top: dict[str, Any] = {"window": migration.window, "start_ns": migration.start_ns}
        if migration.comment:
            top["comment"] = migration.comment
        inner = ", ".join(f'"{key}": {json.dumps(value)}' for key, value in top.items())
        end = "]}" + ("," if number + 1 < len(migrations) else "")
        if not migration.moves:
            lines.append(f'    {{{inner}, "moves": {end}'.replace('"moves": ]', '"moves": []'))
            continue
        lines.append(f'    {{{inner}, "moves": [')
        lines.append(",\n".join(f"      {json.dumps(_move_json(move))}" for move in migration.moves))
        lines.append(f"    {end}")
    return [*lines, "  ]"]


def _move_json(move: Move) -> dict[str, Any]:
    data: dict[str, Any] = {
        "file": move.file,
        "start": move.start,
        "len": move.len,
        "stripes": [list(stripe) for stripe in move.stripes],
        "direction": move.direction,
        "bytes": move.bytes,
        "gain_s": move.gain_s,
        "cost_s": move.cost_s,
        "reason": move.reason,
    }
    if move.comment:
        data["comment"] = move.comment
    return data


def parse_migrations(
    top: Fields, source: Path | str, starts_ns: Sequence[int], files: Grid, sizes: Mapping[str, int]
) -> tuple[Migration, ...]:
    """The key `migrations` of a plan whose windows start at `starts_ns`; PlanError with file, key and cure."""
    grid = {path: {(r.start, r.len) for r in regions} for path, regions in files.items()}
    last = {path: regions[-1] for path, regions in files.items()}
    migrations: list[Migration] = []
    for number, entry in enumerate(top.tables("migrations")):
        fields = Fields(entry, source, f"migrations[{number}].", PlanError)
        fields.only({"window", "start_ns", "moves", "comment"})
        window = fields.integer("window", 1, 2**31)
        if window >= len(starts_ns):
            raise fields.error("window", f"= {window} is not one of {len(starts_ns)} window(s)", "add it to windows")
        start_ns = fields.integer("start_ns", 0, 2**63 - 1, starts_ns[window] - starts_ns[0])
        if migrations and (window <= migrations[-1].window or start_ns < migrations[-1].start_ns):
            raise fields.error("window", f"= {window} does not follow the one before", "order migrations by time")
        moves: list[Move] = []
        moved: set[tuple[str, int]] = set()
        for position, item in enumerate(fields.tables("moves")):
            inner = Fields(item, source, f"migrations[{number}].moves[{position}].", PlanError)
            move = _move(inner, grid, last, sizes)
            if (move.file, move.start) in moved:
                raise inner.error("start", f"= {move.start} moves twice in one migration", "keep one of the two")
            moved.add((move.file, move.start))
            moves.append(move)
        migrations.append(Migration(window, start_ns, tuple(moves), fields.text("comment", "")))
    return tuple(migrations)


def _move(
    fields: Fields, grid: Mapping[str, set[tuple[int, int]]], last: Mapping[str, Region], sizes: Mapping[str, int]
) -> Move:
    fields.only(
        {"file", "start", "len", "stripes", "direction", "bytes", "gain_s", "cost_s", "reason", "comment"}
    )  # fmt: skip
    path = fields.text("file")
    if path not in grid:
        raise fields.error("file", f"= '{path}' is not planned", "name a file of the plan")
    start = fields.integer("start", 0, OFFSET_BYTES_MAX)
    length = fields.integer("len", 1, OFFSET_BYTES_MAX)
    if (start, length) not in grid[path]:
        raise fields.error(
            "start", f"= {start} with len {length} is not a region of '{path}'", "move a region of files[]"
        )
    if start == last[path].start and sizes[path] > start + length:
        raise fields.error("start", f"= {start} is the region that repeats", "end the file's regions at its size")
    valid = max(0, min(length, sizes[path] - start))
    return Move(
        file=path,
        start=start,
        len=length,
        stripes=parse_stripes(fields, None),
        direction=fields.choice("direction", DIRECTIONS),
        bytes=fields.integer("bytes", 0, OFFSET_BYTES_MAX, valid),
        gain_s=fields.number("gain_s", -SECONDS_MAX, SECONDS_MAX, 0.0),
        cost_s=fields.number("cost_s", 0.0, SECONDS_MAX, 0.0),
        reason=fields.text("reason", ""),
        comment=fields.text("comment", ""),
    )
