"""Which signals we hear: those that whoever started us did not have ignored, as nohup has SIGHUP ignored."""

from __future__ import annotations

import signal

from .errors import HungUp, Terminated


def heeded(*numbers: signal.Signals) -> tuple[signal.Signals, ...]:
    """Those of the signals that are not ignored now; who had one ignored before us has reasons."""
    return tuple(number for number in numbers if signal.getsignal(number) is not signal.SIG_IGN)


def go_on_unless(stopped_by: int | None) -> None:
    """Passes on the signal that ended something on its way."""
    if stopped_by is not None:
        raise {signal.SIGTERM: Terminated, signal.SIGHUP: HungUp}.get(signal.Signals(stopped_by), KeyboardInterrupt)
