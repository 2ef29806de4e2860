"""The native module: JSON in and out (docs/formats.md), columns as buffers and bytes; errors are one sentence each."""

from collections.abc import Callable, Sequence
from typing import TypedDict

from typing_extensions import Buffer

class _Keys(TypedDict):
    offset: Buffer
    size: Buffer
    write: Buffer
    count: Buffer
    first: Buffer

class _Figures(TypedDict):
    startup_read_s: float
    per_byte_read_s: float
    startup_write_s: float
    per_byte_write_s: float

class _CostParameters(TypedDict):
    p: float
    c: float
    e: float
    t: float
    hdd: _Figures
    ssd: _Figures

class _Weighing(TypedDict):
    weight: list[float]
    others_s: Buffer

class _Lists(TypedDict):
    first: Buffer
    at: Buffer
    value: Buffer

class _Problem(TypedDict):
    windows: int
    regions: int
    shapes: int
    choices: int
    resources: int
    servers: int
    features: Buffer
    valid_bytes: Buffer
    capacity: Buffer
    shape: Buffer
    entries: _Lists
    stores: _Lists
    leave: _Lists
    enter: _Lists
    penalty_s: Buffer

GRANULE: int
MAX_LOGICAL: int
MAX_REGIONS: int
MAX_RULES: int
MAX_TARGETS: int

def store_create(store: str, spec_json: str, shared: bool = False) -> str | None: ...
def store_configure(store: str, spec_json: str) -> str | None: ...
def store_compile(spec_json: str) -> bytes: ...
def store_info(store: str) -> str: ...
def store_files(store: str) -> str: ...
def store_layout(store: str, id: str) -> str: ...
def store_spread(layout_json: str, room: list[int], chance: int | None = None) -> str: ...
def store_apply(store: str, id: str, layout_json: str, progress: Callable[[int, int], None] | None) -> str: ...
def store_fsck(store: str, options_json: str) -> str: ...
def store_resolve(path: str) -> str | None: ...
def store_judge(store: str, listed: bytes) -> str: ...
def store_devices(store: str) -> str: ...
def store_programs(store: str) -> str: ...
def group_requests(
    offset: Buffer, size: Buffer, write: Buffer, region_bytes: int
) -> tuple[bytes, bytes, bytes, bytes, bytes]: ...
def cycle_costs(parameters: _CostParameters, cycle: list[tuple[bool, int]], keys: _Keys) -> bytes: ...
def cheapest_pairs(
    parameters: _CostParameters,
    servers: tuple[int, int],
    pairs: list[tuple[int, int]],
    keys: _Keys,
    weighing: _Weighing,
) -> tuple[bytes, bytes]: ...
def service_demand(
    cycle: list[tuple[int, _Figures]], keys: _Keys, network: tuple[float, float]
) -> tuple[list[tuple[float, int, float]], float]: ...
def assign(
    problem: _Problem, starts: list[Buffer], seconds: float, gap: float, seed: int
) -> tuple[bytes, list[float], float, bytes, bytes] | None: ...
def block_export(
    workload_json: str,
    space_blocks: int | None,
    format: str,
    path: str,
    progress: Callable[[int, int], object] | None,
) -> str: ...
def block_statistics(
    workload_json: str,
    space_blocks: int | None,
    track_blocks: int,
    near_blocks: int,
    progress: Callable[[int, int], object] | None,
) -> str: ...
def simulate(scenario_json: str, workload_json: str, progress: Callable[[int, int], object] | None) -> str: ...
def simulate_requests(scenario_json: str, tables: list[Buffer], most: int) -> str: ...
def workload_info(workload_json: str) -> str: ...
def workload_requests(workload_json: str, first: int, processes: int, per_process: int) -> bytes: ...
def swd_amplification(band_tracks: int, head_tracks: int, shares: list[float]) -> str: ...
def swd_map(
    settings_json: str,
    workload_json: str,
    used_share: float | None,
    filled_share: float | None,
    progress: Callable[[int, int], object] | None,
) -> str: ...
def swd_simulate(
    settings_json: str,
    workload_json: str,
    used_share: float | None,
    filled_share: float | None,
    progress: Callable[[int, int], object] | None,
) -> str: ...
def pattern_expand(tree_json: str) -> tuple[bytes, bytes, bytes]: ...
def trace_collect(dir: str, out: str, lenient: bool) -> str: ...

class Trials:
    """Runs at hand, simulated under one layout after another."""

    def __init__(self, scenario_json: str, runs: list[tuple[list[Buffer], int]]) -> None: ...
    def run(
        self,
        cycles: Sequence[Sequence[Sequence[int]]],
        regions: Buffer,
        moves: list[tuple[float, int, int, int, int, int]],
        which: list[int],
    ) -> list[tuple[float, list[float]]]: ...
    def in_flight_s(
        self,
        cycles: Sequence[Sequence[Sequence[int]]],
        regions: Buffer,
        moves: list[tuple[float, int, int, int, int, int]],
        which: int,
    ) -> float: ...

class MoveSession:
    """Moves of one store; holds its mover lock until it is ended."""

    def __init__(self, store: str, options_json: str, head_json: str, look: Callable[[int, int], bool]) -> None: ...
    def expect(self, total_bytes: int) -> None: ...
    def tell(self, said_json: str) -> None: ...
    def apply(self, path: str, id: str, layout_json: str, start: int, size: int) -> str: ...
    def wait(self, seconds: float) -> bool: ...
    def end(self, state: str) -> None: ...

class Probe:
    """Timed requests on targets of a store, which it holds exclusively, or on directories of none (None)."""

    def __init__(self, store: str | None) -> None: ...
    def begin(self, directory: str, target: int, scratch_bytes: int) -> None: ...
    def fill(self, limit_ns: int) -> str: ...
    def run(
        self, requests: list[tuple[int, int]], write: bool, in_flight: int, limit_ns: int
    ) -> list[tuple[int, int]]: ...
    def close(self) -> None: ...

class RecognisedTrace:
    """The patterns of all streams of a trace; columns of records in, of u64, u32, i64 and i64."""

    def __init__(self, key: Buffer, kind: Buffer, offset: Buffer, size: Buffer) -> None: ...
    def json(self) -> str: ...
    def rows(self, stream: int) -> bytes: ...
    def expand(self, stream: int) -> tuple[bytes, bytes, bytes]: ...

def view_phases(busy: Buffer, read: Buffer, written: Buffer, gap: int) -> list[tuple[int, int, str, int, int]]: ...
def view_names(files: list[str]) -> bytes: ...
def view_process(uuid: int, pid: int, name: str) -> bytes: ...
def view_lane(uuid: int, process_uuid: int, name: str) -> bytes: ...

class ViewTrace:
    def __init__(
        self,
        start_ns: Buffer,
        end_ns: Buffer,
        process: Buffer,
        file: Buffer,
        write: Buffer,
        offset: Buffer,
        size: Buffer,
        files: int,
    ) -> None: ...
    def timeline(self, end_ns: int, limit: int, rows: int, together: int) -> tuple[bytes, int, int]: ...
    def raster(
        self, file: int, range: tuple[int, int], limits: tuple[int, int]
    ) -> tuple[tuple[bytes, int, int], int, int]: ...
    def heat(self, file: int, extent: int, limit: int) -> tuple[bytes, int, int]: ...
    def distribution(self, file: int | None = None) -> str: ...
    def file_rows(self, file: int) -> bytes: ...
    def slices(self, begin: int, end: int, track: Buffer) -> bytes: ...
    def lanes(self, rows: Buffer) -> bytes: ...
