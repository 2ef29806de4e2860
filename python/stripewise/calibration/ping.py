"""Messages to and fro between two MPI processes: `mpiexec -n 2 python -m stripewise.calibration.ping`.

Rank 0 sends to the first rank on another machine, or to rank 1 when all are on one. It prints one line of JSON with the
samples (bytes and seconds of one way: half of to and fro) and the hosts.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

from ..units import KIB, MIB

#: What the line on standard output begins with: MPI launchers print what they like beside it.
MARK = "stripewise-ping "
SIZES = (1, KIB, 4 * KIB, 16 * KIB, 64 * KIB, 256 * KIB, MIB, 4 * MIB)
#: Of each size, in turns, so that a drift meets all.
ROUNDS = 10
REPEATS = 20
#: Messages of each size that are not counted: connections are made by the first.
WARM_UP = 3


def _partner(hosts: list[str]) -> int:
    others = [rank for rank, host in enumerate(hosts) if host != hosts[0]]
    return others[0] if others else 1


def _exchange(world: Any, rank: int, partner: int, size: int, repeats: int) -> list[float]:
    buffer = bytearray(size)
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        if rank == 0:
            world.Send(buffer, partner)
            world.Recv(buffer, partner)
        else:
            world.Recv(buffer, 0)
            world.Send(buffer, 0)
        times.append((time.perf_counter() - begin) / 2)
    return times


def main() -> int:
    """Runs the ping; the exit code."""
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:
        print(f"stripewise-ping: mpi4py cannot be loaded ({error}); install it", file=sys.stderr)
        return 3
    world = MPI.COMM_WORLD
    rank = world.Get_rank()
    hosts = world.allgather(MPI.Get_processor_name())
    if len(hosts) < 2:
        print("stripewise-ping: only one process; give mpiexec -n 2", file=sys.stderr)
        return 4
    partner = _partner(hosts)
    samples: list[tuple[int, float]] = []
    if rank in (0, partner):
        for size in SIZES:
            _exchange(world, rank, partner, size, WARM_UP)
        for _ in range(ROUNDS):
            for size in SIZES:
                samples += [(size, value) for value in _exchange(world, rank, partner, size, REPEATS)]
    world.Barrier()
    if rank == 0:
        print(MARK + json.dumps({"hosts": hosts, "partner": partner, "samples": samples}), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
