"""The settings, which follow from the flags of `scan`, `report` and `serve` and from the schedule of `runs`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Final

from scanner.cli.commands import report, runs, scan, serve
from scanner.config.flags import Flag, list_flags, make_key, make_plain
from scanner.errors import UsageError

if TYPE_CHECKING:
    from scanner.config.setting import Setting, ValueType

DEFINERS: Final[Mapping[str, Callable[..., None]]] = {
    "scan": scan.command,
    "report": report.command,
    "serve": serve.command,
}
"""The commands whose flags are settings."""
SCHEDULE: Final = {"--expect": "schedule.cron", "--time-zone": "schedule.timeZone", "--tolerance": "schedule.tolerance"}
"""The keys of flags of `runs`: the schedule at which runs are expected."""
_EVERYWHERE: Final = frozenset({"--cluster-name"})
"""Flags of other commands that are settings although their help differs."""
_CHOICES: Final = re.compile(r"<(.+)>")


@cache
def list_defining_flags() -> Mapping[str, Mapping[str, Flag]]:
    """The flags that define settings, by their long names and the names of the commands."""
    flags: dict[str, dict[str, Flag]] = {}
    for name, command in DEFINERS.items():
        for flag in list_flags(command):
            if flag.is_option:
                flags.setdefault(flag.name, {})[name] = flag
    return flags


def find_key(flag: Flag) -> str:
    """The key from which a flag of any command takes its value; empty for a flag that is no setting.

    A flag of another command is a setting if it has the definition that `scan`, `report` or `serve` has, and not only its name.
    """
    if flag.name in SCHEDULE:
        return SCHEDULE[flag.name]
    definitions = tuple(list_defining_flags().get(flag.name, {}).values()) if flag.is_option else ()
    shared = flag.name in _EVERYWHERE or any(flag.info is each.info for each in definitions)
    return make_key(flag.name) if definitions and shared else ""


@cache
def list_settings() -> tuple[Setting, ...]:
    """Every setting: those of `scan`, of `report`, of `serve`, and the schedule."""
    of_flags = [
        _make_setting(next(iter(flags.values())), make_key(name), tuple(flags))
        for name, flags in list_defining_flags().items()
    ]
    schedule = [
        _make_setting(flag, SCHEDULE[flag.name], ("runs",))
        for flag in list_flags(runs.command)
        if flag.name in SCHEDULE
    ]
    return (*of_flags, *schedule)


def _make_setting(flag: Flag, key: str, commands: tuple[str, ...]) -> Setting:
    from scanner.config.setting import Setting

    info = flag.info
    return Setting(
        key=key,
        flag=flag.name,
        form=_find_form(flag),
        many=flag.many,
        choices=_list_choices(flag),
        least=info.min,
        most=info.max,
        default=make_plain(flag.default) or None if flag.type is str or flag.many else make_plain(flag.default),
        metavar=info.metavar or "",
        help=info.help or "",
        commands=commands,
        check=_list_checks().get(info.metavar or ""),
    )


def _find_form(flag: Flag) -> ValueType:
    from scanner.config.setting import ValueType

    return {bool: ValueType.BOOLEAN, int: ValueType.INTEGER, float: ValueType.NUMBER}.get(flag.type, ValueType.STRING)


def _list_choices(flag: Flag) -> tuple[str, ...]:
    """The values that a flag accepts: members of its enumeration, or those that its metavar lists."""
    from enum import StrEnum

    if issubclass(flag.type, StrEnum):
        return tuple(member.value for member in flag.type)
    listed = _CHOICES.fullmatch(flag.info.metavar or "")
    return tuple(listed[1].split("|")) if listed else ()


def _list_checks() -> Mapping[str, Callable[[str, str], object]]:
    """The checks of texts, by the metavar of the flag; each raises UsageError for a text that the flag rejects."""
    from scanner.config.values import (
        parse_end,
        parse_kubernetes_version,
        parse_kyverno_version,
        parse_namespace_label,
        parse_seconds,
        parse_time_zone,
    )
    from scanner.web.requests.listen import address_of

    return {
        "DURATION": lambda text, name: parse_seconds(text, f"{name}:"),
        "DATE": lambda text, name: parse_end(text, f"{name}:"),
        "RELEASE": lambda text, name: parse_kyverno_version(text, f"{name}:"),
        "VERSION": lambda text, name: parse_kubernetes_version(text, f"{name}:"),
        "NS=KEY=VALUE": lambda text, name: parse_namespace_label(text, f"{name}:"),
        "ZONE": lambda text, name: parse_time_zone(text, f"{name}:"),
        "SCHEDULE": _check_schedule,
        "LABELS": _check_selector,
        "HOST:PORT": lambda text, name: address_of(text, f"{name}:"),
    }


def _check_schedule(text: str, name: str) -> None:
    from zoneinfo import ZoneInfo

    from scanner.model.schedule import parse_schedule

    _name_errors(name, lambda: parse_schedule(text, ZoneInfo("Etc/UTC")))


def _check_selector(text: str, name: str) -> None:
    from scanner.cluster.labels import parse_selector

    _name_errors(name, lambda: parse_selector(text))


def _name_errors(name: str, parse: Callable[[], object]) -> None:
    """Put a name before the message of a parser. Raises UsageError."""
    try:
        parse()
    except UsageError as error:
        raise UsageError(f"{name}: {error}") from error
