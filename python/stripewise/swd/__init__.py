"""Shingled write disks: what feeds a simulated one, what it is, and what a run of it says."""
