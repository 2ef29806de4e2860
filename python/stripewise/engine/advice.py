"""IO-Engine's rules for the files of a traced run, and the hints for all of it."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ..errors import NoRequestsError, WorkloadError
from ..findings.mpi_hints import FileHints, hints_in
from ..layout import Layout
from ..pattern.records import FileRecords, read_records
from ..replicas.lying import lying
from ..units import MIB
from ..workload.counted import Chosen
from ..workload.trace import read_meta
from .calls import Calls, calls_of
from .exchange import CarriedOut, carried_out
from .rules import NUMBER_MAX, SIZE_MAX, Inputs, Ruled, ruled

#: Stripe size of a file of which nothing is known: Lustre's default.
STRIPE_BYTES = MIB


@dataclass(frozen=True, kw_only=True)
class Site:
    """What a trace does not tell. Numbers where it does not tell them of a file: None, 1 node and stripe."""

    nodes: int | None = None
    stripes: int | None = None
    stripe_bytes: int | None = None
    lustre: bool = False


@dataclass(frozen=True)
class Advice:
    """The rules for one operation on one file, how its calls were carried out, and the bytes that they moved."""

    path: str
    ruled: Ruled
    calls: int
    bytes: int
    is_collective: bool
    #: None where the trace does not tell.
    carried_out: CarriedOut | None
    #: Of the file, likewise.
    hints: FileHints | None

    @property
    def op(self) -> str:
        """What the calls do."""
        return "write" if self.ruled.inputs.write else "read"

    def as_json(self) -> dict[str, object]:
        """For --json."""
        how = self.carried_out
        told = None
        if how is not None:
            told = {
                "turns": how.turns, "turns_s": how.turns_s, "io_s": how.io_s, "exchange_s": how.exchange_s,
                "movers": how.movers, "independent": how.are_own,
            }  # fmt: skip
        return {
            "file": self.path, "op": self.op, "calls": self.calls, "bytes": self.bytes,
            "collective": self.is_collective, "carried_out": told, **self.ruled.as_json(),
        }  # fmt: skip


@dataclass(frozen=True)
class Advised:
    """All of a run; the files that do not count, by kind."""

    advices: tuple[Advice, ...]
    left_out: tuple[tuple[str, int], ...]

    def hints(self) -> tuple[dict[str, str], list[str]]:
        """One set of hints for all files, and what it does not do: of files that differ the one with most bytes says,
        what the program gives itself counts more, and independent calls stay so whatever the hints.
        """
        chosen: dict[str, str] = {}
        otherwise = []
        for each in sorted(self.advices, key=lambda each: -each.bytes):
            if not each.is_collective:
                if each.ruled.mode == "collective":
                    calls = f"{each.calls:,} independent {each.op}s of {each.path}"
                    otherwise.append(f"the {calls} should be collective, which the program must ask for: no hint does")
                continue
            for key, value in each.ruled.hints().items():
                # Of reads ROMIO does not ask for it.
                if chosen.setdefault(key, value) != value and key != "romio_lustre_co_ratio":
                    otherwise.append(f"{key} = {value} for {each.op}s of {each.path}: {chosen[key]} is in its place")
                given = () if each.hints is None else each.hints.given.get(key, ())
                if given and given != (value,):
                    own = f"the program gives {' then '.join(given)} itself, which counts more than a file of hints"
                    otherwise.append(f"{key} = {value} for {each.op}s of {each.path}: {own}")
            if each.carried_out is not None and each.carried_out.is_dear:
                otherwise.append(
                    f"the {each.op}s of {each.path} were joined in this run, and waited longer for each other than for "
                    f"I/O: measure a run with 'romio_cb_{each.op} disable' in the file of hints, too"
                )
        return chosen, otherwise

    @property
    def is_ompio(self) -> bool:
        """Whether some file was used by Open MPI's own MPI-IO, which knows none of these hints."""
        return any(each.hints is not None and each.hints.is_ompio for each in self.advices)


def advise(trace: Path, site: Site, files: Chosen = ()) -> Advised:
    """The rules for every file that MPI-IO used, the one with most bytes first, of each for writes and for reads.

    Raises NoRequestsError where it used none, WorkloadError naming the file where the trace cannot be read, and where
    hints change none of its calls.
    """
    try:
        records = read_records(trace, files, layer="mpi")
    except NoRequestsError as error:
        raise NoRequestsError(
            f"{trace}: has no read or write by MPI-IO on files that count; trace a job that makes some, with --layers "
            "both ('stripewise show' tells of other I/O, 'stripewise files' which files count)"
        ) from error
    below: dict[str, FileRecords] = {}
    # A trace with --layers mpi has none.
    with contextlib.suppress(NoRequestsError):
        below = {file.path: file for file in read_records(trace, only=[file.path for file in records.files]).files}
    hints, layouts = hints_in(read_meta(trace)), lying(trace, [file.path for file in records.files], None).layouts
    found = []
    for file in records.files:
        for calls in calls_of(file):
            told = _Told(calls, hints.get(file.path), layouts.get(file.path), site)
            how = carried_out(calls, below.get(file.path))
            found.append(
                Advice(file.path, ruled(told.inputs()), len(calls), calls.bytes, calls.is_collective, how, told.hints)
            )
    if not found:
        raise WorkloadError(f"{records.source}: hints change no call in it: all are by the shared file pointer")
    return Advised(tuple(found), records.left_out)


@dataclass(frozen=True)
class _Told:
    """What is known of the calls of one operation on a file."""

    calls: Calls
    hints: FileHints | None
    layout: Layout | None
    site: Site

    def _hint(self, key: str, most: int = NUMBER_MAX) -> int | None:
        """A number in force, of several the last; None: there is none that can be."""
        values = () if self.hints is None else self.hints.in_force.get(key, self.hints.given.get(key, ()))
        text = values[-1] if values else ""
        return int(text) if text.isascii() and text.isdigit() and len(text) < 20 and 0 < int(text) <= most else None

    def _stripes(self) -> tuple[int, int]:
        """Count and size: of a managed file by its first region, else as given, else by the hints in force."""
        if self.layout is not None:
            stripes = self.layout.regions[0].stripes
            return len(stripes), max(width for _, width in stripes)
        count = self.site.stripes or self._hint("striping_factor") or 1
        return count, self.site.stripe_bytes or self._hint("striping_unit", SIZE_MAX) or STRIPE_BYTES

    def inputs(self) -> Inputs:
        """For the rules."""
        calls, (count, stripe_bytes) = self.calls, self._stripes()
        # By default there is one aggregator a node, so their number in force tells the nodes.
        nodes = min(self.site.nodes or self._hint("cb_nodes") or 1, calls.processes)
        given = self.hints is not None and "cb_nodes" in self.hints.given
        return Inputs(
            write=calls.write,
            strided=calls.is_strided,
            processes=calls.processes,
            nodes=nodes,
            cb_nodes=self._hint("cb_nodes") if given else None,
            request_bytes=min(calls.request_bytes, SIZE_MAX),
            region_bytes=min(calls.request_bytes if calls.is_strided else calls.region_bytes, SIZE_MAX),
            stripes=count,
            stripe_bytes=stripe_bytes,
            is_aligned=not (calls.low % stripe_bytes).any(),
            targets=count,
            lustre=self.site.lustre,
            is_new=False,
        )


def romio_hints(hints: Mapping[str, str]) -> str:
    """A file for ROMIO_HINTS."""
    return "".join(f"{key} {value}\n" for key, value in hints.items())


def ompio_parameters(hints: Mapping[str, str]) -> list[str]:
    """What has Open MPI's own MPI-IO do the same, as words of its mpiexec: it has one way for reads and writes."""
    modes = [hints[key] for key in ("romio_cb_write", "romio_cb_read") if key in hints]
    words = ["--mca", "fcoll", "vulcan" if "enable" in modes else "individual"]
    if "cb_buffer_size" in hints:
        words += ["--mca", "io_ompio_bytes_per_agg", hints["cb_buffer_size"]]
    return words
