"""Times as strace and ltrace print them: seconds since 1970 (`-ttt`), or the time of the day (`-tt`)."""

from __future__ import annotations

import re

from .records import NUMBER_MAX
from .text import BadLineError, quoted

_EPOCH = re.compile(r"([0-9]{1,10})\.([0-9]{1,9})")
_DAY = re.compile(r"([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]{1,9}))?")
_DAY_NS = 86_400 * 10**9
_HALF_DAY_NS = _DAY_NS // 2


def fraction_ns(digits: str) -> int:
    """Nanoseconds of the digits behind a point: `5` is half a second."""
    return int(digits.ljust(9, "0"))


def span_ns(text: str) -> int:
    """Nanoseconds of `<0.011931>`'s number. Raises BadLineError."""
    match = _EPOCH.fullmatch(text)
    if match is None:
        raise BadLineError(f"{quoted(text)} is not a time of a call")
    return int(match[1]) * 10**9 + fraction_ns(match[2])


class Clock:
    """The clock of one file; `is_wall_clock` tells whether its times count from 1970."""

    def __init__(self) -> None:
        self.is_wall_clock = True
        self._days = 0
        self._last_ns = 0

    def ns(self, stamp: str) -> int:
        """The time in nanoseconds. Raises BadLineError."""
        match = _EPOCH.fullmatch(stamp)
        if match is not None:
            return int(match[1]) * 10**9 + fraction_ns(match[2])
        match = _DAY.fullmatch(stamp)
        if match is None or int(match[1]) > 23 or int(match[2]) > 59 or int(match[3]) > 60:
            raise BadLineError(f"{quoted(stamp)} is not a time; trace with -ttt")
        self.is_wall_clock = False
        time_ns = (int(match[1]) * 3600 + int(match[2]) * 60 + int(match[3])) * 10**9 + fraction_ns(match[4] or "0")
        if time_ns < self._last_ns - _HALF_DAY_NS:
            self._days += 1
        self._last_ns = time_ns
        return min(self._days * _DAY_NS + time_ns, NUMBER_MAX - 1)
