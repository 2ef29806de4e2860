"""Where a circle of `tune` tells what it does: a sentence per step, the program's output, how far long work is."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass

from .. import native

Say = Callable[[str], None]
Line = Callable[[bytes], None]
Working = Callable[[str], AbstractContextManager[native.Progress]]


@dataclass(frozen=True)
class Shown:
    """The three of them, each as the verb that runs the circle has it."""

    say: Say
    line: Line
    working: Working
