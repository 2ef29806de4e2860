"""Simulated runs of shingled disks beside each other: the figures that tables and pictures take from a report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

#: Busier than this, requests wait for those before them without an end.
SATURATED = 0.98


@dataclass(frozen=True)
class Row:
    """A run in a comparison: how scheme and fill are called, and the engine's report or map."""

    scheme: str
    used: str
    report: Mapping[str, Any]

    @property
    def is_saturated(self) -> bool:
        """Whether the disk had no rest, so that response times grow with the number of requests."""
        return bool(self.report["utilisation"] > SATURATED)

    @property
    def p99_ms(self) -> float | None:
        """The response time that one request in a hundred exceeds, ms; None where there was no request."""
        response = self.report["response_s"]
        return None if response is None else 1e3 * float(response["p99"])

    def mean_ms(self, key: str = "response_s") -> float | None:
        """Mean response time, ms; None where there was no request."""
        return None if self.report[key] is None else 1e3 * float(self.report[key]["mean"])

    def write_part_ms(self, part: str) -> float | None:
        """Mean of one part of the response time of writes, ms; None where there was no write."""
        writes = int(self.report["writes"])
        return 1e3 * float(self.report["write_time"][f"{part}_s"]) / writes if writes else None

    def as_json(self) -> dict[str, Any]:
        """The run as `--json` prints it: the report behind its labels."""
        return {"label": self.scheme, "used": self.used, **self.report}
