"""Properties of Kyverno's functions for all arguments: a value or an error of the evaluation, and inverse functions."""

from __future__ import annotations

import base64
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scanner.cel import EvaluationError, Value, compile
from scanner.cel.functions.declaration import Overload
from scanner.cel.types.type_system import BYTES, DOUBLE, DURATION, DYN, INT, LIST, STRING, TIMESTAMP, UINT, Type
from scanner.cel.values.values import Duration, Timestamp, UInt
from scanner.policies.kyverno.libraries import NoClusterData, environment, library_values

# No halves of characters: neither the API nor JSON lets any in.
WHOLE = st.characters(codec="utf-8")
LETTERS = st.text(alphabet=WHOLE, max_size=8)
TEXTS = st.text(alphabet=WHOLE, max_size=30) | st.sampled_from(
    ["", "a/b:c@sha256:", "[1,", "1e999", "-Infinity", "\\1", "(", "aGk", "=", "::"]
)
JSON = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False, allow_infinity=False) | LETTERS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(LETTERS, inner, max_size=3),
    max_leaves=8,
)
MOMENTS = st.integers(-62_135_596_800, 253_402_300_799).map(lambda seconds: Timestamp(seconds * 10**9))
ARGUMENTS: dict[Type, st.SearchStrategy[Value]] = {
    STRING: TEXTS,
    BYTES: st.binary(max_size=40),
    INT: st.integers(-(2**63), 2**63 - 1),
    UINT: st.integers(0, 2**64 - 1).map(UInt),
    DOUBLE: st.floats(),
    DYN: JSON,
    LIST: st.lists(JSON, max_size=3),
    TIMESTAMP: MOMENTS,
    DURATION: st.integers(-(2**62), 2**62).map(Duration),
}
ENVIRONMENT = environment(namespaced=False)
PURE = [
    overload
    for library in ENVIRONMENT.extras
    for function in library.functions
    for overload in function.overloads
    if all(argument in ARGUMENTS for argument in overload.arguments)
]


@settings(max_examples=20)
@pytest.mark.parametrize("overload", PURE, ids=lambda overload: overload.id)
@given(data=st.data())
def test_any_arguments_give_a_value_or_an_error(overload: Overload, data: st.DataObject) -> None:
    """Random arguments of the declared types give a value or an error of the evaluation: an internal error would be a gap."""
    run = overload.run
    assert run is not None
    with suppress(EvaluationError):
        run(*(data.draw(ARGUMENTS[argument]) for argument in overload.arguments))


def _value(text: str, value: Value) -> Value:
    activation = {**library_values(NoClusterData(), Timestamp(0)), "object": value}
    return compile(text, ENVIRONMENT).evaluate(activation)


@given(JSON)
def test_json_is_read_as_written(value: Value) -> None:
    """`json.unmarshal` inverts `json.marshal`."""
    assert value == _value("json.unmarshal(json.marshal(object))", value)


@given(st.binary(max_size=50))
def test_base64_is_decoded_with_and_without_padding(raw: bytes) -> None:
    """`base64.decode` decodes a text with its padding and without."""
    plain = base64.b64encode(raw).decode()
    assert (raw, raw) == (_value("base64.decode(object)", plain), _value("base64.decode(object)", plain.rstrip("=")))


@given(st.text(alphabet=WHOLE, max_size=50))
def test_gzip_loses_nothing(text: str) -> None:
    """`gzip.decompress` inverts `gzip.compress`."""
    assert text == _value("gzip.decompress(gzip.compress(object))", text)


@given(MOMENTS, st.integers(1, 10**16))
def test_truncation_is_a_multiple_just_below(moment: Timestamp, unit: int) -> None:
    """A truncated moment is a multiple of the unit, not later than the moment, and less than a unit before it."""
    truncated = compile("time.truncate(object.at, object.unit)", ENVIRONMENT).evaluate(
        {"object": {"at": moment, "unit": Duration(unit)}}
    )
    assert isinstance(truncated, Timestamp)
    assert 0 <= moment.nanoseconds - truncated.nanoseconds < unit
