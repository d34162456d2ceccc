"""What each Kubernetes release makes of an expression: sections 3 and 8 of the notes on 1.37."""

from __future__ import annotations

import pytest
from scanner.cel.functions.releases import DIFFERENCES

from scanner import cel
from scanner.cel.functions import LIBRARIES


def answer(text: str, release: tuple[int, int], *, compatible: tuple[int, int] | None = None) -> object:
    """The value, or the error in upstream's words without its position."""
    environment = cel.Environment(version=release, compatible=compatible)
    try:
        value = cel.compile(text, environment).evaluate({})
    except cel.CompileError as error:
        return str(error).splitlines()[0].partition(": <input>:")[2].partition(": ")[2] or str(error)
    except cel.EvaluationError as error:
        return str(error)
    return repr(value) if isinstance(value, cel.Optional) else value


def undeclared(name: str) -> str:
    """The refusal of a function that a release does not have."""
    return f"undeclared reference to '{name}' (in container '')"


@pytest.mark.parametrize(
    ("text", "since", "before", "after"),
    [
        ("format.dns1123Label().validate('a').hasValue()", 31, undeclared("format"), False),
        ("[1].transformList(i, v, i + v)", 32, undeclared("transformList"), [1]),
        ("[1].all(i, v, i < v)", 32, undeclared("all"), True),
        ("isSemver('1.2.3')", 33, undeclared("isSemver"), True),
        ("[1].first()", 33, undeclared("first"), "Optional(1)"),
        ("[optional.of(1)].unwrapOpt()", 33, undeclared("unwrapOpt"), [1]),
        ("[2, 1].sort()", 34, undeclared("sort"), [1, 2]),
        ("[2, 1].sortBy(x, x)", 34, undeclared("sortBy"), [1, 2]),
        ("'x'.reverse()", 34, undeclared("reverse"), "found no matching overload for 'reverse' applied to 'string.()'"),
        ("[1].includes(1)", 37, undeclared("includes"), True),
        ("'ab'.indexOf('z', 9)", 32, "index out of range: 9", -1),
        ("''.lastIndexOf('z')", 34, "index out of range: -1", -1),
        ("cidr('10.0.0.0/8').containsCIDR('10.1.0.0/16')", 33, False, True),
        ("'%e'.format([2.5])", 33, "2.500000 \u00d7 10\u2070\u2070", "2.500000\u00d710\u2070\u2070"),
        ("'%s'.format([[1, dyn('a')]])", 31, "expected type 'int' but found 'dyn'", '[1, "a"]'),
        ("'%s'.format([1, 2])", 31, "1", "too many arguments supplied to string.format (expected 1, got 2)"),
        ("{'a-b': 1}.`a-b`", 37, "unsupported syntax: '`'", 1),
        ("[1].all(x, .x == 1)", 37, True, undeclared(".x")),
        ("[{'IP': 1}].all(net, dyn(net.IP) == 1)", 37, False, True),
        (
            "duration(1)",
            37,
            "invalid duration argument",
            "found no matching overload for 'duration' applied to '(int)'",
        ),
        ("dyn(1).orValue(2)", 37, 1, "no such overload"),
        ("[optional.of(optional.of(1))].all(o, o.value().value() == 1)", 37, "no such overload: value(int)", True),
        ("lists.range(-1).size()", 37, 0, "lists.range: size must be non-negative, got -1"),
        ("'ab'.indexOf('', 9)", 37, 9, 2),
        ("'ab'.lastIndexOf('', -1)", 37, -1, "index out of range: -1"),
        ("[quantity('8Ei')].all(q, q.add(1).isGreaterThan(q))", 37, False, True),
    ],
)
def test_a_release_brings_a_change(text: str, since: int, before: object, after: object) -> None:
    """The release before answers in the old way, and every one from then on in the new way."""
    first = 34 if "lists.range" in text else 30

    answers = {minor: answer(text, (1, minor)) for minor in range(first, 38)}

    assert answers == {minor: before if minor < since else after for minor in range(first, 38)}


@pytest.mark.parametrize(
    ("text", "since", "refusal"),
    [
        ("[1].includes(1)", 37, undeclared("includes")),
        ("[2, 1].sort() == [1, 2]", 34, undeclared("sort")),
        ("[1].all(i, v, i < v)", 32, undeclared("all")),
    ],
)
def test_what_a_release_adds_is_written_one_release_later(text: str, since: int, refusal: str) -> None:
    """A stored expression may use it at once, a new one only when the release before has it too."""
    release = (1, since)

    assert answer(text, release) is True
    assert refusal == answer(text, release, compatible=(1, since - 1))
    assert answer(text, (1, since + 1), compatible=release) is True


def test_what_comes_with_the_interpreter_is_written_at_once() -> None:
    """`first` is no feature of Kubernetes' own, so nothing keeps a new policy from it."""
    assert "Optional(1)" == answer("[1].first()", (1, 33), compatible=(1, 32))


def test_nothing_changed_from_1_34_to_1_36() -> None:
    """No library and no difference begins or ends between the two."""
    edges = {edge for library in LIBRARIES for edge in (library.since, library.until)}
    edges |= {edge for difference in DIFFERENCES for edge in (difference.since, difference.until)}

    assert not edges & {(1, 35), (1, 36)}


def test_big_quantities_that_share_a_number_change_together() -> None:
    """Until 1.36 every result of arithmetic on a big quantity is that quantity."""
    text = "[quantity('8Ei')].all(q, [q.add(1), q.add(2)].all(r, r.compareTo(q) == 0))"

    assert answer(text, (1, 36)) is True
    assert answer(text, (1, 37)) is False


def test_small_quantities_never_change() -> None:
    """What fits into 64 bits is copied."""
    assert answer("[quantity('1')].all(q, q.add(1).isGreaterThan(q))", (1, 36)) is True


def test_a_quantity_is_read_anew_each_time() -> None:
    """What one evaluation did to a quantity, the next one does not see."""
    text = "quantity('8Ei').sub(1).compareTo(quantity('8Ei'))"

    assert [-1, -1] == [answer(text, (1, 36)) for _ in range(2)]


def cost(text: str, release: tuple[int, int]) -> int:
    """What an evaluation costs."""
    return cel.compile(text, cel.Environment(version=release)).measure({}).cost


@pytest.mark.parametrize(
    ("text", "costs"),
    [
        ("'{long}'.lowerAscii().size()", {31: 2, 32: 4, 36: 4, 37: 4}),
        ("'{long}'.startsWith('a')", {31: 3, 36: 3, 37: 1}),
        ("'a'.endsWith('{long}')", {31: 1, 36: 1, 37: 3}),
        ("matches('{long}', 'abcd')", {31: 1, 36: 1, 37: 4}),
        ("[1, 2].includes(2)", {37: 2}),
    ],
)
def test_what_calls_cost(text: str, costs: dict[int, int]) -> None:
    """Kubernetes' own functions cost what they do since 1.32; since 1.37 a prefix counts and not what it is looked for in."""
    written = text.replace("{long}", "a" * 30)

    assert costs == {minor: cost(written, (1, minor)) for minor in costs}
