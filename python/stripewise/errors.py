"""What can go wrong, one class per thing that a user holds.

Every message is one sentence that names the file, the key and the cure; the command line prints it as it is. Each class
also derives from the standard exception that a caller would expect.
"""

from __future__ import annotations


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
    """A trace is missing, unreadable, or holds nothing to plan with."""


class StoreError(StripewiseError, RuntimeError):
    """A store refused an operation, or the native module that does it is missing."""


class InUseError(StoreError):
    """Somebody else has what is needed open: it may do later."""


class UsageError(StripewiseError, ValueError):
    """The command line asked for something that makes no sense: exit code 2."""
