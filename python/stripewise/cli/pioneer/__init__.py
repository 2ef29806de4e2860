"""Verbs: describe a workload, make it again, play it, compare."""
