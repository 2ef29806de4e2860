"""Documents in TOML or JSON that users write or hand over: read whole, as UTF-8, parsed, and their fields checked.

Every reader and getter either returns a value of the right type and range or raises the caller's error class with one
sentence naming file, key and cure, so that cluster.toml, store.toml, layouts and plans share one way to refuse.
"""

from __future__ import annotations

import difflib
import errno
import json
import math
import os
import select
import stat
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..errors import StripewiseError
from .parts import read_part

#: Longest file of a user's settings.
SETTINGS_BYTES_MAX = 1 << 20
_MISSING: Any = object()

#: So alike (ratio of difflib) is a key to a known one that it is taken for a slip of; at 0.6, the default there, phase
#: would be one of alpha.
NEAR = 0.65


def read_json(path: Path, raises: type[StripewiseError], what: str, store: Path | None = None) -> Any:
    """The JSON value in `path`, or `raises` with what is wrong; `what` is what should be there.

    With `store`, `path` is a part of that store and read as such.
    """
    return _parsed(path, raises, what, "JSON", json.loads, f"give {what}", store)


def read_toml(path: Path, raises: type[StripewiseError], what: str, store: Path | None = None) -> dict[str, Any]:
    """The TOML table in `path`, or `raises` with what is wrong; `what` and `store` as above."""
    return dict(_parsed(path, raises, what, "TOML", tomllib.loads, "correct that line", store))


def toml_in(content: bytes, path: Path, raises: type[StripewiseError]) -> dict[str, Any]:
    """The TOML table in the bytes of `path`, or `raises` as above."""
    return dict(_decoded(content, path, raises, "TOML", tomllib.loads, "correct that line"))


def read_settings(path: Path, raises: type[StripewiseError], what: str) -> dict[str, Any]:
    """`read_toml` for a file that is read without being asked for: a regular one of at most `SETTINGS_BYTES_MAX`."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise raises(f"{path}: is not a regular file; give {what}, or remove it")
            with open(handle, "rb", closefd=False) as file:
                content = file.read(SETTINGS_BYTES_MAX + 1)
        finally:
            os.close(handle)
    except OSError as error:
        raise raises(f"{path}: cannot be read ({error.strerror}); give {what}, or remove it") from error
    if len(content) > SETTINGS_BYTES_MAX:
        raise raises(f"{path}: is longer than {SETTINGS_BYTES_MAX:,} bytes; give {what}, or remove it")
    return dict(_decoded(content, path, raises, "TOML", tomllib.loads, "correct that line"))


def _parsed(
    path: Path,
    raises: type[StripewiseError],
    what: str,
    form: str,
    parse: Callable[[str], Any],
    cure: str,
    store: Path | None,
) -> Any:
    try:
        content = _given_bytes(path) if store is None else read_part(store, str(path.relative_to(store)))
    except OSError as error:
        raise raises(f"{path}: cannot be read ({error.strerror}); give {what}") from error
    return _decoded(content, path, raises, form, parse, cure)


def _given_bytes(path: Path) -> bytes:
    """The bytes of a file, or of a pipe such as a shell's `<(...)`; OSError for a FIFO that nobody writes to."""
    with open(path, "rb", buffering=0, opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
        begin: bytes | None = b""
        if stat.S_ISFIFO(os.fstat(file.fileno()).st_mode):
            # None where somebody will write.
            begin = file.read(select.PIPE_BUF)
            if begin == b"":
                raise OSError(errno.ENODATA, "a FIFO that nobody writes to")
        os.set_blocking(file.fileno(), True)
        return (begin or b"") + file.readall()


def _decoded(
    content: bytes, path: Path, raises: type[StripewiseError], form: str, parse: Callable[[str], Any], cure: str
) -> Any:
    try:
        return parse(content.decode("utf-8"))
    except UnicodeDecodeError as error:
        if b"\0" in content:
            raise raises(f"{path}: not {form}: it is no text; {cure}") from error
        raise raises(f"{path}: not {form}: not UTF-8 at byte {error.start}; save it as UTF-8, or {cure}") from error
    except (ValueError, RecursionError) as error:  # what both parsers raise is a ValueError
        raise raises(f"{path}: not {form}: {error or 'nested too deeply'}; {cure}") from error


def _shown(value: object) -> str:
    try:
        text = repr(value)
    except ValueError:  # an integer of more digits than Python prints
        return "a huge number"
    return text if len(text) <= 60 else text[:57] + "..."


class Fields:
    """One table: `where` is the prefix of its keys in messages, e.g. `target[2].`; `cure` stands for that of every key,
    where nobody writes the file by hand.
    """

    def __init__(
        self, data: Any, source: Path | str, where: str, raises: type[StripewiseError], cure: str | None = None
    ) -> None:
        self.source = source
        self.where = where
        self.raises = raises
        self.cure = cure
        if not isinstance(data, Mapping):
            name = where.rstrip(".") or "the top level"
            cure = cure or "write it as in docs/formats.md"
            raise raises(f"{source}: {name} is {_shown(data)}, not a table of keys; {cure}")
        self.data: Mapping[str, Any] = data

    def error(self, key: str, problem: str, cure: str) -> StripewiseError:
        """The error that says what is wrong with `key` and what to do."""
        return self.raises(f"{self.source}: {self.where}{key} {problem}; {self.cure or cure}")

    def only(self, known: set[str]) -> None:
        """Refuses keys that are not in `known`, with the nearest known one as the cure."""
        for key in self.data:
            if key not in known:
                near = difflib.get_close_matches(str(key), sorted(known), 1, NEAR)
                cure = f"did you mean {near[0]}?" if near else f"known keys are {', '.join(sorted(known))}"
                raise self.error(str(key), "is not a known key", cure)

    def _as_tables(self, key: str) -> str:
        """How a list of tables is written, in the form that the source has."""
        return f"write [[{key}]] for each of them" if str(self.source).endswith(".toml") else "write a list of objects"

    def _get(self, key: str, default: Any) -> Any:
        value = self.data.get(key, default)
        if value is _MISSING:
            raise self.error(key, "is missing", "add it")
        return value

    def text(self, key: str, default: Any = _MISSING) -> str:
        """A string that is not empty."""
        value = self._get(key, default)
        if not isinstance(value, str) or (not value and value is not default):
            raise self.error(key, f"= {_shown(value)} is not a string with something in it", "write it in quotes")
        return value

    def choice(self, key: str, choices: Sequence[str], default: Any = _MISSING) -> str:
        """One of `choices`."""
        if default is _MISSING and key not in self.data:
            raise self.error(key, "is missing", f"add one of {', '.join(choices)}")
        value = self._get(key, default)
        if not isinstance(value, str) or value not in choices:
            raise self.error(key, f"= {_shown(value)} is unknown", f"use one of {', '.join(choices)}")
        return value

    def number(self, key: str, low: float, high: float, default: Any = _MISSING) -> float:
        """A finite number in [low, high]."""
        value = self._get(key, default)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.error(key, f"= {_shown(value)} is not a number", f"give a number of at least {low:g}")
        if not low <= value <= high or not math.isfinite(value):
            raise self.error(key, f"= {_shown(value)} is out of range", f"give a number from {low:g} to {high:g}")
        return float(value)

    def integer(self, key: str, low: int, high: int, default: Any = _MISSING) -> int:
        """A whole number in [low, high]."""
        value = self._get(key, default)
        if isinstance(value, bool) or not isinstance(value, int):
            raise self.error(key, f"= {_shown(value)} is not a whole number", f"give a whole number of at least {low}")
        if not low <= value <= high:
            raise self.error(key, f"= {_shown(value)} is out of range", f"give a whole number from {low} to {high}")
        return value

    def table(self, key: str) -> Mapping[str, Any]:
        """A table, empty when absent."""
        value = self.data.get(key, {})
        if not isinstance(value, Mapping):
            raise self.error(key, f"= {_shown(value)} is not a table", f"write [{key}] and its keys below it")
        return value

    def tables(self, key: str) -> list[Mapping[str, Any]]:
        """A list of tables, empty when absent."""
        value = self.data.get(key, [])
        if not isinstance(value, list) or not all(isinstance(entry, Mapping) for entry in value):
            raise self.error(key, f"= {_shown(value)} is not a list of tables", self._as_tables(key))
        return value

    def items(self, key: str) -> list[Any]:
        """A list of anything."""
        value = self._get(key, _MISSING)
        if not isinstance(value, list):
            raise self.error(key, f"= {_shown(value)} is not a list", "write it in brackets")
        return value
