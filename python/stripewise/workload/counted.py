"""Which files of a trace count where the user names none: the list of those that nobody tunes, and what changes it.

A trace keeps every file; what plans, shows or tells of patterns asks `wanted_files` (trace.py), which goes by this.
Globs are those of `--file`: `*` matches a `/`, too.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ..units import KIB, MIB

#: To verbs a file with less I/O does not count. A disk moves so much in a twentieth of one startup (0.16 ms of 3 ms, at
#: 100 MB/s), so no layout of its bytes shows in a time; the settings, notes and logs of a job are shorter.
LEAST_BYTES = 16 * KIB
#: Nor is a place that others own left out where a run moves so much there, a whole region by default: what a program
#: reads of itself and of the system at its start is a hundredth of that, so this is data, say in /usr/share.
LARGE_BYTES = 64 * MIB


class Kind(NamedTuple):
    """Files that are left out together; one that `is_certain`, however large it is and whoever wrote it."""

    name: str
    is_certain: bool
    globs: tuple[str, ...]


def _kind(name: str, is_certain: bool, globs: str) -> Kind:
    return Kind(name, is_certain, tuple(globs.split()))


#: In this order; the first that matches tells the kind.
KINDS = (
    # No store holds these (store/globs.py), and what is no path names no file: `<STDOUT>` in a Darshan log.
    _kind("system", True, "/dev/* /proc/* /sys/* <* socket:* pipe:* anon_inode:* memfd:* /memfd:* *.sock"),
    _kind("code", True, "*.pyc */__pycache__/*"),
    # Sessions of MPICH, Open MPI and PMIx, wherever TMPDIR is, and the library's logs.
    _kind(
        "runtime",
        True,
        "*/hydra_hwloc_xmlfile_* */mpich_shm_* */ompi.*.[0-9]*/* */openmpi-sessions-* */prte.*.[0-9]*/* "
        "*/pmix-*/* */pmix_dstor_* */stripewise-log-*/* *.swt",
    ),
    # What a store keeps of each file, for programs that look into stores.
    _kind("runtime", True, " ".join(f"*/files/{'[0-9a-f]' * 16}/{part}" for part in ("ctl", "head", "layout", "link"))),
    # Of /run not /run/media, where users' drives are.
    _kind(
        "system",
        False,
        "/bin/* /boot/* /etc/* /lib/* /lib32/* /lib64/* /libx32/* /sbin/* /usr/* /run/[!m]* /var/run/* /var/cache/* "
        "/snap/* /nix/store/* /gnu/store/*",
    ),
    # A program's own code, and the settings that its start looks for in many places.
    _kind(
        "code",
        False,
        "*/site-packages/* */dist-packages/* */lib/python[0-9]* */lib64/python[0-9]* */pyvenv.cfg *.py *.pth *.so "
        "*.so.* *.jar *.class */.cache/matplotlib/* */.cache/fontconfig/*",
    ),
)
#: Kinds that no glob tells.
SMALL, OUTSIDE, EXCLUDED = "small", "outside stores", "excluded"


def one_of(globs: Sequence[str]) -> str:
    """The regular expression of paths that match one of the globs."""
    return "|".join(map(fnmatch.translate, globs))


#: Which kind a path is of: the group that matches has its number.
KIND_OF = re.compile("|".join(f"(?P<k{number}>{one_of(kind.globs)})" for number, kind in enumerate(KINDS)))


class Rule(NamedTuple):
    """A user's word: files that match the glob, and those below a directory that does, count, or do not."""

    glob: str
    counts: bool


@dataclass(frozen=True)
class Choice:
    """What a user wants to count: by --file (`only`), by rules, of which the first that matches decides, or all.

    `own` are his rules for every trace, which do not matter where he names files. Verbs leave out files with less I/O
    than `least_bytes`, by default `LEAST_BYTES`; who reads a trace by himself gets them all.
    """

    only: tuple[str, ...] = ()
    rules: tuple[Rule, ...] = ()
    own: tuple[Rule, ...] = ()
    all_files: bool = False
    least_bytes: int = 0

    def words(self) -> list[str]:
        """The same on the command line of another verb."""
        words = [word for glob in self.only for word in ("--file", f"./{glob}" if glob.startswith("-") else glob)]
        words += [f"--{'include' if rule.counts else 'exclude'}={rule.glob}" for rule in self.rules]
        return [*words, *(["--all-files"] if self.all_files else [])]


#: Nothing said: the list alone.
BY_DEFAULT = Choice()
#: What a reader of traces takes: globs alone are those of --file.
Chosen = Choice | Sequence[str]


class Touched(NamedTuple):
    """What a run did to a file: bytes that it moved, whether the file is managed, and whether the run wrote it."""

    bytes: int
    managed: bool = False
    written: bool = False


@dataclass(frozen=True)
class Counted:
    """The files that count, most bytes first, and of those that do not, the kind."""

    files: tuple[str, ...]
    left_out: dict[str, str] = field(default_factory=dict)
    #: Kinds that are left out and how many files of each, most first.
    numbers: tuple[tuple[str, int], ...] = ()


def left_out_text(numbers: Sequence[tuple[str, int]]) -> str:
    """How many files are left out, and why, as a phrase; empty where none is."""
    total = sum(count for _, count in numbers)
    kinds = ", ".join(f"{kind} {count:,}" for kind, count in numbers)
    return f"{total:,} file{'' if total == 1 else 's'} left out ({kinds})" if total else ""
