"""Cures that a command of ours is: the words of the advice, and the command that does what they say."""

from __future__ import annotations

from dataclasses import dataclass

from ..cluster import Cluster
from ..store.placed import is_plain
from ..units import command_line, quoted
from .facts import FileFacts, RunFacts
from .price import Asked, is_on_ssds


@dataclass(frozen=True)
class Cure:
    """What to do, a part of a sentence, and the command that does it; both empty where there is none."""

    words: str = ""
    command: str = ""

    def after(self, advice: str, joint: str = ", or ") -> str:
        """The advice with these words behind it."""
        return f"{advice}{joint}{self.words}" if self.words else advice


def on_ssds(file: FileFacts, run: RunFacts, cluster: Cluster, asked: Asked, what: str = "") -> Cure:
    """A plan, which puts on SSDs what gains there; nothing where there are none, or the requests come from them.

    A plain file goes into a store first. One that is not here any more, or was not when a log was written, can be
    planned for a cluster alone, as any file for a cluster that the user named.
    """
    if not cluster.sservers or is_on_ssds(asked, cluster):
        return Cure()
    words = f"put {what or 'the file'} on SSDs"
    if run.is_log or run.names(cluster) or not is_plain(file.path):
        return Cure(words, run.planned(cluster))
    adopt = f"stripewise store adopt --store {quoted(run.store_to_use)} {quoted(file.path)}"
    words = f"take the file into a store and put {what or 'it'} on SSDs"
    return Cure(words, f"{adopt} && {run.planned(cluster, run.store_to_use)}")


def copied_in_order(run: RunFacts, cluster: Cluster) -> Cure:
    """Copies of what is read, which leave the file as it is."""
    words = "leave the file and read from a copy in the order of the reads"
    words += ", which 'replicate' makes where it gains by the model"
    return Cure(words, run.replicated(cluster))


def without_copies(store: str, path: str) -> str:
    """The command that drops the copies of a file."""
    return command_line(["stripewise", "store", "replica", "rm", store, path])


def of_series(command: str, path: str, series: str) -> str:
    """The command for all files of a series, `*` in place of what differs in their names, where it is for the one."""
    first, joint, rest = command.partition(" && ")
    if not first.startswith("stripewise store "):
        return command
    glob = "*".join(quoted(part) if part else "" for part in series.split("*"))
    return f"{first.replace(quoted(path), glob)}{joint}{rest}"
