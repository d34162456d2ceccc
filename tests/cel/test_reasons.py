"""The reasons for the outcome of an expression."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scanner.admission.compiled import Expression
from scanner.admission.cost_budget import Variables
from scanner.cel import (
    AUTHORIZATION,
    PARAMS,
    Authorizer,
    AuthorizerAnswer,
    AuthorizerSubject,
    Environment,
    Program,
    Question,
    compile,
    explain,
)
from scanner.cel.explanation.explained import Explanation
from scanner.cel.explanation.reasons import MOST_REASONS, explain_by_notes

CONTAINERS = [
    {"name": "app", "image": "registry.example.com/app:1", "limits": {"memory": "1Gi"}},
    {"name": "proxy", "image": "envoy"},
]
INIT = [{"name": "setup", "image": "busybox"}]
OBJECT = {
    "metadata": {"name": "web", "labels": {"app.kubernetes.io/name": "web", "tier": "front"}, "finalizers": ["a", "b"]},
    "spec": {
        "replicas": 5,
        "template": {"spec": {"containers": CONTAINERS, "initContainers": INIT}},
        "empty": [],
        "at": 1,
    },
}


class _Anything:
    """A value that is equal to every value."""

    def __eq__(self, _other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 0


ANYTHING = _Anything()
PODS = "object.spec.template.spec.containers"
POD = "object.spec.template.spec"


def explained(text: str, activation: dict[str, object] | None = None, **variables: str) -> Explanation:
    """Return the explanation of an expression that may use policy variables."""
    environment = Environment().extend(PARAMS)
    programs: dict[str, Program] = {}
    for name, expression in variables.items():
        programs[name] = compile(expression, environment)
        environment = environment.add_variable(name, programs[name].result_type)
    inputs = {"object": OBJECT, "params": {"data": {"max": 3}}, "namespaceObject": None, **(activation or {})}
    inputs["variables"] = Variables({name: Expression("", program) for name, program in programs.items()}, inputs)
    return explain(compile(text, environment), inputs, programs)


def reasons(text: str, activation: dict[str, object] | None = None, **variables: str) -> list[tuple[str, object, str]]:
    """Return part, outcome and path of each reason; errors as their texts; the part of a variable with its name first."""
    shown = explained(text, activation, **variables).reasons
    return [
        (
            f"{reason.variable}: {reason.text}" if reason.variable else reason.text,
            str(reason.outcome) if isinstance(reason.outcome, Exception) else reason.outcome,
            reason.path,
        )
        for reason in shown
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("object.spec.replicas <= 3", [("object.spec.replicas", 5, "spec.replicas")]),
        (
            "object.spec.replicas <= 3 && object.metadata.name == 'web'",
            [("object.spec.replicas", 5, "spec.replicas")],
        ),
        (
            "object.spec.replicas <= 3 || object.metadata.name == 'db'",
            [("object.spec.replicas", 5, "spec.replicas"), ("object.metadata.name", "web", "metadata.name")],
        ),
        ("!has(object.spec.replicas)", [("has(object.spec.replicas)", True, "spec.replicas")]),
        (
            f"{PODS}.all(c, c.image.startsWith('registry.example.com/'))",
            [("c.image", "envoy", "spec.template.spec.containers[1].image")],
        ),
        (
            f"{PODS}.all(c, has(c.limits) && has(c.limits.memory))",
            [("has(c.limits)", False, "spec.template.spec.containers[1].limits")],
        ),
        (
            f"{PODS}.exists(c, c.name == 'db')",
            [
                ("c.name", "app", "spec.template.spec.containers[0].name"),
                ("c.name", "proxy", "spec.template.spec.containers[1].name"),
            ],
        ),
        (
            f"{PODS}.exists_one(c, c.image != '')",
            [
                ("c.image", "registry.example.com/app:1", "spec.template.spec.containers[0].image"),
                ("c.image", "envoy", "spec.template.spec.containers[1].image"),
            ],
        ),
        ("object.spec.empty.exists(c, c == 1)", [("object.spec.empty", [], "spec.empty")]),
        (
            "object.metadata.labels.all(k, v, v == 'front')",
            [("v", "web", "metadata.labels['app.kubernetes.io/name']")],
        ),
        (
            "object.metadata.labels['app.kubernetes.io/name'] == 'db'",
            [
                (
                    "object.metadata.labels['app.kubernetes.io/name']",
                    "web",
                    "metadata.labels['app.kubernetes.io/name']",
                )
            ],
        ),
        (
            f"{PODS}[object.spec.at].name == 'db'",
            [(f"{PODS}[object.spec.at].name", "proxy", "spec.template.spec.containers[1].name")],
        ),
        (
            f"{PODS}[has(object.spec.none) ? 0 : object.spec.at].name == 'db'",
            [
                (
                    f"{PODS}[has(object.spec.none) ? 0 : object.spec.at].name",
                    "proxy",
                    "spec.template.spec.containers[1].name",
                )
            ],
        ),
        ("size(object.spec.empty) > 0", [("size(object.spec.empty)", 0, "spec.empty")]),
        (
            f"{PODS}.filter(c, !has(c.limits)).size() == 0",
            [
                (f"{PODS}.filter(c, !has(c.limits)).size()", 1, ""),
                ("has(c.limits)", False, "spec.template.spec.containers[1].limits"),
            ],
        ),
        ("object.spec.nodes == 1", [("object.spec.nodes", "no such key: nodes", "spec.nodes")]),
        (
            "object.spec.replicas > 9 ? true : object.metadata.name == 'db'",
            [("object.spec.replicas", 5, "spec.replicas"), ("object.metadata.name", "web", "metadata.name")],
        ),
        (
            f"({POD}.containers + {POD}.initContainers).all(c, c.name != 'setup')",
            [("c.name", "setup", "spec.template.spec.initContainers[0].name")],
        ),
        (
            f"{PODS}.map(c, c.image).all(i, i != 'envoy')",
            [("i", "envoy", "spec.template.spec.containers[1].image")],
        ),
        (
            f"{PODS}.filter(c, c.name == 'proxy').all(c, c.image != 'envoy')",
            [("c.image", "envoy", "spec.template.spec.containers[1].image")],
        ),
        ("object.metadata.?finalizers.orValue([]).all(f, f != 'b')", [("f", "b", "metadata.finalizers[1]")]),
        (
            "(has(object.metadata.finalizers) ? object.metadata.finalizers : []).all(f, f != 'b')",
            [("f", "b", "metadata.finalizers[1]")],
        ),
        (
            f"{PODS}[?1].optMap(c, c.image == 'nginx').orValue(true)",
            [
                (f"{PODS}[?1]", ANYTHING, "spec.template.spec.containers[1]"),
                ("c.image", "envoy", "spec.template.spec.containers[1].image"),
            ],
        ),
        (
            f"{PODS}.exists(c, c.name in ['db'])",
            [
                ("c.name", "app", "spec.template.spec.containers[0].name"),
                ("c.name", "proxy", "spec.template.spec.containers[1].name"),
            ],
        ),
        ("false", []),
    ],
)
def test_the_deciding_values(text: str, expected: list[tuple[str, object, str]]) -> None:
    """The reasons are the values that decided, with their paths in the object."""
    assert expected == reasons(text)


def test_other_documents_are_named() -> None:
    """A path into another document than the object begins with the name of the document."""
    expression = "object.spec.replicas <= params.data.max || has(namespaceObject.metadata)"
    shown = reasons(expression, {"namespaceObject": {}})
    assert ["spec.replicas", "params.data.max", "namespaceObject.metadata"] == [path for _, _, path in shown]


def test_the_old_object_and_the_request_are_named() -> None:
    """Paths into `oldObject` and `request` begin with these names."""
    shown = reasons(
        "oldObject.spec.a == request.namespace", {"oldObject": {"spec": {"a": 1}}, "request": {"namespace": "x"}}
    )
    assert [("oldObject.spec.a", 1, "oldObject.spec.a"), ("request.namespace", "x", "request.namespace")] == shown


@pytest.mark.parametrize(
    ("text", "variables", "expected"),
    [
        (
            "variables.containers.all(c, c.name == 'app')",
            {"containers": PODS},
            [("c.name", "proxy", "spec.template.spec.containers[1].name")],
        ),
        (
            "variables.all.all(c, c.name != 'setup')",
            {"all": f"{POD}.containers + {POD}.initContainers"},
            [("c.name", "setup", "spec.template.spec.initContainers[0].name")],
        ),
        (
            "variables.images.all(i, i != 'envoy')",
            {"images": f"{PODS}.map(c, c.image)"},
            [("i", "envoy", "spec.template.spec.containers[1].image")],
        ),
        (
            "variables.images.all(i, i != 'envoy!')",
            {"images": f"{PODS}.map(c, c.image + '!')"},
            [("i", "envoy!", "variables.images[1]")],
        ),
        (
            "variables.ok",
            {"ok": f"{PODS}.all(c, c.name == 'app')"},
            [
                ("variables.ok", False, "variables.ok"),
                ("ok: c.name", "proxy", "spec.template.spec.containers[1].name"),
            ],
        ),
        (
            "!variables.bad",
            {"few": "object.spec.replicas < 9", "bad": "variables.few && object.metadata.name == 'web'"},
            [
                ("variables.bad", True, "variables.bad"),
                ("bad: variables.few", True, "variables.few"),
                ("few: object.spec.replicas", 5, "spec.replicas"),
                ("bad: object.metadata.name", "web", "metadata.name"),
            ],
        ),
        (
            "variables.replicas <= 3",
            {"replicas": "object.spec.replicas"},
            [("variables.replicas", 5, "spec.replicas")],
        ),
        (
            "variables.spec.containers[0].name == 'db'",
            {"spec": POD},
            [("variables.spec.containers[0].name", "app", "spec.template.spec.containers[0].name")],
        ),
        (
            "variables.kept.size() == 0",
            {"kept": f"{PODS}.filter(c, c.name == 'proxy')"},
            [
                ("variables.kept.size()", 1, "variables.kept"),
                (f"kept: {PODS}.filter(c, c.name == 'proxy')", CONTAINERS[1:], ""),
                ("kept: c.name", "proxy", "spec.template.spec.containers[1].name"),
            ],
        ),
        (
            "variables.broken == 1",
            {"broken": "object.spec.nodes"},
            [
                (
                    "variables.broken",
                    'composited variable "broken" fails to evaluate: no such key: nodes',
                    "spec.nodes",
                ),
            ],
        ),
    ],
)
def test_variables_are_followed(text: str, variables: dict[str, str], expected: list[tuple[str, object, str]]) -> None:
    """The path of a variable that is a part of the object leads into the object; a computed variable has its own reasons, too."""
    assert expected == reasons(text, None, **variables)


def test_a_long_list_gives_a_few_reasons() -> None:
    """A long list gives the reasons of three elements, and the number of the other elements."""
    explanation = explained("object.all.exists(c, c == 'x')", {"object": {"all": ["a"] * 5_000}})
    assert (["all[0]", "all[1]", "all[2]"], 4_997) == (
        [reason.path for reason in explanation.reasons],
        explanation.left_out,
    )


def test_a_very_long_list_is_not_followed_to_its_end() -> None:
    """The reason is the list itself if the evaluation has more parts than are noted."""
    explanation = explained("object.all.all(c, c != 'x')", {"object": {"all": [*["a"] * 50_000, "x"]}})
    assert [("object.all", "all")] == [(reason.text, reason.path) for reason in explanation.reasons]


def test_many_reasons_are_counted() -> None:
    """An explanation has at most `MOST_REASONS` reasons, and counts the others."""
    text = " || ".join(f"object.spec.replicas == {number} + {number}" for number in range(3))
    many = " || ".join(f"object.metadata.labels.l{number} == 'x'" for number in range(30))
    explanation = explained(many, {"object": {"metadata": {"labels": {f"l{number}": "y" for number in range(30)}}}})
    assert (1, MOST_REASONS, 10) == (len(reasons(text)), len(explanation.reasons), explanation.left_out)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("object.metadata.name == 'db'", {("object", "metadata", "name")}),
        (
            f"{PODS}.map(c, c.image + '!').exists(i, i == 'x')",
            {("object", "spec", "template", "spec", "containers", 0, "image")},
        ),
        ("variables.v == 'x'", {("object", "metadata", "name")}),
        ("size(object.metadata.labels) == 9", set()),
        ("size(object.metadata.name) == 9", {("object", "metadata", "name")}),
        ("(object.metadata.name == 'web' ? 'yes' : 'no').startsWith('n')", {("object", "metadata", "name")}),
    ],
)
def test_a_reason_has_the_places_that_it_was_computed_from(text: str, expected: set[tuple[str | int, ...]]) -> None:
    """A reason has every place whose content may be in its value, through loops and variables."""
    shown = explained(text, v="object.metadata.name + '!'").reasons
    assert expected == set(shown[0].reads)


class DenyAll:
    """An authorizer that denies everything."""

    def decide(self, question: Question) -> AuthorizerAnswer:
        """Deny."""
        del question
        return AuthorizerAnswer(allowed=False, reason="no role")


def test_the_authorizer_shows_only_its_answers() -> None:
    """A check of the authorizer is a reason; the authorizer itself is not."""
    check = "authorizer.group('').resource('pods').check('create').allowed()"
    authorizer = Authorizer(DenyAll(), AuthorizerSubject("jane", (), "", ()))
    shown = explain(compile(check, Environment().extend(AUTHORIZATION)), {"authorizer": authorizer}).reasons
    assert [(check, False, frozenset({("authorizer",)}))] == [
        (reason.text, reason.outcome, reason.reads) for reason in shown
    ]


@given(st.integers(0, 5), st.lists(st.integers(0, 3), max_size=6))
def test_an_explanation_agrees_with_the_evaluation(limit: int, numbers: list[int]) -> None:
    """The outcome is that of the program, and each path leads to the value of its reason."""
    program = compile(f"object.n.all(x, x < {limit}) && size(object.n) > 2", Environment())
    activation = {"object": {"n": numbers}}
    explanation = explain(program, activation)
    assert program.evaluate(activation) is explanation.outcome
    assert all(numbers[int(reason.place[2])] == reason.outcome for reason in explanation.reasons if reason.text == "x")


@pytest.mark.parametrize(
    "text",
    [
        "object.spec.replicas <= 3",
        "'x' in object.metadata.labels",
        "object.metadata.labels['app.kubernetes.io/name'] == 'db'",
        f"{PODS}[1].image == 'nginx'",
        f"size({PODS}) == 0",
        f"{PODS}.size() == 0",
        "size(object.metadata.name) > size(object.spec.empty) + 1",
        "!has(object.spec.replicas)",
        "!(has(object.spec.none) == has(object.spec.at))",
        "object.metadata.name.startsWith(object.metadata.labels.tier)",
        "object.metadata.name == object.metadata.name",
        "object.spec.replicas in [1, 2]",
        "object.spec == params",
        f"{PODS}[object.spec.at].image == 'nginx'",
        "object.spec.none == 1",
        f"{PODS}[7].image == 'nginx'",
        "object.metadata.name < 3",
        "namespaceObject.metadata.name == 'x'",
        "object.spec.replicas + 1 == 3",
    ],
)
def test_reasons_do_not_depend_on_the_way_in_which_they_are_found(text: str) -> None:
    """What reads values from the documents, and what reads them from notes, give the same explanation."""
    program = compile(text, Environment().extend(PARAMS))
    documents = {"object": OBJECT, "params": {"data": {"max": 3}}, "namespaceObject": None, "variables": {}}
    assert repr(explain_by_notes(program, documents)) == repr(explain(program, documents))
