"""The errors of names, by the rules of Kubernetes; a valid name has none.

Source of truth: `apimachinery/pkg/util/validation` and `api/validation/path` of Kubernetes 1.36.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_DNS_1035 = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_QUALIFIED = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_IDENTIFIER = re.compile(r"[_a-zA-Z][_a-zA-Z0-9]*")
_RESERVED = frozenset(
    [
        "true",
        "false",
        "null",
        "in",
        "as",
        "break",
        "const",
        "continue",
        "else",
        "for",
        "function",
        "if",
        "import",
        "let",
        "loop",
        "package",
        "namespace",
        "return",
        "var",
        "void",
        "while",
    ]
)
_SUBDOMAIN_RULE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
_DNS_1035_RULE = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and "
    "end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is "
    "'[a-z]([-a-z0-9]*[a-z0-9])?')"
)
_QUALIFIED_RULE = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
    "(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
_LABEL_RULE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end "
    "with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
_LONGEST = 253
_LONGEST_PART = 63
_PARTS = 2


def check_subdomain(value: str, unit: str = "characters") -> Iterator[str]:
    """The errors of a DNS subdomain, the form of names of objects and API groups (`IsDNS1123Subdomain`)."""
    if _write_size(value) > _LONGEST:
        yield f"must be no more than {_LONGEST} {unit}"
    if not _SUBDOMAIN.fullmatch(value):
        yield _SUBDOMAIN_RULE


def check_dns_1035_label(value: str) -> Iterator[str]:
    """The errors of a DNS label that begins with a letter, the form of API versions (`IsDNS1035Label`)."""
    if _write_size(value) > _LONGEST_PART:
        yield f"must be no more than {_LONGEST_PART} characters"
    if not _DNS_1035.fullmatch(value):
        yield _DNS_1035_RULE


def check_qualified_name(value: str) -> Iterator[str]:
    """The errors of a name with an optional prefix, the form of label keys (`IsQualifiedName`)."""
    parts = value.split("/")
    if len(parts) > _PARTS:
        yield f"a valid label key {_QUALIFIED_RULE} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        return
    if len(parts) == _PARTS:
        details = check_subdomain(parts[0], "bytes") if parts[0] else iter(("must be non-empty",))
        yield from (f"prefix part {detail}" for detail in details)
    name = parts[-1]
    if not name:
        yield "name part must be non-empty"
    if _write_size(name) > _LONGEST_PART:
        yield f"name part must be no more than {_LONGEST_PART} bytes"
    if not _QUALIFIED.fullmatch(name):
        yield f"name part {_QUALIFIED_RULE}"


def check_label_value(value: str) -> Iterator[str]:
    """The errors of the value of a label (`IsValidLabelValue`)."""
    if _write_size(value) > _LONGEST_PART:
        yield f"must be no more than {_LONGEST_PART} bytes"
    if value and not _QUALIFIED.fullmatch(value):
        yield _LABEL_RULE


def check_path_segment(value: str) -> Iterator[str]:
    """The errors of a name in a URL path, the form of all names of objects (`IsValidPathSegmentName`)."""
    if value in (".", ".."):
        yield f"may not be '{value}'"
        return
    yield from (f"may not contain '{mark}'" for mark in "/%" if mark in value)


def _write_size(value: str) -> int:
    return len(value.encode("utf-8", "surrogatepass"))


def is_identifier(value: str) -> bool:
    """Return whether an expression can use the text as a name."""
    return value not in _RESERVED and _IDENTIFIER.fullmatch(value) is not None
