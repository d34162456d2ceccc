"""YAML as kubectl reads it. The tables were compared with apimachinery 0.36's own decoder."""

from __future__ import annotations

import json

import pytest

from scanner.cluster.files.streams import read_pieces
from scanner.cluster.yaml import MAX_DEPTH, MalformedDocument, load
from scanner.model.json import Json

SCALARS: list[tuple[str, Json]] = [
    # Words
    ("yes", True), ("Yes", True), ("YES", True), ("y", True), ("Y", True), ("on", True), ("On", True), ("ON", True),
    ("true", True), ("True", True), ("TRUE", True),
    ("no", False), ("n", False), ("N", False), ("off", False), ("Off", False), ("false", False), ("FALSE", False),
    ("yEs", "yEs"), ("oN", "oN"), ("tRUE", "tRUE"),
    ("", None), ("~", None), ("null", None), ("Null", None), ("NULL", None), ("nULL", "nULL"), ("nil", "nil"),
    # Integers
    ("0", 0), ("-0", 0), ("+5", 5), ("12", 12), ("1_000", 1000), ("_1", "_1"), ("1__0", 10),
    ("0644", 420), ("0o644", 420), ("0O17", 15), ("-0o17", -15), ("0x1F", 31), ("+0x1F", 31), ("0X1f", 31),
    ("0b11", 3), ("-0b11", -3), ("0b12", "0b12"), ("0x", "0x"), ("0o8", "0o8"), ("00", 0),
    ("08", 8), ("09.5", 9.5), ("-09", -9), ("0_8", 8),
    ("9223372036854775807", 9223372036854775807), ("-9223372036854775808", -9223372036854775808),
    ("9223372036854775808", 9223372036854775808.0), ("18446744073709551616", 18446744073709551616.0),
    ("-9223372036854775809", -9223372036854775809.0), ("0xFFFFFFFFFFFFFFFF", 18446744073709551615.0),
    # Floats; a whole one is an integer in JSON
    ("1.0", 1), ("1.5", 1.5), ("-1.50", -1.5), ("1e3", 1000), ("1.e3", 1000), ("5.", 5), (".5", 0.5), ("+.5", 0.5),
    (".5_0", 0.5), ("._5", "._5"), ("1e", "1e"), ("1e400", "1e400"), ("1e-400", 0), ("-0.0", 0), ("0x1p3", "0x1p3"),
    ("1e18", 10**18), ("1e19", 1e19), ("1e21", 1e21), ("1234567890123456789.0", 1234567890123456800), ("1_0.5", 10.5),
    ("1" * 5000, "1" * 5000), ("0" * 5000 + "7", 7),
    # Neither
    ("1:30", "1:30"), ("12:30:45", "12:30:45"), ("190:20:30.15", "190:20:30.15"), ("=", "="), ("<<x", "<<x"),
    ("2020-01-01", "2020-01-01"), ("2020-01-01T10:10:10Z", "2020-01-01T10:10:10Z"), ("2020-1-1 1:2:3", "2020-1-1 1:2:3"),
    ("1.2.3", "1.2.3"), ("1Gi", "1Gi"), ("100m", "100m"), ("+", "+"), ("infinity", "infinity"), ("nan", "nan"),
    # Quoted and tagged
    ("'yes'", "yes"), ('"12"', "12"), ("'~'", "~"), ("!!str 12", "12"), ("!!str", ""), ("! 12", "12"), ("!foo 12", "12"),
    ("!!int '12'", 12), ("!!int 0777", 511), ("!!float 1", 1), ("!!bool yes", True), ("!!null ''", None),
    ("!!timestamp 2020-01-01", "2020-01-01"), ("!!timestamp 2020-01-01t1:1:1.5+01:00", "2020-01-01t1:1:1.5+01:00"),
    ("!!binary aGk=", "hi"), ("!!binary /w==", "\ufffd"), ("!!set x", "x"), ("!!merge x", "x"),
    ("!<tag:yaml.org,2002:str> 1", "1"), ("!!null [1]", [1]), ("!!str [1]", [1]),
    # Blocks are strings
    ("|\n  yes\n", "yes\n"), (">-\n  12\n  13", "12 13"), ("|-\n  ~", "~"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "value"), SCALARS)
def test_a_scalar_reads_as_kubectl_reads_it(text: str, value: Json) -> None:
    """The value and its type are those that the API server receives."""
    read = load(f"a: {text}")
    assert json.dumps({"a": value}) == json.dumps(read)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (".inf", ".inf has no form in JSON"),
        ("-.INF", "-.inf has no form in JSON"),
        (".nan", ".nan has no form in JSON"),
        ("!!float .inf", ".inf has no form in JSON"),
        ("!!bool 1", "the value is no !!bool"),
        ("!!int 1.5", "the value is no !!int"),
        ("!!int yes", "the value is no !!int"),
        ("!!int ''", "the value is no !!int"),
        ("!!float 1e400", "the value is no !!float"),
        ("!!float 18446744073709551615", "the value is no !!float"),
        ("!!null x", "the value is no !!null"),
        ("!!timestamp 2020-02-30", "the value is no !!timestamp"),
        ("!!timestamp foo", "the value is no !!timestamp"),
        ("!!binary '!'", "a !!binary value is not base64"),
        ("!!binary 'aGk'", "a !!binary value is not base64"),
    ],
)
def test_a_scalar_that_json_or_its_tag_cannot_hold_is_refused(text: str, why: str) -> None:
    """The document is refused, and the reason names the place."""
    with pytest.raises(MalformedDocument) as refused:
        load(f"\na: {text}")
    assert (why, 2, 4) == (refused.value.problem, refused.value.line, refused.value.column)


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("yes", "true"), ("off", "false"), ("1", "1"), ("0x10", "16"), ("08", "8"), ("1.5", "1.5"), ("1.0", "1"),
        ("1e5", "100000"), ("1e6", "1e+06"), ("1e20", "1e+20"), ("1234567.5", "1.2345675e+06"), ("123456.5", "123456.5"),
        (".0001", "0.0001"), ("1e-5", "1e-05"), ("0.1", "0.1"), ("16777217.0", "1.6777216e+07"), ("-0.0", "-0"),
        (".inf", ".inf"), ("1e39", ".inf"), ("-.inf", "-.inf"), (".nan", ".nan"), ("2020-01-01", "2020-01-01"),
        ("'1'", "1"), ("!!str yes", "yes"), ("key with space", "key with space"), ("-9223372036854775809", "-9.223372e+18"),
    ],
)  # fmt: skip
def test_keys_become_strings(key: str, text: str) -> None:
    """JSON has only strings as keys; numbers are written as Go writes them."""
    assert {text: "v"} == load(f"{key}: v")


@pytest.mark.parametrize(
    "text", ["~: v", "null: v", "? [a]\n: v", "? {a: 1}\n: v", "18446744073709551615: v", "a: &x [1]\n*x : v"]
)
def test_keys_that_json_cannot_have_are_refused(text: str) -> None:
    """Null, collections and integers beyond int64 are no keys."""
    with pytest.raises(MalformedDocument):
        load(text)


DOCUMENTS: list[tuple[str, Json]] = [
    ("a: 1\na: 2", {"a": 2}),
    ("a: &x 1\nb: *x", {"a": 1, "b": 1}),
    ("a: &x 1\nb: &x 2\nc: *x", {"a": 1, "b": 2, "c": 2}),
    ("x: &k foo\n*k : bar", {"x": "foo", "foo": "bar"}),
    ("a: &b\nc: *b", {"a": None, "c": None}),
    ("a: &x {c: 1, d: 2}\nb:\n  c: 3\n  <<: *x\n  d: 4", {"a": {"c": 1, "d": 2}, "b": {"c": 1, "d": 4}}),
    ("<<: [{a: 1}, {a: 2, b: 3}]", {"a": 1, "b": 3}),
    ("'<<': {a: 1}", {"<<": {"a": 1}}),
    ("!!merge '<<': {a: 1}", {"a": 1}),
    ("{a: 1}\n", {"a": 1}),
    ("- a\n- b", ["a", "b"]),
    ("%YAML 1.1\n---\na: 1", {"a": 1}),
    ("a: 1\n...\nb: 2", {"a": 1}),
    ("# nothing", None),
    ("", None),
    ("---\n", None),
    ('a: "\\u00e9\\x41\\N"', {"a": "éA\x85"}),
    ("a: 'x\n  y'", {"a": "x y"}),
]


@pytest.mark.parametrize(("text", "value"), DOCUMENTS)
def test_a_document_reads_as_kubectl_reads_it(text: str, value: Json) -> None:
    """The last of equal keys counts, and a merge overrides the keys before it, as in kubectl."""
    assert value == load(text)


@pytest.mark.parametrize(
    ("text", "problem", "line"),
    [
        ("a: b: c", "mapping values are not allowed in this context", 1),
        ("a:\n\tb: 1", "found character that cannot start any token", 2),
        ("a: *x", "unknown anchor referenced: quote a value that begins with *", 1),
        ("a: &x {b: *x}", "an anchor's value contains itself", 1),
        ("a: &x\n  <<: *x", "an anchor's value contains itself", 2),
        ("<<: 3", "map merge requires map or sequence of maps as the value", 1),
        ("<<: [{a: 1}, 3]", "map merge requires map or sequence of maps as the value", 1),
        ("a: &x [{b: 1}]\nb: {<<: *x}", "map merge requires map or sequence of maps as the value", 2),
        ("a: @x", "found character that cannot start any token", 1),
        ("a: [1, 2\nb: 3", "did not find expected ',' or ']'", 2),
    ],
)
def test_a_malformed_document_names_its_line(text: str, problem: str, line: int) -> None:
    """The message is the parser's, the line is that of the file."""
    with pytest.raises(MalformedDocument) as refused:
        load(text, line_offset=10)
    assert (problem, line + 10) == (refused.value.problem, refused.value.line)


def test_an_alias_bomb_is_refused() -> None:
    """Nine levels of nine aliases each would be a hundred million values."""
    levels = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    levels += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 9)]
    with pytest.raises(MalformedDocument, match="document contains excessive aliasing"):
        load("\n".join(levels))


def test_ordinary_use_of_aliases_is_no_bomb() -> None:
    """A thousand uses of one small anchor are accepted."""
    text = "base: &b {a: 1, b: 2}\nall:\n" + "- *b\n" * 1000
    assert 1000 == len(list(load(text)["all"]))  # type: ignore[index, call-overload, arg-type]


@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ("{a: ", "}")])
def test_nesting_has_a_limit(opening: str, closing: str) -> None:
    """A document that could not be written again is refused at any depth."""
    assert load(opening * MAX_DEPTH + closing * MAX_DEPTH) is not None
    with pytest.raises(MalformedDocument, match=f"nested deeper than {MAX_DEPTH} levels"):
        load(opening * 100_000)


STREAMS: list[tuple[str, list[Json]]] = [
    ("a: 1\n---\nb: 2\n", [{"a": 1}, {"b": 2}]),
    ("---\na: 1\n---\n---\n# only a comment\n---\nb: 2\n---", [{"a": 1}, {"b": 2}]),
    ("--- # why\na: 1", [{"a": 1}]),
    ("a: 1\r\nb: |\r\n  x\r\n  y\r\n---\r\nc: 2", [{"a": 1, "b": "x\ny\n"}, {"c": 2}]),
    ("\ufeffa: 1", [{"a": 1}]),
    ('{"a": 1.0}', [{"a": 1.0}]),
    ('{"a": 1.0}\n{"b": 2}', [{"a": 1.0}, {"b": 2}]),
    ('{"a": 1.0}\n---\nb: 1.0', [{"a": 1.0}, {"b": 1}]),
    ("{a: 1.0}\n---\nb: 2", [{"a": 1}, {"b": 2}]),
    ('{"a": 1, "a": 2}', [{"a": 2}]),
    ('{"a": 18446744073709551615}', [{"a": 18446744073709551615.0}]),
    ('{"a": 9223372036854775807}', [{"a": 9223372036854775807}]),
    ('{"a": "\\ud800"}', [{"a": "\ufffd"}]),
    ("[1, 2]", [[1, 2]]),
    ("", []),
    ("   \n", []),
]


@pytest.mark.parametrize(("text", "values"), STREAMS)
def test_a_stream_falls_into_documents(text: str, values: list[Json]) -> None:
    """Empty documents do not count; JSON keeps the difference between 1 and 1.0."""
    read = list(read_pieces(text.encode()))
    assert (json.dumps(values), list(range(1, len(values) + 1))) == (
        json.dumps([piece.value for piece in read]),
        [piece.number for piece in read],
    )


@pytest.mark.parametrize(
    ("data", "faults"),
    [
        (b"a: 1\n---\nb: [\n---\nc: 3\n", ["", "line 4, column 1: did not find expected node content", ""]),
        (b"a: 1\n--- foo\nb: 2\n---\nc: 3\n", ["", "line 2, column 1: invalid YAML document separator: begin", ""]),
        (b"a: \xff\n", ["byte 4 is not UTF-8: "]),
        (b"a: 1\nb: \0\n", ["line 2 holds a NUL byte: "]),
        (b"a: \x07\n", ["control characters are not allowed"]),
        (b'{"a": NaN}', [""]),
        (b'{"a": 1,', ["line 1, column 9: not JSON: "]),
        (b'{"a": 1}{"b": 2}{"c"', ["", "", "line 1, column 21: not JSON: "]),
        (b'{"a": 1e999}', ["a number is too large for a float"]),
        (b'{"a":' * 300 + b"1" + b"}" * 300, ["nested deeper than 240 levels"]),
        (b'{"a":' * 5000 + b"1" + b"}" * 5000, ["nested deeper than 240 levels"]),
        (b"\xff\xfea\0:\0 \x001\0", ["byte 1 is not UTF-8: "]),
    ],
)
def test_a_document_that_cannot_be_read_does_not_end_the_stream(data: bytes, faults: list[str]) -> None:
    """Each piece is read or has a reason, and the following pieces are read."""
    faults_found = [piece.fault for piece in read_pieces(data)]
    assert len(faults) == len(faults_found)
    assert all(
        fault in fault_found and bool(fault) == bool(fault_found)
        for fault, fault_found in zip(faults, faults_found, strict=True)
    ), faults_found
