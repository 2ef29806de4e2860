"""How the benefit of replicas that stand fades while others are made (RADAR, section II.A.3).

Age is what was read of a file since, over the file's size; no clock counts. A user's own function is a Python file and
a name in it, `FILE.py:NAME`, that takes benefit and age and returns a benefit.
"""

from __future__ import annotations

import importlib.util
import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..errors import UsageError

#: (benefit in seconds, age) -> benefit in seconds.
Decay = Callable[[float, float], float]


def identity(benefit_s: float, age: float) -> float:
    """What was worth it once still is."""
    return benefit_s


def half_life(benefit_s: float, age: float) -> float:
    """b * 2^-age: half for each time that the file's size has been read since."""
    return float(benefit_s * 2.0**-age)


DECAYS: dict[str, Decay] = {"identity": identity, "half-life": half_life}


def decay_named(text: str) -> Decay:
    """A decay by its name, or a user's own as `FILE.py:NAME`. UsageError where there is none."""
    if text in DECAYS:
        return DECAYS[text]
    path, _, name = text.rpartition(":")
    if not path or not name.isidentifier():
        raise UsageError(f"--decay: '{text}' is not known; give {', '.join(DECAYS)} or FILE.py:NAME")
    return _Own(path, name)


class _Own:
    """A user's function, its failures in one line."""

    def __init__(self, path: str, name: str) -> None:
        self._source = os.path.abspath(path)
        self._name = name
        if not os.path.isfile(self._source):
            raise UsageError(f"--decay: there is no file {path}; give FILE.py:NAME")
        spec = importlib.util.spec_from_file_location(f"stripewise_decay_{Path(path).stem}", self._source)
        if spec is None or spec.loader is None:
            raise UsageError(f"--decay: {path} is not a Python file; call it {path}.py")
        module = importlib.util.module_from_spec(spec)
        self._guarded(spec.loader.exec_module, module)
        function = getattr(module, name, None)
        if not callable(function):
            raise UsageError(f"--decay: {path} has no function {name}; define {name}(benefit, age)")
        self._function = function

    def __call__(self, benefit_s: float, age: float) -> float:
        found = self._guarded(self._function, benefit_s, age)
        if isinstance(found, bool) or not isinstance(found, (int, float)) or not math.isfinite(found):
            raise UsageError(f"--decay: {self._source}: {self._name} returned {found!r}; return a number of seconds")
        return float(found)

    def _guarded(self, function: Callable[..., Any], *arguments: Any) -> Any:
        # Here, because policies take long to load and no other decay needs them.
        from ..policy.user import where

        try:
            return function(*arguments)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            if os.environ.get("STRIPEWISE_DEBUG"):
                raise
            raise UsageError(f"--decay: {where(error, self._source)}") from error
