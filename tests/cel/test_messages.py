"""Messages of protobuf in expressions: what they cost, what is in their bytes, and what becomes of them elsewhere.

What they are is recorded in answers.jsonl; the numbers here are the answers of Kubernetes 1.36 itself.
"""

from __future__ import annotations

import pytest

from scanner.cel import BOOL, CompileError, Environment, EvaluationError, Message, compile, wrapper_differences
from scanner.cel.protobuf.messages import MESSAGES
from scanner.cel.values.wrapped_values import wrapping
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
    """40 for making it, and nothing for what is converted."""
    assert cost == cost_of(text)


@pytest.mark.parametrize("version", [(1, minor) for minor in range(30, 38)])
@pytest.mark.parametrize("name", sorted(MESSAGES))
def test_every_release_knows_every_message(name: str, version: tuple[int, int]) -> None:
    """The files of protobuf that CEL begins with are the same from 1.30 to 1.37."""
    assert compile(f"[{name}{{}}].size() == 1", Environment(version=version)).result_type == BOOL


@pytest.mark.parametrize("name", sorted(name for name, message in MESSAGES.items() if not message.named))
def test_a_message_that_is_a_plain_value_is_no_type_of_its_own(name: str) -> None:
    """Its name can be made values of, and is none itself."""
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
    """The last of a field counts; fields of other numbers and wire types are passed over; numbers are cut to their bits."""
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
    """They are an error of the evaluation, in the words that show the message."""
    text = f"google.protobuf.Any{{type_url: 'x/google.protobuf.Int32Value', value: b'{data}'}}"
    with pytest.raises(
        EvaluationError, match=r"^unsupported conversion to ref\.Val: \(\*dynamicpb\.Message\)type_url:"
    ):
        compile(text, ENVIRONMENT).evaluate(ACTIVATION)


def test_a_generated_function_makes_the_same_messages() -> None:
    """All three evaluators use one table of messages."""
    program = compile("google.protobuf.Struct{fields: object.metadata.labels}.app == 'web'", ENVIRONMENT)
    function = program.generate()
    assert function is not None
    assert (True, True, True) == (
        function(ACTIVATION),
        program.evaluate_exactly(ACTIVATION),
        program.measure(ACTIVATION).outcome,
    )


def test_a_nullable_type_is_no_promise_to_the_generated_function() -> None:
    """A wrapper's type takes null, so that a function that relied on a number would be wrong."""
    program = compile(f"(object.spec.paused ? {WRAPPER} : null) + 1 == 2", ENVIRONMENT)
    program.generate()
    with pytest.raises(EvaluationError, match=r"^no such overload: _\+_$"):
        program.evaluate(ACTIVATION)


def test_a_variable_whose_expression_makes_a_wrapper_is_declared_as_any_type() -> None:
    """Kubernetes declares variables by plain types only."""
    declared = ENVIRONMENT.with_variable("x", compile(WRAPPER, ENVIRONMENT).result_type)
    assert "dyn" == str(compile("variables.x", declared).result_type)


def test_an_empty_message_stays_one() -> None:
    """It has a type and fields of its own, and reads unset fields as their zeros."""
    found = compile("google.protobuf.Struct.FieldsEntry{value: 1}", ENVIRONMENT).evaluate(ACTIVATION)
    assert isinstance(found, Message)
    assert ("google.protobuf.Struct.FieldsEntry", {"value": 1.0}, "") == (
        found.type.name,
        found.fields,
        found.find("key"),
    )


def test_wrapped_values_are_no_json_from_1_37_on() -> None:
    """The lists and maps of native objects stay Go values there; what they hold can be copied one by one."""
    program = compile("google.protobuf.ListValue{values: [object.spec.numbers]}", ENVIRONMENT)
    copied = compile("google.protobuf.ListValue{values: object.spec.numbers}", ENVIRONMENT)
    wrapped = [id(OBJECT["spec"]["numbers"])]
    with wrapping(lambda value: id(value) in wrapped):
        assert [3.0, 1.0, 2.0] == copied.evaluate(ACTIVATION)
        with pytest.raises(EvaluationError, match=r"type conversion error from 'list\(dyn\)' to '\*structpb\.Value'$"):
            program.evaluate(ACTIVATION)


@pytest.mark.parametrize(
    ("text", "told"),
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
def test_messages_of_what_is_read_can_tell(text: str, told: tuple[str, ...]) -> None:
    """Where a message is given a list or map of the request, 1.37 may answer otherwise."""
    assert told == tuple(
        it.text for it in wrapper_differences(text, Environment(version=(1, 37)))[1] if "protobuf" in it.text
    )
