"""The managers by name, and what the command line asks of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from .accesses import Found
from .candidate import Decision, Refused, Room
from .pdla import h_pdla, ns_pdla, s_orig, s_pdla
from .radar import RadarOptions, radar
from .setting import Setting

#: In the order of the papers; the comparisons of PDLA after its own.
MANAGERS = ("h-pdla", "s-pdla", "s-orig", "ns-pdla", "radar")
#: Those whose bound is of each SServer, as in PDLA, and not of all replicas together.
PER_SSERVER = ("s-pdla", "s-orig", "ns-pdla")


@dataclass(frozen=True)
class Options:
    """Space: in all (h-pdla, radar), or on each SServer; None without a bound. Threshold: s-pdla's, in seconds.

    `held_bytes` is what files take of a target's capacity, by name, `on_write` what writes do to new copies.
    """

    space_bytes: int | None = None
    threshold_s: float = 0.0
    radar: RadarOptions = field(default_factory=RadarOptions)
    held_bytes: Mapping[str, int] = field(default_factory=dict)
    on_write: str = "update"


def decide(manager: str, found: Found, setting: Setting, options: Options) -> Decision:
    """What a manager of MANAGERS makes of the patterns of a run. Raises ClusterError where it lacks servers."""
    room = room_for(manager, setting, options)
    patterns = found.patterns
    if manager == "h-pdla":
        made = h_pdla(patterns, setting, room)
    elif manager == "s-pdla":
        made = s_pdla(patterns, setting, room, options.threshold_s)
    elif manager == "s-orig":
        made = s_orig(patterns, setting, room, found.extents)
    elif manager == "ns-pdla":
        made = ns_pdla(patterns, setting, room)
    else:
        made = radar(patterns, setting, room, found.extents, options.radar, options.on_write)
    without: Sequence[Refused] = () if manager == "s-orig" else [Refused(*each) for each in found.without]
    chosen = made.chosen
    if manager != "radar":
        chosen = tuple(each if each.is_home else replace(each, on_write=options.on_write) for each in chosen)
    return Decision(made.manager, chosen, (*made.refused, *without), made.sets)


def room_for(manager: str, setting: Setting, options: Options) -> Room:
    """The bound of a manager, and what targets can hold by their capacity beside the files."""
    space_bytes, held = options.space_bytes, options.held_bytes
    by_target = {
        each.name: max(0, each.usable_bytes - held.get(each.name, 0))
        for each in setting.cluster.active
        if each.usable_bytes
    }
    if manager not in PER_SSERVER or space_bytes is None:
        return Room(space_bytes, by_target)
    for each in setting.cluster.sservers:
        by_target[each.name] = min(space_bytes, by_target.get(each.name, space_bytes))
    return Room(None, by_target)
