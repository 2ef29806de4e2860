"""RADAR, figure 12: gains of replicas by the model and on disks, one client on a node. Simulated.

--requests is the time steps that are read (of columns one).
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from common import arguments, finish, home_of
from radar import CLIENTS_ALONE, DECOMPOSITIONS, SEEDS, STEPS_READ, run_figure


def main() -> None:
    given = arguments(__doc__ or "", home_of(__file__), SEEDS, STEPS_READ)
    cases = [(kind, clients) for kind in DECOMPOSITIONS for clients in CLIENTS_ALONE]
    run_figure(given, "RADAR's replicas, 1 client per node, simulated", cases, per_node=1, is_collective=False)


if __name__ == "__main__":
    finish(main)
