"""The entry point of the `stripewise` command: signals first, for loading the verbs takes a tenth of a second."""

from __future__ import annotations

from .signals import end_at_once


def main() -> None:
    """Runs the command line."""
    end_at_once()
    from .main import main as verbs

    verbs()
