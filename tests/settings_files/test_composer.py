"""Settings files are read with places, and hostile ones are refused with line and column."""

from __future__ import annotations

from enum import StrEnum

import pytest

from scanner.documents.composer import DEEPEST, compose
from scanner.documents.nodes import BadDocument, Node, Position
from scanner.files import SETTINGS


def _only(text: str | bytes) -> Node:
    data = text if isinstance(text, bytes) else text.encode()
    [node] = compose(data, "f.yaml")
    return node


def test_every_value_has_its_place_and_path() -> None:
    """Lines and columns count from 1, and a path names fields and items."""
    node = _only("a:\n  - b: 1\n    c: [x, yes]\n")
    item = node.entries()["a"].items()[0]
    last = item.entries()["c"].items()[1]
    assert (Position("f.yaml", 3, 12), "a[0].c[1]", True, "yes") == (last.place, last.path, last.value, last.text)
    assert Position("f.yaml", 3, 5) == item.keys["c"]


def test_documents_follow_each_other_and_empty_ones_are_left_out() -> None:
    """`---` separates documents."""
    nodes = list(compose(b"---\na: 1\n---\n---\n# nothing\n---\nb: 2\n", "f.yaml"))
    assert [{"a": 1}, {"b": 2}] == [node.json() for node in nodes]


def test_json_is_read_too() -> None:
    """A JSON text is YAML."""
    assert {"a": ["x", 1.5, None, {"b": False}]} == _only('{"a": ["x", 1.5, null, {"b": false}]}').json()


def test_a_date_is_a_string_and_a_byte_order_mark_is_no_text() -> None:
    """Dates stay as they are written."""
    assert {"until": "2026-12-31"} == _only(b"\xef\xbb\xbfuntil: 2026-12-31\n").json()


HOSTILE = [
    (b"a: &x [1]\nb: *x\n", 2, 4, "an alias is not supported: quote a value that begins with *"),
    (b"a: &x [*x]\n", 1, 8, "an alias is not supported: quote a value that begins with *"),
    (b"a: &x {b: 1}\n<<: *x\n", 2, 5, "an alias is not supported: quote a value that begins with *"),
    (b"a: 1\nb: !!python/object:os.system {}\n", 2, 4, "a tag is not supported: quote a value that begins with !"),
    (b"a: !foo x\n", 1, 4, "a tag is not supported"),
    (b"a: !!int '1'\n", 1, 4, "a tag is not supported"),
    (b"a: 1\nb: 2\na: 3\n", 3, 1, "the key a is repeated: line 1 has it, too"),
    (b"? [a]\n: b\n", 1, 3, "a key is a list or an object"),
    (b"a: .inf\n", 1, 4, ".inf has no form in JSON"),
    (b"a: 1\nb: x\0y\n", 2, 5, "the character U+0000 is not allowed"),
    (b"a: 1\n  \x1b[31m\n", 2, 3, "the character U+001B is not allowed"),
    (b"a: 1\r\nb: x\xff\n", 2, 5, "a byte is not UTF-8"),
    (b"\xff\xfea\0:\0", 1, 1, "a byte is not UTF-8"),
    (b"a: [\n", 2, 1, "this is not YAML: did not find expected node content"),
    (b"a: 1\n\tb: 1\n", 2, 1, "this is not YAML: found a tab character that violates indentation"),
    (b"a: b: c\n", 1, 5, "this is not YAML: mapping values are not allowed in this context"),
    (b"[" * 100_000, 1, DEEPEST + 1, f"the document is nested deeper than {DEEPEST} levels"),
    (b"a: x\n" * (50 * 1024 * 1024 // 5), SETTINGS // 5 + 1, 4, "the file has more than 8 MiB: split it"),
]  # fmt: skip


@pytest.mark.parametrize(("data", "line", "column", "problem"), HOSTILE, ids=[case[3][:40] for case in HOSTILE])
def test_a_hostile_document_is_refused_with_its_place(data: bytes, line: int, column: int, problem: str) -> None:
    """Aliases, tags, repeated keys, control characters, depth and size are errors."""
    with pytest.raises(BadDocument) as refused:
        list(compose(data, "f.yaml"))
    assert Position("f.yaml", line, column) == refused.value.place
    assert refused.value.problem.startswith(problem)
    assert str(refused.value).startswith(f"f.yaml, line {line}, column {column}: ")


def test_an_unknown_field_is_refused_with_the_nearest_name() -> None:
    """The place is that of the key."""
    with pytest.raises(BadDocument, match=r"f.yaml, line 2, column 3: unknown field spec.untill. Did you mean until\?"):
        _only("spec:\n  untill: x\n").entries()["spec"].fields(("from", "until"))


def test_an_unknown_field_that_is_like_none_is_refused_with_all_names() -> None:
    """Nothing is ignored."""
    with pytest.raises(BadDocument, match=r"unknown field zzz. The fields are from, until.$"):
        _only("zzz: 1\n").fields(("from", "until"))


def test_a_field_that_is_null_is_left_out() -> None:
    """`key:` without a value is the same as no key."""
    assert {} == _only("until:\n").fields(("until",))


class _Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


@pytest.mark.parametrize(
    ("text", "question", "problem"),
    [
        ("1234", "string", "a: must be a string, not a number: quote it"),
        ("yes", "string", "a: must be a string, not a boolean: quote it"),
        ("[x]", "string", "a: must be a string, not a list"),
        ("'  '", "string", "a: must not be empty"),
        ("{b: 1}", "strings", "a: must be a list, not an object"),
        ("[x, 1]", "strings", "a[1]: must be a string, not a number: quote it"),
        ("{b: 1}", "string_map", "a.b: must be a string, not a number: quote it"),
        ("x", "entries", "a: must be an object, not a string"),
        ("'true'", "boolean", "a: must be true or false, not a string"),
        ("true", "integer", "a: must be a whole number, not a boolean"),
        ("1.5", "integer", "a: must be a whole number, not a number"),
        ("-1", "integer", "a: must be 0 or more"),
        ("x", "number", "a: must be a number, not a string"),
        ("2026-02-30", "day", "a: must be a date: write it as YYYY-MM-DD, such as 2026-12-31"),
        ("'20261231'", "day", "a: must be a date: write it as 2026-12-31"),
        ("2026-12-31T00:00:00Z", "day", "a: must be a date: write it as YYYY-MM-DD, such as 2026-12-31"),
    ],
)  # fmt: skip
def test_a_value_of_another_type_is_refused(text: str, question: str, problem: str) -> None:
    """The message names the field, and what the value must be."""
    with pytest.raises(BadDocument) as refused:
        getattr(_only(f"a: {text}").entries()["a"], question)()
    assert problem == refused.value.problem


def test_a_choice_is_refused_with_the_nearest_one() -> None:
    """The message lists all."""
    with pytest.raises(BadDocument, match=r"must be one of red, blue. Did you mean blue\?"):
        _only("a: bleu").entries()["a"].choice(_Colour)
