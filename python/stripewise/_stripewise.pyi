"""The native module: JSON in and out (docs/formats.md), columns as buffers and bytes; errors are one sentence each."""

from collections.abc import Callable

from typing_extensions import Buffer

_Four = tuple[float, float, float, float]
_Columns = tuple[Buffer, Buffer, Buffer, Buffer]

def store_create(store: str, spec_json: str, shared: bool = False) -> str | None: ...
def store_configure(store: str, spec_json: str) -> str | None: ...
def store_info(store: str) -> str: ...
def store_files(store: str) -> str: ...
def store_layout(store: str, id: str) -> str: ...
def store_apply(store: str, id: str, layout_json: str, progress: Callable[[int, int], None] | None) -> str: ...
def store_fsck(store: str, options_json: str) -> str: ...
def store_resolve(path: str) -> str | None: ...
def store_judge(store: str, listed: bytes) -> str: ...
def store_devices(store: str) -> str: ...
def store_programs(store: str) -> str: ...
def group_requests(
    offset: Buffer, size: Buffer, write: Buffer, region_bytes: int
) -> tuple[bytes, bytes, bytes, bytes, bytes]: ...
def cycle_costs(
    job: _Four, hdd: _Four, ssd: _Four, cycle: list[tuple[bool, int]], columns: _Columns, first: Buffer
) -> bytes: ...
def cheapest_pairs(
    job: _Four,
    hdd: _Four,
    ssd: _Four,
    servers: tuple[int, int],
    pairs: list[tuple[int, int]],
    columns: _Columns,
    first: Buffer,
    weight: list[float],
    beside: Buffer,
) -> tuple[bytes, bytes]: ...
def service_demand(
    cycle: list[tuple[int, _Four]], columns: _Columns, network: tuple[float, float]
) -> tuple[list[tuple[float, int, float]], float]: ...
def assign(
    sizes: tuple[int, int, int, int, int, int],
    features: Buffer,
    valid_bytes: Buffer,
    capacity: Buffer,
    shape: Buffer,
    entry_first: Buffer,
    entry_resource: Buffer,
    entry_q: Buffer,
    store_first: Buffer,
    store_server: Buffer,
    store_share: Buffer,
    leave_first: Buffer,
    leave_resource: Buffer,
    leave_s_per_byte: Buffer,
    enter_first: Buffer,
    enter_resource: Buffer,
    enter_s_per_byte: Buffer,
    penalty_s: Buffer,
    starts: list[Buffer],
    seconds: float,
    gap: float,
    seed: int,
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
def trace_collect(dir: str, out: str, lenient: bool) -> str: ...

class Mover:
    """Moves files of one store; holds its mover lock until it is closed."""

    def __init__(self, store: str, options_json: str, watch: Callable[[str], str]) -> None: ...
    def apply(self, id: str, layout_json: str) -> str: ...
    def idle(self, seconds: float) -> bool: ...
    def close(self) -> None: ...

class Probe:
    """Timed requests on targets of a store, which it holds exclusively, or on directories of none (None)."""

    def __init__(self, store: str | None) -> None: ...
    def begin(self, directory: str, target: int, scratch_bytes: int) -> None: ...
    def fill(self, limit_ns: int) -> str: ...
    def run(
        self, requests: list[tuple[int, int]], write: bool, in_flight: int, limit_ns: int
    ) -> list[tuple[int, int]]: ...
    def close(self) -> None: ...
