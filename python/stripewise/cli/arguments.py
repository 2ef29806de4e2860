"""Options that belong together as one parameter: a verb takes dataclasses, the command line their fields.

typer reads a verb's options from its signature alone. `flattened` gives it one in which the fields of each dataclass
stand where the dataclass stood, so that a verb of twenty options has a handful of parameters.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, get_type_hints


def flattened(verb: Callable[..., None]) -> Callable[..., None]:
    """The verb with the fields of its dataclass parameters as parameters, in their order; all go by name.

    Fields are annotated as options are (`Annotated[..., typer.Option(...)]`); no two may have one name.
    """
    hints = get_type_hints(verb, include_extras=True)
    groups: dict[str, tuple[type, list[str]]] = {}
    parameters: list[inspect.Parameter] = []
    for parameter in inspect.signature(verb).parameters.values():
        kind = hints[parameter.name]
        if isinstance(kind, type) and is_dataclass(kind):
            options = _options(kind)
            groups[parameter.name] = (kind, [option.name for option in options])
            parameters += options
        else:
            parameters.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=kind))

    @functools.wraps(verb)
    def flat(**given: Any) -> None:
        made = {name: kind(**{key: given.pop(key) for key in keys}) for name, (kind, keys) in groups.items()}
        verb(**given, **made)

    flat.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    flat.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return flat


def _options(kind: type) -> list[inspect.Parameter]:
    hints = get_type_hints(kind, include_extras=True)
    return [
        inspect.Parameter(
            each.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if each.default is MISSING else each.default,
            annotation=hints[each.name],
        )
        for each in fields(kind)
    ]
