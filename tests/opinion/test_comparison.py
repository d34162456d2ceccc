"""Two engines on a sample of the objects: the counts, and no effect on the scan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scanner.admission.compiled import Expression
from scanner.model.resource import Resource
from scanner.model.scans.opinion import Opinion
from scanner.opinion.comparison import EngineComparison, is_in_sample
from scanner.opinion.engine import EngineAnswer
from scanner.opinion.limits import LIMITS, find_limit, find_traits
from scanner.opinion.process import Process
from scanner.scan.options import Options
from scanner.scan.run import run
from tests.documents import CONFIG_MAPS, PODS, Document, binding, namespace, policy, rule, thing
from tests.scan.fakes import NOON, FakeCluster, FakeStore, scanned

TRUE = EngineAnswer("value", value=("bool", True))
FALSE = EngineAnswer("value", value=("bool", False))
ERROR = EngineAnswer("error", "no such key")


class FixedEngine:
    """An engine that gives one answer to every expression, and records the expressions."""

    def __init__(self, answer: EngineAnswer) -> None:
        self.answer = answer
        self.asked: list[str] = []

    def show(self, activation: Mapping[str, object], variables: frozenset[str]) -> None:
        """See Engine."""

    def ask(self, expression: Expression) -> EngineAnswer:
        """See Engine."""
        self.asked.append(expression.text)
        return self.answer


def pod(number: int) -> Document:
    """A Pod of a number."""
    return thing(PODS, f"p{number}", "default", metadata={"uid": f"u{number}"}, spec={"a": number})


def opinion(engine: Any, *documents: Document, percent: float = 100.0) -> Opinion:
    """The opinion that a scan of documents in the namespace default records."""
    comparison = EngineComparison(engine, "other 1.0", percent)
    store = FakeStore()
    cluster = FakeCluster([namespace("default"), *documents])
    run(cluster, store, Options(), scan_id="s1", clock=lambda: NOON, comparison=comparison)
    recorded = store.ends[0].opinion
    assert recorded is not None
    return recorded


def test_agreement_is_counted() -> None:
    """Each expression of a matching policy counts once for each object of the sample."""
    recorded = opinion(FixedEngine(TRUE), pod(1), pod(2), policy("p", "has(object.spec.a)", "true"), binding())
    assert (2, 4, 4, 2) == (recorded.objects, recorded.evaluations, recorded.agreed, recorded.expressions)


def test_errors_in_both_agree() -> None:
    """The texts of the errors are not compared."""
    recorded = opinion(FixedEngine(ERROR), pod(1), policy("p", "object.spec.b == 1"), binding())
    assert (1, 0) == (recorded.agreed, recorded.disagreed)


def test_a_disagreement_names_the_first_object() -> None:
    """The disagreement has the number of its evaluations."""
    recorded = opinion(FixedEngine(FALSE), pod(1), pod(2), policy("p", "has(object.spec.a)"), binding())
    [disagreement] = recorded.disagreements
    expected = ("p", "spec.validations[0].expression", "has(object.spec.a)", 2, "Pod default/p1", "true", "false")
    assert expected == (
        disagreement.policy,
        disagreement.place,
        disagreement.expression,
        disagreement.evaluations,
        disagreement.object,
        disagreement.ours,
        disagreement.theirs,
    )


def test_values_that_may_be_secret_are_not_shown() -> None:
    """The report shows only the types of texts and numbers."""
    with_variable = policy("p", variables=[{"name": "v", "expression": "object.data.key"}], matchConstraints=EVERYTHING)
    secret = thing(CONFIG_MAPS, "c", "default", data={"key": "hunter2"})
    recorded = opinion(
        FixedEngine(EngineAnswer("value", value=("string", "hunter3"))), secret, with_variable, binding()
    )
    assert "a value of type string" == recorded.disagreements[0].ours
    assert "hunter" not in repr(recorded)


EVERYTHING = {"resourceRules": [rule("pods", "configmaps")]}


def test_verdicts_do_not_depend_on_it() -> None:
    """Findings, tallies and state are those of a scan without the comparison."""
    documents = [namespace("default"), pod(1), policy("p", "false", "object.b == 1"), binding()]
    plain = scanned(FakeCluster(documents))
    store = FakeStore()
    comparison = EngineComparison(FixedEngine(FALSE), "other", 100.0)
    run(FakeCluster(documents), store, Options(), scan_id="s1", clock=lambda: NOON, comparison=comparison)
    assert plain.pages == tuple(store.pages)
    assert plain.end == replace(store.ends[0], opinion=None)


class Raising(FixedEngine):
    """An engine that raises an exception."""

    def ask(self, expression: Expression) -> EngineAnswer:
        """Fail."""
        raise ValueError(expression.text)


def test_an_engine_with_a_fault_stops_nothing() -> None:
    """The scan is complete."""
    recorded = opinion(Raising(TRUE), pod(1), pod(2), policy("p", "true"), binding())
    assert (2, 0) == (recorded.objects, recorded.evaluations)


@given(st.integers(0, 10**9), st.floats(0, 100))
def test_the_sample_follows_from_the_identity(number: int, percent: float) -> None:
    """An object is always or never in a sample, and in every larger sample."""
    resource = Resource(PODS, "default", f"p{number}", f"u{number}", "1", {})
    chosen = is_in_sample(resource, percent)
    assert chosen == is_in_sample(resource._replace(resource_version="2"), percent)
    assert not chosen or is_in_sample(resource, min(100.0, percent + 1))


def test_the_sample_has_the_requested_size() -> None:
    """The size is approximate: identities are distributed evenly."""
    chosen = sum(is_in_sample(Resource(PODS, "default", "p", f"u{number}", "1", {}), 10.0) for number in range(10_000))
    assert 900 < chosen < 1100


@pytest.mark.parametrize(
    ("text", "ours", "theirs", "expected"),
    [
        ("object.?a.orValue(true)", TRUE, EngineAnswer("refused"), "optionals"),
        ("[1,].size() == 1", TRUE, EngineAnswer("refused"), "syntax"),
        ("quantity('1').isGreaterThan(quantity('0'))", TRUE, EngineAnswer("error", "no such overload"), "libraries"),
        ("object.a.all(i, x, x > 0)", TRUE, EngineAnswer("crash", "ValueError"), "macros"),
        ("object.a == 1.0", TRUE, EngineAnswer("error", "found no matching overload for …"), "types apart"),
        ("object.a.all(x, x > 0)", TRUE, EngineAnswer("crash", "TypeError"), "exceptions"),
        ("string(object.a) == '1'", TRUE, FALSE, "conversions"),
        ("object.a", TRUE, EngineAnswer("silent"), "silent"),
        ("quantity('1')", EngineAnswer("unsayable", "x"), ERROR, "types"),
        ("has(object.a.b)", ERROR, FALSE, None),
        ("object.a == 1", TRUE, FALSE, None),
    ],
)
def test_limits_are_no_disagreements(text: str, ours: EngineAnswer, theirs: EngineAnswer, expected: str | None) -> None:
    """The features of the expression and the failure of the other engine decide."""
    limit = find_limit(find_traits(text), ours, theirs)
    assert expected == (limit.name if limit else None)


def test_every_limit_has_a_reason_of_its_own() -> None:
    """The reason is a sentence of the report."""
    assert (
        len(LIMITS)
        == len({limit.name for limit in LIMITS})
        == len({limit.reason for limit in LIMITS if limit.reason.endswith(".")})
    )


def test_cel_python_evaluates() -> None:
    """cel-python has its known limits and its usual disagreement."""
    limited = policy(
        "p",
        "object.spec.a == 1",
        "!has(object.spec.securityContext.runAsNonRoot)",
        "object.?spec.?a.orValue(0) == 1",
        "object.spec.a == 1.0",
        "object.metadata.name.lowerAscii() == 'p1'",
    )
    with Process() as process:
        recorded = opinion(process, pod(1), limited, binding())
    assert (5, 1, 3, 1) == (recorded.evaluations, recorded.agreed, recorded.limited, recorded.disagreed)
    assert ["optionals", "libraries", "types apart"] == [limit.limit for limit in recorded.limits]
    assert [("an error", "true")] == [
        (disagreement.ours, disagreement.theirs) for disagreement in recorded.disagreements
    ]
