"""How fast a synthetic path of millions of requests is made from a profile."""

from __future__ import annotations

import json
import statistics
import time
from pathlib import Path

from bench_common import STRIPEWISE, Effort, run

#: Requests per second that synthesis is to reach.
GOAL_PER_S = 1_000_000
TURNS_MAX = 3
FILES = 100
LONG = 20_001
SHORT = 2_001
#: Private files written and read again, in turn with a shared one: every characteristic is drawn.
SIZES = {"values": [4096, 8192, 65536], "weights": [5, 3, 2]}
SLACK = {"short": {"exponential": {"mean": 1e-6}}, "long": 0.001, "every": 100}


def synthesizing(scratch: Path, effort: Effort) -> list[dict[str, object]]:
    """The entry `pioneer.synth_requests_per_s`; the start of the program counts."""
    profile, out = scratch / "synth.json", scratch / "synth.swp"
    profile.write_text(json.dumps(_profile(LONG if effort.turns > 1 else SHORT)))
    rates = []
    for turn in range(min(effort.turns, TURNS_MAX)):
        began = time.perf_counter()
        made = json.loads(run(STRIPEWISE, "synth", profile, "-o", out, "--seed", str(turn), "--json"))
        rates.append(made["requests"] / (time.perf_counter() - began))
    out.unlink()
    value = statistics.median(rates)
    return [
        {
            "name": "pioneer.synth_requests_per_s", "value": round(value), "unit": "requests/s",
            "baseline": f"goal {GOAL_PER_S:,} requests/s; {made['requests']:,} requests, written to a file",
            "ratio": round(value / GOAL_PER_S, 3),
        }
    ]  # fmt: skip


def _profile(duration: int) -> dict[str, object]:
    private = {
        "posix-write": {"D": duration, "IRG": {"values": [1, 7], "weights": [9, 1]}, "SIZE": {"write0": SIZES},
                        "ST": {"write0": SLACK}},
        "posix-read": {"D": duration, "SEQ": 0.5, "OFF": {"uniform": [0, 1 << 30]}, "SIZE": {"pread": SIZES},
                       "RT1": {"": {"pread": 1}, "pread": {"pread": 1}}, "ST": {"pread": SLACK}},
    }  # fmt: skip
    following = {"posix-write": {"posix-read": 1}, "posix-read": {"posix-write": 1}}
    access = {"first": {"posix-write": 1}, "next": following}
    outside = {"stat": FILES * duration // 10, "access": FILES * duration // 10}
    classes = {"private": {"OS": FILES, "OT": 2, "RT2": outside, "AM": access, "sessions": private}}
    return {"version": 1, "processes": 4, "classes": classes}
