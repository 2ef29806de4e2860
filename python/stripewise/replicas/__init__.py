"""Which replicas to make: decisions of PDLA and RADAR about the patterns of a run, priced and with reasons.

A replica is the data of strided blocks in their order, on a layout of its own. Deciding touches no store; `building`
makes what was chosen.
"""

from .accesses import Accesses, Found, accesses_of, by_hand
from .candidate import Candidate, Decision, Refused, ReplicaSet, Room
from .decay import DECAYS, decay_named
from .managers import MANAGERS, Options, decide
from .radar import RadarOptions
from .setting import Setting

__all__ = [
    "DECAYS", "MANAGERS", "Accesses", "Candidate", "Decision", "Found", "Options", "RadarOptions", "Refused",
    "ReplicaSet", "Room", "Setting", "accesses_of", "by_hand", "decay_named", "decide",
]  # fmt: skip
