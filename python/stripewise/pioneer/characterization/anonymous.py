"""Profiles without names: what a site may share.

Names of files and directories, of hosts, users and commands, and absolute times go. Names only tell which files several
traces share, and which of them patterns cover (coverage.py), so nobody can try names against it. Offsets, sizes,
counts, gaps and slack stay: they are the workload.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..extraction.generic_path import Gwp, GwpFile
from .profile import Profile


def anonymous_profile(profile: Profile) -> Profile:
    """The profile without names; its programs must have been made from an anonymous path."""
    return replace(
        profile,
        application=None,
        anonymous=True,
        classes={name: replace(each, names=()) for name, each in profile.classes.items()},
    )


def anonymous_gwps(gwps: Sequence[Gwp]) -> list[Gwp]:
    """The paths with made names, `f0`, `f1`, ..., in the order in which files were met, and times from the first start
    of each on. A file that several paths have is called alike in all of them."""
    known: dict[str, int] = {}
    return [_anonymous(gwp, known) for gwp in gwps]


def _anonymous(gwp: Gwp, known: dict[str, int]) -> Gwp:
    zero = int(gwp.start_ns.min()) if len(gwp) else 0
    files = tuple(
        GwpFile(
            f"f{known.setdefault(each.template, len(known))}" + (".{rank}" if each.file_class == "private" else ""),
            each.file_class,
            each.bytes,
            each.is_directory,
        )
        for each in gwp.files
    )
    return replace(gwp, files=files, application=None, start_ns=gwp.start_ns - zero, end_ns=gwp.end_ns - zero)
