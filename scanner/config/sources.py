"""The flags of one run of a command, with the sources of their values: the command line, the environment, the file."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from scanner.config.combinations import FLAG_RULES, Requires, Rule, SourcedValue, ValueSource, find_left_out
from scanner.config.configuration import Configuration, SettingValue
from scanner.config.flags import Flag, convert, make_plain
from scanner.errors import UsageError

_NAME: Final = re.compile(r"(?<![\w-])--?[a-zA-Z][a-z-]*")


class Sources:
    """The flags of one run of a command, with the sources of their values."""

    def __init__(
        self,
        flags: tuple[Flag, ...],
        typed: Mapping[str, object],
        key_of_flag: Callable[[Flag], str],
        *,
        configuration: Configuration,
    ) -> None:
        """Resolve the values; `typed` are those of flags that the user typed, by parameter.

        Raises UsageError for values of one source that exclude each other.
        """
        self._flags = flags
        self._keys = {flag.parameter: key_of_flag(flag) for flag in flags}
        self.configuration = configuration
        self._given = {flag.name: value for flag in flags if (value := self._find_value(flag, typed))}
        self._left_out = find_left_out(self._given, _select_rules(flags))

    def list_used(self) -> Iterator[SettingValue]:
        """The values of the environment and of the file that the command uses."""
        lower = (self._keys[flag.parameter] for flag in self._flags if self._find_lower_value(flag))
        return (self.configuration.values[key] for key in lower)

    def collect_values(self) -> dict[str, object]:
        """The values that differ from those of the command line, by parameter."""
        changed: dict[str, object] = {}
        for flag in self._flags:
            sourced_value = self._given.get(flag.name)
            if flag.name in self._left_out:
                changed[flag.parameter] = flag.default
            elif sourced_value is not None and sourced_value.source is not ValueSource.FLAG:
                changed[flag.parameter] = convert(flag, sourced_value.value)
        return changed

    def add_places(self, error: UsageError) -> UsageError:
        """The error with the places of the values that its flags have from the environment or the file."""
        names = set(_NAME.findall(str(error)))
        places = [
            f"{next(name for name in flag.names if name in names)} comes from {lower_value.name}"
            for flag in self._flags
            if names.intersection(flag.names) and (lower_value := self._find_lower_value(flag))
        ]
        return UsageError(f"{error} ({'; '.join(places)})") if places else error

    def _find_lower_value(self, flag: Flag) -> SourcedValue | None:
        sourced_value = self._given.get(flag.name)
        return (
            sourced_value
            if sourced_value and sourced_value.source is not ValueSource.FLAG and flag.name not in self._left_out
            else None
        )

    def _find_value(self, flag: Flag, typed: Mapping[str, object]) -> SourcedValue | None:
        """The value of a flag, from its highest source; None without any."""
        if flag.parameter in typed:
            value = typed[flag.parameter]
            name = flag.names[0] if flag.is_option else f"{flag.name} {value}"
            return SourcedValue(
                make_plain(value), ValueSource.FLAG, name, is_default=_is_nothing(value) or value == flag.default
            )
        effective = self.configuration.values.get(self._keys[flag.parameter])
        if effective is None or effective.source is ValueSource.DEFAULT:
            return None
        value = effective.value
        return SourcedValue(
            value, effective.source, effective.name, is_default=_is_nothing(value) or value == make_plain(flag.default)
        )


def _is_nothing(value: object) -> bool:
    """Return whether a value means that a flag was not given. The number 0 is a value: `--index 0`."""
    return not value and (isinstance(value, bool) or not isinstance(value, int | float))


def _select_rules(flags: tuple[Flag, ...]) -> Iterator[Rule]:
    """The rules about flags of a command: a flag needs another one only where the command has both."""
    names = {flag.name for flag in flags}
    return (rule for rule in FLAG_RULES if not isinstance(rule, Requires) or rule.needed in names)
