"""Files in TOML or JSON that users write or hand over: read whole, as UTF-8, parsed.

What cannot be read or parsed is refused in one sentence of the caller's error class, with the file and the cure.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..errors import StripewiseError
from .parts import read_part


def read_json(path: Path, raises: type[StripewiseError], what: str, store: Path | None = None) -> Any:
    """The JSON value in `path`, or `raises` with what is wrong; `what` is what should be there.

    With `store`, `path` is a part of that store and read as such.
    """
    return _parsed(path, raises, what, "JSON", json.loads, f"give {what}", store)


def read_toml(path: Path, raises: type[StripewiseError], what: str, store: Path | None = None) -> dict[str, Any]:
    """The TOML table in `path`, or `raises` with what is wrong; `what` and `store` as above."""
    return dict(_parsed(path, raises, what, "TOML", tomllib.loads, "correct that line", store))


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
        content = path.read_bytes() if store is None else read_part(store, str(path.relative_to(store)))
        return parse(content.decode("utf-8"))
    except OSError as error:
        raise raises(f"{path}: cannot be read ({error.strerror}); give {what}") from error
    except UnicodeDecodeError as error:
        raise raises(f"{path}: not UTF-8 at byte {error.start}; save it as UTF-8") from error
    except (ValueError, RecursionError) as error:  # what both parsers raise is a ValueError
        raise raises(f"{path}: not {form}: {error or 'nested too deeply'}; {cure}") from error
