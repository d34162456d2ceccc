"""Groups of flags: flags that belong together are one value.

A group is a frozen dataclass whose fields are flags, or groups again. A command has the group as a parameter; typer, and with it the
configuration, sees the flags in its place. A flag that may be repeated has the type `tuple[X, ...]`.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import MISSING, dataclass, fields
from functools import wraps
from typing import Annotated, Any, Final, Self, get_args, get_origin, get_type_hints


@dataclass(frozen=True, slots=True)
class FlagGroup:
    """The base of the groups."""

    @classmethod
    def flags(cls) -> Iterator[inspect.Parameter]:
        """The flags as typer reads them, in the order of the fields. Their names are those of the fields."""
        return _expand(_fields(cls))

    @classmethod
    def take(cls, values: dict[str, Any]) -> Self:
        """Make the group of the values of its flags, and remove them from `values`."""
        return cls(**_take(_fields(cls), values))


def with_flag_groups(command: Callable[..., None]) -> Callable[..., None]:
    """Give typer the flags of the groups among the parameters of a command, and the command the groups."""
    parameters = tuple(inspect.signature(command, eval_str=True).parameters.values())

    @wraps(command)
    def run(**values: Any) -> None:
        command(**_take(parameters, values))

    run.__signature__ = inspect.Signature([*_expand(parameters)])  # type: ignore[attr-defined]
    return run


_FIELDS: Final[dict[type[FlagGroup], tuple[inspect.Parameter, ...]]] = {}


def _fields(group: type[FlagGroup]) -> tuple[inspect.Parameter, ...]:
    """The fields of a group, in the form of parameters."""
    if group not in _FIELDS:
        # Without the names of the module, a function in an annotation would run with those of the class alone.
        hints = get_type_hints(group, vars(sys.modules[group.__module__]), include_extras=True)
        # Kept: commands that share a group share the objects of its flags, by which the configuration knows them (ADR 30).
        _FIELDS[group] = tuple(
            inspect.Parameter(
                field.name,
                inspect.Parameter.KEYWORD_ONLY,
                default=inspect.Parameter.empty if field.default is MISSING else field.default,
                annotation=hints[field.name],
            )
            for field in fields(group)
        )
    return _FIELDS[group]


def _expand(parameters: Iterable[inspect.Parameter]) -> Iterator[inspect.Parameter]:
    """Replace groups by their flags, and tuples by the lists that typer knows."""
    for parameter in parameters:
        if _is_group(parameter.annotation):
            yield from parameter.annotation.flags()
        elif _is_repeatable(parameter.annotation):
            values, *infos = get_args(parameter.annotation)
            # typer accepts a flag several times if its type is a list; None keeps the default out of the help.
            several = Annotated[list[get_args(values)[0]] | None, *infos]  # type: ignore[misc, valid-type] # made at run time
            yield parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY, default=None, annotation=several)
        else:
            yield parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)


def _take(parameters: Iterable[inspect.Parameter], values: dict[str, Any]) -> dict[str, Any]:
    """The values of parameters, taken from those of all flags."""
    taken: dict[str, Any] = {}
    for parameter in parameters:
        if _is_group(parameter.annotation):
            taken[parameter.name] = parameter.annotation.take(values)
        else:
            value = values.pop(parameter.name)
            taken[parameter.name] = tuple(value or ()) if _is_repeatable(parameter.annotation) else value
    return taken


def _is_group(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, FlagGroup)


def _is_repeatable(annotation: Any) -> bool:
    return get_origin(annotation) is Annotated and get_origin(get_args(annotation)[0]) is tuple
