"""Access patterns: what a run did to its files as loops, in words, by rank and by the number of processes."""

from .database import store_report
from .difference import Change, changes
from .fio import fio_job, fio_replay
from .ior import ior_commands
from .prediction import Prediction, predicted
from .report import PatternReport, report_as_asked, report_of

__all__ = [
    "Change",
    "PatternReport",
    "Prediction",
    "changes",
    "fio_job",
    "fio_replay",
    "ior_commands",
    "predicted",
    "report_as_asked",
    "report_of",
    "store_report",
]
