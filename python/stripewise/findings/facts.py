"""What findings are made of: the requests of each file as arrays, and the calls beside them (`calls.py`)."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ..cluster import Cluster
from ..errors import NoRequestsError
from ..layout import Layout
from ..pattern.records import FileRecords, TraceRecords, read_records
from ..units import command_line, quoted
from ..workload.copied import Copied, ReplicaBlocks, copying_store
from ..workload.counted import BY_DEFAULT, Choice, Chosen
from ..workload.layouts import read_layouts, store_of_trace
from ..workload.syncs import Syncs
from ..workload.trace import FLAG_UNKNOWN_OFFSET, partial_reasons, run_end, trace_file
from .calls import CallFacts, MetadataCalls, Wanted, calls_of
from .layers import MpiCalls
from .mpi_hints import FileHints
from .price import DEFAULT_CLUSTER, Asked, Places


class FileFacts:
    """The requests of one file, by process and in each by start."""

    def __init__(
        self,
        records: FileRecords,
        openers: int,
        extent: int,
        wanted: Wanted | None = None,
        layers: tuple[MpiCalls, ...] = (),
        layout: Layout | None = None,
        syncs: Syncs | None = None,
        copied: Copied | None = None,
        hints: FileHints | None = None,
    ) -> None:
        if (np.diff(records.rank) < 0).any():
            records = _by_process(records)
        self.records = records
        #: Processes that opened it; 0 where the trace has no opens.
        self.openers = openers
        #: Bytes of the whole file, as far as the trace tells: of its reads and writes, and of other calls.
        self.extent = extent
        #: What MPI-IO calls moved, of reads and writes; None where the trace has none of the file.
        self.wanted = wanted
        #: Of these, what was made of them; empty where the trace does not tell.
        self.layers = layers
        #: How it lay in a store when the trace was first collected; None where it was in none, or that is not known.
        self.layout = layout
        #: Calls that wait until its bytes are on the device; None where there are none.
        self.syncs = syncs
        #: Its reads that copies have served; None where there are none.
        self.copied = copied
        #: Hints of MPI-IO that were given and in force; None where the trace does not tell.
        self.hints = hints
        self.size = records.size
        self.offset = records.offset
        self.write = np.array([kind.op == "write" for kind in records.kinds])[records.kind]
        #: The ranks that moved bytes, and which of them each request is of.
        self.ranks, self.rank = np.unique(records.rank, return_inverse=True)

    @property
    def path(self) -> str:
        """Of the file."""
        return self.records.path

    @cached_property
    def from_home(self) -> npt.NDArray[np.bool_]:
        """Of each request, whether the file's home served it, at a place that is known."""
        known = np.array([not kind.flags & FLAG_UNKNOWN_OFFSET for kind in self.records.kinds])[self.records.kind]
        return known if self.records.copied is None else known & ~self.records.copied

    def only(self, chosen: npt.NDArray[np.bool_]) -> FileFacts:
        """Some of its requests, without the calls beside them."""
        return FileFacts(_rows(self.records, np.flatnonzero(chosen)), self.openers, self.extent, layout=self.layout)

    def of(self, write: bool) -> FileFacts | None:
        """Its writes, or its reads; None where there are none."""
        chosen = np.flatnonzero(self.write == write)
        if not len(chosen):
            return None
        if len(chosen) == len(self.write):
            return self
        layers = tuple(each for each in self.layers if (each.op == "write") == write)
        records = _rows(self.records, chosen)
        return FileFacts(records, self.openers, self.extent, self.wanted, layers, self.layout, hints=self.hints)

    def without_copied(self) -> FileFacts | None:
        """What the file itself was asked for: all but the reads that copies have served; None where that is nothing."""
        if self.records.copied is None:
            return self
        chosen = np.flatnonzero(~self.records.copied)
        if not len(chosen):
            return None
        records = _rows(self.records, chosen)
        return FileFacts(
            records, self.openers, self.extent, self.wanted, self.layers, self.layout, self.syncs, self.copied,
            self.hints,
        )  # fmt: skip

    def only_copied(self) -> FileFacts | None:
        """The reads that copies have served, each with its replica; None where there are none."""
        if self.records.copied is None or not self.records.copied.any():
            return None
        records = _rows(self.records, np.flatnonzero(self.records.copied))
        return FileFacts(records, self.openers, self.extent, layout=self.layout, copied=self.copied)

    @property
    def who(self) -> str:
        """What its processes are called."""
        return "rank" if self.records.is_ranked else "process"

    @property
    def who_all(self) -> str:
        """The same of several."""
        return "ranks" if self.records.is_ranked else "processes"

    @cached_property
    def asked(self) -> Asked:
        """For prices."""
        places = None if self.layout is None else Places(self.offset, self.layout)
        return Asked.each(self.size, self.write, self.rank.astype(np.int64), len(self.ranks), places)

    @cached_property
    def follows(self) -> npt.NDArray[np.bool_]:
        """Whether a request begins where the one before it of the same process and operation ended."""
        found = np.zeros(len(self.size), dtype=bool)
        order = np.lexsort((np.arange(len(self.size)), self.write, self.rank))
        key = (self.rank * 2 + self.write)[order]
        end = (self.offset + self.size)[order]
        found[order[1:]] = (key[1:] == key[:-1]) & (self.offset[order][1:] == end[:-1])
        return found

    @cached_property
    def io_s(self) -> npt.NDArray[np.float64]:
        """Seconds of each of `ranks` in requests."""
        spent = (self.records.end_ns - self.records.start_ns) / 1e9
        return np.bincount(self.rank, weights=spent, minlength=len(self.ranks)).astype(np.float64)

    @property
    def is_timed(self) -> bool:
        """Whether the trace has what requests took: an unknown time is 1 ns."""
        return bool((self.records.end_ns - self.records.start_ns > 1).any())


def _file_facts(records: FileRecords, calls: CallFacts, layout: Layout | None) -> FileFacts:
    path = records.path
    openers = len(calls.metadata.openers.get(path, ()))
    extent = max(int((records.offset + records.size).max()), calls.lengths.get(path, 0))
    layers, syncs, copied = calls.layers.get(path, ()), calls.syncs.get(path), calls.copied.get(path)
    return FileFacts(
        records, openers, extent, calls.wanted.get(path), layers, layout, syncs, copied, calls.hints.get(path)
    )


def _by_process(records: FileRecords) -> FileRecords:
    return _rows(records, np.lexsort((records.start_ns, records.rank)))


def _rows(records: FileRecords, order: npt.NDArray[np.intp]) -> FileRecords:
    columns: tuple[str, ...] = ("rank", "stream", "kind", "offset", "size", "start_ns", "end_ns")
    if records.copied is not None:
        columns = (*columns, "copied", "replica")
    return replace(records, **{name: getattr(records, name)[order] for name in columns})


@dataclass(frozen=True)
class FileCopies:
    """The copies in use that a store has of one file, which it may have got after the run."""

    store: str
    replicas: int
    bytes: int
    #: Written without some of the copies since.
    stale_bytes: int
    #: What replicas hold, by number, where these are the copies that served reads of the run.
    blocks: tuple[ReplicaBlocks, ...] = ()
    #: Replicas that writes leave stale in place of writing them.
    invalidated: int = 0
    #: Where these replicas begin in the file that holds the copies, and how that lies now.
    domains: tuple[int, ...] = ()
    layout: Layout | None = None


@dataclass(frozen=True)
class RunFacts:
    """A run: files by bytes, most first."""

    source: str
    processes: int
    files: tuple[FileFacts, ...]
    metadata: MetadataCalls
    trace: TraceRecords | None
    #: Whether some requests were made up from counters: their order and places prove little.
    is_estimated: bool = False
    #: Whether nothing ran: times are an order alone.
    is_predicted: bool = False
    #: What chose its files.
    choice: Choice = BY_DEFAULT
    #: Whether `source` is a Darshan log, from which the trace was made for this page alone.
    is_log: bool = False
    #: The store that has its managed files.
    store: str | None = None
    #: The store that the run was started with, where it is still there; it may hold none of the files.
    started_with: str | None = None
    #: Whether a file without calls of MPI-IO had none, rather than that nobody recorded them.
    knows_mpi: bool = False
    #: Calls that wait until bytes are on the device, by the file's name; some may have no request.
    syncs: Mapping[str, Syncs] = field(default_factory=dict)
    #: What copies its files have now, by path; nothing where nobody looked.
    copies: Mapping[str, FileCopies] = field(default_factory=dict)

    def copied(self, file: FileFacts) -> Copied | None:
        """Reads of the file that copies have served, with what the store still knows of these."""
        now = self.copies.get(file.path)
        return file.copied if file.copied is None or now is None or not now.blocks else file.copied.among(now.blocks)

    def measured_s(self, file: FileFacts) -> float | None:
        """What its requests took in this run, of the process that waited longest; None where that is not known."""
        return None if self.is_estimated or self.is_predicted or not file.is_timed else float(file.io_s.max())

    @property
    def requests(self) -> int:
        """That moved bytes."""
        return sum(len(file.size) for file in self.files)

    @property
    def bytes_moved(self) -> int:
        """By all of them."""
        return sum(int(file.size.sum()) for file in self.files)

    def names(self, cluster: Cluster) -> bool:
        """Whether the cluster is one that the user named: neither the default nor the store of the files."""
        return str(cluster.source) not in (str(DEFAULT_CLUSTER.source), self.store)

    @property
    def store_to_use(self) -> str:
        """The store that plain files may go into: that of the others, else that of the run, else one to be named."""
        return self.store or self.started_with or "STORE"

    def planned(self, cluster: Cluster, store: str | None = None) -> str:
        """The command that plans a layout for these files, ready for a shell; a log is imported first. They lie in
        `store`, else where they lay in the run.
        """
        store = store or self.store
        if self.names(cluster):
            words = ["--cluster", _as_operand(str(cluster.source))]
        else:
            words = ["--cluster", "CLUSTER"] if store is None else ["--store", store]
        words += self.choice.words()
        first, trace = self._trace()
        return f"{first}stripewise plan {trace} {command_line(words)} --policy best -o plan.json"

    def replicated(self, cluster: Cluster) -> str:
        """The command that makes copies of what these files' reads ask for, likewise; for a named cluster that which
        tells what they would gain there.
        """
        words = ["--store", self.store_to_use]
        if self.names(cluster):
            words = ["--what-if", "--cluster", _as_operand(str(cluster.source))]
        first, trace = self._trace()
        return f"{first}stripewise replicate {trace} {command_line([*words, *self.choice.words()])}"

    @property
    def patterns(self) -> str:
        """The command that tells all patterns of these files, likewise."""
        first, trace = self._trace()
        return f"{first}{' '.join(['stripewise patterns', trace, *map(quoted, self.choice.words())])}"

    def _trace(self) -> tuple[str, str]:
        """What makes a trace of a log, and the trace, quoted."""
        if not self.is_log:
            return "", _quoted(self.source)
        trace = _quoted(f"{Path(self.source).stem}-trace")
        return f"stripewise import darshan {_quoted(self.source)} -o {trace} && ", trace


def _as_operand(name: str) -> str:
    """A path that no program takes for an option."""
    return f"./{name}" if name.startswith("-") else name


def _quoted(path: str) -> str:
    return quoted(_as_operand(path))


def facts_of(path: str | os.PathLike[str], files: Chosen = (), only: Collection[str] | None = None) -> RunFacts:
    """The facts of a collected trace; `files` says which files count, `only` has the paths whose requests do.

    Raises NoRequestsError where it holds neither a request nor a call by name, WorkloadError naming the file where it
    cannot be read.
    """
    calls = calls_of(Path(path), files)
    metadata = calls.metadata
    try:
        trace = read_records(path, files, only=only)
    except NoRequestsError:
        # Who knows of requests knows that their places are unknown: nothing is found in them.
        if not metadata.calls and not only:
            raise
        trace = None
    layouts = _layouts_of(Path(path))
    found = [] if trace is None else [_file_facts(each, calls, layouts.get(each.path)) for each in trace.files]
    found.sort(key=lambda file: -int(file.size.sum()))
    processes = max(1, len(set().union(*metadata.openers.values())) if metadata.openers else 1)
    return RunFacts(
        str(trace_file(Path(path))),
        processes if trace is None else trace.processes,
        tuple(found),
        metadata,
        trace,
        any("estimated" in reason for reason in partial_reasons(Path(path))),
        run_end(Path(path)).is_predicted,
        files if isinstance(files, Choice) else Choice(tuple(files)),
        store=store_of_trace(Path(path)),
        started_with=_started_with(Path(path)),
        knows_mpi=calls.knows_mpi,
        syncs=calls.syncs,
    )


def _started_with(trace: Path) -> str | None:
    root = copying_store(trace)
    return root if root and os.path.lexists(os.path.join(root, "store.toml")) else None


def _layouts_of(trace: Path) -> dict[str, Layout]:
    """Those that the files of the trace's one store had."""
    stores = read_layouts(trace)
    return stores[0].layouts if len(stores) == 1 else {}
