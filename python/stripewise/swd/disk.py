"""Disk files: the facts of a drive in TOML (docs/formats.md, Disk), one shipped generic drive among them.

Which keys there are is checked here, with the file's name; what they may hold is checked by the engine (crates/disk),
whose sentences begin with `disk.`.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..errors import ClusterError
from ..files.fields import Fields

#: The drive of invented, round figures that is shipped.
GENERIC = "generic"
_REQUIRED = ("cylinders", "surfaces", "rpm", "zones", "seek")
KEYS = {
    "name", "cylinders", "surfaces", "blocks", "block_bytes", "rpm", "head_switch_ms", "write_settle_ms", "layout",
    "skew", "zones", "seek", "cache_segments", "cache_segment_blocks", "cache_write_segments", "overhead_read_hit_ms",
    "overhead_read_miss_ms", "overhead_write_hit_ms", "overhead_write_miss_ms", "overhead_write_ms", "bus_block_ms",
    "bus_overlaps",
}  # fmt: skip


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= NUMBER_MAX


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and _is_number(value)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _are_numbers(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_number, value))


def _are_zones(value: Any) -> bool:
    return isinstance(value, list) and all(
        _are_numbers(zone) and len(zone) in (2, 4) and all(map(_is_count, zone)) for zone in value
    )


def _are_points(value: Any) -> bool:
    return isinstance(value, list) and all(
        _are_numbers(point) and len(point) == 2 and _is_count(point[0]) for point in value
    )


def _is_skew(value: Any) -> bool:
    return value in ("computed", "none")


#: Numbers of a drive lie below; the blocks of one may lie above.
NUMBER_MAX = (1 << 32) - 1
_KINDS: dict[str, Callable[[Any], bool]] = {
    **dict.fromkeys(("name", "layout"), _is_text),
    "blocks": lambda value: isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 53,
    "skew": _is_skew,
    "bus_overlaps": lambda value: isinstance(value, bool),
    "zones": _are_zones,
    "seek": _are_points,
    **dict.fromkeys(("cylinders", "surfaces", "block_bytes"), _is_count),
    **dict.fromkeys(("cache_segments", "cache_segment_blocks", "cache_write_segments"), _is_count),
    **dict.fromkeys(
        (f"overhead_{each}_ms" for each in ("read_hit", "read_miss", "write_hit", "write_miss", "write")),
        lambda value: _is_number(value) or (_are_numbers(value) and len(value) == 2),
    ),
}


@dataclass(frozen=True)
class Disk:
    """A drive as its file describes it: `facts` are the keys of docs/formats.md, Disk; times in ms."""

    name: str
    source: str
    facts: Mapping[str, Any] = field(hash=False)

    @property
    def size_bytes(self) -> int:
        """What the drive offers without any scheme; 0 where its zones make no sense, which the engine then tells."""
        block_bytes = self.facts.get("block_bytes", 512)
        try:
            if self.facts.get("blocks") is not None:
                return int(self.facts["blocks"]) * int(block_bytes)
            firsts = [int(zone[0]) for zone in self.facts["zones"]]
            ends = [*firsts[1:], int(self.facts["cylinders"])]
            sectors = sum(
                int(zone[1]) * (end - first) for zone, first, end in zip(self.facts["zones"], firsts, ends, strict=True)
            )
            return max(0, sectors * int(self.facts["surfaces"]) * int(block_bytes))
        except (TypeError, ValueError, IndexError):
            return 0


def read_disk(path: Path | str) -> Disk:
    """The drive of a TOML file, or the shipped one for the name `generic`.

    Raises ClusterError naming file, key and cure.
    """
    source = Path(__file__).parent / "disks" / f"{GENERIC}.toml" if str(path) == GENERIC else Path(path)
    shown = GENERIC if str(path) == GENERIC else str(path)
    try:
        facts = tomllib.loads(source.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise ClusterError(
            f"{shown}: no such disk file; give a file as in docs/formats.md (Disk), or {GENERIC}"
        ) from error
    except (OSError, UnicodeDecodeError) as error:
        raise ClusterError(f"{shown}: cannot be read ({error}); give a disk file as in docs/formats.md") from error
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ClusterError(f"{shown}: is not TOML ({error}); correct it") from error
    fields = Fields(facts, shown, "", ClusterError)
    fields.only(KEYS)
    for key in _REQUIRED:
        if key not in facts:
            raise fields.error(key, "is missing", "add it (docs/formats.md, Disk)")
    for key, value in facts.items():
        if not _KINDS.get(key, _is_number)(value):
            raise fields.error(key, "is not what it should be", "write it as in docs/formats.md (Disk)")
    return Disk(fields.text("name", source.stem), shown, facts)
