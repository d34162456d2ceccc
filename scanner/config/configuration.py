"""The configuration of a command: the value of every setting, with its source. A variable has priority over the file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from scanner.config.combinations import ValueSource
from scanner.config.environment import report_unknown, select_variables
from scanner.config.file import File, find_file
from scanner.config.setting import Plain, Setting, parse_text
from scanner.errors import UsageError

if TYPE_CHECKING:
    from scanner.documents.nodes import Position
    from scanner.model.access_token import AccessToken
    from scanner.model.json import Json
    from scanner.posture.routes import Route
    from scanner.posture.settings import Settings

NO_FILE: Final = File()


@dataclass(frozen=True, slots=True)
class SettingValue:
    """The value of a setting. `place` is the variable, or the place in the file; empty for a default."""

    setting: Setting
    value: Plain | None
    source: ValueSource = ValueSource.DEFAULT
    place: str = ""

    @property
    def name(self) -> str:
        """The name in messages: `ASSAY_CONTEXT`, or `context in assay.yaml, line 3, column 10`."""
        return f"{self.setting.key} in {self.place}" if self.source is ValueSource.FILE else self.place


@dataclass(frozen=True, slots=True)
class Configuration:
    """The effective values besides flags, in the order of the settings; the file; the settings of reports; the tokens; and the routes of notifications.

    `path` and `digest` are empty, and `posture` is None, without a file. The digest covers the content without secrets. `unflagged_values` are the values
    of keys without a flag as the file has them, with their places.
    """

    path: str = ""
    digest: str = ""
    values: Mapping[str, SettingValue] = field(default_factory=dict)
    posture: Settings | None = None
    tokens: tuple[AccessToken, ...] = ()
    routes: tuple[Route, ...] = ()
    unflagged_values: Mapping[str, tuple[Json, Position]] = field(default_factory=dict)

    def list_given(self) -> Iterator[SettingValue]:
        """The values that the environment or the file gives."""
        return (value for value in self.values.values() if value.source is not ValueSource.DEFAULT)


def is_given(named: str, environment: Mapping[str, str]) -> bool:
    """Return whether there is a file, or a variable that sets something. Raises UsageError for an empty name of a file."""
    return find_file(named, environment, Path()) is not None or bool(select_variables(environment))


def read(settings: Iterable[Setting], named: str, environment: Mapping[str, str]) -> Configuration:
    """The configuration of this environment, and of the file that is `named` or found. Raises UsageError for the first error."""
    settings = tuple(settings)
    file = _read_file(settings, named, environment)
    for error in (*_report_unknown(settings, environment), *file.errors):
        raise error
    return Configuration(
        file.path,
        file.digest,
        {each.key: _find_value(each, file, environment) for each in settings},
        file.posture,
        file.tokens,
        file.routes,
        file.unflagged_values,
    )


def list_errors(settings: Iterable[Setting], named: str, environment: Mapping[str, str]) -> Iterator[UsageError]:
    """Every error of the environment and of the file. Raises UsageError for a file that cannot be read."""
    settings = tuple(settings)
    file = _read_file(settings, named, environment)
    yield from _report_unknown(settings, environment)
    for setting in settings:
        try:
            _find_value(setting, NO_FILE, environment)
        except UsageError as error:
            yield error
    yield from file.errors


def _read_file(settings: tuple[Setting, ...], named: str, environment: Mapping[str, str]) -> File:
    path = find_file(named, environment, Path())
    if path is None:
        return NO_FILE
    from scanner.config.file_reader import read_file

    return read_file(path, settings)


def _report_unknown(settings: tuple[Setting, ...], environment: Mapping[str, str]) -> Iterator[UsageError]:
    return report_unknown(select_variables(environment), (setting.variable for setting in settings))


def _find_value(setting: Setting, file: File, environment: Mapping[str, str]) -> SettingValue:
    if setting.variable in environment:
        text = environment[setting.variable]
        return SettingValue(setting, parse_text(setting, text), ValueSource.ENVIRONMENT, setting.variable)
    if setting.key in file.values:
        value, place = file.values[setting.key]
        return SettingValue(setting, value, ValueSource.FILE, str(place))
    return SettingValue(setting, setting.default)


def mask_value(value: SettingValue) -> Json:
    """A value as it may be shown."""
    from scanner.config.masking import mask_document

    plain: Json = list(value.value) if isinstance(value.value, tuple) else value.value
    return mask_document(plain, value.setting.key)


def write_value(value: SettingValue) -> str:
    """The text of a value as it may be shown; the items of a list are separated by commas. Empty for no value."""
    match mask_value(value):
        case None:
            return ""
        case bool() as boolean:
            return str(boolean).lower()
        case list() as items:
            return ", ".join(map(str, items))
        case scalar:
            return str(scalar)
