"""What changed for a finding between two scans."""

from __future__ import annotations

from dataclasses import replace

import pytest

from scanner.model.rule import RuleObject, RuleType
from scanner.posture.causes import CauseKind, Circumstances, Coordinates, changes

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
    assert expected == changes(BEFORE, now, FINDING)
    assert expected == changes(now, BEFORE, FINDING)


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
    assert changes(BEFORE, now, FINDING) == ()
