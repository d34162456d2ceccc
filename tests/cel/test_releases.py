"""The outcomes of expressions in each Kubernetes release: every row of the table of changes, on every release."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from scanner import cel
from scanner.cel import releases
from scanner.cel.functions import LIBRARIES
from scanner.cel.releases import CHANGES, ReleaseChange, Version

NEWEST = 37
LONG = "a" * 30


def answer(text: str, release: Version) -> object:
    """Return the value, or the error in upstream's words without its position."""
    return _answer(text, cel.Environment(version=release))


def written(text: str, release: Version) -> object:
    """Return the same for a new policy, which may use the libraries of the release before."""
    return _answer(text, cel.Environment(version=release, compatible=(release[0], release[1] - 1)))


def required_bool(text: str, release: Version) -> object:
    """Return the same where the result has to be a bool."""
    return _answer(text, cel.Environment(version=release).require_results(cel.BOOL))


def refused(text: str, release: Version) -> object:
    """Return the compile error of an expression about permissions, or an empty text."""
    try:
        cel.compile(text, cel.Environment(version=release).extend(cel.AUTHORIZATION))
    except cel.CompileError as error:
        return _first(error)
    return ""


def cost(text: str, release: Version) -> object:
    """Return the cost of an evaluation, in cost units."""
    return cel.compile(text, cel.Environment(version=release)).measure({"object": {"a": 1}}).cost


def _answer(text: str, environment: cel.Environment) -> object:
    try:
        value = cel.compile(text, environment).evaluate({})
    except cel.CompileError as error:
        return _first(error)
    except cel.EvaluationError as error:
        return str(error)
    return repr(value) if isinstance(value, cel.Optional) else value


def _first(error: cel.CompileError) -> str:
    return str(error).splitlines()[0].partition(": <input>:")[2].partition(": ")[2] or str(error)


def undeclared(name: str) -> str:
    """Return the error of a name that a release does not have."""
    return f"undeclared reference to '{name}' (in container '')"


@dataclass(frozen=True, slots=True)
class Example:
    """An expression, and its outcomes in the releases without a change and with it; `first` is the oldest release compared."""

    change: ReleaseChange
    text: str
    answers: tuple[object, object]
    evaluate: Callable[[str, Version], object] = answer
    first: int = 30

    def expected(self, minor: int) -> object:
        """Return the outcome in a release."""
        return self.answers[self.change.holds((1, minor - 1 if self.evaluate is written else minor))]


_LOOSE = "a:b:80"
_PORT = 'URL parse error during conversion from string: parse "http://a:b:80/": invalid port ":b:80" after host'
NO_STRUCT = "unsupported field type for google.protobuf.Struct.fields: "
NO_LIST = "unsupported field type for google.protobuf.ListValue.values: "
UNEXPECTED = "unexpected compilation error: missing type conversion to proto: "
NO_OVERLOAD = "found no matching overload for "
EXAMPLES = (
    Example(releases.ADDRESSES, "isIP('::1')", (undeclared("isIP"), True), written),
    Example(releases.ADDRESSES, "isCIDR('::/0')", (undeclared("isCIDR"), True), written),
    Example(releases.NAMED_FORMATS, "format.dns1123Label().validate('a').hasValue()", (undeclared("format"), False)),
    Example(
        releases.SELECTORS,
        "authorizer.group('').resource('pods').labelSelector('a=b').check('list').allowed()",
        (undeclared("labelSelector"), ""),
        refused,
    ),
    Example(releases.TWO_VARIABLES, "[1].transformList(i, v, i + v)", (undeclared("transformList"), [1])),
    Example(releases.TWO_VARIABLES, "[1].all(i, v, i < v)", (undeclared("all"), True)),
    Example(releases.TWO_VARIABLES, "[1].all(i, v, i < v)", (undeclared("all"), True), written),
    Example(releases.SEMVER, "isSemver('1.2.3')", (undeclared("isSemver"), True)),
    Example(releases.OPTIONAL_LISTS, "[1].first()", (undeclared("first"), "Optional(1)")),
    Example(releases.OPTIONAL_LISTS, "[optional.of(1)].unwrapOpt()", (undeclared("unwrapOpt"), [1])),
    Example(releases.LISTS, "[2, 1].sort()", (undeclared("sort"), [1, 2])),
    Example(releases.LISTS, "[2, 1].sort() == [1, 2]", (undeclared("sort"), True), written),
    Example(releases.LISTS, "[2, 1].sortBy(x, x)", (undeclared("sortBy"), [1, 2])),
    Example(releases.LISTS, "'x'.reverse()", (undeclared("reverse"), f"{NO_OVERLOAD}'reverse' applied to 'string.()'")),
    Example(releases.INCLUDES, "[1].includes(1)", (undeclared("includes"), True)),
    Example(releases.INCLUDES, "[1].includes(1)", (undeclared("includes"), True), written),
    Example(releases.OPTIONAL_NAME, "type(optional.of(1)) == optional_type", (undeclared("optional_type"), True)),
    Example(
        releases.GENERIC_OPTIONAL_NAME,
        "[optional_type, int]",
        (
            "expected type 'type(optional_type)' but found 'type(int)'",
            "expected type 'type(optional_type(dyn))' but found 'type(int)'",
        ),
        first=31,
    ),
    Example(
        releases.KNOWN_BACKQUOTES,
        "1 `a`",
        (
            "Syntax error: unknown character '`'",
            "Syntax error: unexpected quoted name `a`, expected an operator or the end of the expression",
        ),
    ),
    Example(releases.QUOTED_FIELDS, "{'a-b': 1}.`a-b`", ("unsupported syntax: '`'", 1), first=33),
    Example(releases.VALID_CODE_POINTS, r"'\ud800'", ("\ufffd", "invalid unicode code point")),
    Example(releases.VALID_CODE_POINTS, r"'\Uffffffff'", ("\ufffd", "invalid unicode code point")),
    Example(releases.VALID_CODE_POINTS, r"'\U00110000'", ("unable to unescape string", "invalid unicode code point")),
    Example(releases.HIDDEN_ACCUMULATOR, "[1].exists(x, __result__)", (False, undeclared("__result__"))),
    Example(releases.HIDDEN_ACCUMULATOR, "[1, 2].map(x, __result__.size())", ([0, 1], undeclared("__result__"))),
    Example(releases.HIDDEN_ACCUMULATOR, "[1, 2, 3].filter(x, .__result__ == [])", ([1], undeclared(".__result__"))),
    Example(
        releases.HIDDEN_ACCUMULATOR,
        "[1, 0].all(x, 1 / x > 0 && __result__)",
        ("division by zero", undeclared("__result__")),
    ),
    Example(releases.HIDDEN_ACCUMULATOR, "[0, 1].exists_one(x, __result__ == x)", (False, undeclared("__result__"))),
    Example(
        releases.HIDDEN_ACCUMULATOR,
        "[true].all(__result__, __result__)",
        (True, "iteration variable overwrites accumulator variable"),
    ),
    Example(
        releases.HIDDEN_ACCUMULATOR,
        "[1].all(__result__, true)",
        (
            f"{NO_OVERLOAD}'@not_strictly_false' applied to '(int)'",
            "iteration variable overwrites accumulator variable",
        ),
    ),
    Example(
        releases.COPIED_TARGETS,
        "[optional.none()].size() == 1 && optional.none().optMap(x, x).hasValue()",
        (
            "incompatible type already exists for expression: (8) old:optional_type(_var5), new:optional_type(_var8)",
            False,
        ),
        first=31,
    ),
    Example(releases.COPIED_TARGETS, "optional.of(1).optMap(x, x + 1).value()", (2, 2)),
    Example(
        releases.TYPED_PAIRS,
        "dyn([1]).exists(i, v, v > 0)",
        (f"{NO_OVERLOAD}'_>_' applied to '(, int)'", True),
        first=32,
    ),
    Example(
        releases.TYPED_PAIRS,
        "dyn([1]).exists(i, v, v == v)",
        (f"{NO_OVERLOAD}'_==_' applied to '(, )'", True),
        first=32,
    ),
    Example(
        releases.TYPED_PAIRS,
        "dyn([1]).exists(i, v, dyn(v) > 0 && i == 0)",
        ("unexpected compilation error: missing type conversion to proto: ", True),
        first=32,
    ),
    Example(releases.TYPED_PAIRS, "dyn([0]).exists(i, v, i == 0)", (True, True), first=32),
    Example(releases.TYPED_PAIRS, "dyn([1]).transformList(i, v, [v]).size()", (UNEXPECTED, 1), first=32),
    Example(releases.TYPED_PAIRS, "dyn([1]).transformMapEntry(i, v, {v: i}).size()", (UNEXPECTED, 1), first=32),
    Example(
        releases.TYPED_PAIRS,
        "(1 + 'a').transformList(i, v, v)",
        (f"{NO_OVERLOAD}'_+_' applied to '(int, string)'",) * 2,
        first=32,
    ),
    Example(
        releases.TYPED_PAIRS,
        "dyn([1]).all(i, v, [v, 1] == [])",
        (UNEXPECTED, "expected type 'dyn' but found 'int'"),
        first=32,
    ),
    Example(
        releases.TYPED_PAIRS,
        "dyn([1]).all(i, v, [1, v] == [])",
        ("expected type 'int' but found ''", "expected type 'int' but found 'dyn'"),
        first=32,
    ),
    Example(
        releases.TYPED_PAIRS,
        "dyn([1]).all(i, v, {v: 1, v: 2} == {})",
        ("expected type '' but found ''", False),
        first=32,
    ),
    Example(
        releases.TYPED_PAIRS,
        "dyn([1]).all(i, v, {1: v} == 3)",
        (
            f"{NO_OVERLOAD}'_==_' applied to '(map(int, ), int)'",
            f"{NO_OVERLOAD}'_==_' applied to '(map(int, dyn), int)'",
        ),
        first=32,
    ),
    Example(
        releases.NAMED_TYPES,
        "duration{seconds: 1}",
        ("'google.protobuf.Duration' is not a type", "unknown type 'duration'"),
    ),
    Example(
        releases.NAMED_TYPES,
        "duration == duration('1s')",
        ("no such attribute(s): duration", f"{NO_OVERLOAD}'_==_' applied to '(type(duration), duration)'"),
    ),
    Example(
        releases.NAMED_TYPES,
        "kubernetes.Namespace",
        (
            "no such attribute(s): kubernetes.Namespace",
            "program instantiation failed: reference to undefined type: kubernetes.Namespace",
        ),
    ),
    Example(
        releases.NAMED_TYPES,
        "has(kubernetes.Namespace.spec)",
        (
            "no such attribute(s): kubernetes.Namespace",
            "type 'type(kubernetes.Namespace)' does not support field selection",
        ),
    ),
    Example(releases.NAMED_TYPES, "type(google.protobuf.Duration{}) == google.protobuf.Duration", (True, True)),
    Example(releases.STRICT_NAMES, "[1].all(x, .x == 1)", (True, undeclared(".x"))),
    Example(releases.STRICT_NAMES, "[{'IP': 1}].all(net, dyn(net.IP) == 1)", (False, True)),
    Example(
        releases.CHECKED_FORMATS,
        "'%s'.format([1, 2])",
        ("1", "too many arguments supplied to string.format (expected 1, got 2)"),
    ),
    Example(releases.EXEMPT_ANYWHERE, "'%s'.format([size([1, 'a'])])", ("expected type 'int' but found 'string'", "2")),
    Example(releases.EXEMPT_ANYWHERE, "'%s, %d'.format(['a', 1])", ("a, 1", "a, 1")),
    Example(
        releases.EXEMPT_ANYWHERE,
        "'%s'.format([[1, {'k': 'a', 'l': 2}]])",
        ('[1, {"k":"a", "l":2}]', '[1, {"k":"a", "l":2}]'),
    ),
    Example(releases.OPTIONAL_TYPE, "'%s'.format([type(optional.of(1))])", ("optional", "optional_type")),
    Example(
        releases.OPTIONAL_TYPE,
        "optional.of(1) + 1",
        (
            f"{NO_OVERLOAD}'_+_' applied to '(optional(int), int)'",
            f"{NO_OVERLOAD}'_+_' applied to '(optional_type(int), int)'",
        ),
    ),
    Example(releases.RESULT_TYPES, "1", ("must evaluate to bool", "must evaluate to bool but got int"), required_bool),
    Example(releases.EMPTY_SEARCH, "'ab'.indexOf('z', 9)", ("index out of range: 9", -1)),
    Example(releases.LAST_INDEX_IN_NOTHING, "''.lastIndexOf('z')", (-1, "index out of range: -1"), first=32),
    Example(releases.CLAMPED_SEARCH, "'ab'.indexOf('', 9)", (9, 2)),
    Example(releases.CLAMPED_SEARCH, "'ab'.lastIndexOf('', -1)", (-1, "index out of range: -1")),
    Example(releases.OVERLAPPING_CIDR, "cidr('10.0.0.0/8').containsCIDR('10.1.0.0/16')", (False, True)),
    Example(releases.OVERLAPPING_CIDR, "cidr('10.0.0.0/8').containsCIDR(cidr('10.1.0.0/16'))", (False, True)),
    Example(releases.OVERLAPPING_CIDR, "cidr('10.0.0.0/8').containsCIDR('10.0.0.0/16')", (True, True)),
    Example(releases.OVERLAPPING_CIDR, "cidr('10.1.0.0/8').containsCIDR('10.0.0.0/8')", (True, True)),
    Example(releases.OVERLAPPING_CIDR, "cidr('10.0.0.0/16').containsCIDR('10.0.0.0/8')", (False, False)),
    Example(
        releases.PLAIN_POWERS,
        "'%e'.format([2.5])",
        ("2.500000\u202f\u00d7\u202f10\u2070\u2070", "2.500000\u00d710\u2070\u2070"),
    ),
    Example(
        releases.TYPED_LISTS,
        "google.protobuf.Struct{fields: dyn([1])}",
        (f"{NO_STRUCT}list()", f"{NO_STRUCT}list(dyn)"),
    ),
    Example(
        releases.TYPED_LISTS,
        "google.protobuf.ListValue{values: dyn({1: 2})}",
        (f"{NO_LIST}map(, )", f"{NO_LIST}map(dyn, dyn)"),
    ),
    Example(
        releases.LABEL_KEYS,
        "format.qualifiedName().validate('a/b/c').value()[0].substring(0, 18)",
        ("a qualified name m", "a valid label key "),
        first=31,
    ),
    Example(
        releases.LABEL_KEYS,
        f"format.named('labelValue').value().validate('{LONG * 3}').value()",
        (["must be no more than 63 characters"], ["must be no more than 63 bytes"]),
        first=31,
    ),
    Example(releases.ONE_COLON, "url('http://a:b:80/').getHost()", (_LOOSE, _PORT)),
    Example(releases.ONE_COLON, "isURL('http://a:1:80/')", (True, False)),
    Example(releases.ONE_COLON, "isURL('other://a:1:80/')", (True, True)),
    Example(releases.ONE_COLON, "format.uri().validate('http://a:1:80/').hasValue()", (False, True), first=31),
    Example(
        releases.ONE_COLON, "format.named('uri').value().validate('http://a:1:80/').hasValue()", (False, True), first=31
    ),
    Example(releases.COPIED_QUANTITIES, "[quantity('8Ei')].all(q, q.add(1).isGreaterThan(q))", (False, True)),
    Example(
        releases.NO_NUMBERS_AS_DURATIONS,
        "duration(1)",
        ("invalid duration argument", f"{NO_OVERLOAD}'duration' applied to '(int)'"),
    ),
    Example(
        releases.BOUNDED_RANGES,
        "lists.range(-1).size()",
        (0, "lists.range: size must be non-negative, got -1"),
        first=34,
    ),
    Example(releases.OPTIONALS_KEPT, "dyn(1).orValue(2)", (1, "no such overload")),
    Example(
        releases.OPTIONALS_KEPT,
        "[optional.of(optional.of(1))].all(o, o.value().value() == 1)",
        ("no such overload: value(int)", True),
    ),
    Example(releases.FUNCTION_COSTS, f"'{LONG}'.lowerAscii().size()", (2, 4), cost),
    Example(releases.FUNCTION_COSTS, "ip('2001:db8::1') == ip('2001:db8::1')", (4, 5), cost),
    Example(releases.FUNCTION_COSTS, "sets.contains([1, 2, 3], [1, 2])", (7, 7), cost),
    Example(releases.FUNCTION_COSTS, "sets.equivalent([1, 2, 3], [1, 2])", (13, 13), cost),
    Example(releases.OPTIONALS_HAVE_SIZES, f"optional.of('{LONG}') == optional.of('{LONG}')", (3, 5), cost),
    Example(releases.PREFIX_COSTS, f"'{LONG}'.startsWith('a')", (3, 1), cost),
    Example(releases.PREFIX_COSTS, f"'a'.endsWith('{LONG}')", (1, 3), cost),
    Example(releases.PREFIX_COSTS, f"matches('{LONG}', 'abcd')", (1, 4), cost),
    Example(releases.PASSED_BY, "[{'a': 1}].all(object, .object.a == 1)", (7, 6), cost),
)
ELSEWHERE = {
    releases.WRAPPED_OBJECTS: "tests/policies/validating/test_wrapped.py",
    releases.MISSING_KEYS: "tests/mutate/test_merge.py",
    releases.STRICT_TIMESTAMPS: "tests/policies/kyverno/test_functions.py",
    releases.IN_TURN: "tests/policies/kyverno/test_functions.py",
}
"""The rows that no expression alone can show, and where their tests are."""


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: f"{example.change.name}: {example.text[:40]}")
def test_a_release_brings_a_change(example: Example) -> None:
    """The releases that have a change have the new outcome, all others the old one."""
    minors = range(example.first, NEWEST + 1)

    assert {minor: example.expected(minor) for minor in minors} == {
        minor: example.evaluate(example.text, (1, minor)) for minor in minors
    }


def test_every_change_has_an_example() -> None:
    """Every row of the table of changes has an example in this file, or a test elsewhere."""
    assert {*CHANGES} == {*(example.change for example in EXAMPLES), *ELSEWHERE}


def test_every_change_has_a_name_of_its_own_and_a_sentence() -> None:
    """The names of changes are unique, and their descriptions are sentences."""
    assert len(CHANGES) == len({change.name for change in CHANGES})
    assert all(change.description.endswith(".") for change in CHANGES)


@pytest.mark.parametrize(("minor", "columns"), [(31, (45, 45)), (32, (45, 59))])
def test_the_entries_of_a_copied_target_stand_where_the_macro_does(minor: int, columns: tuple[int, int]) -> None:
    """The entry of a copied target has the column of the macro, that of a target that is checked twice its own."""
    text = "optional.of(google.protobuf.Int32Value{value: 'a'}).optMap(x, x)"

    with pytest.raises(cel.CompileError) as refusal:
        cel.compile(text, cel.Environment(version=(1, minor)))

    assert columns == tuple(int(column) for column in re.findall(r"<input>:1:(\d+): expected type", str(refusal.value)))


def test_functions_of_the_interpreter_are_available_at_once() -> None:
    """A new policy may use `first` in the release that brings it, because it is no library of Kubernetes."""
    assert "Optional(1)" == written("[1].first()", (1, 33))


def test_only_label_keys_and_colons_changed_from_1_34_to_1_36() -> None:
    """No library and no other change begins or ends in 1.35 and 1.36."""
    edges = {library.since for library in LIBRARIES}
    edges |= {
        edge
        for change in {*CHANGES} - {releases.LABEL_KEYS, releases.ONE_COLON}
        for edge in (change.since, change.until)
    }

    assert not edges & {(1, 35), (1, 36)}


def test_big_quantities_that_share_a_number_change_together() -> None:
    """Until 1.36 arithmetic on a big quantity changes the quantity itself; from 1.37 on it does not."""
    text = "[quantity('8Ei')].all(q, [q.add(1), q.add(2)].all(r, r.compareTo(q) == 0))"

    assert answer(text, (1, 36)) is True
    assert answer(text, (1, 37)) is False


def test_small_quantities_never_change() -> None:
    """Arithmetic on a quantity that fits 64 bits leaves the quantity as it is."""
    assert answer("[quantity('1')].all(q, q.add(1).isGreaterThan(q))", (1, 36)) is True


def test_a_quantity_is_parsed_in_each_evaluation() -> None:
    """An evaluation that changes a quantity has no effect on the next evaluation."""
    text = "quantity('8Ei').sub(1).compareTo(quantity('8Ei'))"

    assert [-1, -1] == [answer(text, (1, 36)) for _ in range(2)]
