"""The one place that touches the native module: imported late, its errors turned into ours."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable
from typing import Any

from .errors import InvalidError, StoreError, StripewiseError

Progress = Callable[[int, int], None]


def _module() -> Any:
    try:
        return importlib.import_module("stripewise._stripewise")
    except ImportError as error:
        raise StoreError(
            f"the native module stripewise._stripewise cannot be loaded ({error}); build it with 'make build'"
        ) from error


def _named(name: str) -> Any:
    """The binding's function, class or constant `name`."""
    found = getattr(_module(), name, None)
    if found is None:
        raise StoreError(f"the native module has no {name}; it is older than this package: build it with 'make build'")
    return found


def limit(name: str) -> int:
    """A limit of stores and layouts that Rust defines: MAX_TARGETS, MAX_RULES, MAX_REGIONS."""
    return int(_named(name))


def call(name: str, *arguments: Any) -> Any:
    """Calls the binding's function `name` and parses the JSON that it returns; columns come as they are.

    Raises what `parsed` does.
    """
    return parsed(_named(name), *arguments)


def make(name: str, *arguments: Any) -> Any:
    """An object of the binding's class `name`; raises what `parsed` does."""
    return parsed(_named(name), *arguments)


def parsed(function: Callable[..., Any], *arguments: Any) -> Any:
    """Calls a function or method of the binding, and parses text as JSON.

    Raises the classes of `errors` as the binding chose them: of stores StoreError and those derived from it, of
    requests WorkloadError; InvalidError for an argument that no engine takes (tables that do not fit, beyond 64 bits).
    """
    try:
        text = function(*arguments)
    except StripewiseError:
        raise
    except (ValueError, OverflowError, BufferError) as error:
        raise InvalidError(" ".join(str(error).split()) or type(error).__name__) from error
    return json.loads(text) if isinstance(text, str) else text
