"""Named formats: the texts that they accept, and their messages about other texts."""

from __future__ import annotations

import pytest

from scanner.cel import Environment, EvaluationError, compile

M1 = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an "
    "alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
M2 = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end "
    "with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
M3 = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end "
    "with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is "
    "'[a-z]([-a-z0-9]*[a-z0-9])?')"
)
M4 = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. "
    "'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
M5 = f"a valid label key {M4} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
M6 = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end "
    "with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
LONG = "a" * 64
LONGER = "a" * 254
CASES = [
    ("dns1123Label", "ok-1", []),
    ("dns1123Label", "1", []),
    ("dns1123Label", "", [M1]),
    ("dns1123Label", "Bad", [M1]),
    ("dns1123Label", "a.b", ["must not contain dots"]),
    ("dns1123Label", "a\n", [M1]),
    ("dns1123Label", LONG, ["must be no more than 63 characters"]),
    ("dns1123Label", "é" * 32, ["must be no more than 63 characters", M1]),
    ("dns1123Subdomain", "apiextensions.k8s.io", []),
    ("dns1123Subdomain", "a..b", [M2]),
    ("dns1123Subdomain", LONGER, ["must be no more than 253 characters"]),
    ("dns1035Label", "a1", []),
    ("dns1035Label", "1a", [M3]),
    ("dns1035Label", LONG, ["must be no more than 63 characters"]),
    ("dns1123LabelPrefix", "my-label-prefix-", []),
    ("dns1123LabelPrefix", "-", [M1]),
    ("dns1123LabelPrefix", "a--", []),
    ("dns1123LabelPrefix", "A-", []),
    ("dns1123SubdomainPrefix", "mysubdomain.prefix.-", []),
    ("dns1123SubdomainPrefix", ".a", [M2]),
    ("dns1035LabelPrefix", "my-label-prefix-", []),
    ("dns1035LabelPrefix", "1-", []),
    ("dns1035LabelPrefix", "12-", [M3]),
    ("qualifiedName", "apiextensions.k8s.io/v1beta1", []),
    ("qualifiedName", "My_name.1", []),
    ("qualifiedName", "/x", ["prefix part must be non-empty"]),
    ("qualifiedName", "x/", ["name part must be non-empty", f"name part {M4}"]),
    ("qualifiedName", "", ["name part must be non-empty", f"name part {M4}"]),
    ("qualifiedName", "A/x", [f"prefix part {M2}"]),
    ("qualifiedName", f"{LONGER}/x", ["prefix part must be no more than 253 bytes"]),
    ("qualifiedName", LONG, ["name part must be no more than 63 bytes"]),
    ("qualifiedName", "-", [f"name part {M4}"]),
    ("qualifiedName", "a/b/c", [M5]),
    ("qualifiedName", "//", [M5]),
    ("labelValue", "", []),
    ("labelValue", "a_b.C-1", []),
    ("labelValue", "-a", [M6]),
    ("labelValue", LONG, ["must be no more than 63 bytes"]),
    ("uri", "http://example.com", []),
    ("uri", "/abs", []),
    ("uri", "../relative", ['parse "../relative": invalid URI for request']),
    ("uri", "", ['parse "": empty url']),
    ("uuid", "123e4567-e89b-12d3-a456-426614174000", []),
    ("uuid", "123E4567E89B12D3A456426614174000", []),
    ("uuid", "123e4567", ["does not match the UUID format"]),
    ("uuid", "123e4567-e89b-12d3-a456-426614174000\n", ["does not match the UUID format"]),
    ("byte", "aGVsbG8=", []),
    ("byte", "aGVsbG8", ["invalid base64"]),
    ("byte", "", ["invalid base64"]),
    ("byte", "aGVs\n", ["invalid base64"]),
    ("date", "2021-01-01", []),
    ("date", "2024-02-29", []),
    ("date", "0000-02-29", []),
    ("date", "2021-02-29", ["invalid date"]),
    ("date", "2020-01-32", ["invalid date"]),
    ("date", "2020-13-01", ["invalid date"]),
    ("date", "2020-00-01", ["invalid date"]),
    ("date", "2020-01-00", ["invalid date"]),
    ("date", "2021-1-01", ["invalid date"]),
    ("date", "٢٠٢١-01-01", ["invalid date"]),
    ("datetime", "2021-01-01T00:00:00Z", []),
    ("datetime", "2021-01-01t23:59:59.123+01:00", []),
    ("datetime", "2021-01-01T00:00:00-99:99", []),
    ("datetime", "2021-01-01T00:00:00ZTrest", []),
    ("datetime", "2021-01-01T00:00:00", ["invalid datetime"]),
    ("datetime", "2021-01-01T24:00:00Z", ["invalid datetime"]),
    ("datetime", "2021-01-01T23:60:00Z", ["invalid datetime"]),
    ("datetime", "2021-01-01T23:59:60Z", ["invalid datetime"]),
    ("datetime", "2021-02-30T00:00:00Z", ["invalid datetime"]),
    ("datetime", "2021-01-01 00:00:00Z", ["invalid datetime"]),
    ("datetime", "2021-01-01", ["invalid datetime"]),
    ("datetime", "T", ["invalid datetime"]),
]
VALUES = [
    ("format.named('unknown').hasValue()", False),
    ("format.named('dns1123Label').value() == format.dns1123Label()", True),
    ("format.dns1123Label() == format.labelValue()", False),
    ("format.dns1123Label() != dyn(1)", True),
    ("dyn(1) == format.dns1123Label()", False),
    ("format.date() in [format.uuid(), format.date()]", True),
]


@pytest.mark.parametrize(("name", "text", "messages"), CASES)
def test_validation(name: str, text: str, messages: list[str]) -> None:
    """A format accepts a text, or reports all its faults."""
    program = compile(f"format.{name}().validate(object.text).orValue([])", Environment())
    assert messages == program.evaluate({"object": {"text": text}})


@pytest.mark.parametrize(("text", "expected"), VALUES)
def test_formats_as_values(text: str, expected: object) -> None:
    """Formats are found by their names and compare by them."""
    assert expected == compile(text, Environment()).evaluate({})


def test_a_format_compares_with_formats_only() -> None:
    """The comparison of a format with a value of another type is an error."""
    with pytest.raises(EvaluationError, match=r"^no such overload$"):
        compile("format.date() == dyn('date')", Environment()).evaluate({})
