"""Values of expressions without a JSON form, as Go's fmt prints them in errors: recorded from Go 1.26."""

from __future__ import annotations

from typing import Any

import pytest

from scanner import cel
from scanner.cluster.schemas import builtin_schemas
from scanner.mutate import merge, native
from scanner.mutate.native import Foreign, NilList

SECOND = 10**9
MOMENT = 1704164645 * SECOND
CONFIG_MAP = builtin_schemas()["", "v1", "ConfigMap"]


@pytest.mark.parametrize(
    ("value", "text", "source"),
    [
        (None, "NULL_VALUE", "0"),
        (b"hi", "[104 105]", "[]uint8{0x68, 0x69}"),
        (cel.UInt(16), "16", "0x10"),
        (cel.Duration(0), "0s", "0"),
        (cel.Duration(1500), "1.5µs", "1500"),
        (cel.Duration(100_000_000), "100ms", "100000000"),
        (cel.Duration(-SECOND), "-1s", "-1000000000"),
        (cel.Duration(90 * SECOND), "1m30s", "90000000000"),
        (cel.Duration(3600 * SECOND), "1h0m0s", "3600000000000"),
        (
            cel.Timestamp(MOMENT),
            "2024-01-02 03:04:05 +0000 UTC",
            "time.Date(2024, time.January, 2, 3, 4, 5, 0, time.UTC)",
        ),
        (
            cel.Timestamp(MOMENT + 19800 * SECOND + 120_000_000, -19800),
            "2024-01-02 03:04:05.12 -0530 -0530",
            'time.Date(2024, time.January, 2, 3, 4, 5, 120000000, time.Location(""))',
        ),
    ],
)
def test_go_prints_a_value_as_text_and_as_source(value: Any, text: str, source: str) -> None:
    """`%v` prints the text of a value, `%#v` its source."""
    assert (text, source) == (native.write_value(value), native.write_source(value))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (Foreign("structpb.NullValue", "NULL_VALUE", "0"), "0"),
        (Foreign("[]uint8", "[104 105]", "[]uint8{0x68, 0x69}"), "[]uint8{0x68, 0x69}"),
        (NilList(), "[]interface {}(nil)"),
        ([], "[]interface {}{}"),
        ({"a": 1.5}, 'map[string]interface {}{"a":1.5}'),
    ],
)
def test_what_is_no_text_is_shown_as_source(value: Any, expected: str) -> None:
    """The schema's error for a text prints the value with `%#v`."""
    shown = f".data.a: expected string, got &value.valueUnstructured{{Value:{expected}}}"
    assert shown == merge.find_faults(CONFIG_MAP, {"data": {"a": value}})


def test_a_key_that_is_no_json_has_no_text() -> None:
    """An element whose key is a Go value has a name that no JSON value has."""
    port = {"port": Foreign("structpb.NullValue", "NULL_VALUE", "0"), "protocol": "TCP"}
    expected = (
        '.spec.ports[port={{undefined}},protocol="TCP"].port: expected numeric (int or float), got structpb.NullValue'
    )
    assert expected == merge.find_faults(builtin_schemas()["", "v1", "Service"], {"spec": {"ports": [port]}})
