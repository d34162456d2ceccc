"""The command line as a scan records it: the value of each flag as the configuration shows that of its key."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Final, NamedTuple, Protocol

from scanner.config.flags import make_key

_CONFIG: Final = "config"
"""The key of `--config`, which is no setting."""


class Parameter(Protocol):
    """A parameter of a command, as the parser of command lines has it, with its names, the long one last."""

    opts: list[str]


class _Option(NamedTuple):
    """A flag: the key of its setting, and whether a value follows."""

    key: str
    has_value: bool


def mask_command_line(arguments: Iterable[str], parameters: Iterable[Parameter]) -> tuple[str, ...]:
    """The command with these arguments, which has these parameters. What is no flag and no value of one is withheld."""
    options = {
        name: _Option(make_key(parameter.opts[-1]), not getattr(parameter, "is_flag", False))
        for parameter in parameters
        for name in parameter.opts
    }
    return ("assay", *_mask_values(arguments, options))


def _mask_values(arguments: Iterable[str], options: Mapping[str, _Option]) -> Iterator[str]:
    left = iter(arguments)
    # The first argument is the name of the command.
    yield from islice(left, 1)
    for argument in left:
        written, option, value = _split_argument(argument, options)
        if value is None:
            yield written
            written, value = "", next(left, None) if option.has_value else None
        if value is not None:
            yield f"{written}{_mask_value(option.key, value)}"


def _split_argument(argument: str, options: Mapping[str, _Option]) -> tuple[str, _Option, str | None]:
    """The part of an argument up to the value of its flag, the flag, and the value: None if that is no part of the argument.

    `--db=x` is `--db=` and `x`, `-nshop` is `-n` and `shop`, `-Aqn` is several flags. What is no known flag is a value.
    """
    name, equals, value = argument.partition("=")
    if argument.startswith("--") and name in options:
        return f"{name}{equals}", options[name], value if equals else None
    if not argument.startswith("--"):
        for place, letter in enumerate(argument[1:] if argument.startswith("-") else "", 2):
            option = options.get(f"-{letter}")
            if option is None:
                break
            if option.has_value or place == len(argument):
                return argument[:place], option, argument[place:] or None
    return "", _Option("", has_value=False), argument


def _mask_value(key: str, value: str) -> str:
    from scanner.config.masking import mask_document, mask_text

    return mask_text(value) if key == _CONFIG else str(mask_document(value, key))
