"""The flags of a command, from the signature from which typer makes them."""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any, Union, get_args, get_origin

from typer.models import ArgumentInfo, OptionInfo


@dataclass(frozen=True, slots=True)
class Flag:
    """A flag or argument of a command: its Python parameter, and its names, the long one last.

    `type` is that of one value. An argument has its metavar as its name.
    """

    parameter: str
    names: tuple[str, ...]
    type: type
    many: bool
    default: object
    info: OptionInfo | ArgumentInfo

    @property
    def name(self) -> str:
        """The name in rules, and from which the key follows: the long one."""
        return self.names[-1]

    @property
    def is_option(self) -> bool:
        """Return whether a user writes the name before the value."""
        return isinstance(self.info, OptionInfo)


def make_key(flag: str) -> str:
    """The key of a flag: `failOn` for `--fail-on`."""
    first, *others = flag.lstrip("-").split("-")
    return first + "".join(word.capitalize() for word in others)


def list_flags(command: Callable[..., object]) -> tuple[Flag, ...]:
    """The flags and arguments of a command, in the order of its parameters."""
    return tuple(_find_flags(inspect.signature(command, eval_str=True)))


def _find_flags(signature: inspect.Signature) -> Iterator[Flag]:
    for parameter in signature.parameters.values():
        if get_origin(parameter.annotation) is Annotated:
            of_value, info = get_args(parameter.annotation)[:2]
            value_type, many = _find_type(of_value)
            yield Flag(parameter.name, _list_names(info), value_type, many, parameter.default, info)


def _list_names(info: OptionInfo | ArgumentInfo) -> tuple[str, ...]:
    """The names of a flag. typer keeps the first one of an annotation as its default, until it makes the command."""
    if isinstance(info, ArgumentInfo):
        return ((info.metavar or "").strip("[].") or "ARGUMENT",)
    return (*([] if info.default is ... else [str(info.default)]), *(info.param_decls or ()))


def _find_type(annotation: Any) -> tuple[type, bool]:
    """The type of one value, and whether there may be several: `list[str] | None` is (str, True)."""
    if get_origin(annotation) in (Union, types.UnionType):
        return _find_type(next(each for each in get_args(annotation) if each is not type(None)))
    if get_origin(annotation) is list:
        return _find_type(get_args(annotation)[0])[0], True
    return annotation, False


def convert(flag: Flag, value: object) -> object:
    """A plain value of a setting as the command expects the value of its flag."""
    if value is None:
        return None
    if flag.many:
        return [_convert(flag, each) for each in value] if isinstance(value, tuple | list) else [_convert(flag, value)]
    return _convert(flag, value)


def _convert(flag: Flag, value: object) -> object:
    if flag.info.parser is not None:
        return flag.info.parser(str(value))
    return flag.type(value)


def make_plain(value: object) -> Any:
    """A value of a command as a setting has it: text for paths and for members of enumerations."""
    if isinstance(value, list | tuple):
        return tuple(map(make_plain, value))
    if isinstance(value, StrEnum):
        return value.value
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)
