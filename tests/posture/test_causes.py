"""What changed for a finding between two scans."""

from __future__ import annotations

from dataclasses import replace

import pytest

from scanner.model.cause import Cause, CauseKind, cause_of
from scanner.model.json import JsonObject
from scanner.model.rule import RuleObject, RuleType
from scanner.posture.causes import Circumstances, Comparison, Coordinates

POLICY = "ValidatingAdmissionPolicy", "replicas"
LIMITS = RuleObject(RuleType.PARAM, "ConfigMap shop/limits", "three", {})
EXCEPTION = RuleObject(
    RuleType.EXCEPTION, "kyverno/allowed", "one", {"spec": {"policyRefs": [{"name": "replicas", "kind": "X"}]}}
)
LABELS = RuleObject(RuleType.NAMESPACE_LABELS, "shop", "tier", {})
BEFORE = Circumstances(
    policies={POLICY: "digest"},
    bindings={(*POLICY, "strict"): "digest"},
    rules=(LIMITS, LABELS, EXCEPTION),
    server="v1.36.0",
    assay="0.1.0",
    options=("create",),
)
FINDING = Coordinates(*POLICY, "strict", "shop", "limits", "shop")


@pytest.mark.parametrize(
    ("now", "expected"),
    [
        pytest.param(BEFORE, (), id="nothing"),
        pytest.param(replace(BEFORE, policies={POLICY: "other"}), (CauseKind.POLICY,), id="policy"),
        pytest.param(replace(BEFORE, bindings={(*POLICY, "strict"): "x"}), (CauseKind.BINDING,), id="binding"),
        pytest.param(replace(BEFORE, bindings={}), (CauseKind.BINDING,), id="binding gone"),
        pytest.param(
            replace(BEFORE, rules=(replace(LIMITS, digest="300"), LABELS, EXCEPTION)), (CauseKind.PARAM,), id="param"
        ),
        pytest.param(replace(BEFORE, rules=(LIMITS, LABELS)), (CauseKind.EXCEPTION,), id="exception gone"),
        pytest.param(replace(BEFORE, rules=(LIMITS, EXCEPTION)), (CauseKind.NAMESPACE,), id="namespace labels"),
        pytest.param(replace(BEFORE, server="v1.37.0"), (CauseKind.SERVER,), id="server"),
        pytest.param(replace(BEFORE, assay="0.2.0"), (CauseKind.ASSAY,), id="assay"),
        pytest.param(replace(BEFORE, options=("update",)), (CauseKind.OPTIONS,), id="options"),
        pytest.param(
            replace(BEFORE, policies={POLICY: "x"}, assay="0.2.0"), (CauseKind.POLICY, CauseKind.ASSAY), id="two"
        ),
    ],
)
def test_a_change_of_what_decides_is_named(now: Circumstances, expected: tuple[CauseKind, ...]) -> None:
    """In the order in which the parts explain a change, in both directions."""
    assert expected == Comparison(BEFORE, now).changes(FINDING)
    assert expected == Comparison(now, BEFORE).changes(FINDING)


@pytest.mark.parametrize(
    "now",
    [
        pytest.param(replace(BEFORE, policies={**BEFORE.policies, ("x", "y"): "z"}), id="another policy"),
        pytest.param(
            replace(BEFORE, rules=(*BEFORE.rules, replace(LIMITS, name="ConfigMap bank/limits"))), id="another param"
        ),
        pytest.param(replace(BEFORE, rules=(*BEFORE.rules, replace(LABELS, name="bank"))), id="another namespace"),
        pytest.param(
            replace(
                BEFORE,
                rules=(
                    *BEFORE.rules,
                    replace(EXCEPTION, name="k/x", document={"spec": {"policyRefs": [{"name": "x"}]}}),
                ),
            ),
            id="an exception of another policy",
        ),
    ],
)
def test_what_concerns_other_findings_is_not_named(now: Circumstances) -> None:
    """The finding was decided by other parts."""
    assert Comparison(BEFORE, now).changes(FINDING) == ()


def test_the_first_part_that_changed_is_the_cause() -> None:
    """In the order of the parts of a decision; the others are listed in this order, too."""
    assert Cause(CauseKind.PARAM, (CauseKind.ASSAY, CauseKind.OBJECT_CHANGED)) == cause_of(
        {CauseKind.OBJECT_CHANGED, CauseKind.ASSAY, CauseKind.PARAM}
    )


def test_other_sources_of_policies_are_no_change() -> None:
    """The policies themselves are compared; the sources only tell whether a missing one was deleted."""
    assert not Comparison(BEFORE, replace(BEFORE, sources=("policies/",))).rules_changed


@pytest.mark.parametrize(
    ("bindings", "renamed"),
    [
        pytest.param({(*POLICY, "renamed"): "digest"}, True, id="same content"),
        pytest.param({(*POLICY, "renamed"): "other"}, False, id="other content"),
        pytest.param({(*POLICY, "strict"): "digest", (*POLICY, "renamed"): "digest"}, False, id="a copy"),
    ],
)
def test_a_binding_is_renamed_if_its_content_stays(bindings: dict[tuple[str, str, str], str], *, renamed: bool) -> None:
    """The earlier one is gone, and the new one was not there."""
    comparison = Comparison(BEFORE, replace(BEFORE, bindings=bindings))
    assert renamed is comparison.renamed_binding((*POLICY, "strict"), (*POLICY, "renamed"))


@pytest.mark.parametrize(
    ("data", "renamed"), [pytest.param("3", True, id="same content"), pytest.param("300", False, id="other content")]
)
def test_a_param_is_renamed_if_its_content_stays(data: str, *, renamed: bool) -> None:
    """The name is part of the content of a param; all the rest must stay."""

    def limits(name: str, value: str) -> RuleObject:
        document: JsonObject = {"metadata": {"name": name, "namespace": "shop"}, "data": {"max": value}}
        return RuleObject(RuleType.PARAM, f"ConfigMap shop/{name}", f"{name}{value}", document)

    before, now = (replace(BEFORE, rules=(limits(*each),)) for each in (("limits", "3"), ("limits-2", data)))
    assert renamed is Comparison(before, now).renamed_param("shop/limits", "shop/limits-2")
