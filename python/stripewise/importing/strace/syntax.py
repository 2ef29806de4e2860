"""One line of strace's text taken apart: who, when, which call, its arguments, what it returned, how long it took."""

from __future__ import annotations

import errno as errno_names
import re
from dataclasses import dataclass

from ..clock import span_ns
from ..text import BadLineError, quoted

#: pid (with -f, or `[pid N]` on a terminal), time, the rest.
LINE = re.compile(
    r"(?:\[pid +([0-9]{1,10})\] +|([0-9]{1,10}) +)?([0-9]{1,10}\.[0-9]{1,9}|[0-9:]{8}(?:\.[0-9]{1,9})?) (.*)"
)
UNFINISHED = re.compile(r"([a-z_0-9]{1,40})\((.*?)(?:,? )?<unfinished \.\.\.>")
UNRETURNED = " <unfinished ...>) = ?"
RESUMED = re.compile(r"<\.\.\. ([a-z_0-9]{1,40}) resumed>,? ?(.*)")
EXITED = re.compile(r"\+\+\+ (?:exited with ([0-9]{1,3})|killed by (?:SIG)?\w+(?: \(core dumped\))?) \+\+\+")
SIGNAL = re.compile(r"--- .* ---")
_CALL = re.compile(r"(\w{1,60})\(", re.ASCII)
#: What decides where an argument ends: a text, the file behind a descriptor (`3</tmp/f>`), brackets, a comma.
_TOKEN = re.compile(
    r'"(?:[^"\\]|\\.)*"|/\*.*?\*/|(?:(?<=[0-9])|(?<=CWD))<(?:->|[^<>]|<[^<>]*>)*>(?:\(deleted\))?|[\[\](){},"]|/\*'
)
_RESULT = re.compile(
    r"\s*= (\?|-?[0-9]{1,20}|0x[0-9a-f]{1,16})(<(?:->|[^<>]|<[^<>]*>)*>(?:\(deleted\))?)?"
    r"(?: (E[A-Z0-9]{1,20})\b)?.*?(?:<([0-9]{1,10}\.[0-9]{1,9})>)?"
)
_DESCRIPTOR = re.compile(r"(-?[0-9]{1,10}|AT_FDCWD)(?:<(.*)>(\(deleted\))?)?", re.S)
_TEXT = re.compile(r'"((?:[^"\\]|\\.)*)"(\.\.\.)?')
_ESCAPE = re.compile(r"\\(?:([0-7]{1,3})|x([0-9a-fA-F]{2})|(.))", re.S)
_LETTERS = {"n": "\n", "t": "\t", "r": "\r", "v": "\v", "f": "\f", "a": "\a", "b": "\b"}
#: The deepest nesting of brackets; no call has more than some ten.
_DEPTH_MAX = 100


@dataclass(slots=True)
class Call:
    """A call that returned: `result` is None for `?`, `fd_name` the file behind a returned descriptor by -y."""

    name: str
    arguments: list[str]
    result: int | None
    fd_name: str | None
    errno: int
    duration_ns: int | None


def parse_call(text: str) -> Call:
    """The call in `NAME(ARGS) = RESULT [ERRNO (text)] [<seconds>]`. Raises BadLineError."""
    match = _CALL.match(text)
    if match is None:
        raise BadLineError(f"{quoted(text)} is not a call")
    arguments, end = _arguments(text, match.end())
    found = _RESULT.fullmatch(text, end)
    if found is None:
        raise BadLineError(f"{quoted(text[end:])} is not what a call returned")
    value, name, error, seconds = found.groups()
    result = None if value == "?" else int(value, 16) if value.startswith("0x") else int(value)
    if result is not None and abs(result) >= 1 << 62:
        # An address, which nobody counts with.
        result = 0
    return Call(
        match[1],
        arguments,
        result,
        None if name is None else _annotated(name),
        getattr(errno_names, error, 0) if error else 0,
        None if seconds is None else span_ns(seconds),
    )


def _arguments(text: str, begin: int) -> tuple[list[str], int]:
    """The arguments from `begin` on, and where the bracket that ends them ends."""
    arguments, depth, at = [], 0, begin
    for match in _TOKEN.finditer(text, begin):
        token = match[0]
        if token in ('"', "/*"):
            break
        if len(token) > 1:
            continue
        if token == "," and depth == 0:
            arguments.append(text[at : match.start()].strip())
            at = match.end()
        elif token in "[({":
            depth += 1
            if depth > _DEPTH_MAX:
                break
        elif token == ")" and depth == 0:
            last = text[at : match.start()].strip()
            if last or arguments:
                arguments.append(last)
            return arguments, match.end()
        elif token in "])}":
            depth -= 1
            if depth < 0:
                break
    raise BadLineError(f"{quoted(text)} has brackets or quotes that do not end")


def _annotated(text: str) -> str:
    """The path in `</path>` or `</path>(deleted)`; `</dev/pts/0<char 136:0>>` has its kind inside."""
    inner = text.removesuffix("(deleted)")[1:-1]
    kind = inner.find("<")
    return unescaped(inner if kind < 0 else inner[:kind])


def descriptor(argument: str) -> tuple[int, str | None]:
    """(number, path that -y tells or None); AT_FDCWD is -100. Raises BadLineError."""
    match = _DESCRIPTOR.fullmatch(argument)
    if match is None:
        raise BadLineError(f"{quoted(argument)} is not a descriptor")
    number = -100 if match[1] == "AT_FDCWD" else int(match[1])
    return number, None if match[2] is None else _annotated(f"<{match[2]}>")


def text_of(argument: str) -> str | None:
    """The text in quotes; None for NULL, an address, or a text that was cut off. Bytes beyond UTF-8 are surrogates."""
    match = _TEXT.fullmatch(argument)
    return None if match is None or match[2] else unescaped(match[1])


def unescaped(text: str) -> str:
    """strace's and C's escapes undone."""
    if "\\" not in text:
        return text

    def one(match: re.Match[str]) -> str:
        if match[1]:
            return chr(int(match[1], 8) & 0xFF)
        return chr(int(match[2], 16)) if match[2] else _LETTERS.get(match[3], match[3])

    # Escapes are bytes: the rest must be, too.
    as_bytes = text.encode("utf-8", "surrogateescape").decode("latin-1")
    return _ESCAPE.sub(one, as_bytes).encode("latin-1").decode("utf-8", "surrogateescape")


def number_of(argument: str) -> int | None:
    """A whole number below 2^62, or None."""
    digits = argument.strip()
    if digits.isascii() and digits.removeprefix("-").isdigit() and len(digits) <= 19:
        value = int(digits)
        return value if abs(value) < 1 << 62 else None
    return None
