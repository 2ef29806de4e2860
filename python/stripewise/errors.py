"""What can go wrong, one class per thing that a user holds.

Every message is one sentence that names the file, the key and the cure; the command line prints it as it is. Each class
also derives from the standard exception that a caller would expect.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager


class StripewiseError(Exception):
    """The base of all errors that this package raises on purpose.

    The message is one printable line, whatever the names and keys hold that it quotes.
    """

    def __init__(self, message: str) -> None:
        super().__init__("".join(char if char.isprintable() else ascii(char)[1:-1] for char in message))


class ClusterError(StripewiseError, ValueError):
    """cluster.toml or store.toml is missing, unreadable or holds a bad value."""


class LayoutError(StripewiseError, ValueError):
    """A layout in JSON form breaks a rule of the format."""


class PlanError(StripewiseError, ValueError):
    """plan.json is missing, unreadable or invalid, or no sound plan exists."""


class WorkloadError(StripewiseError, ValueError):
    """A trace is missing, unreadable, or holds nothing to plan with; requests, or the disk for them, cannot be."""


class NoRequestsError(WorkloadError):
    """A trace is sound, but none of its wanted files has a read or write that moved a byte."""


@contextmanager
def naming(source: str, *others: str) -> Iterator[None]:
    """What goes wrong with requests in the body is a WorkloadError that says whose: `source` leads its sentence.

    A sentence that begins with it, or with one of `others`, stays. An argument that no engine takes counts as theirs.
    """
    try:
        yield
    except (WorkloadError, InvalidError) as error:
        named = str(error).startswith(tuple(f"{name}:" for name in (source, *others)))
        raise WorkloadError(str(error) if named else f"{source}: {error}") from error


class StoreError(StripewiseError, RuntimeError):
    """A store refused an operation, or the native module that does it is missing."""


class NotFoundError(StoreError, FileNotFoundError):
    """There is no such store, file or part of one."""


class InvalidError(StoreError, ValueError):
    """What was asked cannot be: a layout that breaks a rule, a name that is none, a number that no engine takes."""


class DamagedError(StoreError):
    """A part of a store is not what was written."""


class NewerVersionError(StoreError):
    """A part of a store has the form of a newer version."""


class InUseError(StoreError, BlockingIOError):
    """Somebody else has what is needed open: it may do later."""


class NoSpaceError(StoreError, OSError):
    """A target is full, or would be."""


class ExistsError(StoreError, FileExistsError):
    """What was to be made is there already."""


class StoppedError(StoreError):
    """The work was ended by whoever watches it."""


class InputOutputError(StoreError, OSError):
    """The system refused a part of a store, or a device failed."""


class UsageError(StripewiseError, ValueError):
    """The command line asked for something that makes no sense: exit code 2."""


class Terminated(KeyboardInterrupt):
    """SIGTERM came: what cleans up after Ctrl-C cleans up after it as well."""

    number = signal.SIGTERM


class HungUp(Terminated):
    """SIGHUP came, for the terminal went away."""

    number = signal.SIGHUP
