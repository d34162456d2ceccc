"""Errors of syntax: which texts are expressions, the words of an error, its place, and its excerpt."""

from __future__ import annotations

import json
import re
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from scanner import cel
from scanner.cel.stack import run_with_room
from scanner.cel.syntax import parser, syntax_errors
from scanner.cel.syntax.source import Source
from tests.conformance.cases import RECORDED, load
from tests.oracle.record import recorded_answers
from tests.thorough import examples

ENVIRONMENT = cel.Environment()
RELEASES = ((1, 30), (1, 36), (1, 37))
ACCEPTED: dict[str, list[str]] = json.loads((Path(__file__).parent / "accepted.json").read_text("utf-8"))
"""Generated texts by the releases that accept them, as an earlier parser did, which reported all errors of a text."""
PLACE = re.compile(r"<input>:(\d+):(\d+): Syntax error: (.*)")
LONGEST_HEADLINE, WIDEST_EXCERPT = 220, 72
WORDS = "a in for true 1 2u .5 'é' \"日本語\" r'\\d' '\\d' '''m b'x' `q-r` + - ! && || == = & ? : . , ( ) [ ] { } # ' @"
PIECES = (
    *WORDS.split(),
    *("\n", "\t", "  ", "// c\n", "e\u0301", "\u00a0", "\x1b", "\ud800", "\u200b", "語", "x" * 90),
)


def message(text: str) -> str:
    """Return the error of an expression that does not compile."""
    with pytest.raises(cel.CompileError) as refused:
        cel.compile(text, ENVIRONMENT)
    return str(refused.value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a b", "1:3: Syntax error: unexpected name 'b', expected an operator or the end of the expression\n | a b\n | ..^"),
        ("f(a 'b')", "1:5: Syntax error: unexpected string 'b', expected an operator, ',' or ')'\n | f(a 'b')\n | ....^"),
        ("[1,,2]", "1:4: Syntax error: unexpected ',', expected a value or ']'\n | [1,,2]\n | ...^"),
        ("[, 1]", "1:4: Syntax error: unexpected number 1, expected ']'\n | [, 1]\n | ...^"),
        ("{1}", "1:3: Syntax error: unexpected '}', expected an operator or ':'\n | {1}\n | ..^"),
        ("a.b{c: 1,,}", "1:10: Syntax error: unexpected ',', expected a field name or '}'\n | a.b{c: 1,,}\n | .........^"),
        ("!-a", "1:3: Syntax error: unexpected name 'a', expected a number\n | !-a\n | ..^"),
        ("a.in", "1:3: Syntax error: unexpected reserved word 'in', expected a field name\n | a.in\n | ..^"),
        ("1 `a`", "1:3: Syntax error: unexpected quoted name `a`, expected an operator or the end of the expression\n | 1 `a`\n | ..^"),
        ("a = 1", "1:3: Syntax error: unknown operator '=' (use '==')\n | a = 1\n | ..^"),
        ("a or b", "1:3: Syntax error: unexpected name 'or', expected an operator or the end of the expression (use '||')\n | a or b\n | ..^"),
        ("a; b", "1:2: Syntax error: unknown character ';'\n | a; b\n | .^"),
        ("a “b”", "1:3: Syntax error: unknown character '“' (U+201C)\n | a “b”\n | ..^"),
        ("a\u00a0b", "1:2: Syntax error: unknown character U+00A0\n | a b\n | .^"),
    ],
)  # fmt: skip
def test_an_error_names_the_token_and_what_can_stand_there(text: str, expected: str) -> None:
    """The error has line, column, the token, a few alternatives, and the line with a caret."""
    assert f"ERROR: <input>:{expected}" == message(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("'abc", "1:1: Syntax error: unterminated string, no closing ' in this line\n | 'abc\n | ^"),
        ("r'\\d", "1:2: Syntax error: unterminated string, no closing ' in this line\n | r'\\d\n | .^"),
        ("'abc\\", "1:1: Syntax error: unterminated string, no closing ' in this line\n | 'abc\\\n | ^"),
        ("'a\nb'", "1:1: Syntax error: unterminated string, no closing ' in this line\n | 'a\n | ^"),
        ('"""a\nb', '1:3: Syntax error: unterminated string, no closing """\n | """a\n | ..^'),
        ("'^\\d'", "1:3: Syntax error: invalid escape '\\d' in a string (use '\\\\d' or a raw string, r'…')\n | '^\\d'\n | ..^"),
        ('"""a\n\\d"""', "2:1: Syntax error: invalid escape '\\d' in a string (use '\\\\d' or a raw string, r\"…\")\n | \\d\"\"\"\n | ^"),
    ],
)  # fmt: skip
def test_a_broken_string_has_an_error_of_its_own(text: str, expected: str) -> None:
    """The error tells a string without its end from an invalid escape, and points at the string or at the escape."""
    assert f"ERROR: <input>:{expected}" == message(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("f(a", "1:4: Syntax error: unexpected end of the expression, expected ')' for the '(' at 1:2\n | f(a\n | ...^"),
        ("a(\n[b)\n", "2:3: Syntax error: unexpected ')', expected ']' for the '[' at 2:1\n | [b)\n | ..^"),
        ("{1: 2", "1:6: Syntax error: unexpected end of the expression, expected '}' for the '{' at 1:1\n | {1: 2\n | .....^"),
        ("a)", "1:2: Syntax error: unexpected ')', expected an operator or the end of the expression\n | a)\n | .^"),
    ],
)  # fmt: skip
def test_an_open_bracket_is_named_with_its_place(text: str, expected: str) -> None:
    """An error where a bracket should be closed has the line and the column of the opening bracket."""
    assert f"ERROR: <input>:{expected}" == message(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a &&\n  b c &&\n  d", "2:5: Syntax error: unexpected name 'c', expected an operator or the end of the expression\n |   b c &&\n | ....^"),
        ("a &&  // c\n\n", "1:5: Syntax error: unexpected end of the expression, expected a value\n | a &&  // c\n | ....^"),
        ("\ta\tb", "1:4: Syntax error: unexpected name 'b', expected an operator or the end of the expression\n |  a b\n | ...^"),
        ("'é' b", "1:5: Syntax error: unexpected name 'b', expected an operator or the end of the expression\n | 'é' b\n | ....^"),
        ("'日本' b", "1:6: Syntax error: unexpected name 'b', expected an operator or the end of the expression\n | '日本' b\n | .......^"),
        ("'e\u0301' b", "1:6: Syntax error: unexpected name 'b', expected an operator or the end of the expression\n | 'e\u0301' b\n | ....^"),
    ],
)  # fmt: skip
def test_the_caret_stands_under_the_token(text: str, expected: str) -> None:
    """Columns count characters, the caret counts columns of a terminal; the end is behind the last token."""
    assert f"ERROR: <input>:{expected}" == message(text)


@pytest.mark.parametrize("text", ["", "  \n ", "\n"])
def test_an_empty_expression_is_called_empty(text: str) -> None:
    """An expression of white space has no line to show."""
    assert "ERROR: <input>:1:1: Syntax error: the expression is empty" == message(text)


def test_an_earlier_error_that_does_not_end_the_parse_comes_first() -> None:
    """A reserved name is often the cause of the error behind it; of such errors the first is reported."""
    expected = (
        "ERROR: <input>:1:1: reserved identifier: for\n | for x as\n | ^\n"
        "ERROR: <input>:1:5: Syntax error: unexpected name 'x', expected an operator or the end of the expression\n"
        " | for x as\n | ....^"
    )
    assert expected == message("for x as")


@pytest.mark.parametrize(
    "text",
    [
        "a b" * 30_000,
        "'" + "x" * 99_000,
        "x" * 90_000 + " y",
        "a" + "\u0301" * 99_000,
        "#" * 99_000,
        "(" * 99_000,
        "'" + "日" * 50_000 + "' b",
        "[" + "as," * 30_000,
        "x" * 1_000_000,
        "a = '" + "x" * 1_000_000,
    ],
    ids=lambda text: text[:10].encode("ascii", "replace").decode(),
)
def test_an_error_of_a_hostile_text_is_short(text: str) -> None:
    """The error of a line of any length has a few lines that fit a terminal."""
    assert 2 * (LONGEST_HEADLINE + 2 * WIDEST_EXCERPT) > len(message(text))


@pytest.mark.parametrize("releases", ACCEPTED)
def test_the_same_texts_are_expressions_as_ever(releases: str) -> None:
    """Each release accepts and refuses each recorded text as before."""
    assert dict.fromkeys(ACCEPTED[releases], releases) == {text: accepting(text) for text in ACCEPTED[releases]}


def accepting(text: str) -> str:
    """Return the releases whose parser accepts a text."""
    return " ".join(f"{major}.{minor}" for major, minor in RELEASES if is_accepted(text, (major, minor)))


def is_accepted(text: str, version: tuple[int, int]) -> bool:
    """Return whether the parser of a release finds no error."""
    try:
        return not run_with_room(lambda: parser.parse(text, version, version))[1]
    except parser.InvalidSyntax:
        return False


def test_an_error_is_at_the_place_of_the_servers_first_error() -> None:
    """The place is the server's, but for an invalid escape, and for the end of the expression, which is behind its last token."""
    recorded = [(case["expr"], case["error"]) for case in load(RECORDED / "rejected-expressions.json.gz")]
    recorded += [(answer["expression"], answer["answer"].get("refused", "")) for answer in recorded_answers()]
    places = {
        text: (PLACE.findall(theirs)[0], PLACE.findall(message(text))[0])
        for text, theirs in recorded
        if PLACE.search(theirs)
    }
    moved = {text: ours[2] for text, (theirs, ours) in places.items() if theirs[:2] != ours[:2]}
    assert len(places) > 400
    assert {} == {
        text: words
        for text, words in moved.items()
        if not words.startswith("invalid escape")
        and not (words.startswith("unexpected end") and re.search(r"\s$|//", text))
    }


@given(st.lists(st.sampled_from(PIECES), max_size=30).map("".join) | st.text(max_size=120))
@settings(max_examples=examples(1500), deadline=None)
def test_an_error_of_any_text_points_into_its_line(text: str) -> None:
    """Any text is accepted or has an error whose caret is under its character, in lines that fit a terminal."""
    try:
        run_with_room(lambda: parser.parse(text))
    except parser.InvalidSyntax as error:
        for issue in error.issues:
            assert_pointed(text, issue.offset, syntax_errors.describe(Source(text), [issue]))


def assert_pointed(text: str, offset: int, described: str) -> None:
    """Assert that the excerpt of an error is short, and has the character at an offset above its caret."""
    headline, *excerpt = described.split("\n")
    before = text[:offset].rpartition("\n")[2]
    assert f"ERROR: <input>:{text.count(chr(10), 0, offset) + 1}:{len(before) + 1}: " in headline
    assert len(headline) <= LONGEST_HEADLINE
    assert headline.isprintable()
    if not excerpt:
        assert not (before + text[offset:]).partition("\n")[0].strip()
        return
    line, caret = (part.removeprefix(" | ") for part in excerpt)
    columns = len(caret) - 1
    assert ("." * columns + "^", True) == (caret, line.isprintable())
    assert columns <= cell_len(line) <= WIDEST_EXCERPT
    character = text[offset : offset + 1].strip("\n")
    if character.isprintable() and character and unicodedata.category(character) not in ("Mn", "Me"):
        assert character in [line[at] for at in range(len(line)) if cell_len(line[:at]) == columns]
