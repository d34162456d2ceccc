"""One page of raw objects, judged."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import orjson
import pytest

from scanner.admission.context import EvaluationContext
from scanner.admission.params import ParamSource
from scanner.audit.findings import denies, fingerprint
from scanner.audit.items import decode
from scanner.audit.page import PageEvaluator
from scanner.model.outcome import Check, CheckKind, Errored, GapKind, Violated
from scanner.model.policy import VALIDATING, Invocation
from scanner.model.resource import Kind, Page, Resource, resource_of
from scanner.model.scan import PageResult
from scanner.policies.plan import plan
from scanner.policies.validating.bind import bind, read_binding, read_policy
from scanner.scan.param_table import ParamTable
from tests import documents
from tests.documents import KINDS, PODS, Document, namespace, pod

CHECK = Check(CheckKind.VALIDATION, 0, "object.spec.x == 1")


def a_page(*items: Any, kind: Kind = PODS) -> Page:
    """A page of a list."""
    return Page(kind, 1, orjson.dumps({"items": items}))


def judged(*items: Any, policy: Document | None = None, **world: Any) -> PageResult:
    """What comes out of a page of pods in the namespace default."""
    given = {"params": ParamTable(KINDS), "namespaces": {"default": namespace("default")}, **world}
    document = policy or documents.policy("p", "object.spec.x == 1")
    bound = bind([read_policy(document)], [read_binding(documents.binding())])
    return PageEvaluator(EvaluationContext(**given)).evaluate(a_page(*items), plan(KINDS, bound)[0])


@pytest.mark.parametrize(
    ("data", "values"),
    [
        ("1", [1]),
        ("1.0", [1.0]),
        ("9223372036854775807", [2**63 - 1]),
        ("9223372036854775808", [2.0**63]),
        ("18446744073709551615", [2.0**64]),
        ("-9223372036854775808", [-(2**63)]),
        ("36893488147419103232", [2.0**65]),
        ('{"a": [9223372036854775808]}', [{"a": [2.0**63]}]),
        ("true", [True]),
    ],
)
def test_numbers_are_what_the_api_server_makes_of_them(data: str, values: list[object]) -> None:
    """Integers of 64 bits; whatever does not fit is a double."""
    found = decode(Page(PODS, 1, f'{{"items": [{data}]}}'.encode()))
    assert [(type(it), it) for it in values] == [(type(it), it) for it in found]


def test_a_list_of_nothing_may_be_null() -> None:
    """Go writes an empty list so."""
    assert [] == decode(Page(PODS, 1, b'{"items": null}'))


@pytest.mark.parametrize("data", [b"", b"{}", b"null", b"[]", b'{"items": {}}', b"nope", b'{"items": ["\xff"]}'])
def test_what_is_no_list_is_refused(data: bytes) -> None:
    """Instead of being taken for an empty one."""
    with pytest.raises(ValueError, match=r".+"):
        decode(Page(PODS, 1, data))


def test_items_get_their_kind_back() -> None:
    """List answers leave out apiVersion and kind; expressions may read them."""
    item = {key: value for key, value in pod(x=1).items() if key not in ("apiVersion", "kind")}
    policy = documents.policy("p", "object.apiVersion == 'v1' && object.kind == 'Pod'")
    assert () == judged(item, policy=policy).findings


@pytest.mark.parametrize("item", [None, 3, "pod", [], {}, {"metadata": None}, {"metadata": []}])
def test_an_item_that_is_no_object_is_a_gap(item: object) -> None:
    """The others are judged."""
    result = judged(item, pod(x=2))
    assert ([GapKind.OBJECT], 1, 1) == ([gap.kind for gap in result.gaps], result.objects, len(result.findings))


def test_counts() -> None:
    """Objects are what was listed, evaluated is what some policy matched."""
    policy = documents.policy(
        "p", "true", matchConstraints={**documents.ON_PODS, "objectSelector": {"matchLabels": {"a": "b"}}}
    )
    result = judged(pod("one", labels={"a": "b"}), pod("two"), policy=policy)
    assert (2, 1, {(VALIDATING, "p", "b"): 1}) == (result.objects, result.evaluated, result.matched)


class Broken:
    """Params that cannot be looked up, for a reason that nobody foresaw."""

    def kind(self, param_kind: object) -> Kind | None:
        raise ZeroDivisionError("secret detail")

    def get(self, kind: Kind, namespace: str, name: str) -> Resource | None:
        return None

    def all(self, kind: Kind, namespace: str) -> tuple[Resource, ...]:
        return ()


def test_a_fault_of_ours_is_a_gap_and_never_a_verdict() -> None:
    """It is named without details, which could be anybody's data; nothing is counted."""
    source: ParamSource = Broken()
    needy = documents.policy("p", "false", paramKind={"apiVersion": "v1", "kind": "ConfigMap"})
    result = judged(pod(), policy=needy, params=source)
    assert ((), {}, 0) == (result.findings, result.tallies, result.evaluated)
    (gap,) = result.gaps
    assert (GapKind.EVALUATION, "v1/Pod default/web") == (gap.kind, gap.where)
    assert "ZeroDivisionError" in gap.why
    assert "secret" not in gap.why


def an_invocation(param: Resource | None = None, **spec: Any) -> Invocation:
    """A policy with its binding."""
    return Invocation(
        read_policy(documents.policy("p", CHECK.expression, **spec)), read_binding(documents.binding()), param
    )


def a_resource(name: str = "web", namespace: str = "default", uid: str = "u1") -> Resource:
    """A pod with a UID."""
    return replace(resource_of(PODS, pod(name, namespace)), uid=uid)


def named(invocation: Invocation | None = None, check: Check = CHECK, **fields: Any) -> str:
    """The fingerprint of a finding about a pod of a cluster."""
    return fingerprint(invocation or an_invocation(), check, a_resource(**fields), by_name=False)


def test_a_fingerprint_is_64_hex_digits() -> None:
    """SHA-256."""
    assert 64 == len(named())
    assert int(named(), 16) >= 0


@pytest.mark.parametrize(
    "other",
    [
        named(check=replace(CHECK, expression=f"  {CHECK.expression}\n")),
        named(an_invocation(failurePolicy="Ignore")),
        named(
            an_invocation(validations=[{"expression": "true"}, {"expression": CHECK.expression}]),
            replace(CHECK, index=1),
        ),
        named(name="renamed"),
    ],
)
def test_a_fingerprint_survives_what_changes_no_finding(other: str) -> None:
    """Blanks around an expression, other settings of the policy, another check before it."""
    assert other == named()


@pytest.mark.parametrize(
    "other",
    [
        named(uid="u2"),
        named(check=replace(CHECK, expression="object.spec.y == 1")),
        named(check=replace(CHECK, kind=CheckKind.AUDIT_ANNOTATION)),
        named(an_invocation(a_resource("param"))),
        named(an_invocation(validations=[{"expression": CHECK.expression}] * 2), replace(CHECK, index=1)),
    ],
)
def test_a_fingerprint_tells_findings_apart(other: str) -> None:
    """Another object, check or param; also the second of two equal checks."""
    assert other != named()


def test_two_audit_annotations_with_one_expression_are_two_findings() -> None:
    """As with validations, the ordinal tells them apart."""
    annotations = [{"key": key, "valueExpression": "object.x"} for key in ("a", "b")]
    invocation = an_invocation(auditAnnotations=annotations)
    one, other = (Check(CheckKind.AUDIT_ANNOTATION, index, "object.x") for index in (0, 1))
    assert named(invocation, one) != named(invocation, other)


def test_objects_of_files_go_by_name() -> None:
    """A UID in a saved manifest changes with every cluster it is applied to."""
    one, other = a_resource(uid="u1"), a_resource(uid="u2")
    assert 1 == len({fingerprint(an_invocation(), CHECK, it, by_name=True) for it in (one, other)})


@pytest.mark.parametrize(
    ("outcome", "actions", "expected"),
    [
        (Violated("no"), ["Deny"], True),
        (Violated("no"), ["Warn", "Audit"], False),
        (Errored("oops", would_deny=True), ["Deny", "Audit"], True),
        (Errored("oops", would_deny=True), ["Audit"], False),
        (Errored("oops", would_deny=False), ["Deny"], False),
        (Errored("oops", would_deny=True, always=True), ["Audit"], True),
    ],
)
def test_what_denies(outcome: Violated | Errored, actions: list[str], *, expected: bool) -> None:
    """Failures follow the binding's actions; configuration errors and annotations do not."""
    invocation = replace(an_invocation(), binding=read_binding(documents.binding("b", "p", *actions)))
    assert expected == denies(outcome, invocation)
