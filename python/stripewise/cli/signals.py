"""What SIGINT, SIGTERM and SIGHUP do to the command: end it at once, in a line, until a verb hears them as exceptions.

Where modules are still brought in, or words read, there is nothing to put in order, and an exception would end in a
traceback of whatever was being loaded.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from types import FrameType

from ..errors import HungUp, Terminated

#: What is said where a signal ends a verb; its exit status is 128 and the number of the signal.
ENDED_BY: dict[int, str] = {
    signal.SIGINT: "interrupted",
    signal.SIGTERM: "terminated",
    signal.SIGHUP: "ended by SIGHUP",
}


def ended_at_once(number: int, _: object) -> None:
    """Ends the process with the status of a signal."""
    os.write(2, f"stripewise: {ENDED_BY[number]} before it began, so nothing has changed\n".encode())
    os._exit(128 + number)


def terminated(*_: object) -> None:
    """SIGTERM as an exception."""
    raise Terminated


def hung_up(*_: object) -> None:
    """SIGHUP as an exception."""
    raise HungUp


#: What ends a verb, and what handles it: an exception, on whose way out everything is put in order.
HANDLERS: dict[int, Callable[[int, FrameType | None], object]] = {
    signal.SIGINT: signal.default_int_handler,
    signal.SIGTERM: terminated,
    signal.SIGHUP: hung_up,
}


def end_at_once() -> None:
    """All end the process from here on, until a verb begins (`WithColumns.invoke`). Who had one ignored before us, as
    nohup has SIGHUP, has reasons.
    """
    for number in HANDLERS:
        if signal.getsignal(number) in (signal.default_int_handler, signal.SIG_DFL):
            signal.signal(number, ended_at_once)
