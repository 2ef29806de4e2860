"""Sizes, ages and spans of time in words and in numbers: `64MiB` on the command line, 67108864 inside; paths, too."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable

from .errors import UsageError

KIB = 1 << 10
MIB = 1 << 20
GIB = 1 << 30
#: Sizes are told in binary units, rates in MB/s, as devices are sold and networks measured.
MB = 10**6
#: Widths, starts and lengths of slices are multiples of this (docs/formats.md).
GRANULE_BYTES = 4096
#: What a person hardly reads behind backslashes, in the words of a command.
_UNREADABLE = frozenset("*?[]'\"\\$`!")
#: The request size assumed where none was seen.
STRIPE_FALLBACK_BYTES = 64 * KIB
#: Requests up to this are small: they pay more for their start than for their bytes on any disk. It is the size of
#: HDF5's sieve buffer, so what that reads counts.
SMALL_BYTES = 64 * KIB
#: File offsets stay below this (docs/formats.md, Layout file).
OFFSET_BYTES_MAX = 1 << 62

_FACTORS = {
    "": 1, "b": 1,
    "k": KIB, "kib": KIB, "m": MIB, "mib": MIB, "g": GIB, "gib": GIB, "t": 1 << 40, "tib": 1 << 40,
    "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12,
}  # fmt: skip
#: Units of bits, which nobody means by a size here.
_BITS = re.compile(r"[KMGT]b", re.ASCII)
SIZE_CURE = "write bytes, or a number with KiB, MiB, GiB or TiB (powers of 1,024), or kB, MB, GB or TB (of 1,000)"
_SIZE = re.compile(r"\s*([0-9]{1,30}(?:\.[0-9]{1,30})?)\s*([A-Za-z]*)\s*", re.ASCII)


def parse_size(text: str, what: str = "size") -> int:
    """Bytes meant by `text`: `65536`, `64K`, `64KiB` (both 1,024) or `64kB` (1,000).

    Raises UsageError naming `what`.
    """
    match = _SIZE.fullmatch(text)
    factor = _FACTORS.get(match.group(2).lower()) if match else None
    if match is None or factor is None:
        raise UsageError(f"{what}: '{text}' is not a size; {SIZE_CURE}")
    if _BITS.fullmatch(match.group(2)):
        raise UsageError(f"{what}: '{text}' has a unit of bits; write {match.group(1)}{match.group(2)[0]}B for bytes")
    number = match.group(1)
    value = int(number) * factor if "." not in number else round(float(number) * factor)
    if value > OFFSET_BYTES_MAX:
        raise UsageError(f"{what}: '{text}' is larger than 2^62 bytes; give a smaller size")
    return value


_AGES_S = {"s": 1, "min": 60, "h": 3600, "d": 86_400, "w": 604_800}
_AGE = re.compile(r"\s*([0-9]{1,6})\s*([a-z]+)\s*", re.ASCII)


def parse_age(text: str, what: str) -> int:
    """Seconds meant by `text`: `90s`, `15min`, `12h`, `7d` or `2w`. Raises UsageError naming `what`."""
    match = _AGE.fullmatch(text)
    if match is None or match.group(2) not in _AGES_S:
        raise UsageError(f"{what}: '{text}' is no span of time; write a whole number with s, min, h, d or w")
    return int(match.group(1)) * _AGES_S[match.group(2)]


_SPANS_NS = {"ms": 10**6, "s": 10**9, "min": 60 * 10**9, "h": 3600 * 10**9, "d": 86_400 * 10**9}
_SPAN = re.compile(r"\s*([0-9]{1,9}(?:\.[0-9]{1,9})?)\s*([a-z]+)\s*", re.ASCII)


def parse_span(text: str, what: str) -> int:
    """Nanoseconds meant by `text`: `500ms`, `1.5s`, `10min`, `2h` or `1d`; never 0. Raises UsageError naming `what`."""
    match = _SPAN.fullmatch(text)
    factor = _SPANS_NS.get(match.group(2)) if match else None
    if match is None or factor is None:
        raise UsageError(f"{what}: '{text}' is not a span of time; write a number with ms, s, min, h or d")
    number = match.group(1)
    value_ns = int(number) * factor if "." not in number else round(float(number) * factor)
    if not 0 < value_ns < 2**62:
        raise UsageError(f"{what}: '{text}' is too short or too long; give a span like 30s or 10min")
    return value_ns


def nearest_granules(size_bytes: int) -> int:
    """The multiple of a granule, at least one, that is nearest to a size in bytes."""
    return max(1, round(size_bytes / GRANULE_BYTES)) * GRANULE_BYTES


def format_size(size_bytes: float) -> str:
    """`size_bytes` with a binary unit, for people."""
    value = float(size_bytes)
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if abs(value) < 1024 or unit == "TiB":
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} TiB"


def seconds_text(seconds: float) -> str:
    """Seconds with three significant digits and never an exponent, without their unit: `0.0123`, `4.8`, `4,800`."""
    if abs(seconds) >= 1000:
        return f"{seconds:,.0f}"
    said = f"{seconds:.3g}"
    if "e" not in said:
        return said
    return f"{seconds:,.0f}" if abs(seconds) >= 1 else f"{seconds:.9f}".rstrip("0").rstrip(".")


def time_text(seconds: float) -> str:
    """A time with three significant digits in the largest unit in which it is 1 or more: `340 us`, `4.8 s`."""
    for unit_s, name in ((1.0, "s"), (1e-3, "ms"), (1e-6, "us")):
        if seconds >= unit_s * 0.9995:
            return f"{seconds_text(seconds / unit_s)} {name}"
    return f"{seconds * 1e9:.0f} ns"


def exact_size(size_bytes: int) -> str:
    """`size_bytes` in the largest unit of which it is a whole number, as `parse_size` reads it: `64KiB`, `1028KiB`."""
    unit, value = "", size_bytes
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if value == 0 or value % 1024:
            break
        unit, value = larger, value // 1024
    return f"{value}{unit or 'B'}"


def round_up(value: int, step: int = GRANULE_BYTES) -> int:
    """The smallest multiple of `step` that is at least `value`."""
    return -(-value // step) * step


def _bytes_of(char: str) -> bytes:
    """Its UTF-8; of what stands for a byte that is not UTF-8 that byte."""
    return char.encode("utf-8", "surrogateescape" if "\udc80" <= char <= "\udcff" else "surrogatepass")


def _shown(char: str) -> str:
    """A character between `$'` and `'`."""
    if char.isprintable():
        return f"\\{char}" if char in "\\'" else char
    return "\\n" if char == "\n" else "".join(f"\\x{byte:02x}" for byte in _bytes_of(char))


def quoted(path: str | os.PathLike[str]) -> str:
    """A path as a word of a command that a person is told, which may stand in quotes itself: with backslashes where
    these can be read, and as bash's `$'...'` where a character cannot be shown.
    """
    text = os.fspath(path)
    if not text.isprintable():
        return f"$'{''.join(map(_shown, text))}'"
    if not text or any(char in _UNREADABLE for char in text):
        return shlex.quote(text)
    return re.sub(r"[^\w@%+=:,./-]", r"\\\g<0>", text)


def command_line(words: Iterable[str | os.PathLike[str]]) -> str:
    """The words as a command that a person is told."""
    return " ".join(map(quoted, words))
