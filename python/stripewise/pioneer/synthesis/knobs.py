"""Knobs: changes of a profile before a path is made from it. Each changes what it names and nothing else.

`--scale requests=4` makes sessions longer (D less its close, four times), `files` multiplies the files of the shared
and private classes and their operations outside sessions (OS, RT2), `sessions` the sessions of a file (OT), `slack` all
slack (ST, ST2, and limits in `together`). `--fs 10x` makes files larger: FS, OFF and SHIFT. `--set KEY=VALUE` sets
one characteristic, or multiplies it: KEY is a name of table 2.4, then perhaps a class, a kind of session and an
operation, with dots between. A name without a mark means it whoever makes it (marks.py), one with a mark that alone.
Where a factor is of all slack of an operation, its limit in `together` goes with it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from ...errors import UsageError
from ...units import parse_size
from ..characterization.distribution import Law
from ..characterization.profile import CLASSES, KINDS
from ..marks import is_named
from ..operations import operations

#: Factors and values are below this.
FACTOR_MAX = 1e12
SCALES = ("requests", "files", "sessions", "slack")
#: Characteristics by where they stand: of a class, of a kind of session; those with operations below them.
OF_CLASS = ("OS", "OT", "ISG", "FS", "RT2", "ST2")
OF_KIND = ("D", "IRG", "SEQ", "OFF", "SIZE", "SHIFT", "ST")
BY_OPERATION = ("RT2", "ST2", "SIZE", "ST")
#: Those in bytes, whose values may be sizes as 1MiB.
IN_BYTES = ("FS", "OFF", "SIZE", "SHIFT")
Json = dict[str, Any]


def turned(profile: Mapping[str, Any], scale: Iterable[str], sets: Iterable[str], fs: str | None) -> Json:
    """The profile (as JSON with all keys) with all knobs turned, in the order scale, fs, set.

    Raises UsageError naming the option, the key and what there is.
    """
    made: Json = _copied(profile)
    for text in scale:
        _scale(made, text)
    if fs is not None:
        factor = _factor(fs.lower().removesuffix("x"), "--fs", fs)
        for key in ("FS", "OFF", "SHIFT"):
            _apply(made, key, (), lambda value: _times(value, factor))
    for text in sets:
        _set(made, text)
    return made


def waits_lost(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """Operations before which all ranks wait for each other in the profile `before`, and somewhere in `after` no more:
    all slack of theirs there is below the limit in `together`.
    """
    found = []
    for op, from_s in after["together"].items():
        limit = before["together"].get(op, math.inf)
        waited = {place for place, given in _slacks(before, op) if _largest(given) >= limit}
        if any(place in waited and _largest(given) < from_s for place, given in _slacks(after, op)):
            found.append(op)
    return found


def _slacks(profile: Mapping[str, Any], op: str) -> Iterator[tuple[tuple[str, ...], Json]]:
    """Where there is slack of all ranks before an operation, and that."""
    for key in ("ST", "ST2"):
        for where, holder in _holders(profile, key, None, None):
            for name, given in holder.get(key, {}).items():
                # What stands under open and close is of either interface; a kind with a mark is of some ranks.
                if name in (op, op.removeprefix("mpi_")) and where != "root" and "@" not in where:
                    yield (key, where, name), given


def _largest(value: Json) -> float:
    if "short" in value:
        return max(_largest(value["short"]), _largest(value["long"]))
    given = value.get("values") or value.get("quantiles") or value.get("uniform") or [value.get("constant", math.inf)]
    return float(max(given))


def _copied(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _copied(each) for key, each in value.items()}
    return [_copied(each) for each in value] if isinstance(value, list | tuple) else value


def _scale(profile: Json, text: str) -> None:
    name, _, amount = text.partition("=")
    if name not in SCALES:
        raise UsageError(f"--scale: '{text}' scales nothing that there is; give {', '.join(SCALES)}, e.g. requests=4")
    factor = _factor(amount, "--scale", text)
    if name == "requests":
        # The close is one of them, and stays one.
        _apply(profile, "D", (), lambda value: _mapped(value, lambda each: (each - 1) * factor + 1))
    elif name == "sessions":
        _apply(profile, "OT", (), lambda value: _times(value, factor))
    elif name == "slack":
        for key in ("ST", "ST2"):
            _apply(profile, key, (), lambda value: _slack(value, factor))
        profile["together"] = {op: from_s * factor for op, from_s in profile.get("together", {}).items()}
    else:
        for key in ("OS", "RT2"):
            for file_class in ("shared", "private"):
                if file_class in profile["classes"]:
                    _apply(profile, key, (file_class,), lambda value: _count(value, factor))


def _set(profile: Json, text: str) -> None:
    path, equals, amount = text.partition("=")
    named, *where = path.split(".")
    key = named.partition("@")[0]
    if not equals or key not in (*OF_CLASS, *OF_KIND):
        known = ", ".join((*OF_CLASS, *OF_KIND))
        raise UsageError(f"--set: '{text}' names no characteristic; give one of {known}, e.g. SIZE.shared=*2")
    slacks = {op: [given for _, given in _slacks(profile, op)] for op in profile.get("together", {})}
    changed = _apply(profile, named, tuple(where), _change(key, amount, text), text)
    if amount.startswith("*"):
        # Limits go with slack as a whole; beside slack that stays they stay.
        for op, before in slacks.items():
            if before and all(now is not given for (_, now), given in zip(_slacks(profile, op), before, strict=False)):
                profile["together"][op] *= _factor(amount[1:], "--set", text)
    if not changed:
        raise UsageError(f"--set: '{text}' changes nothing, for the profile has no such {key}; {_there(profile, key)}")


def _change(key: str, amount: str, text: str) -> Callable[[Any], Any]:
    if amount.startswith("*"):
        factor = _factor(amount[1:], "--set", text)
        if key in ("OS", "RT2"):
            return lambda value: _count(value, factor)
        return lambda value: _slack(value, factor)
    try:
        number = parse_size(amount, "--set") if key in IN_BYTES and not amount.startswith("-") else float(amount)
    except (UsageError, ValueError):
        number = math.nan
    if not math.isfinite(number) or abs(number) > 2.0**62 or (number < 0 and key != "SHIFT"):
        raise UsageError(f"--set: '{text}' gives no value; give a number, or a factor as *2")
    if key == "SEQ" and number > 1:
        raise UsageError(f"--set: '{text}' is no share; give 0 to 1")
    if key in ("D", "IRG", "ISG") and number < 1:
        raise UsageError(f"--set: '{text}' is below 1; give 1 or more")
    whole = int(number) if float(number).is_integer() else number
    if key in ("OS", "RT2"):
        return lambda value: int(number)
    return lambda value: {"constant": whole}


def _factor(amount: str, flag: str, text: str) -> float:
    try:
        factor = float(amount)
    except ValueError:
        factor = math.nan
    if not 0 < factor <= FACTOR_MAX:
        raise UsageError(f"{flag}: '{text}' has no factor above 0; give e.g. 4 or 0.5")
    return factor


def _apply(profile: Json, named: str, where: tuple[str, ...], change: Callable[[Any], Any], text: str = "") -> int:
    """Changes the characteristic wherever it stands below `where`; how many there were."""
    key = named.partition("@")[0]
    wanted = list(where)
    file_class = wanted.pop(0) if wanted and wanted[0] in CLASSES else None
    kind = wanted.pop(0) if wanted and wanted[0].partition("@")[0] in KINDS and key in OF_KIND else None
    op = wanted.pop(0) if wanted and key in BY_OPERATION and wanted[0].partition("@")[0] in operations() else None
    if wanted:
        raise UsageError(
            f"--set: '{text}' has '{wanted[0]}', which is no class, kind of session or operation of {key}; "
            f"{_there(profile, key)}"
        )
    changed = 0
    for name, holder in _holders(profile, key, file_class, kind):
        for each in [each for each in holder if is_named(named, each)]:
            if key in BY_OPERATION:
                for one in [one for one in holder[each] if is_named(op, one)]:
                    holder[each][one] = change(holder[each][one])
                    changed += 1
            else:
                holder[each] = _within(key, change(holder[each]), text or name)
                changed += 1
    return changed


def _holders(
    profile: Mapping[str, Any], key: str, file_class: str | None, kind: str | None
) -> Iterator[tuple[str, Json]]:
    for name, of in profile["classes"].items():
        # Nothing is told of a class without files.
        if file_class not in (None, name) or (not of["OS"] and file_class is None):
            continue
        if key in OF_CLASS:
            yield name, of
            continue
        for each, session in of["sessions"].items():
            if is_named(kind, each):
                yield f"{name}.{each}", session


def _there(profile: Json, key: str) -> str:
    found = []
    for name, holder in _holders(profile, key, None, None):
        for each in [each for each in holder if is_named(key, each)]:
            inner = [f".{op}" for op in holder[each]] if key in BY_OPERATION else [""]
            found += [f"{each}.{name}{op}" for op in inner]
    return (
        f"there is {', '.join(found[:12])}{', ...' if len(found) > 12 else ''}" if found else f"it has no {key} at all"
    )


def _within(key: str, value: Any, text: str) -> Any:
    """Shares stay shares, and gaps and lengths at least 1."""
    if key == "SEQ":
        return _mapped(value, lambda each: min(1.0, each))
    if key in ("D", "IRG", "ISG"):
        return _mapped(value, lambda each: max(1, each))
    return value


def _count(value: Any, factor: float) -> Any:
    return max(1, round(value * factor)) if value else value


def _times(value: Json, factor: float) -> Json:
    return _mapped(value, lambda each: each * factor)


def _slack(value: Json, factor: float) -> Json:
    if "short" in value:
        return {**value, "short": _times(value["short"], factor), "long": _times(value["long"], factor)}
    return _times(value, factor)


def _mapped(value: Json, change: Callable[[float], float]) -> Json:
    """A distribution with its values changed; `change` is linear and grows with its value."""

    def one(each: float) -> float:
        found = change(each)
        # Whole values of a trace stay whole.
        return round(found) if isinstance(each, int) and float(each).is_integer() else found

    if "values" in value:
        together: dict[float, float] = {}
        for each, weight in zip(value["values"], value["weights"], strict=True):
            together[one(each)] = together.get(one(each), 0) + weight
        return {"values": list(together), "weights": list(together.values())}
    if "quantiles" in value:
        return {"quantiles": [one(each) for each in value["quantiles"]]}
    ((law, given),) = value.items()
    assert law in Law.PARAMETERS
    if law == "constant":
        return {law: one(given)}
    if law == "uniform":
        return {law: [one(each) for each in given]}
    slope = change(1.0) - change(0.0)
    if law == "exponential":
        return {law: {"mean": change(given["mean"])}}
    if law == "pareto":
        return {law: {"scale": change(given["scale"]), "shape": given["shape"]}}
    return {law: {"mean": change(given["mean"]), "deviation": abs(slope) * given["deviation"]}}
