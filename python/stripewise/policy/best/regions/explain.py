"""Why a region lies where it lies: its requests, what they cost there, and what the rejected kinds of homes would cost.

Prices are those of the solver's dual: what a second of a server's time, and a byte of its space, is worth to the whole
run. So all homes of a region compare in one unit, seconds of the run, however full or busy their servers are.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ....layout import Stripes
from ....model.general import Float
from ....units import format_size
from ...toolkit.weights import with_weights
from .demand import BYTES, REQUESTS
from .heads import is_headed
from .layout import named
from .problem import Posed

#: Regions are priced in groups of so many.
GROUP = 512


def kinds(posed: Posed) -> list[str]:
    """What every choice is called when it is rejected: how many servers of which class."""
    names = []
    for team in posed.teams:
        if team.head:
            names.append(_headed(team.head.width))
            continue
        classes = {"ssd" if target.is_ssd else target.klass for target in team.members}
        klass = classes.pop() if len(classes) == 1 else "mixed"
        names.append(f"one {klass}" if team.is_one else f"{len(team.members)} {klass}")
    return names


def _headed(width: int) -> str:
    return f"heads of {format_size(width)} on one ssd"


def reasons(posed: Posed, first: Sequence[Stripes], resource: Float, space: Float) -> list[str]:
    """The reason of every piece's first home; prices of shape (windows, resources) and (windows, servers)."""
    ground, problem = posed.ground, posed.problem
    names = kinds(posed)
    groups = sorted(set(names))
    row = np.zeros((len(ground.windows), len(names), problem.features.shape[3]))
    hold = np.zeros((len(ground.windows), len(names)))
    for number, choice in enumerate(problem.choices):
        for of, q in choice.entries:
            row[:, number] += resource[:, of, None] * np.asarray(q)
        for server, share in choice.shares:
            hold[:, number] += space[:, server] * share
    shape = np.array([choice.shape for choice in problem.choices])
    # Servers that are alike and have the same prices make choices that cost the same: one column for all of them.
    alike = np.column_stack([shape, hold.T, row.transpose(1, 0, 2).reshape(len(names), -1)])
    _, one, column = np.unique(alike, axis=0, return_index=True, return_inverse=True)
    row, hold, shape, column = row[:, one], hold[:, one], shape[one], column.ravel()
    number_of = {group: number for number, group in enumerate(groups)}
    group_of = np.array([number_of[name] for name in names])
    member = [np.unique(column[group_of == number]) for number in range(len(groups))]
    by_name = {team.members[0].name: int(column[number]) for number, team in enumerate(posed.teams) if team.is_one}
    classes = {target.name: "ssd" if target.is_ssd else target.klass for target in ground.cluster.active}
    texts: list[str] = []
    for low in range(0, ground.cuts.pieces, GROUP):
        part = slice(low, min(low + GROUP, ground.cuts.pieces))
        cost = np.zeros((part.stop - part.start, len(one)))
        for window in range(len(ground.windows)):
            for each in np.unique(shape).tolist():
                of_shape = np.flatnonzero(shape == each)
                cost[:, of_shape] += problem.features[window, part, each] @ row[window, of_shape].T
            cost += problem.valid_bytes[part, None] * hold[window]
        least = np.stack([cost[:, of].min(axis=1) for of in member], axis=1)
        for position, piece in enumerate(range(part.start, part.stop)):
            asked = problem.features[:, piece, 0].sum(axis=0)
            texts.append(_reason(posed, asked, first[piece], groups, least[position], cost[position], by_name, classes))
    return texts


def _reason(
    posed: Posed,
    asked: Float,
    stripes: Stripes,
    groups: list[str],
    least: Float,
    cost: Float,
    by_name: dict[str, int],
    classes: dict[str, str],
) -> str:
    where = named(stripes, posed.ground.cluster, posed.ground.periods)
    if not asked[REQUESTS] + asked[REQUESTS + 1]:
        return f"{where}: not touched in the trace"
    said = []
    for operation, word in enumerate(("reads", "writes")):
        if asked[REQUESTS + operation]:
            mean = asked[BYTES + operation] / asked[REQUESTS + operation]
            said.append(f"{asked[REQUESTS + operation]:.0f} {word} of {format_size(round(mean))}")
    mine = _group_of(posed, stripes, classes)
    here = (
        float(cost[by_name[stripes[0][0]]])
        if len(stripes) == 1
        else float(least[groups.index(mine)] if mine in groups else least.min())
    )
    others = [(float(seconds), group) for group, seconds in zip(groups, least, strict=True) if group != mine]
    return with_weights(f"{' and '.join(said)}: {where}", here, others)


def _group_of(posed: Posed, stripes: Stripes, classes: dict[str, str]) -> str:
    if is_headed(stripes, posed.ground.cluster, posed.ground.periods):
        return _headed(stripes[0][1])
    found = {classes[name] for name, _ in stripes}
    klass = found.pop() if len(found) == 1 else "mixed"
    return f"one {klass}" if len(stripes) == 1 else f"{len(stripes)} {klass}"
