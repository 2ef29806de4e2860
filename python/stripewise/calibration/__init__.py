"""Calibration: figures of targets and network measured on this machine, with how far they can be trusted.

`record` is what stands in cluster.toml (imported by cluster.py, so it needs nothing heavy); `measure` asks for
requests, `fit` makes lines of their times, `network` and `ping` time messages, `calibrate` puts all of it together.
docs/calibration.md says which figure is what.
"""
