"""Named formats: Kubernetes' rules for labels, names, dates and the like.

Source of truth: apimachinery's validation, kube-openapi's strfmt and Go's ParseRequestURI, whose messages are kept word for word.
Lengths count bytes of UTF-8; the error texts of names give characters, those of label keys and values bytes.

Rules: `docs/semantics/cel-libraries.md#named-formats`.
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

from scanner.cel import releases
from scanner.cel.functions.declaration import Function, Library, Overload, declare_member
from scanner.cel.functions.pricing import (
    ONE,
    Arguments,
    Cost,
    Operands,
    Outcome,
    make_price,
    measure_size,
    price_search,
)
from scanner.cel.functions.result_sizes import nothing
from scanner.cel.functions.url import BadUrl, parse_request
from scanner.cel.syntax.tree import Call, Identifier, Node
from scanner.cel.types.type_system import STRING, Type, list_of, object_type, optional_of
from scanner.cel.values.extent import SizeBound
from scanner.cel.values.values import NONE, Opaque, Optional, Value, make_unhashable

NAMED_FORMAT = object_type("kubernetes.NamedFormat")
Faults: TypeAlias = "list[str]"

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_LABEL_1035 = "[a-z]([-a-z0-9]*[a-z0-9])?"
_NAME = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_LABEL_VALUE = f"({_NAME})?"
_LONGEST_LABEL = 63
_LONGEST_SUBDOMAIN = 253
_NAME_FAULT = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
)
_UUID = re.compile(r"[0-9a-fA-F]{8}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{12}")
_BASE64 = re.compile(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})")
_DATE = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})")
_TIME = re.compile(r"([0-9]{2}):([0-9]{2}):([0-9]{2})(?:.[0-9]+)?(?:z|[+-][0-9]{2}:[0-9]{2})")
_MONTHS = 12
_UUID_PATTERN_LENGTH = 70
_DATETIME_PATTERN_LENGTH = 71


@dataclass(frozen=True, slots=True, eq=False)
class NamedFormat(Opaque):
    """A format; `faults` returns the errors of a text, `complexity` is the length of a pattern whose search costs the same."""

    TYPE: ClassVar[Type] = NAMED_FORMAT
    GO_TYPE: ClassVar[str] = "cel.Format"
    EQUAL_AT_ONCE: ClassVar[bool] = True
    name: str
    faults: Callable[[str], Faults]
    complexity: int

    def __str__(self) -> str:
        return self.name

    def equals(self, other: Opaque) -> bool:
        """Return whether the names are equal."""
        return isinstance(other, NamedFormat) and self.name == other.name

    def map_key(self) -> Hashable:
        """Raise EvaluationStopped: Go cannot hash the function inside, so a format cannot be a key."""
        raise make_unhashable(self.GO_TYPE)


def _report_too_long(text: str, longest: int, unit: str) -> Faults:
    return [f"must be no more than {longest} {unit}"] if len(text.encode("utf-8", "surrogatepass")) > longest else []


def _describe_pattern(fault: str, pattern: str, *examples: str) -> str:
    shown = " or ".join(f"'{example}', " for example in examples)
    return f"{fault} (e.g. {shown}regex used for validation is '{pattern}')"


def check_dns1123_label(text: str) -> Faults:
    """Return the faults of a text as a DNS label (RFC 1123); none for a valid one.

    Mirrors `IsDNS1123Label` of apimachinery's `pkg/util/validation`.
    """
    faults = _report_too_long(text, _LONGEST_LABEL, "characters")
    if re.fullmatch(_LABEL, text):
        return faults
    if re.fullmatch(_SUBDOMAIN, text):
        return [*faults, "must not contain dots"]
    fault = (
        "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', "
        "and must start and end with an alphanumeric character"
    )
    return [*faults, _describe_pattern(fault, _LABEL, "my-name", "123-abc")]


def check_dns1123_subdomain(text: str, unit: str = "characters") -> Faults:
    """Return the faults of a text as a DNS subdomain (RFC 1123); none for a valid one.

    `unit` is what the message counts. Mirrors `IsDNS1123Subdomain` of apimachinery's `pkg/util/validation`.
    """
    faults = _report_too_long(text, _LONGEST_SUBDOMAIN, unit)
    if re.fullmatch(_SUBDOMAIN, text):
        return faults
    fault = (
        "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', "
        "and must start and end with an alphanumeric character"
    )
    return [*faults, _describe_pattern(fault, _SUBDOMAIN, "example.com")]


def _check_dns1035_label(text: str) -> Faults:
    faults = _report_too_long(text, _LONGEST_LABEL, "characters")
    if re.fullmatch(_LABEL_1035, text):
        return faults
    fault = (
        "a DNS-1035 label must consist of lower case alphanumeric characters or '-', "
        "start with an alphabetic character, and end with an alphanumeric character"
    )
    return [*faults, _describe_pattern(fault, _LABEL_1035, "my-name", "abc-123")]


def _allow_dash(rule: Callable[[str], Faults]) -> Callable[[str], Faults]:
    """Return the rule for the beginning of a generated name, which may end in a dash."""
    return lambda text: rule(f"{text[:-2]}a" if len(text) > 1 and text.endswith("-") else text)


def _check_qualified_name(text: str, name_of_form: str = "valid label key", unit: str = "bytes") -> Faults:
    unlike = _describe_pattern(_NAME_FAULT, _NAME, "MyName", "my.name", "123-abc")
    prefix, slash, name = text.rpartition("/")
    if "/" in prefix:
        return [f"a {name_of_form} {unlike} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"]
    faults = _check_prefix(prefix, unit) if slash else []
    if not name:
        faults.append("name part must be non-empty")
    faults += [f"name part {fault}" for fault in _report_too_long(name, _LONGEST_LABEL, unit)]
    if not re.fullmatch(_NAME, name):
        faults.append(f"name part {unlike}")
    return faults


def _check_prefix(prefix: str, unit: str) -> Faults:
    faults = check_dns1123_subdomain(prefix, unit) if prefix else ["must be non-empty"]
    return [f"prefix part {fault}" for fault in faults]


def _check_label_value(text: str, unit: str = "bytes") -> Faults:
    faults = _report_too_long(text, _LONGEST_LABEL, unit)
    if re.fullmatch(_LABEL_VALUE, text):
        return faults
    fault = f"a valid label must be an empty string or {_NAME_FAULT.removeprefix('must ')}"
    return [*faults, _describe_pattern(fault, _LABEL_VALUE, "MyValue", "my_value", "12345")]


def _check_uri(text: str, *, strict: bool = True) -> Faults:
    try:
        parse_request(text, strict=strict)
    except BadUrl as bad:
        return [str(bad)]
    return []


def _make_pattern_check(pattern: re.Pattern[str], fault: str) -> Callable[[str], Faults]:
    return lambda text: [] if pattern.fullmatch(text) else [fault]


def _check_date(text: str) -> Faults:
    return [] if _is_date(text) else ["invalid date"]


def _is_date(text: str) -> bool:
    match = _DATE.fullmatch(text)
    if match is None:
        return False
    year, month, day = map(int, match.groups())
    return 1 <= month <= _MONTHS and 1 <= day <= calendar.monthrange(_find_similar_year(year), month)[1]


def _find_similar_year(year: int) -> int:
    """Return a year of equal length, as Python has no year 0."""
    return year or 400


def _check_datetime(text: str) -> Faults:
    date, *times = text.lower().split("t")
    match = _TIME.fullmatch(times[0]) if times else None
    right = match is not None and _is_date(date) and all(map(_is_below, match.groups(), ("23", "59", "59")))
    return [] if right else ["invalid datetime"]


def _is_below(digits: str, limit: str) -> bool:
    return digits <= limit


FORMATS: dict[str, NamedFormat] = {
    "dns1123Label": NamedFormat("DNS1123Label", check_dns1123_label, 30),
    "dns1123Subdomain": NamedFormat("DNS1123Subdomain", check_dns1123_subdomain, 60),
    "dns1035Label": NamedFormat("DNS1035Label", _check_dns1035_label, 30),
    "qualifiedName": NamedFormat("QualifiedName", _check_qualified_name, 60),
    "dns1123LabelPrefix": NamedFormat("DNS1123LabelPrefix", _allow_dash(check_dns1123_label), 30),
    "dns1123SubdomainPrefix": NamedFormat("DNS1123SubdomainPrefix", _allow_dash(check_dns1123_subdomain), 60),
    "dns1035LabelPrefix": NamedFormat("DNS1035LabelPrefix", _allow_dash(_check_dns1035_label), 30),
    "labelValue": NamedFormat("LabelValue", _check_label_value, 40),
    "uri": NamedFormat("URI", _check_uri, 1103),
    "uuid": NamedFormat("uuid", _make_pattern_check(_UUID, "does not match the UUID format"), _UUID_PATTERN_LENGTH),
    "byte": NamedFormat("byte", _make_pattern_check(_BASE64, "invalid base64"), 84),
    "date": NamedFormat("date", _check_date, _DATETIME_PATTERN_LENGTH),
    "datetime": NamedFormat("datetime", _check_datetime, _DATETIME_PATTERN_LENGTH),
}


def _check_qualified_name_as_before(text: str) -> Faults:
    return _check_qualified_name(text, "qualified name", "characters")


LOOSE_FORMATS = FORMATS | {"uri": NamedFormat("URI", lambda text: _check_uri(text, strict=False), 1103)}
"""The formats as 1.35 has them."""
FIRST_FORMATS = LOOSE_FORMATS | {
    "qualifiedName": NamedFormat("QualifiedName", _check_qualified_name_as_before, 60),
    "labelValue": NamedFormat("LabelValue", lambda text: _check_label_value(text, "characters"), 40),
}
"""The formats as releases before 1.35 have them."""


def make_lookup(formats: Mapping[str, NamedFormat]) -> Callable[[str], Value]:
    """Return a function that returns the optional of a format by its name."""

    def named(name: str) -> Value:
        format_ = formats.get(name)
        return NONE if format_ is None else Optional(format_)

    return named


def _validate(format_: NamedFormat, text: str) -> Value:
    faults = format_.faults(text)
    return Optional(faults) if faults else NONE


def _declare_constant(name: str, format_: NamedFormat) -> Function:
    full_name = f"format.{name}"
    return Function(full_name, (Overload(full_name, (), NAMED_FORMAT, lambda: format_),), cost=ONE, result=nothing)


def _price_validation(arguments: Arguments, _result: Outcome) -> int:
    format_ = arguments[0]
    return price_search(measure_size(arguments[1]), format_.complexity) if type(format_) is NamedFormat else 1


def _bound_validation(operands: Operands) -> float:
    return (operands[1].read + 1) * (_find_complexity(operands[0].node) / 4 + 1)


def _find_complexity(node: Node) -> int:
    """Return the complexity of a format that an expression names, and the highest of all for any other."""
    match node:
        case Call(target=Identifier(name="format"), function=name) if name in FORMATS:
            return FORMATS[name].complexity
        case _:
            return max(format_.complexity for format_ in FORMATS.values())


def _size_faults(operands: Operands) -> SizeBound:
    return SizeBound(16.0, 4096.0 + 4.0 * operands[1].extent.characters, 16.0)


LIBRARY = Library(
    "kubernetes.format",
    (
        Function(
            "validate",
            (declare_member("format-validate", (NAMED_FORMAT, STRING), optional_of(list_of(STRING)), _validate),),
            cost=Cost(make_price(_price_validation), _bound_validation),
            result=_size_faults,
        ),
        Function(
            "format.named",
            (Overload("format-named", (STRING,), optional_of(NAMED_FORMAT), make_lookup(FORMATS)),),
            cost=ONE,
            result=nothing,
        ),
        *(_declare_constant(name, format_) for name, format_ in FORMATS.items()),
    ),
    since=releases.NAMED_FORMATS.since,
)
