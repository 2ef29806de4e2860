"""Files in TOML or JSON that users write or hand over: read whole, as UTF-8, parsed.

What cannot be read or parsed is refused in one sentence of the caller's error class, with the file and the cure.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .errors import StripewiseError


def read_json(path: Path, raises: type[StripewiseError], what: str) -> Any:
    """The JSON value in `path`, or `raises` with what is wrong; `what` is what should be there."""
    return _parsed(path, raises, what, "JSON", json.loads, f"give {what}")


def read_toml(path: Path, raises: type[StripewiseError], what: str) -> dict[str, Any]:
    """The TOML table in `path`, or `raises` with what is wrong; `what` is what should be there."""
    return dict(_parsed(path, raises, what, "TOML", tomllib.loads, "correct that line"))


def _parsed(
    path: Path, raises: type[StripewiseError], what: str, form: str, parse: Callable[[str], Any], cure: str
) -> Any:
    try:
        return parse(path.read_bytes().decode("utf-8"))
    except OSError as error:
        raise raises(f"{path}: cannot be read ({error.strerror}); give {what}") from error
    except UnicodeDecodeError as error:
        raise raises(f"{path}: not UTF-8 at byte {error.start}; save it as UTF-8") from error
    except (ValueError, RecursionError) as error:  # what both parsers raise is a ValueError
        raise raises(f"{path}: not {form}: {error or 'nested too deeply'}; {cure}") from error
