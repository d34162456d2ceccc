"""Values of variables and of the file have the type of their flag, and a message says what to write instead."""

from __future__ import annotations

import pytest

from scanner.config.setting import Plain, Setting, ValueType, make_variable, parse_node, parse_text
from scanner.documents.composer import compose
from scanner.errors import UsageError

GATES = Setting("failOn", "--fail-on", many=True, choices=("new", "deny"))
FILTERS = Setting("filters", "--filters", many=True)
QUIET = Setting("quiet", "--quiet", ValueType.BOOLEAN)
SIZE = Setting("chunkSize", "--chunk-size", ValueType.INTEGER, least=1, most=100)
QPS = Setting("qps", "--qps", ValueType.NUMBER, least=0)
NAME = Setting("name", "--name")


@pytest.mark.parametrize(
    ("key", "variable"),
    [("db", "ASSAY_DB"), ("failOn", "ASSAY_FAIL_ON"), ("schedule.timeZone", "ASSAY_SCHEDULE_TIME_ZONE")],
)
def test_a_variable_follows_from_its_key(key: str, variable: str) -> None:
    """Capitals and dots separate words."""
    assert variable == make_variable(key)


@pytest.mark.parametrize(
    ("setting", "text", "value"),
    [
        (GATES, "new", ("new",)),
        (GATES, "new, deny", ("new", "deny")),
        (FILTERS, "[Pod,kube-*,*],[Secret,*,*]", ("[Pod,kube-*,*]", "[Secret,*,*]")),
        (FILTERS, "[open", ("[open",)),
        (QUIET, "true", True),
        (QUIET, "False", False),
        (QUIET, "1", True),
        (QUIET, "0", False),
        (SIZE, "100", 100),
        (QPS, "0.5", 0.5),
        (NAME, "a,b", "a,b"),
    ],
)
def test_a_variable_has_a_value(setting: Setting, text: str, value: Plain) -> None:
    """Commas separate items, except inside of brackets and where the flag has one value."""
    assert value == parse_text(setting, text)


@pytest.mark.parametrize(
    ("setting", "text", "message"),
    [
        (GATES, "", "ASSAY_FAIL_ON is empty: give a value, or unset the variable"),
        (NAME, " ", "ASSAY_NAME is empty: give a value, or unset the variable"),
        (GATES, "new,", "ASSAY_FAIL_ON has an empty value between commas: remove the comma"),
        (GATES, "new,dney", "ASSAY_FAIL_ON: write one of new, deny. Did you mean deny?"),
        (QUIET, "yes", "ASSAY_QUIET: write true or false, or 1 or 0"),
        (SIZE, "many", "ASSAY_CHUNK_SIZE: write a whole number"),
        (SIZE, "1.5", "ASSAY_CHUNK_SIZE: write a whole number"),
        (SIZE, "0", "ASSAY_CHUNK_SIZE: write a number from 1 to 100"),
        (QPS, "-1", "ASSAY_QPS: write 0 or more"),
        (QPS, "nan", "ASSAY_QPS: write 0 or more"),
    ],
)
def test_a_variable_with_another_value_is_an_error(setting: Setting, text: str, message: str) -> None:
    """The message names the variable."""
    with pytest.raises(UsageError) as error:
        parse_text(setting, text)
    assert message == str(error.value)


@pytest.mark.parametrize(
    ("setting", "text", "value"),
    [
        (GATES, "[new, deny]", ("new", "deny")),
        (GATES, "[]", ()),
        (QUIET, "true", True),
        (SIZE, "7", 7),
        (QPS, "7", 7),
        (NAME, "'1.30'", "1.30"),
    ],
)
def test_a_key_has_a_value(setting: Setting, text: str, value: Plain) -> None:
    """The file has values of YAML."""
    [node] = compose(f"key: {text}".encode(), "a.yaml")
    assert value == parse_node(setting, node.entries()["key"])


@pytest.mark.parametrize(
    ("setting", "text", "message"),
    [
        (GATES, "new", "a.yaml, line 1, column 6: key: must be a list: write [a, b]"),
        (GATES, "new,deny", "a.yaml, line 1, column 6: key: must be a list: write [a, b]"),
        (GATES, "[1]", "a.yaml, line 1, column 7: key[0]: must be a string, not a number: quote it"),
        (GATES, "[nwe]", "a.yaml, line 1, column 7: key[0]: write one of new, deny. Did you mean new?"),
        (GATES, "", "a.yaml, line 1, column 5: key: has no value: write one, or remove the key"),
        (QUIET, "1", "a.yaml, line 1, column 6: key: must be true or false, not a number"),
        (SIZE, "2.5", "a.yaml, line 1, column 6: key: must be a whole number, not a number"),
        (SIZE, "101", "a.yaml, line 1, column 6: key: is outside of the bounds: write a number from 1 to 100"),
        (QPS, "-1", "a.yaml, line 1, column 6: key: is outside of the bounds: write 0 or more"),
        (NAME, "1.30", "a.yaml, line 1, column 6: key: must be a string, not a number: quote it"),
        (NAME, "[a]", "a.yaml, line 1, column 6: key: must be a string, not a list"),
    ],
)
def test_a_key_with_another_value_is_an_error(setting: Setting, text: str, message: str) -> None:
    """The message has file, line and column. `1.30` without quotes would be 1.3."""
    [node] = compose(f"key: {text}".encode(), "a.yaml")
    with pytest.raises(UsageError) as error:
        parse_node(setting, node.entries()["key"])
    assert message == str(error.value)
