"""Which signals we hear: those that whoever started us did not have ignored, as nohup has SIGHUP ignored."""

from __future__ import annotations

import signal


def heeded(*numbers: signal.Signals) -> tuple[signal.Signals, ...]:
    """Those of the signals that are not ignored now; who had one ignored before us has reasons."""
    return tuple(number for number in numbers if signal.getsignal(number) is not signal.SIG_IGN)
