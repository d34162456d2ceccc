"""Messages of protobuf in expressions: their costs, their bytes, and their conversions.

Their values are recorded in answers.jsonl; the numbers in this file are those that Kubernetes 1.36 counted.
"""

from __future__ import annotations

import pytest

from scanner.cel import BOOL, CompileError, Environment, EvaluationError, Message, compile, find_wrapper_differences
from scanner.cel.protobuf.messages import MESSAGES
from scanner.cel.values.wrapped_values import wrap_values
from tests.cel.measuring import ACTIVATION, ENVIRONMENT, OBJECT, cost_of

COSTS: tuple[tuple[str, int], ...] = (
    ("google.protobuf.Empty{}", 40),
    ("google.protobuf.Int32Value{value: object.spec.replicas}", 43),
    ("google.protobuf.Int32Value{?value: object.spec.?replicas}", 43),
    ("google.protobuf.Int32Value{value: 'a' == 'b' ? 1 : 2}", 41),
    ("google.protobuf.StringValue{value: object.spec.text}.startsWith('abc')", 46),
    ("google.protobuf.StringValue{value: dyn(1)}", 40),
    ("google.protobuf.StringValue{value: object.spec.missing}", 43),
    ("google.protobuf.NullValue.NULL_VALUE", 0),
    ("google.protobuf.NullValue.NULL_VALUE in [0, 1]", 0),
    ("google.protobuf.Struct{fields: object.metadata.labels}", 43),
    ("google.protobuf.Struct{fields: object.metadata.labels}.app", 45),
    ("has(google.protobuf.Struct{fields: object.metadata.labels}.app)", 44),
    ("google.protobuf.Struct{fields: object.metadata.labels}.?gone", 44),
    ("google.protobuf.Struct{fields: object.metadata.labels} == object.metadata.labels", 47),
    ("google.protobuf.ListValue{values: object.spec.names} == object.spec.names", 47),
    ("google.protobuf.ListValue{values: object.spec.names}.all(n, n != '')", 56),
    ("google.protobuf.ListValue{values: object.spec.mixed}[1]", 45),
    ("'a' in google.protobuf.ListValue{values: object.spec.names}", 46),
    ("google.protobuf.ListValue{values: [b'abcdefghijklmnopqrstuvwxyz']}[0] + 'x'", 46),
    ("google.protobuf.Any{type_url: 'x/google.protobuf.ListValue', value: b'\\n\\x00\\n\\x00'}.size()", 41),
    ("google.protobuf.Timestamp{seconds: 5, nanos: 6}.getSeconds()", 41),
    ("google.protobuf.Duration{seconds: 5} < duration('6s')", 41),
    ("google.protobuf.Empty{} == google.protobuf.Empty{}", 81),
    ("dyn(google.protobuf.Empty{}).missing", 43),
    ("has(dyn(google.protobuf.Struct.FieldsEntry{key: 'a'}).key)", 42),
    ("object.spec.names.map(n, google.protobuf.StringValue{value: n})", 163),
    ("string(google.protobuf.Value{struct_value: object.metadata.labels}.app)", 46),
    ("[google.protobuf.Int32Value{value: 1}, 2].sum()", 52),
    ("google.protobuf.BytesValue{value: dyn([1u, 2u])} + b'c'", 41),
    ("google.protobuf.Any{type_url: 'x/google.protobuf.BoolValue'} || true", 40),
    ("timestamp{}", 40),
    ("kubernetes.AdmissionRequest{name: 'a'}", 40),
)
WRAPPER = "google.protobuf.Int32Value{value: 1}"


@pytest.mark.parametrize(("text", "cost"), COSTS)
def test_a_message_costs_what_it_costs_kubernetes(text: str, cost: int) -> None:
    """A message costs 40, and its conversion nothing."""
    assert cost == cost_of(text)


@pytest.mark.parametrize("version", [(1, minor) for minor in range(30, 38)])
@pytest.mark.parametrize("name", sorted(MESSAGES))
def test_every_release_knows_every_message(name: str, version: tuple[int, int]) -> None:
    """Every release from 1.30 to 1.37 has the same messages."""
    assert compile(f"[{name}{{}}].size() == 1", Environment(version=version)).result_type == BOOL


@pytest.mark.parametrize("name", sorted(name for name, message in MESSAGES.items() if not message.named))
def test_a_message_that_is_a_plain_value_is_no_type_of_its_own(name: str) -> None:
    """The name of a message that becomes a plain value can make values, but is no value."""
    with pytest.raises(CompileError) as refused:
        compile(f"type(1) == {name}", ENVIRONMENT)

    assert f"program instantiation failed: reference to undefined type: {name}" == refused.value.detail


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (r"\x08\x01", 1),
        (r"", 0),
        (r"\x08\x01\x08\x02", 2),
        (r"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", -1),
        (r"\x08\xff\xff\xff\xff\x0f", -1),
        (r"\x12\x01a\x08\x07", 7),
        (r"\x0b\x08\x05\x0c\x08\x07", 7),
        (r"\x0d\x01\x00\x00\x00\x08\x03", 3),
    ],
    ids=repr,
)
def test_bytes_are_read_as_protobuf_reads_them(data: str, expected: int) -> None:
    """The last occurrence of a field counts, fields of other numbers and wire types are skipped, numbers are cut to their bits."""
    text = f"google.protobuf.Any{{type_url: 'x/google.protobuf.Int32Value', value: b'{data}'}}"
    assert expected == compile(text, ENVIRONMENT).evaluate(ACTIVATION)


@pytest.mark.parametrize(
    "data",
    [
        r"\x08",
        r"\x00",
        r"\x0b",
        r"\x0b\x14",
        r"\x0c",
        r"\x0a\x05a",
        r"\x09\x01",
        r"\x0f\x01",
        r"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02",
        r"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
    ],
)
def test_malformed_bytes_are_no_message(data: str) -> None:
    """Malformed bytes are an error of the evaluation, with the text of the message."""
    text = f"google.protobuf.Any{{type_url: 'x/google.protobuf.Int32Value', value: b'{data}'}}"
    with pytest.raises(
        EvaluationError, match=r"^unsupported conversion to ref\.Val: \(\*dynamicpb\.Message\)type_url:"
    ):
        compile(text, ENVIRONMENT).evaluate(ACTIVATION)


def test_a_generated_function_makes_the_same_messages() -> None:
    """The generated function makes the same message as the closures."""
    program = compile("google.protobuf.Struct{fields: object.metadata.labels}.app == 'web'", ENVIRONMENT)
    function = program.generate()
    assert function is not None
    assert (True, True, True) == (
        function(ACTIVATION),
        program.evaluate_exactly(ACTIVATION),
        program.measure(ACTIVATION).outcome,
    )


def test_a_generated_function_allows_for_null_in_a_nullable_type() -> None:
    """The type of a wrapper accepts null, so the generated function does not rely on a number."""
    program = compile(f"(object.spec.paused ? {WRAPPER} : null) + 1 == 2", ENVIRONMENT)
    program.generate()
    with pytest.raises(EvaluationError, match=r"^no such overload: _\+_$"):
        program.evaluate(ACTIVATION)


def test_a_variable_whose_expression_makes_a_wrapper_is_declared_as_any_type() -> None:
    """A variable whose expression makes a wrapper has the type dyn: Kubernetes declares variables by plain types only."""
    declared = ENVIRONMENT.add_variable("x", compile(WRAPPER, ENVIRONMENT).result_type)
    assert "dyn" == str(compile("variables.x", declared).result_type)


def test_a_message_that_is_no_plain_value_stays_a_message() -> None:
    """Such a message has its own type and fields, and an unset field reads as its zero value."""
    message = compile("google.protobuf.Struct.FieldsEntry{value: 1}", ENVIRONMENT).evaluate(ACTIVATION)
    assert isinstance(message, Message)
    assert ("google.protobuf.Struct.FieldsEntry", {"value": 1.0}, "") == (
        message.type.name,
        message.fields,
        message.find("key"),
    )


def test_wrapped_values_are_no_json_from_1_37_on() -> None:
    """From 1.37 on a list of a native object cannot be part of a message's list; its elements can be copied."""
    program = compile("google.protobuf.ListValue{values: [object.spec.numbers]}", ENVIRONMENT)
    copied = compile("google.protobuf.ListValue{values: object.spec.numbers}", ENVIRONMENT)
    wrapped = [id(OBJECT["spec"]["numbers"])]
    with wrap_values(lambda value: id(value) in wrapped):
        assert [3.0, 1.0, 2.0] == copied.evaluate(ACTIVATION)
        with pytest.raises(EvaluationError, match=r"type conversion error from 'list\(dyn\)' to '\*structpb\.Value'$"):
            program.evaluate(ACTIVATION)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("google.protobuf.ListValue{values: [object.spec]} == []", ("google.protobuf.ListValue{values: list}",)),
        (
            "google.protobuf.Struct{fields: namespaceObject.metadata.labels} == {}",
            ("google.protobuf.Struct{fields: map}",),
        ),
        ("google.protobuf.StringValue{value: namespaceObject.metadata.name} == ''", ()),
        ("google.protobuf.Struct{fields: {'a': 1}} == {}", ()),
    ],
)
def test_messages_of_request_values_may_differ_in_1_37(text: str, expected: tuple[str, ...]) -> None:
    """A message that gets a list or map of the request may have another outcome in 1.37."""
    assert expected == tuple(
        difference.text
        for difference in find_wrapper_differences(text, Environment(version=(1, 37)))[1]
        if "protobuf" in difference.text
    )
