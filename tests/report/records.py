"""Records of scans for tests: a small ordinary one, a hostile one, and one of any size."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from itertools import product
from typing import Final, Literal

from scanner.model.json import JsonObject
from scanner.model.outcome import (
    NO_EVIDENCE,
    Check,
    CheckKind,
    Errored,
    Evidence,
    Finding,
    Gap,
    GapKind,
    Reason,
    Violated,
    WouldChange,
)
from scanner.model.policy import (
    Action,
    Binding,
    MatchResources,
    NamedExpression,
    ParamKind,
    ParamRef,
    Policy,
    Rule,
    Validation,
)
from scanner.model.reading import Auditability, CheckReading, Reading
from scanner.model.resource import UserInfo
from scanner.model.rule import RuleObject, RuleType
from scanner.model.scans.health import Health, HealthKind
from scanner.model.scans.method import Method
from scanner.model.scans.out_of_scope import OutOfScope
from scanner.model.scans.place import Place
from scanner.model.scans.scan import (
    ClusterIdentity,
    Coverage,
    CoverageState,
    PolicyRecord,
    Scan,
    ScanState,
    Scope,
    UncoveredKind,
)
from scanner.model.scans.stored_finding import StoredFinding
from scanner.model.scans.tally import OutcomeName, TallyKey
from scanner.model.selector import EVERYTHING
from tests.report.in_memory import ScanInMemory, as_problems

STARTED = datetime(2026, 3, 2, 14, 0, 0, tzinfo=UTC)
FINISHED = STARTED + timedelta(seconds=12.5)
BEFORE = STARTED - timedelta(days=1)

LIMITS = "object.spec.template.spec.containers.all(c, has(c.resources.limits))"
REPLICAS = "object.spec.replicas <= params.data.maxReplicas"
OWNER = "has(object.metadata.labels) && 'owner' in object.metadata.labels"
READ_ONLY = "object.spec.hostNetwork != true || request.userInfo.username == 'system:admin'"


def check(expression: str, index: int = 0) -> Check:
    """A validation."""
    return Check(CheckKind.VALIDATION, index, expression)


def policy(name: str, *expressions: str, param_kind: ParamKind | None = None, source: str = "cluster") -> Policy:
    """A policy on Deployments with one validation for each expression."""
    rule: JsonObject = {
        "apiGroups": ["apps"],
        "apiVersions": ["v1"],
        "operations": ["CREATE", "UPDATE"],
        "resources": ["*"],
    }
    spec: JsonObject = {
        "failurePolicy": "Fail",
        "matchConstraints": {"resourceRules": [rule]},
        "validations": [{"expression": expression, "message": f"{name} asks for it"} for expression in expressions],
    }
    return Policy(
        language="ValidatingAdmissionPolicy",
        name=name,
        match=MatchResources((Rule(("CREATE",), ("apps",), ("v1",), ("*",)),), (), EVERYTHING, EVERYTHING),
        param_kind=param_kind,
        match_conditions=(NamedExpression("not-system", "object.metadata.namespace != 'kube-system'"),),
        variables=(),
        validations=tuple(Validation(expression) for expression in expressions),
        audit_annotations=(),
        failure_policy="Fail",
        manifest={
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingAdmissionPolicy",
            "metadata": {"name": name, "uid": "u-1", "managedFields": [{"manager": "kubectl"}]},
            "spec": spec,
            "status": {"observedGeneration": 1},
        },
        digest=_hex(f"policy {name}"),
        source=source,
    )


def binding(name: str, of: str, *actions: Action, ref: ParamRef | None = None, assumed: bool = False) -> Binding:
    """A binding of a policy."""
    return Binding(
        language="ValidatingAdmissionPolicy",
        name=name,
        policy_name=of,
        param_ref=ref,
        match=None,
        actions=actions,
        manifest={},
        digest=_hex(f"binding {name}"),
        assumed=assumed,
    )


def finding(
    name: str,
    *,
    of: str = "require-limits",
    by: str = "require-limits-everywhere",
    checked: Check | None = None,
    outcome: Violated | WouldChange | Errored | None = None,
    namespace: str = "shop",
    kind: str = "Deployment",
    param: tuple[str, str] = ("", ""),
    actions: tuple[Action, ...] = ("Deny",),
    status: Literal["new", "open", "reopened", "resolved", "preview"] = "open",
    evidence: Evidence = NO_EVIDENCE,
) -> StoredFinding:
    """A finding about one object."""
    checked = checked or check(LIMITS)
    outcome = outcome or Violated("every container needs limits")
    fingerprint = _hex(f"{of} {by} {param} {checked} {kind} {namespace} {name}")
    return StoredFinding(
        id=fingerprint[:10],
        finding=Finding(
            fingerprint=fingerprint,
            policy=of,
            binding=by,
            param_namespace=param[0],
            param_name=param[1],
            check=checked,
            outcome=outcome,
            api_version="apps/v1",
            kind=kind,
            namespace=namespace,
            name=name,
            uid=_hex(f"{kind} {namespace} {name}")[:8],
            resource_version="41",
            operation="CREATE",
            actions=actions,
            denies="Deny" in actions and _denies(outcome),
            evidence=evidence,
        ),
        status=status,
        first_seen=STARTED if status == "new" else BEFORE,
        last_seen=BEFORE if status == "resolved" else STARTED,
        resolved_at=STARTED if status == "resolved" else None,
    )


def tally(findings: Sequence[StoredFinding], passes: dict[tuple[str, str, Check, str], int]) -> dict[TallyKey, int]:
    """The tallies that belong to findings, and to passes of (policy, binding, check, namespace)."""
    tallies: dict[TallyKey, int] = {}
    for (of, by, checked, namespace), number in passes.items():
        key = TallyKey(of, by, "", "", checked, "apps/v1", "Deployment", namespace, OutcomeName.PASSED)
        tallies[key] = number
    for stored in findings:
        key = _key(stored.finding)
        tallies[key] = tallies.get(key, 0) + 1
    return tallies


def _key(finding: Finding) -> TallyKey:
    return TallyKey(
        finding.policy,
        finding.binding,
        finding.param_namespace,
        finding.param_name,
        finding.check,
        finding.api_version,
        finding.kind,
        finding.namespace,
        _outcome_name(finding.outcome),
        language=finding.language,
    )


def with_findings(
    record: ScanInMemory, findings: Sequence[StoredFinding], resolved: Sequence[StoredFinding] = ()
) -> ScanInMemory:
    """The record with other findings, each a problem of its own."""
    return replace(record, found=lambda: findings, ended=lambda: resolved, joined=None)


def _denies(outcome: Violated | WouldChange | Errored) -> bool:
    match outcome:
        case Violated():
            return True
        case Errored(would_deny=would_deny):
            return would_deny
        case WouldChange():
            return False


def _outcome_name(outcome: Violated | WouldChange | Errored) -> OutcomeName:
    match outcome:
        case Violated():
            return OutcomeName.VIOLATED
        case Errored(would_deny=would_deny):
            return OutcomeName.ERRORED_DENY if would_deny else OutcomeName.ERRORED_ADMIT
        case WouldChange():
            return OutcomeName.WOULD_CHANGE


def scan(state: ScanState = ScanState.COMPLETE, scope: Scope | None = None, source: str = "cluster") -> Scan:
    """A scan of the cluster `harbour`."""
    return Scan(
        id="20260302-140000-ab12",
        cluster=ClusterIdentity("harbour", "5c1d0f6e", "v1.36.0", source),
        started_at=STARTED,
        finished_at=FINISHED,
        state=state,
        scope=scope or Scope(),
        tool_version="0.1.0",
        requester=UserInfo("system:serviceaccount:audit:assay", groups=("system:serviceaccounts",)),
        policy_set_digest=_hex("policy set"),
        description_digest=_hex("descriptions"),
    )


def small_record() -> ScanInMemory:
    """Four policies, one with params, one never matched; errors, a passed policy, a cluster-scoped finding."""
    findings = _small_findings()
    resolved = [finding("old-web", status="resolved"), finding("old-api", status="resolved", namespace="pay")]
    return ScanInMemory(
        scan=scan(),
        previous=replace(scan(), id="20260301-140000-9f00", started_at=BEFORE, finished_at=BEFORE),
        policies=_small_policies(),
        coverage=(
            Coverage("apps/v1", "Deployment", CoverageState.LISTED, 14, 12, 1, 60_000, "41", page_digests=b"\x07" * 32),
            Coverage("v1", "Namespace", CoverageState.LISTED, 4, 4, 1, 2_000, "41"),
            Coverage("v1", "Secret", CoverageState.SKIPPED, note="left out with --skip-kind"),
        ),
        health=(
            Health(HealthKind.NO_OBJECT, "no-host-network", "no-host-network", "12 Deployments were listed"),
            Health(HealthKind.DANGLING_BINDING, "gone", "gone-binding", "no policy of this name exists"),
        ),
        gaps=(),
        tallies={
            **tally(
                findings,
                {
                    ("require-limits", "require-limits-everywhere", check(LIMITS), "shop"): 5,
                    ("require-limits", "require-limits-everywhere", check(LIMITS), "pay"): 3,
                    ("require-owner", "require-owner", check(OWNER), ""): 3,
                },
            ),
            TallyKey(
                "require-owner", "require-owner", "", "", check(OWNER), "v1", "Namespace", "", OutcomeName.SKIPPED
            ): 2,
        },
        found=lambda: findings,
        ended=lambda: resolved,
        unchecked=1,
        rules=_small_rules(),
        uncovered=(UncoveredKind("apps/v1", "DaemonSet"), UncoveredKind("v1", "Node")),
        method=Method(
            UserInfo("system:serviceaccount:audit:assay", groups=("system:serviceaccounts",)),
            "audit-1",
            ("assay", "scan", "--skip-kind", "secrets"),
            network_to=("10.0.0.0/8",),
            workers=2,
            chunk_size=500,
            schema_version="0012",
        ),
    )


def _small_rules() -> tuple[RuleObject, ...]:
    """A param, a param that is a Secret, and the labels of a namespace."""
    limits: JsonObject = {"kind": "ConfigMap", "metadata": {"name": "limits"}, "data": {"maxReplicas": "5"}}
    secret: JsonObject = {"kind": "Secret", "metadata": {"name": "limits", "resourceVersion": "7"}}
    return (
        RuleObject(RuleType.NAMESPACE_LABELS, "shop", _hex("shop"), {"metadata": {"labels": {"tier": "gold"}}}),
        RuleObject(RuleType.PARAM, "ConfigMap shop/limits", _hex("limits"), limits),
        RuleObject(RuleType.PARAM, "Secret shop/limits", _hex("secret"), secret, masked=True),
    )


def _small_policies() -> tuple[PolicyRecord, ...]:
    limits = policy("require-limits", LIMITS)
    replicas = policy("max-replicas", REPLICAS, param_kind=ParamKind("v1", "ConfigMap"))
    owner = policy("require-owner", OWNER, source="policies/owner.yaml")
    network = policy("no-host-network", READ_ONLY)
    ref = ParamRef("limits", "shop", None, "Deny")
    full = Reading((Auditability.FULL,))
    asking = Reading((Auditability.REQUESTER,), (CheckReading(check(READ_ONLY), (Auditability.REQUESTER,)),))
    everywhere = binding("require-limits-everywhere", "require-limits", "Deny", "Audit")
    return (
        PolicyRecord(limits, (everywhere,), 12, reading=full),
        PolicyRecord(replicas, (binding("max-replicas-shop", "max-replicas", "Warn", ref=ref),), 4, reading=full),
        PolicyRecord(owner, (binding("require-owner", "require-owner", "Audit"),), 4, reading=full),
        PolicyRecord(network, (binding("no-host-network", "no-host-network", "Deny"),), 0, reading=asking),
    )


def _small_findings() -> list[StoredFinding]:
    replicas = {
        "of": "max-replicas",
        "by": "max-replicas-shop",
        "checked": check(REPLICAS),
        "param": ("shop", "limits"),
    }
    error = Errored("expression 'object.spec.replicas <= params.data.maxReplicas': no such key: maxReplicas", True)  # noqa: FBT003
    return [
        finding("api", **replicas, outcome=error, actions=("Warn",)),  # type: ignore[arg-type]
        finding("web", **replicas, outcome=Violated("10 replicas, 5 allowed"), actions=("Warn",), status="new"),  # type: ignore[arg-type]
        finding("ledger", namespace="pay", status="reopened"),
        finding("api"),
        finding("web", status="new"),
        finding(
            "shop",
            of="require-owner",
            by="require-owner",
            checked=check(OWNER),
            outcome=Violated("no owner label"),
            namespace="",
            kind="Namespace",
            actions=("Audit",),
        ),
    ]


def partial_record() -> ScanInMemory:
    """The small scan with gaps, as without some permissions."""
    record = small_record()
    return replace(
        record,
        scan=scan(ScanState.INCOMPLETE, Scope(exclude_namespaces=("kube-*",), skip_kinds=("secrets",)), "files"),
        coverage=(
            *record.coverage,
            Coverage("v1", "Pod", CoverageState.FORBIDDEN, note="system:serviceaccount:audit/assay may not list pods"),
            Coverage("batch/v1", "Job", CoverageState.PARTIAL, 500, 500, 1, note="the server went away after 1 page"),
        ),
        gaps=(
            Gap(GapKind.DOCUMENT, "broken.yaml, document 3", "line 7: found a tab where a space is expected"),
            Gap(GapKind.LIST, "v1/Pod", "forbidden"),
        ),
        outside=(
            OutOfScope(
                "apiGroup", "metrics.k8s.io/v1beta1", "no rule of a bound policy can match the kinds of this group"
            ),
            OutOfScope(
                "kustomization",
                "base/kustomization.yaml, document 1",
                "kustomize reads this file: render it, and scan that",
            ),
            OutOfScope(
                "ValidatingWebhookConfiguration", "image-guard", "2 webhooks: what they decide is not in the API"
            ),
        ),
    )


HOSTILE = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "\x1b[31mred\x1b[0m\x07",
    "../../etc/passwd",
    "\u202egnp.exe",
    "\x9b31m\x7f\U000e0001",
    "line one\nline two",
    "[bold red]markup[/bold red]",
    "{{ 7 * 7 }}{% raw %}",
    "a" * 5_000,
    "",
)


def previewed() -> ScanInMemory:
    """The record of a scan in which `--assume-bound` added every binding."""
    record = small_record()
    policies = tuple(
        replace(used, bindings=tuple(replace(binding, assumed=True) for binding in used.bindings))
        for used in record.policies
    )
    findings = [replace(stored, status="preview", resolution="") for stored in record.findings()]
    return with_findings(replace(record, policies=policies), findings)


def hostile_record() -> ScanInMemory:
    """A scan in which every name and message is hostile: policies, bindings, namespaces, objects, params, checks."""
    findings = [_hostile_finding(text) for text in sorted(HOSTILE)]
    return ScanInMemory(
        scan=replace(
            scan(),
            cluster=ClusterIdentity(HOSTILE[0], HOSTILE[1], HOSTILE[2]),
            requester=UserInfo(HOSTILE[0], groups=HOSTILE),
        ),
        previous=None,
        policies=tuple(PolicyRecord(policy(text, text), (binding(text, text, "Deny"),), 1) for text in HOSTILE),
        coverage=tuple(Coverage(text, text, CoverageState.FAILED, note=text) for text in HOSTILE),
        health=tuple(Health(HealthKind.NOTE, text, text, text) for text in HOSTILE),
        gaps=tuple(Gap(GapKind.OBJECT, text, text) for text in HOSTILE),
        outside=tuple(OutOfScope(text, text, text) for text in HOSTILE),
        rules=tuple(RuleObject(RuleType.PARAM, text, _hex(text), {text: text}) for text in HOSTILE),
        uncovered=tuple(UncoveredKind(text, text) for text in HOSTILE),
        method=Method(UserInfo(HOSTILE[0], groups=HOSTILE), HOSTILE[1], HOSTILE, HOSTILE[2], network_to=HOSTILE),
        tallies=tally(findings, {}),
        found=lambda: findings,
        ended=lambda: (replace(finding, status="resolved", resolved_at=FINISHED) for finding in findings),
        joined=lambda: as_problems(findings),
        files=EVERYWHERE,
    )


class _Everywhere:
    """Every object has its name as its file."""

    def __bool__(self) -> bool:
        """See `model.scans.place.Places`."""
        return True

    def find(self, group: str, kind: str, namespace: str, name: str, field: str = "") -> Place | None:
        """See `model.scans.place.Places`: no field has a line of its own."""
        if field:
            return None
        return Place(name, len(group + kind + namespace) or 1)


EVERYWHERE: Final = _Everywhere()


def _hostile_finding(text: str) -> StoredFinding:
    return finding(
        text,
        of=text,
        by=text,
        checked=check(text),
        outcome=Violated(text),
        namespace=text,
        kind=text,
        param=(text, text),
        evidence=Evidence((Reason(text, text, text, text), Reason(text, text, erred=True)), 1),
    )


def large_record(findings: int, *, policies: int = 40, namespaces: int = 200) -> ScanInMemory:
    """Many findings, created while they are read: evenly over policies, then over namespaces."""
    names = [f"policy-{number:03}" for number in range(policies)]
    spaces = [f"team-{number:04}" for number in range(namespaces)]
    each, more = divmod(findings, policies)

    def stream() -> Iterator[StoredFinding]:
        for number, name in enumerate(names):
            for place in range(each + (number < more)):
                yield _large_finding(name, spaces[place % namespaces], place)

    keys = {
        TallyKey(name, name, "", "", check(LIMITS), "apps/v1", "Deployment", space, outcome): 100
        for name, space, outcome in product(names, spaces, (OutcomeName.PASSED, OutcomeName.VIOLATED))
    }
    return ScanInMemory(
        scan=scan(),
        previous=None,
        policies=tuple(PolicyRecord(policy(name, LIMITS), (binding(name, name, "Deny"),), each) for name in names),
        coverage=(Coverage("apps/v1", "Deployment", CoverageState.LISTED, findings, findings, 1),),
        health=(),
        gaps=(),
        tallies=keys,
        found=stream,
        joined=lambda: as_problems(stream()),
    )


def _large_finding(name: str, namespace: str, place: int) -> StoredFinding:
    status: Literal["new", "open"] = "new" if place % 7 == 0 else "open"
    message = f"container app-{place} of {namespace} has no limits for cpu and memory; set resources.limits on it"
    where = "spec.template.spec.containers[0].resources.limits"
    why = Evidence((Reason("has(c.resources.limits)", "false", where),))
    return finding(
        f"deployment-{place:06}",
        of=name,
        by=name,
        namespace=namespace,
        status=status,
        outcome=Violated(message),
        evidence=why,
    )


def _hex(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
