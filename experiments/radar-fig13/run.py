"""RADAR, figure 13: gains of replicas by the model and on disks, collective I/O, one aggregator on a node. Simulated.

--requests is the time steps that are read.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from common import arguments, finish, home_of
from radar import CLIENTS, SEEDS, STEPS_READ, run_figure


def main() -> None:
    given = arguments(__doc__ or "", home_of(__file__), SEEDS, STEPS_READ)
    cases = [("row and column", clients) for clients in CLIENTS]
    run_figure(
        given, "RADAR's replicas, collective, 1 aggregator per node, simulated", cases, per_node=1, is_collective=True
    )


if __name__ == "__main__":
    finish(main)
