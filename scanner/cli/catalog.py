"""The settings: they follow from the flags of `scan`, `report` and `serve`, and from the schedule of `runs`."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Final

from scanner.cli import report, runs, scan, serve
from scanner.cli.flags import Flag, flags_of, key_of, plain

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from scanner.config.setting import Form, Setting

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
def defining_flags() -> Mapping[str, Mapping[str, Flag]]:
    """The flags that define settings, by their long names and the names of the commands."""
    flags: dict[str, dict[str, Flag]] = {}
    for name, command in DEFINERS.items():
        for flag in flags_of(command):
            if flag.is_option:
                flags.setdefault(flag.name, {})[name] = flag
    return flags


def key_of_flag(flag: Flag) -> str:
    """The key from which a flag of any command takes its value; empty for a flag that is no setting.

    A flag of another command is a setting if it has the definition that `scan`, `report` or `serve` has, and not only its name.
    """
    if flag.name in SCHEDULE:
        return SCHEDULE[flag.name]
    definitions = tuple(defining_flags().get(flag.name, {}).values()) if flag.is_option else ()
    shared = flag.name in _EVERYWHERE or any(flag.info is each.info for each in definitions)
    return key_of(flag.name) if definitions and shared else ""


@cache
def settings() -> tuple[Setting, ...]:
    """Every setting: those of `scan`, of `report`, of `serve`, and the schedule."""
    of_flags = [
        _setting(next(iter(flags.values())), key_of(name), tuple(flags)) for name, flags in defining_flags().items()
    ]
    schedule = [
        _setting(flag, SCHEDULE[flag.name], ("runs",)) for flag in flags_of(runs.command) if flag.name in SCHEDULE
    ]
    return (*of_flags, *schedule)


def _setting(flag: Flag, key: str, commands: tuple[str, ...]) -> Setting:
    from scanner.config.setting import Setting

    info = flag.info
    return Setting(
        key=key,
        flag=flag.name,
        form=_form(flag),
        many=flag.many,
        choices=_choices(flag),
        least=info.min,
        most=info.max,
        default=plain(flag.default) or None if flag.type is str or flag.many else plain(flag.default),
        metavar=info.metavar or "",
        help=info.help or "",
        commands=commands,
        check=_checks().get(info.metavar or ""),
    )


def _form(flag: Flag) -> Form:
    from scanner.config.setting import Form

    return {bool: Form.BOOLEAN, int: Form.INTEGER, float: Form.NUMBER}.get(flag.type, Form.STRING)


def _choices(flag: Flag) -> tuple[str, ...]:
    """The values that a flag accepts: members of its enumeration, or those that its metavar lists."""
    from enum import StrEnum

    if issubclass(flag.type, StrEnum):
        return tuple(member.value for member in flag.type)
    listed = _CHOICES.fullmatch(flag.info.metavar or "")
    return tuple(listed[1].split("|")) if listed else ()


def _checks() -> Mapping[str, Callable[[str, str], object]]:
    """The checks of texts, by the metavar of the flag; each raises UsageError for a text that the flag rejects."""
    from scanner.cli.moments import end_of
    from scanner.cli.values import kubernetes_version, namespace_label, seconds, time_zone
    from scanner.web.requests.listen import address_of

    return {
        "DURATION": lambda text, name: seconds(text, f"{name}:"),
        "DATE": lambda text, name: end_of(text, f"{name}:"),
        "VERSION": lambda text, name: kubernetes_version(text, f"{name}:"),
        "NS=KEY=VALUE": lambda text, name: namespace_label(text, f"{name}:"),
        "ZONE": lambda text, name: time_zone(text, f"{name}:"),
        "SCHEDULE": _check_schedule,
        "LABELS": _check_selector,
        "HOST:PORT": lambda text, name: address_of(text, f"{name}:"),
    }


def _check_schedule(text: str, name: str) -> None:
    from zoneinfo import ZoneInfo

    from scanner.model.schedule import schedule_of

    _named(name, lambda: schedule_of(text, ZoneInfo("Etc/UTC")))


def _check_selector(text: str, name: str) -> None:
    from scanner.cluster.labels import parse_selector

    _named(name, lambda: parse_selector(text))


def _named(name: str, parse: Callable[[], object]) -> None:
    """Put a name before the message of a parser. Raises UsageError."""
    from scanner.errors import UsageError

    try:
        parse()
    except UsageError as error:
        raise UsageError(f"{name}: {error}") from error
