"""The policy `best`: one objective over all levers, and how near to the optimum its plan is."""

from .best import Best

__all__ = ["Best"]
