"""Row kyverno: the same forty policies on the same 20,000 objects, as ValidatingPolicies and as admission policies."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Any

import orjson

from benchmarks.measured import ROUNDS, say
from benchmarks.policies import policies
from scanner.admission.context import EvaluationContext
from scanner.admission.dispatch import BoundPolicy
from scanner.audit.page import PageEvaluator
from scanner.cluster.definitions import builtin_kinds
from scanner.model.resource import Kind, Page
from scanner.policies.kyverno import bind as kyverno
from scanner.policies.kyverno.bind import KyvernoContext
from scanner.policies.kyverno.spec import read_policy as read_kyverno
from scanner.policies.plan import KindPlan, find_equivalents, plan
from scanner.policies.validating.language import bind, read_binding, read_policy
from scanner.scan.param_table import ParamTable

_GOAL = 1.2
_PAGE = 500
_PAGES = 40
_PODS = Kind("", "v1", "Pod", "pods", namespaced=True)
_TEAM: dict[str, Any] = {"metadata": {"name": "team", "labels": {"team": "a"}}}
_CONTAINER: dict[str, Any] = {
    "image": "registry.example.com/app:1.2.3",
    "resources": {"limits": {"memory": "256Mi"}, "requests": {"cpu": "100m"}},
    "securityContext": {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "runAsNonRoot": True,
        "capabilities": {"drop": ["ALL"]},
    },
    "livenessProbe": {},
    "readinessProbe": {},
}


def against_admission() -> None:
    """Row kyverno: pages of pods, evaluated by each side in turn."""
    documents = [*policies()]
    admission = [document for document in documents if document["kind"] == "ValidatingAdmissionPolicy"]
    bindings = [document for document in documents if document not in admission]
    theirs = _evaluator_of(
        bind([read_policy(policy) for policy in admission], [read_binding(binding) for binding in bindings])
    )
    kyverno_context = KyvernoContext(datetime.now(UTC))
    ours = _evaluator_of(kyverno.bind([read_kyverno(_as_kyverno(policy)) for policy in admission], (), kyverno_context))
    page = _page()
    rounds = [(_seconds(ours, page), _seconds(theirs, page)) for _ in range(ROUNDS)]
    mine, other = (sorted(times)[ROUNDS // 2] for times in zip(*rounds, strict=True))
    objects = _PAGE * _PAGES
    say(
        f"{objects} pods, {len(admission)} policies: {mine / objects * 1e6:.1f} us and {other / objects * 1e6:.1f} us an object"
    )
    compared = "ValidatingPolicies against the same ValidatingAdmissionPolicies"
    say(f"bench=kyverno ratio={mine / other:.4g} goal=<={_GOAL} rounds={ROUNDS} ({compared})")


def _as_kyverno(policy: Any) -> Any:
    """Return the same policy as a ValidatingPolicy, without the forms that autogen adds."""
    spec = {**policy["spec"], "autogen": {"podControllers": {"controllers": []}}}
    return {**policy, "apiVersion": "policies.kyverno.io/v1", "kind": "ValidatingPolicy", "spec": spec}


def _evaluator_of(bound: tuple[BoundPolicy, ...]) -> tuple[PageEvaluator, KindPlan]:
    kinds = builtin_kinds()
    context = EvaluationContext(
        params=ParamTable(kinds), namespaces={"team": _TEAM}, equivalents=find_equivalents(kinds)
    )
    (chosen,) = (kind_plan for kind_plan in plan(kinds, bound) if kind_plan.kind == _PODS)
    return PageEvaluator(context), chosen


def _page() -> bytes:
    pods = [
        {
            "metadata": {"name": f"pod-{number}", "namespace": "team", "uid": f"{number}", "labels": {"owner": "a"}},
            "spec": {
                "containers": [{"name": name, **_CONTAINER} for name in ("main", "sidecar")],
                "nodeName": "node-1",
            },
        }
        for number in range(_PAGE)
    ]
    return orjson.dumps({"items": pods})


def _seconds(side: tuple[PageEvaluator, KindPlan], page: bytes) -> float:
    evaluator, chosen = side
    started = time.perf_counter()
    for number in range(_PAGES):
        evaluator.evaluate(Page(_PODS, number, page), chosen)
    return time.perf_counter() - started
