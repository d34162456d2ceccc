"""The evaluation of one page of raw objects."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import orjson
import pytest

from scanner.admission.context import EvaluationContext
from scanner.admission.params import ParamSource
from scanner.audit.findings import compute_fingerprint, denies
from scanner.audit.items import decode_items
from scanner.audit.page import PageEvaluator
from scanner.model.outcome import Check, CheckKind, Errored, GapKind, Violated
from scanner.model.policy import VALIDATING, Invocation
from scanner.model.resource import Kind, Page, Resource, resource_of
from scanner.model.scans.scan import PageResult
from scanner.policies.plan import plan
from scanner.policies.validating.language import bind, read_binding, read_policy
from scanner.scan.param_table import ParamTable
from tests import documents
from tests.documents import KINDS, PODS, Document, namespace, pod

CHECK = Check(CheckKind.VALIDATION, 0, "object.spec.x == 1")


def a_page(*items: Any, kind: Kind = PODS) -> Page:
    """A page of a list."""
    return Page(kind, 1, orjson.dumps({"items": items}))


def page_result(*items: Any, policy: Document | None = None, **context: Any) -> PageResult:
    """The result of a page of pods in the namespace `default`."""
    given = {"params": ParamTable(KINDS), "namespaces": {"default": namespace("default")}, **context}
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
def test_numbers_are_decoded_as_the_api_server_decodes_them(data: str, values: list[object]) -> None:
    """An integer within 64 bits stays an integer; a larger one becomes a double."""
    decoded = [*decode_items(Page(PODS, 1, f'{{"items": [{data}]}}'.encode()))]
    assert [(type(value), value) for value in values] == [(type(value), value) for value in decoded]


def test_an_empty_list_may_be_null() -> None:
    """Go encodes an empty slice as null."""
    assert [] == [*decode_items(Page(PODS, 1, b'{"items": null}'))]


@pytest.mark.parametrize("data", [b"", b"{}", b"null", b"[]", b'{"items": {}}', b"nope", b'{"items": ["\xff"]}'])
def test_a_text_that_is_no_list_is_rejected(data: bytes) -> None:
    """Such a text is not mistaken for an empty list."""
    with pytest.raises(ValueError, match=r".+"):
        next(decode_items(Page(PODS, 1, data)))


def test_items_get_their_kind_back() -> None:
    """List responses leave out apiVersion and kind, and expressions read them."""
    item = {key: value for key, value in pod(x=1).items() if key not in ("apiVersion", "kind")}
    policy = documents.policy("p", "object.apiVersion == 'v1' && object.kind == 'Pod'")
    assert () == page_result(item, policy=policy).findings


@pytest.mark.parametrize("item", [None, 3, "pod", [], {}, {"metadata": None}, {"metadata": []}])
def test_an_item_that_is_no_object_is_a_gap(item: object) -> None:
    """The other items are evaluated."""
    result = page_result(item, pod(x=2))
    assert ([GapKind.OBJECT], 1, 1) == ([gap.kind for gap in result.gaps], result.objects, len(result.findings))


def test_objects_and_evaluated_objects_are_counted() -> None:
    """`objects` counts the listed objects, `evaluated` those that a policy matched."""
    policy = documents.policy(
        "p", "true", matchConstraints={**documents.ON_PODS, "objectSelector": {"matchLabels": {"a": "b"}}}
    )
    result = page_result(pod("one", labels={"a": "b"}), pod("two"), policy=policy)
    assert (2, 1, {(VALIDATING, "p", "b"): 1}) == (result.objects, result.evaluated, result.matched)


class FailingParams:
    """A source of params that raises an unexpected exception."""

    def find_kind(self, param_kind: object) -> Kind | None:
        raise ZeroDivisionError("secret detail")

    def get(self, kind: Kind, namespace: str, name: str) -> Resource | None:
        return None

    def list_all(self, kind: Kind, namespace: str) -> tuple[Resource, ...]:
        return ()


def test_an_internal_error_is_a_gap_and_never_a_verdict() -> None:
    """The gap names the exception without details, which may quote an object; nothing is counted."""
    source: ParamSource = FailingParams()
    needy = documents.policy("p", "false", paramKind={"apiVersion": "v1", "kind": "ConfigMap"})
    result = page_result(pod(), policy=needy, params=source)
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
    return resource_of(PODS, pod(name, namespace))._replace(uid=uid)


def fingerprint_of(invocation: Invocation | None = None, check: Check = CHECK, **fields: Any) -> str:
    """The fingerprint of a finding about a pod of a cluster."""
    return compute_fingerprint(invocation or an_invocation(), check, a_resource(**fields), by_name=False)


def test_a_fingerprint_is_64_hex_digits() -> None:
    """A fingerprint is a SHA-256 digest."""
    assert 64 == len(fingerprint_of())
    assert int(fingerprint_of(), 16) >= 0


@pytest.mark.parametrize(
    "other",
    [
        fingerprint_of(check=replace(CHECK, expression=f"  {CHECK.expression}\n")),
        fingerprint_of(an_invocation(failurePolicy="Ignore")),
        fingerprint_of(
            an_invocation(validations=[{"expression": "true"}, {"expression": CHECK.expression}]),
            replace(CHECK, index=1),
        ),
        fingerprint_of(name="renamed"),
    ],
)
def test_a_fingerprint_survives_changes_beside_the_check(other: str) -> None:
    """Blanks around an expression, other settings of the policy and an earlier check do not change it."""
    assert other == fingerprint_of()


@pytest.mark.parametrize(
    "other",
    [
        fingerprint_of(uid="u2"),
        fingerprint_of(check=replace(CHECK, expression="object.spec.y == 1")),
        fingerprint_of(check=replace(CHECK, kind=CheckKind.AUDIT_ANNOTATION)),
        fingerprint_of(an_invocation(a_resource("param"))),
        fingerprint_of(an_invocation(validations=[{"expression": CHECK.expression}] * 2), replace(CHECK, index=1)),
    ],
)
def test_different_findings_have_different_fingerprints(other: str) -> None:
    """Another object, check or param changes the fingerprint, and so does the second of two equal checks."""
    assert other != fingerprint_of()


def test_two_audit_annotations_with_one_expression_are_two_findings() -> None:
    """The ordinal distinguishes equal expressions, as it does for validations."""
    annotations = [{"key": key, "valueExpression": "object.x"} for key in ("a", "b")]
    invocation = an_invocation(auditAnnotations=annotations)
    first, second = (Check(CheckKind.AUDIT_ANNOTATION, index, "object.x") for index in (0, 1))
    assert fingerprint_of(invocation, first) != fingerprint_of(invocation, second)


def test_objects_of_files_are_identified_by_name() -> None:
    """The UID in a saved manifest changes with every cluster that it is applied to."""
    first, second = a_resource(uid="u1"), a_resource(uid="u2")
    assert 1 == len(
        {compute_fingerprint(an_invocation(), CHECK, resource, by_name=True) for resource in (first, second)}
    )


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
def test_outcomes_deny_according_to_the_actions(
    outcome: Violated | Errored, actions: list[str], *, expected: bool
) -> None:
    """Errors deny with the action Deny of the binding; configuration errors deny with any action."""
    invocation = replace(an_invocation(), binding=read_binding(documents.binding("b", "p", *actions)))
    assert expected == denies(outcome, invocation)
