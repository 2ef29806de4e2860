"""Columns of whole numbers as text for a page: byte planes, deflated, in base64.

A column is divided by the greatest common divisor of its numbers; plane k holds byte k of each. Pages give numbers back
exactly below 2^53, beyond to 53 bits.
"""

from __future__ import annotations

import base64
import zlib
from typing import Any

import numpy as np


def blob(values: Any) -> dict[str, Any]:
    """`n` numbers, none below 0: `planes` of `data`, times `unit`."""
    column = np.ascontiguousarray(values, dtype="<u8").ravel()
    unit = int(np.gcd.reduce(column)) if len(column) else 0
    unit = max(1, unit)
    scaled = column // np.uint64(unit)
    largest = int(scaled.max()) if len(scaled) else 0
    planes = max(1, (largest.bit_length() + 7) // 8)
    shuffled = scaled.view(np.uint8).reshape(-1, 8).T[:planes]
    packed = zlib.compress(np.ascontiguousarray(shuffled).tobytes(), 6)
    return {"n": len(column), "planes": planes, "unit": unit, "data": base64.b64encode(packed).decode("ascii")}


def steps(values: Any) -> Any:
    """Differences of neighbours, so that signs are in the lowest bit: n is 2n, -n is 2n - 1."""
    change = np.diff(np.asarray(values, dtype=np.int64), prepend=np.int64(0))
    return np.where(change < 0, -2 * change - 1, 2 * change).astype(np.uint64)


def length(value: dict[str, Any]) -> int:
    """Bytes that it takes in a page."""
    return len(value["data"])
