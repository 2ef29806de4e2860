"""Causes, one to a file: what must be seen in a run to name it."""
