"""What changed between two runs: patterns that came, went, or have other numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from pathlib import Path

from .report import Described, FilePatterns, PatternReport
from .tree import numbers
from .words import formula_text, size_text


@dataclass(frozen=True)
class Change:
    """One line: + came, - went, ~ changed; of a file that was at `former`, if it was at another path."""

    path: str
    sign: str
    text: str
    former: str = ""


def changes(before: PatternReport, after: PatternReport) -> list[Change]:
    """All differences, file by file; empty where the runs do the same.

    Files are matched by path, those left over by their names, then by their order, since programs name their outputs
    anew.
    """
    found = []
    if before.processes != after.processes:
        found.append(Change("", "~", f"processes: {after.processes}, were {before.processes}"))
    for one, other in _pairs(before.files, after.files):
        if one is None and other is not None:
            found += [Change(other.path, "+", each.sentence) for each in other.patterns]
        elif other is None and one is not None:
            found += [Change(one.path, "-", each.sentence) for each in one.patterns]
        elif one is not None and other is not None:
            former = one.path if one.path != other.path else ""
            found += [replace(each, former=former) for each in _file_changes(one, other)]
    return found


def _pairs(
    before: Sequence[FilePatterns], after: Sequence[FilePatterns]
) -> list[tuple[FilePatterns | None, FilePatterns | None]]:
    pairs: list[tuple[FilePatterns | None, FilePatterns | None]] = []
    left, right = list(before), list(after)
    for key in (lambda file: file.path, lambda file: Path(file.path).name, lambda file: ""):
        for one in list(left):
            other = next((each for each in right if key(each) == key(one)), None)
            if other is not None:
                pairs.append((one, other))
                left.remove(one)
                right.remove(other)
    return [*pairs, *((one, None) for one in left), *((None, other) for other in right)]


def _key(each: Described) -> tuple[object, ...]:
    return each.operation, each.spatial, len(each.pattern.ranks) > 1


def _file_changes(before: FilePatterns, after: FilePatterns) -> list[Change]:
    old, new = before.patterns, after.patterns
    found = []
    matcher = SequenceMatcher(None, [_key(each) for each in old], [_key(each) for each in new], autojunk=False)
    for tag, low, high, new_low, new_high in matcher.get_opcodes():
        if tag == "equal":
            for one, other in zip(old[low:high], new[new_low:new_high], strict=True):
                said = differences(one, other)
                if said:
                    found.append(Change(after.path, "~", f"{'; '.join(said)}: {other.sentence}"))
            continue
        found += [Change(after.path, "-", each.sentence) for each in old[low:high]]
        found += [Change(after.path, "+", each.sentence) for each in new[new_low:new_high]]
    return found


def differences(before: Described, after: Described) -> list[str]:
    """What two patterns of one kind differ in, one phrase each; empty where all their requests are alike."""
    sizes, old_sizes = (
        " to ".join(sorted({size_text(size) for size in each.request_bytes})) for each in (after, before)
    )
    facts = [
        ("ranks", len(after.pattern.ranks), len(before.pattern.ranks)),
        ("requests", f"{after.records:,}", f"{before.records:,}"),
        ("request size", sizes, old_sizes),
        ("bytes", size_text(after.bytes), size_text(before.bytes)),
        ("repetitions", after.repetitions, before.repetitions),
    ]
    new_numbers, old_numbers = _numbers(after), _numbers(before)
    if new_numbers[:1] != old_numbers[:1]:
        facts.append(("start", _start(after), _start(before)))
    said = [f"{what} {new}, was {old}" for what, new, old in facts if new != old]
    if not said and new_numbers != old_numbers:
        said.append("other strides or counts")
    return said


def _numbers(each: Described) -> list[object]:
    """What its formulas give each of its ranks, the start first, whichever numbers these have: processes without ranks
    are numbered as they come, and compared by where they begin.
    """
    begins, first = each.pattern.begins, each.pattern.segments[0].loop
    if begins is not None and first is not None:
        return [begins, *(value for _, value in numbers(first)[1:])]
    formulas, ranks = each.pattern.formulas, each.pattern.ranks
    if formulas is None:
        return [each.span[0]]
    return [tuple(formula(rank) for rank in ranks) for formula in formulas]


def _start(each: Described) -> str:
    formulas, row = each.pattern.formulas, each.pattern.row
    if formulas is not None:
        return formula_text(formulas[0])
    return size_text(each.span[0]) if row is None else f"{size_text(row[0])}, each next {size_text(row[1])} after it"
