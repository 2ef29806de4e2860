"""Why a region lies where it lies: its requests, how long they keep that place busy, and the rejected kinds of homes.

Why one that would be busy for less was rejected is told by the solver's dual: what a second of a server's time, and a
byte of its space, is worth to the whole run.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ....layout import Stripes
from ....model.general import Float
from ....units import format_size
from ...toolkit.elsewhere import Place, with_seconds
from .demand import BYTES, FEATURES, REQUESTS
from .heads import is_headed
from .layout import named
from .problem import Posed

#: Regions are priced in groups of so many.
GROUP = 512
#: Of servers of several classes.
MIXED = "of several classes"


def kinds(posed: Posed) -> list[str]:
    """What every choice is called when it is rejected: how many servers of which class."""
    names = []
    for team in posed.teams:
        if team.head:
            names.append(_headed(team.head.width))
            continue
        classes = {"ssd" if target.is_ssd else target.klass for target in team.members}
        klass = classes.pop() if len(classes) == 1 else MIXED
        names.append(f"one {klass}" if team.is_one else f"{len(team.members)} {klass}")
    return names


def _headed(width: int) -> str:
    return f"heads of {format_size(width)} on one ssd"


def reasons(posed: Posed, first: Sequence[Stripes], resource: Float, space: Float) -> list[str]:
    """The reason of every piece's first home; prices of shape (windows, resources) and (windows, servers)."""
    ground = posed.ground
    homes = _Homes(posed, resource, space)
    classes = {target.name: "ssd" if target.is_ssd else target.klass for target in ground.cluster.active}
    texts: list[str] = []
    for low in range(0, ground.cuts.pieces, GROUP):
        part = slice(low, min(low + GROUP, ground.cuts.pieces))
        busy, time, room = homes.asked_by(part)
        for position, piece in enumerate(range(part.start, part.stop)):
            stripes = first[piece]
            where = named(stripes, ground.cluster, ground.periods)
            said = _asked_text(posed.problem.features[:, piece, 0].sum(axis=0))
            if not said:
                texts.append(f"{where}: not touched in the trace")
                continue
            mine = _group_of(posed, stripes, classes)
            own = homes.by_name[stripes[0][0]] if len(stripes) == 1 else None
            places = {
                group: Place(group, *(float(each[position, home]) for each in (busy, time, room)))
                for group, of in homes.groups.items()
                for home in [own if group == mine and own is not None else of[np.argmin(busy[position, of])]]
            }
            here = places.pop(mine, None)
            text = f"{said}: {where}"
            texts.append(text if here is None else with_seconds(text, here, list(places.values()), len(stripes) > 1))
    return texts


class _Homes:
    """Choices as homes, one of each kind: servers that are alike and have the same prices make homes that are alike.

    `groups` are homes by what they are called, `by_name` those on one server alone.
    """

    def __init__(self, posed: Posed, resource: Float, space: Float) -> None:
        self.problem = posed.problem
        choices, names = posed.problem.choices, kinds(posed)
        paid = np.zeros((len(resource), len(choices), FEATURES))
        hold = np.zeros(len(choices))
        # Seconds by the sums, of members that differ.
        members: list[Float] = []
        for number, choice in enumerate(choices):
            for of, q in choice.entries:
                paid[:, number] += resource[:, of, None] * np.asarray(q)
            rows = [np.asarray(q) / posed.lean[of] for of, q in choice.entries if of < len(posed.lean)]
            members.append(np.unique(rows, axis=0))
            hold[number] = sum(float(space[:, server].sum()) * share for server, share in choice.shares)
        most = max(map(len, members))
        member = np.array([np.concatenate([rows, np.repeat(rows[-1:], most - len(rows), axis=0)]) for rows in members])
        shape = np.array([choice.shape for choice in choices])
        alike = np.column_stack([
            shape, hold, paid.transpose(1, 0, 2).reshape(len(choices), -1), member.reshape(len(choices), -1)
        ])  # fmt: skip
        _, one, home = np.unique(alike, axis=0, return_index=True, return_inverse=True)
        home = home.ravel()
        self.paid, self.hold, self.member, self.shape = paid[:, one], hold[one], member[one], shape[one]
        self.groups = {
            group: np.unique([home[number] for number, name in enumerate(names) if name == group])
            for group in sorted(set(names))
        }
        self.by_name = {
            team.members[0].name: int(home[number]) for number, team in enumerate(posed.teams) if team.is_one
        }

    def asked_by(self, part: slice) -> tuple[Float, Float, Float]:
        """Of some pieces at every home, shape (pieces, homes): the busiest member's seconds in all windows together,
        what the servers' time is worth, and what their room is.
        """
        time, busy = (np.zeros((part.stop - part.start, len(self.shape))) for _ in range(2))
        for window, paid in enumerate(self.paid):
            for each in np.unique(self.shape).tolist():
                of = np.flatnonzero(self.shape == each)
                asked = self.problem.features[window, part, each]
                time[:, of] += asked @ paid[of].T
                busy[:, of] += np.einsum("pf,hmf->phm", asked, self.member[of]).max(axis=2)
        return busy, time, self.problem.valid_bytes[part, None] * self.hold


def _asked_text(asked: Float) -> str:
    """Reads and writes in words; empty where there are none."""
    said = []
    for operation, word in enumerate(("reads", "writes")):
        if asked[REQUESTS + operation]:
            mean = asked[BYTES + operation] / asked[REQUESTS + operation]
            said.append(f"{asked[REQUESTS + operation]:.0f} {word} of {format_size(round(mean))}")
    return " and ".join(said)


def _group_of(posed: Posed, stripes: Stripes, classes: dict[str, str]) -> str:
    if is_headed(stripes, posed.ground.cluster, posed.ground.periods):
        return _headed(stripes[0][1])
    found = {classes[name] for name, _ in stripes}
    klass = found.pop() if len(found) == 1 else MIXED
    return f"one {klass}" if len(stripes) == 1 else f"{len(stripes)} {klass}"
