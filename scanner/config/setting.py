"""A setting: a key of the file and a variable of the environment, which follow from a flag; how its values are read; and a key without a flag.

`--fail-on` has the key `failOn` and the variable `ASSAY_FAIL_ON`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NoReturn, TypeAlias, assert_never

from scanner.documents.nodes import Node
from scanner.errors import UsageError
from scanner.model.json import Json, JsonObject
from scanner.model.nearest import did_you_mean

PREFIX: Final = "ASSAY_"
Scalar: TypeAlias = bool | int | float | str
Plain: TypeAlias = Scalar | tuple[Scalar, ...]
"""A value of a setting, a tuple if the flag is repeatable."""

_CAPITAL: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_ITEM: Final = re.compile(r"(?:\[[^\]]*\]|[^,])*")
_BOOLEANS: Final = {"true": True, "1": True, "false": False, "0": False}


class ValueType(StrEnum):
    """The type of a value, as JSON Schema names it."""

    BOOLEAN = "boolean"
    INTEGER = "integer"
    NUMBER = "number"
    STRING = "string"


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting. `key` may have two parts: `schedule.cron`.

    `least` and `most` are the bounds of numbers. `check` raises UsageError for a text (with the name to put before its message)
    that the flag would reject. `commands` are those that define the flag.
    """

    key: str
    flag: str
    form: ValueType = ValueType.STRING
    many: bool = False
    choices: tuple[str, ...] = ()
    least: float | None = None
    most: float | None = None
    default: Plain | None = None
    metavar: str = ""
    help: str = ""
    commands: tuple[str, ...] = ()
    check: Callable[[str, str], object] | None = None

    @property
    def variable(self) -> str:
        """The variable of the environment."""
        return make_variable(self.key)


def make_variable(key: str) -> str:
    """The variable of a key: `ASSAY_FAIL_ON` for `failOn`, `ASSAY_SCHEDULE_TIME_ZONE` for `schedule.timeZone`."""
    return PREFIX + _CAPITAL.sub("_", key).replace(".", "_").upper()


def parse_text(setting: Setting, text: str) -> Plain:
    """The value of a variable: the items of a list are separated by commas outside of `[]`. Raises UsageError."""
    if not text.strip():
        raise UsageError(f"{setting.variable} is empty: give a value, or unset the variable")
    if not setting.many:
        return _parse_scalar(setting, text)
    return tuple(_parse_item(setting, item.strip()) for item in _split(text))


def _split(text: str) -> list[str]:
    items: list[str] = []
    start = 0
    while start <= len(text):
        match = _ITEM.match(text, start)
        end = match.end() if match else start
        items.append(text[start:end])
        start = end + 1
    return items


def _parse_item(setting: Setting, text: str) -> Scalar:
    if not text:
        raise UsageError(f"{setting.variable} has an empty value between commas: remove the comma")
    return _parse_scalar(setting, text)


def _parse_scalar(setting: Setting, text: str) -> Scalar:
    match setting.form:
        case ValueType.BOOLEAN:
            return _parse_boolean(setting, text)
        case ValueType.INTEGER:
            return _check_bounds(setting, _parse_number(setting, text, int))
        case ValueType.NUMBER:
            return _check_bounds(setting, _parse_number(setting, text, float))
        case ValueType.STRING:
            return _check_text(setting, text, setting.variable)
        case _ as never:
            assert_never(never)


def _parse_boolean(setting: Setting, text: str) -> bool:
    if text.strip().lower() not in _BOOLEANS:
        raise UsageError(f"{setting.variable}: write true or false, or 1 or 0")
    return _BOOLEANS[text.strip().lower()]


def _parse_number(setting: Setting, text: str, kind: type[int | float]) -> int | float:
    try:
        return kind(text)
    except ValueError as error:
        expected = "a whole number" if kind is int else "a number"
        raise UsageError(f"{setting.variable}: write {expected}") from error


def _check_bounds(setting: Setting, number: float) -> int | float:
    if problem := _explain_outside(setting, number):
        raise UsageError(f"{setting.variable}: {problem}")
    return number


def _explain_outside(setting: Setting, number: float) -> str:
    """The reason why a number is outside of the bounds; empty if it is inside. NaN is outside of any bounds."""
    least, most = setting.least, setting.most
    if (least is None or number >= least) and (most is None or number <= most) and number == number:  # noqa: PLR0124 - NaN
        return ""
    if least is None or most is None:
        return f"write {least:g} or more" if least is not None else f"write {most:g} or less"
    return f"write a number from {least:g} to {most:g}"


def _check_text(setting: Setting, text: str, name: str) -> str:
    if setting.choices and text not in setting.choices:
        raise UsageError(f"{name}: {_write_choices(setting, text)}")
    _check_as_flag(setting, text, name)
    return text


def _check_as_flag(setting: Setting, text: str, name: str) -> None:
    """Raise UsageError for a text that the flag would reject. The message of the flag repeats its value; this one does not."""
    if setting.check is None:
        return
    try:
        setting.check(text, name)
    except UsageError as error:
        message = str(error).replace(f"{text}: ", "")
        raise UsageError(re.sub(rf"(?<!\w){re.escape(text)}(?!\w)", "this value", message)) from error


def _write_choices(setting: Setting, text: str) -> str:
    return f"write one of {', '.join(setting.choices)}.{did_you_mean(text, setting.choices)}"


def parse_node(setting: Setting, node: Node) -> Plain:
    """The value of a key. Raises BadDocument for a value of another type, UsageError for one that the flag would reject."""
    if node.value is None:
        node.fail("has no value: write one, or remove the key")
    if not setting.many:
        return _read_scalar(setting, node)
    if not isinstance(node.value, list):
        node.fail("must be a list: write [a, b]")
    return tuple(_read_scalar(setting, item) for item in node.value)


def _read_scalar(setting: Setting, node: Node) -> Scalar:
    match setting.form:
        case ValueType.BOOLEAN:
            return node.boolean()
        case ValueType.INTEGER:
            number = node.integer(least=-(2**63))
            _reject_outside(setting, node, number)
            return number
        case ValueType.NUMBER:
            real = node.number()
            _reject_outside(setting, node, real)
            return real
        case ValueType.STRING:
            return _read_text(setting, node)
        case _ as never:
            assert_never(never)


def _reject_outside(setting: Setting, node: Node, number: float) -> None:
    if problem := _explain_outside(setting, number):
        node.fail(f"is outside of the bounds: {problem}")


def _read_text(setting: Setting, node: Node) -> str:
    text = node.string()
    if setting.choices and text not in setting.choices:
        _fail_choice(setting, node, text)
    _check_as_flag(setting, text, f"{node.place}: {node.path}")
    return text


def _fail_choice(setting: Setting, node: Node, text: str) -> NoReturn:
    node.fail(_write_choices(setting, text))


@dataclass(frozen=True, slots=True)
class FileKey:
    """A key of the file without a flag. `field` is that of the record that gets the value, `schema` the JSON Schema of its values.

    `read` raises BadDocument. `default` is the value without the key; None for none.
    """

    key: str
    field: str
    help: str
    example: str
    schema: JsonObject
    read: Callable[[Node], object]
    default: Json = None
