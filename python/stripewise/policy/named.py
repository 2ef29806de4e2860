"""Policies by what a user calls them: built in, in a Python file, or of an installed package."""

from __future__ import annotations

import difflib
import os

from ..errors import UsageError
from .base import POLICIES, Policy
from .user import entry_points, from_entry_point, from_file


def policy_named(name: str) -> Policy:
    """The policy `name`: one that is always there, the one in a Python file, or one of an installed package.

    UsageError, listing those that exist, when there is none.
    """
    if name in POLICIES:
        return POLICIES[name]
    if name.endswith(".py") or os.sep in name:
        return from_file(name)
    offered = from_entry_point(name)
    if offered is not None:
        return offered
    known = sorted({*POLICIES, *entry_points()})
    near = difflib.get_close_matches(name, known, 1)
    hint = f"did you mean {near[0]}?" if near else f"use one of {', '.join(known)}, or a Python file like ./mine.py"
    raise UsageError(f"--policy: there is no policy '{name}'; {hint}")


def policies_named(names: str) -> list[Policy]:
    """The policies named with commas, each once. UsageError for one that does not exist, and for two of one name."""
    # The same text twice is one policy; a file is read but once.
    words = dict.fromkeys(word for word in (name.strip() for name in names.split(",")) if word)
    chosen: dict[str, Policy] = {}
    for word in words:
        policy = policy_named(word)
        if policy.name in chosen:
            raise UsageError(f"--policy: two policies are called '{policy.name}'; rename that of {word}")
        chosen[policy.name] = policy
    return list(chosen.values())
