"""`assay token create` prints a token once; the configuration gets its digest."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pytest

from scanner.cli.commands.catalog import list_settings
from scanner.config.configuration import read
from tests.cli.conftest import Assay

Write = Callable[[str, str], Path]


def test_a_token_is_printed_once(assay: Assay, write: Write) -> None:
    """Standard output has the token alone; the lines on stderr are those of the file, and do not have it."""
    ran = assay("token", "create", "grafana", "--expires", "2027-03-31")
    token = ran.stdout.decode().strip()
    assert (0, 1, "assay_") == (ran.code, len(ran.stdout.splitlines()), token[:6])
    assert token not in ran.stderr
    [lines] = [part for part in ran.stderr.split("\n\n") if part.startswith("tokens:")]
    path = write("assay.yaml", lines)
    [entry] = read(list_settings(), str(path), {}).tokens
    assert ("grafana", sha256(token.encode()).hexdigest(), "2027-03-31") == (
        entry.name,
        entry.digest,
        str(entry.expires),
    )


@pytest.mark.parametrize("name", ["123", "true", "null", "1e5"])
def test_a_name_may_look_like_another_value(assay: Assay, write: Write, name: str) -> None:
    """The lines are quoted."""
    [lines] = [part for part in assay("token", "create", name).stderr.split("\n\n") if part.startswith("tokens:")]
    [entry] = read(list_settings(), str(write("assay.yaml", lines)), {}).tokens
    assert name == entry.name


def test_a_token_has_256_random_bits(assay: Assay) -> None:
    """Each one is another one."""
    tokens = {assay("token", "create", "a").stdout.decode().strip() for _ in range(3)}
    assert 3 == len(tokens)
    assert {49} == {len(token) for token in tokens}


def test_a_token_without_an_end_is_one_on_purpose(assay: Assay) -> None:
    """The message says so."""
    assert "until these lines are removed" in assay("token", "create", "a").stderr
    assert "until these lines are removed" not in assay("token", "create", "a", "--expires", "2027-03-31").stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("a b",), "NAME a b: use at most 64 letters"),
        (("-", "--expires", "2027-03-31"), "NAME -: use"),
        (("a" * 65,), "use at most 64 letters"),
        (("a", "--expires", "soon"), "--expires soon: write a date such as 2027-03-31"),
    ],
)
def test_a_wrong_token_is_an_error(assay: Assay, arguments: tuple[str, ...], message: str) -> None:
    """No token is printed."""
    ran = assay("token", "create", *arguments)
    assert (2, b"") == (ran.code, ran.stdout)
    assert message in ran.stderr


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("tokens: {name: a}", "tokens: must be a list"),
        ("tokens: [a]", "tokens[0]: must be an object"),
        ("tokens: [{sha256: x}]", "tokens[0]: has no name"),
        ("tokens: [{name: a}]", "tokens[0]: has no sha256"),
        ("tokens: [{name: a, sha: x}]", "unknown field tokens[0].sha. Did you mean sha256?"),
        (f"tokens: [{{name: 'a b', sha256: {'0' * 64}}}]", "tokens[0].name: must have at most 64 letters"),
        (f"tokens: [{{name: a, sha256: {'A' * 64}}}]", "tokens[0].sha256: must have 64 hexadecimal digits"),
        (f"tokens: [{{name: a, sha256: {'b' * 64}, expires: soon}}]", "tokens[0].expires: must be a date"),
        (
            f"tokens: [{{name: a, sha256: {'b' * 64}}}, {{name: a, sha256: {'c' * 64}}}]",
            "tokens[1]: there are two tokens named a",
        ),
    ],
)
def test_a_wrong_entry_is_an_error_with_its_place(assay: Assay, write: Write, text: str, message: str) -> None:
    """As every key of the file."""
    write("assay.yaml", text)
    ran = assay("config", "check")
    assert 2 == ran.code
    assert message in ran.stderr
