"""The circumstances of a scan that only the command line knows: the command, the machine, and what was allowed."""

from __future__ import annotations

import socket
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING, Final, get_args

from scanner.cli.settings import used_configuration

if TYPE_CHECKING:
    from pathlib import Path

    from scanner.cli.flags import Flag
    from scanner.model.method import Method

_CONFIG: Final = "--config"


def method_of(
    arguments: Iterable[str] | None,
    *,
    kyverno_compat: str,
    network: bool,
    network_to: Iterable[str],
    chunk_size: int,
    policy_files: Iterable[Path] = (),
    without_cluster_policies: bool = False,
    kept_labels: Iterable[str] = (),
) -> Method:
    """The method of a scan that a command with these arguments makes; the scan adds its user and its workers."""
    from scanner.model.method import Method

    return Method(
        host=socket.gethostname(),
        command_line=command_line(arguments or ()),
        kyverno_compat=kyverno_compat,
        network=network,
        network_to=tuple(network_to),
        chunk_size=chunk_size,
        policy_files=tuple(map(str, policy_files)),
        without_cluster_policies=without_cluster_policies,
        kept_labels=tuple(sorted(kept_labels)),
        configuration=used_configuration(),
    )


def command_line(arguments: Iterable[str]) -> tuple[str, ...]:
    """The command with these arguments; the value of a flag as the configuration shows that of its key."""
    return ("assay", *_shown(arguments))


def _shown(arguments: Iterable[str]) -> Iterator[str]:
    left = iter(arguments)
    # The first argument is the name of the command; what is no flag and no value of one is withheld.
    yield from islice(left, 1)
    for argument in left:
        written, flag, value = _split(argument)
        if flag is not None and flag.type is bool:
            yield written
            continue
        if value is None and written:
            yield written
            written, value = "", next(left, None)
        if value is not None:
            yield f"{written}{_shown_value(flag, value)}"


def _split(argument: str) -> tuple[str, Flag | None, str | None]:
    """The part of an argument up to the value of its flag, the flag, and the value: None if that is the next argument.

    `--db=x` is `--db=` and `x`, `-nshop` is `-n` and `shop`, `-Aqn` is several flags. What is no known flag is a value.
    """
    if argument.startswith("--"):
        name, equals, value = argument.partition("=")
        flag = _flags().get(name)
        return (f"{name}{equals}", flag, value if equals else None) if flag else ("", None, argument)
    for place, letter in enumerate(argument[1:] if argument.startswith("-") else "", 2):
        flag = _flags().get(f"-{letter}")
        if flag is None:
            break
        if flag.type is not bool or place == len(argument):
            return argument[:place], flag, argument[place:] or None
    return "", None, argument


@cache
def _flags() -> Mapping[str, Flag]:
    """The flags of settings by each of their names."""
    from pathlib import Path

    from scanner.cli.catalog import defining_flags
    from scanner.cli.configured import ConfigOption
    from scanner.cli.flags import Flag

    named = {name: flag for flags in defining_flags().values() for flag in flags.values() for name in flag.names}
    return {
        **named,
        _CONFIG: Flag("config", (_CONFIG,), Path, many=False, default=None, info=get_args(ConfigOption)[1]),
    }


def _shown_value(flag: Flag | None, value: str) -> str:
    from scanner.cli.catalog import key_of_flag
    from scanner.config.masking import masked, shown_document

    if flag is not None and flag.name == _CONFIG:
        return masked(value)
    return str(shown_document(value, key_of_flag(flag) if flag else ""))
