"""The one place that touches the native module: imported late, its errors turned into ours."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable
from typing import Any

from .errors import InUseError, StoreError, StripewiseError

Progress = Callable[[int, int], None]


def _module() -> Any:
    try:
        return importlib.import_module("stripewise._stripewise")
    except ImportError as error:
        raise StoreError(
            f"the native module stripewise._stripewise cannot be loaded ({error}); build it with 'make build'"
        ) from error


def call(name: str, *arguments: Any) -> Any:
    """Calls the binding's function `name` and parses the JSON that it returns; columns come as they are.

    Raises StoreError with the binding's sentence.
    """
    module = _module()
    function = getattr(module, name, None)
    if function is None:
        raise StoreError(f"the native module has no {name}; it is older than this package: build it with 'make build'")
    try:
        text = function(*arguments)
    except StripewiseError:
        raise
    except Exception as error:
        kind = InUseError if isinstance(error, BlockingIOError) else StoreError
        raise kind(" ".join(str(error).split()) or type(error).__name__) from error
    return json.loads(text) if isinstance(text, str) else text
