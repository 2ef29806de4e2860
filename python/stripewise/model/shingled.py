"""Shingled disks in closed form: what bands gain in space and cost in updates (thesis, chapters 4 and 5).

Tracks overlap like roof tiles: a write head W tracks wide forces a gap of W - 1 tracks after every band, and updating a
track means rewriting those written after it. N, W, F and E are numbers of tracks and of free space elements.
"""

from __future__ import annotations

import numpy as np

from .general import Int


def space_gain(N: int, W: int) -> float:
    """SG = W*N/(N+W-1) for bands of N tracks and a write head W tracks wide (eq. 4.1); 1 where nothing overlaps.

    Raises ValueError for N or W below 1.
    """
    if N < 1 or W < 1:
        raise ValueError(f"bands of {N} tracks, a head {W} tracks wide: both must be at least 1")
    return W * N / (N + W - 1)


def update_operations(N: int) -> Int:
    """Operations to update each track of a full band of N, the last written first: 1 + 2i for i tracks after it.

    Those i tracks are read before and written again behind it (thesis, section 4.4.1, order 1234).
    """
    if N < 1:
        raise ValueError(f"bands of {N} tracks: must be at least 1")
    return np.asarray(1 + 2 * np.arange(N), dtype=np.int64)


def update_amplification(N: int) -> float:
    """WAR, the mean operations per update of a full band of N tracks: N (eq. 4.2)."""
    return float(update_operations(N).mean())


def fragmentation_ratio(free_tracks: int, free_elements: int) -> float:
    """R = (F - E)/F of a band with F free tracks in E runs (eq. 5.1): 0 when no two free tracks are neighbours.

    Raises ValueError unless 1 <= E <= F.
    """
    if not 1 <= free_elements <= free_tracks:
        raise ValueError(f"{free_elements} free elements in {free_tracks} free tracks: needs 1 <= elements <= tracks")
    return (free_tracks - free_elements) / free_tracks


def victim_threshold(used_tracks: int, free_tracks: int) -> int:
    """W_v = ceil(used/free): elements below it are moved first (eq. 5.2, in whole tracks).

    In doubles U/(1-U) is above 4 at U = 0.8, where the seed says 4. Raises ValueError for a disk without a free track,
    or negative numbers.
    """
    if free_tracks < 1 or used_tracks < 0:
        raise ValueError(f"{used_tracks} used and {free_tracks} free tracks: needs one free track at least")
    return -(-used_tracks // free_tracks)
