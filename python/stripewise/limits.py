"""What whoever moves files or makes copies may take from the programs that run meanwhile."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class Limits:
    """Bytes per second (0: all), and how much slower the programs' I/O may become (0: no matter)."""

    bandwidth_bytes_per_s: int = 0
    max_slowdown: float = 0.0

    def as_json(self) -> str:
        """As the native module takes them."""
        return json.dumps(asdict(self))
