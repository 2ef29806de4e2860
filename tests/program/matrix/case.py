"""What a case of the matrix is: a script, the programs it needs, and the error it must end in where it is refused.

A script works in the directory `$D` (its current one) and prints facts to stdout. It finds inputs in `$S` (the same
for all places), what was built for it in `$W`, and an unmanaged directory of its own in `$T`. Nothing it prints may
depend on the place, the time or the process: exit code, stdout and the files it left are compared between the places.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Refusal:
    """A deliberate end: what the program then says (a pattern over stdout and stderr), and why it is refused."""

    says: str
    reason: str
    #: On plain files too: what the program wants is refused to every process on a store.
    everywhere: bool = False


@dataclass(frozen=True, kw_only=True)
class Case:
    """One program at one job."""

    #: Unique; also the name of the directory.
    name: str
    #: What the table calls the job.
    job: str
    #: Programs, `python:<module>` or `pkg-config:<library>`; the first one gives the version in the table.
    needs: tuple[str, ...]
    #: A shell script (`sh -eu`), or the name of a Python script in `sources/python/`.
    script: str = ""
    python: str = ""
    #: Prints the version (shell); empty: `<first need> --version`.
    version: str = ""
    #: Files of `sources/` that are put into `$W`, and the script that builds them there, once, without the library.
    sources: tuple[str, ...] = ()
    build: str = ""
    #: Globs of files whose contents differ from run to run also on plain files: only name, type and mode are compared.
    volatile: tuple[str, ...] = ()
    refused: Refusal | None = None
    #: Of no use in seconds: `make soak` only.
    heavy: bool = False
    #: A program that refuses to run as root: it gets a store and directories of an ordinary user.
    unprivileged: bool = False
    #: Remark in the table.
    remark: str = ""
    timeout_s: float = 60.0

    @property
    def program(self) -> str:
        """The name in the table."""
        return self.needs[0].rpartition(":")[2]
