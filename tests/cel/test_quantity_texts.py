"""The texts of quantities in error messages, as Kubernetes' own CEL printed them."""

from __future__ import annotations

import pytest

from scanner.cel import (
    Authorizer,
    AuthorizerAnswer,
    AuthorizerSubject,
    Environment,
    EvaluationError,
    Question,
    compile,
)


class UncalledDecider:
    """A decider that must not be called."""

    def decide(self, question: Question) -> AuthorizerAnswer:
        raise AssertionError(question)


def printed(expression: str) -> str:
    """Return the text of a quantity in an error message."""
    program = compile(f"optional.of(null).optMap(k, {expression}).value()", Environment())
    with pytest.raises(EvaluationError) as error:
        program.evaluate({"object": {}})
    return str(error.value).removeprefix("unsupported conversion to ref.Val: (*resource.Quantity)")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0", "0"),
        ("-0", "0"),
        ("0Mi", "0"),
        ("1000", "1k"),
        ("+1000", "1k"),
        ("+999", "+999"),
        ("00010", "00010"),
        ("1.0", "1"),
        ("1.", "1."),
        (".5", "500m"),
        ("-1.5k", "-1500"),
        ("1000E", "1"),
        ("0.5n", "1n"),
        ("12345678901234567890", "12345678901234567890"),
        ("1E3", "1E3"),
        ("1e03", "1e03"),
        ("1e0", "1e0"),
        ("1.5e3", "1500"),
        ("1e20", "100e18"),
        ("5e-1", "500e-3"),
        ("1024Ki", "1Mi"),
        ("01Mi", "01Mi"),
        ("1.25Mi", "1280Ki"),
        ("1.1Ki", "1126400m"),
        ("1Ki", "1Ki"),
        ("16Ei", "9223372036854775807"),
    ],
)
def test_a_parsed_quantity_prints_in_canonical_form(text: str, expected: str) -> None:
    """A parsed quantity prints as written when its unit is canonical and it has no fraction, else in canonical form."""
    assert expected == printed(f"quantity('{text}')")


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("quantity('1').add(quantity('1500m'))", "2500m"),
        ("quantity('1Ki').add(quantity('1'))", "1025"),
        ("quantity('1Ki').sub(quantity('1Ki'))", "0"),
        ("quantity('1e3').add(quantity('1Ki'))", "2024"),
        ("quantity('0').add(quantity('1Ki'))", "1Ki"),
        ("quantity('9223372036854775807').add(1)", "9223372036854775808"),
    ],
)
def test_a_computed_quantity_has_the_style_of_its_first_number(expression: str, expected: str) -> None:
    """A computed quantity has the style of the first number that is not zero."""
    assert expected == printed(expression)


def test_more_digits_than_python_prints() -> None:
    """A quantity of 6,000 digits prints all digits, more than Python's own limit."""
    assert "9" * 6000 == printed(f"quantity('{'9' * 6000}')")


def test_a_value_that_has_no_text_shows_its_type() -> None:
    """An authorizer prints as its type, not as an address in memory: the same input gives the same report."""
    assert "<kubernetes.authorization.Authorizer>" == str(Authorizer(UncalledDecider(), AuthorizerSubject("alice")))
