"""Lines of foreign traces in text: binary and compressed files are refused, bad lines are named or counted."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ..errors import WorkloadError
from .records import Notes

#: Longest line that is read; a trace has none near it.
LINE_BYTES_MAX = 1 << 20
CURE = "correct or remove the line, or skip such lines with --lenient"
_PACKED = {
    b"\x1f\x8b": "gzip", b"BZh": "bzip2", b"\xfd7zXZ\0": "xz", b"\x28\xb5\x2f\xfd": "zstd", b"PK\x03\x04": "zip",
    b"\x04\x22\x4d\x18": "lz4",
}  # fmt: skip
_FIRST_BYTES = 1 << 16


class BadLineError(ValueError):
    """What is wrong with a line; whoever reads the file adds its place and the cure."""


def require_text(path: Path, start: bytes) -> None:
    """WorkloadError when the first bytes of a file are not those of text."""
    for magic, name in _PACKED.items():
        if start.startswith(magic):
            raise WorkloadError(f"{path}: is compressed ({name}); unpack it first and give the text")
    if start.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise WorkloadError(f"{path}: is UTF-16; save it as UTF-8")
    if b"\0" in start:
        raise WorkloadError(f"{path}: is binary, not text; give the text that the tracer wrote")


class Lines:
    """The lines of a file in text. Iterates over (number from 1, line without its end)."""

    def __init__(self, path: Path, notes: Notes) -> None:
        self.path = path
        self.notes = notes
        self.number = 0

    def __iter__(self) -> Iterator[tuple[int, str]]:
        try:
            with open(self.path, "rb") as file:
                require_text(self.path, file.read(_FIRST_BYTES))
                file.seek(0)
                while line := file.readline(LINE_BYTES_MAX):
                    self.number += 1
                    if len(line) == LINE_BYTES_MAX and not line.endswith(b"\n"):
                        self.bad(f"is longer than {LINE_BYTES_MAX:,} bytes")
                        while (rest := file.readline(LINE_BYTES_MAX)) and not rest.endswith(b"\n"):
                            pass
                        continue
                    yield self.number, line.rstrip(b"\r\n").decode("utf-8", "surrogateescape")
        except OSError as error:
            raise WorkloadError(f"{self.path}: cannot be read ({error.strerror}); give a file of text") from error

    def bad(self, why: str, number: int | None = None) -> None:
        """The present line, or line `number`, is bad: an error that names it, or one more skipped."""
        self.notes.bad(f"{self.path}: line {number or self.number}", why, CURE)


def quoted(text: str) -> str:
    """A piece of a line for a message."""
    return repr(text if len(text) <= 60 else text[:57] + "...")


def integer(text: str, what: str, low: int = 0, high: int = 1 << 62) -> int:
    """A whole number in [low, high]; BadLineError that names `what`."""
    digits = text.strip()
    if len(digits) > 20 or not digits.lstrip("-").isascii() or not digits.lstrip("-").isdigit():
        raise BadLineError(f"its {what} {quoted(text)} is not a whole number")
    value = int(digits)
    if not low <= value <= high:
        raise BadLineError(f"its {what} {quoted(text)} is out of range")
    return value
