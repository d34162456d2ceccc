"""The sources of refusals: everything that can refuse a request to the cluster, each judged, named, or not visible.

The facts are those of the stored scan: its policies, gaps and rules, and the items that also decide (`OutOfScope`). No source is
judged because nothing is known of it: a report claims no more than this table.

Source of truth for the sources: the admission plug-ins of kube-apiserver 1.30 to 1.37; KEP-5793 for the policies of the control plane,
KEP-5681 for authorizers with conditions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from scanner.model.missing_right import parse_missing_right
from scanner.model.outcome import GapKind
from scanner.model.policy import ADMISSION_API, STATIC, policy_label
from scanner.model.release import Minor
from scanner.model.rule import RuleType
from scanner.model.scans.out_of_scope import CONSTRAINTS, NEVER_CALLED, OutOfScope, Unneeded
from scanner.model.scans.scan import FILES, PolicyRecord, ScanRecord
from scanner.report.text.numbers import join_texts, plural

POD_SECURITY: Final = "PodSecurity"
_KYVERNOS: Final = frozenset({"ValidatingPolicy", "NamespacedValidatingPolicy"})
_ADMISSION: Final = "admissionregistration.k8s.io"
_KYVERNO: Final = "policies.kyverno.io"
_KYVERNO_GROUPS: Final = (f".{_KYVERNO}", ".kyverno.io")
_WEBHOOKS: Final = ("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration")
_LIMITS: Final = ("resourcequotas", "limitranges")
_STATIC_SINCE: Final[Minor] = (1, 36)
_CONDITIONS_SINCE: Final[Minor] = (1, 37)
_DRY_RUN: Final = "a dry run of a write, which the API server decides with all sources: kubectl apply --dry-run=server"
_REQUESTS: Final = (
    "a scan of all policies without gaps; for rules that no stored object shows, the requests in an audit log"
)


class SourceState(StrEnum):
    """How far a scan judged a source: not at all if it is `named` or `notVisible`. Of `none` there is no object that decides."""

    JUDGED = "judged"
    NAMED = "named"
    NOT_VISIBLE = "notVisible"
    NONE = "none"


class SourceName(StrEnum):
    """The sources of refusals. The list is closed."""

    VALIDATING = "validatingAdmissionPolicies"
    MUTATING = "mutatingAdmissionPolicies"
    POD_SECURITY = "podSecurity"
    POD_SECURITY_DEFAULTS = "podSecurityDefaults"
    KYVERNO = "kyverno"
    GATEKEEPER = "gatekeeper"
    CONTROL_PLANE = "controlPlanePolicies"
    WEBHOOKS = "webhooks"
    LIMITS = "quotasAndLimitRanges"
    AUTHORIZERS = "conditionalAuthorizers"


TITLES: Final = {
    SourceName.VALIDATING: ADMISSION_API[0],
    SourceName.MUTATING: ADMISSION_API[1],
    SourceName.POD_SECURITY: "Pod Security by labels of namespaces",
    SourceName.POD_SECURITY_DEFAULTS: "Pod Security by defaults of the API server",
    SourceName.KYVERNO: "Kyverno",
    SourceName.GATEKEEPER: "Gatekeeper",
    SourceName.CONTROL_PLANE: f"Policies of the control plane (*{STATIC})",
    SourceName.WEBHOOKS: "Webhooks",
    SourceName.LIMITS: "ResourceQuota and LimitRange",
    SourceName.AUTHORIZERS: "Authorizers with conditions",
}
STATES: Final = {
    SourceState.JUDGED: "judged",
    SourceState.NAMED: "named",
    SourceState.NOT_VISIBLE: "not visible",
    SourceState.NONE: "none",
}
"""The states in words."""
_NOUNS: Final = {
    SourceName.VALIDATING: ("validating policy", "validating policies"),
    SourceName.MUTATING: ("mutating policy", "mutating policies"),
    SourceName.POD_SECURITY: ("Pod Security level", ""),
    SourceName.KYVERNO: ("object of Kyverno", "objects of Kyverno"),
    SourceName.GATEKEEPER: ("constraint of Gatekeeper", "constraints of Gatekeeper"),
    SourceName.WEBHOOKS: ("webhook configuration", ""),
    SourceName.LIMITS: ("quota or limit range", "quotas and limit ranges"),
}


@dataclass(frozen=True, slots=True)
class SourcePart:
    """A part of a source: objects of one kind in one state. `number` is None if it is not known, and `why` the reason of the state."""

    what: str
    number: int | None
    state: SourceState
    why: str = ""


@dataclass(frozen=True, slots=True)
class Source:
    """A source of refusals, with the numbers of its judged and its named objects.

    `shown_by` is what would show the decisions of a source that is not judged, or empty.
    """

    name: SourceName
    title: str
    state: SourceState
    judged: int
    named: int
    parts: tuple[SourcePart, ...]
    shown_by: str


def sources_of(record: ScanRecord) -> tuple[Source, ...]:
    """The sources of refusals of a scanned cluster. Files have no control plane, and only the sources that they contain."""
    sources = tuple(_make_source(name, tuple(parts_of(record)), shown_by) for name, parts_of, shown_by in _SOURCES)
    of_files = record.scan.cluster.source == FILES
    return tuple(source for source in sources if source.parts and not (of_files and _is_empty(source)))


def _is_empty(source: Source) -> bool:
    return source.state is SourceState.NONE and source.name not in (SourceName.VALIDATING, SourceName.MUTATING)


def _make_source(name: SourceName, parts: tuple[SourcePart, ...], shown_by: str) -> Source:
    """The state of a source is that of its worst part: one that is not visible, then one that is named."""
    numbers: Counter[SourceState] = Counter()
    for part in parts:
        numbers[part.state] += part.number or 0
    if any(part.state is SourceState.NOT_VISIBLE for part in parts):
        state = SourceState.NOT_VISIBLE
    else:
        state = next((each for each in (SourceState.NAMED, SourceState.JUDGED) if numbers[each]), SourceState.NONE)
    is_open = state in (SourceState.NAMED, SourceState.NOT_VISIBLE)
    rights = (parse_missing_right(part.why) for part in parts)
    grants = dict.fromkeys(f"the right to {right.right}" for right in rights if right)
    shown = "; ".join(grants) or shown_by
    return Source(
        name,
        TITLES[name],
        state,
        numbers[SourceState.JUDGED],
        numbers[SourceState.NAMED],
        parts,
        shown if is_open else "",
    )


# Policies that a scan evaluates. Those that it cannot evaluate are named.


def _list_validating(record: ScanRecord) -> Iterator[SourcePart]:
    return _list_policies(record, _ADMISSION, frozenset(ADMISSION_API[:1]))


def _list_mutating(record: ScanRecord) -> Iterator[SourcePart]:
    return _list_policies(record, _ADMISSION, frozenset(ADMISSION_API[1:]))


def _list_policies(record: ScanRecord, group: str, languages: frozenset[str]) -> Iterator[SourcePart]:
    """The bound policies of some languages of an API group: judged, or named with the reason; then those that decide nothing, and the missing ones."""
    of_source = [each for each in record.policies if each.policy.language in languages and not each.policy.static]
    bound = [each for each in of_source if _is_bound(each)]
    reasons = Counter(_find_reason(record, each) for each in bound)
    for reason, number in sorted(reasons.items()):
        state = SourceState.NAMED if reason else SourceState.JUDGED
        yield SourcePart("bound policies", number, state, reason)
    if not bound:
        yield SourcePart("bound policies", 0, SourceState.NONE)
    if unbound := len(of_source) - len(bound):
        yield SourcePart("policies without a binding", unbound, SourceState.NONE, "they decide nothing")
    yield from _list_missing(record, group, languages)


def _is_bound(used: PolicyRecord) -> bool:
    return any(not binding.assumed for binding in used.bindings)


def _find_reason(record: ScanRecord, used: PolicyRecord) -> str:
    """The reason why a bound policy was not judged, or an empty string."""
    label = policy_label(used.policy.key)
    gap = next((gap for gap in record.gaps if gap.kind is GapKind.EVALUATION and gap.where == label), None)
    return gap.why if gap else used.reading.reason


def _list_missing(record: ScanRecord, group: str, languages: frozenset[str]) -> Iterator[SourcePart]:
    """The policies that are not known: they could not be listed, or the user left them out."""
    for gap in sorted(record.gaps):
        of_group, *rest = gap.where.split("/")
        kind = rest[1].removesuffix("Binding") if len(rest) > 1 else ""
        if gap.kind in (GapKind.LIST, GapKind.DISCOVERY) and of_group == group and kind in ("", *languages):
            yield SourcePart(gap.where, None, SourceState.NOT_VISIBLE, gap.why)
    scope, method = record.scan.scope, record.method
    if method and method.without_cluster_policies:
        yield SourcePart("policies of the cluster", None, SourceState.NOT_VISIBLE, "left out on request")
    elif chosen := (*scope.policies, *scope.bindings):
        why = f"left out on request: all but {join_texts(chosen)}"
        yield SourcePart("other policies", None, SourceState.NOT_VISIBLE, why)


# Pod Security: the labels of namespaces, and the configuration of the API server's own plug-in.


def _list_pod_security(record: ScanRecord) -> Iterator[SourcePart]:
    if POD_SECURITY in record.scan.scope.skip_languages:
        yield SourcePart(
            "labels of namespaces", None, SourceState.NOT_VISIBLE, "left out on request: --no-pod-security"
        )
        return
    bindings = [
        binding.name
        for used in record.policies
        if used.policy.language == POD_SECURITY
        for binding in used.bindings
        if "RefusePods" not in binding.actions
    ]
    if bindings:
        what = f"levels that labels demand ({join_texts(sorted(bindings))})"
        yield SourcePart(what, len(bindings), SourceState.JUDGED)
    else:
        yield SourcePart("levels that labels demand", 0, SourceState.NONE)
    for gap in sorted(record.gaps):
        if gap.where == "v1/Namespace":
            yield SourcePart("labels of namespaces", None, SourceState.NOT_VISIBLE, gap.why)


def _list_pod_security_defaults(record: ScanRecord) -> Iterator[SourcePart]:
    """The configuration in a file of the API server: it may demand levels of namespaces without labels."""
    if record.scan.cluster.source == FILES or POD_SECURITY in record.scan.scope.skip_languages:
        return
    configurations = [rule for rule in record.rules if (rule.type, rule.name) == (RuleType.CONFIGURATION, POD_SECURITY)]
    if configurations:
        yield SourcePart("configuration of --pod-security-config", 1, SourceState.JUDGED)
    else:
        yield SourcePart("configuration", None, SourceState.NOT_VISIBLE, "a file of the API server, which no API shows")


# Other controllers, and the control plane itself.


def _list_kyverno(record: ScanRecord) -> Iterator[SourcePart]:
    """The policies that a scan evaluates, then every other kind of Kyverno that the cluster serves; nothing without Kyverno's kinds."""
    others = tuple(_list_other_kyverno(record))
    used = any(each.policy.language in _KYVERNOS for each in record.policies)
    if used or others or any(gap.where.partition("/")[0] == _KYVERNO for gap in record.gaps):
        yield from _list_policies(record, _KYVERNO, _KYVERNOS)
        yield from others


def _list_other_kyverno(record: ScanRecord) -> Iterator[SourcePart]:
    for item in sorted(record.outside):
        if item.kind.endswith(_KYVERNO_GROUPS):
            yield _make_part(item, f"{item.name} ({item.kind.partition('.')[2]})")
        elif item.kind == Unneeded.LEGACY_POLICY:
            yield _make_part(item, item.name)


def _make_part(item: OutOfScope, what: str) -> SourcePart:
    """The part of an item that stands for objects of a kind, which a scan lists and does not evaluate."""
    if item.number is None:
        return SourcePart(what, None, SourceState.NOT_VISIBLE, item.why)
    why = item.why.removeprefix(f"{plural(item.number, 'object')}: ")
    return SourcePart(what, item.number, SourceState.NAMED if item.number else SourceState.NONE, why)


def _list_gatekeeper(record: ScanRecord) -> Iterator[SourcePart]:
    """The admission policies that Gatekeeper generated, which are judged, and the constraints, as far as no such policy has them."""
    generated = [used for used in record.policies if _is_generated(used) and _is_bound(used)]
    judged = [used for used in generated if not _find_reason(record, used)]
    if judged:
        names = join_texts(sorted(used.policy.name for used in judged))
        what = f"admission policies with constraints as params ({names})"
        yield SourcePart(what, len(judged), SourceState.JUDGED, "counted above, too")
    bound = _count_bound_constraints(judged)
    for item in sorted(record.outside):
        if not item.kind.endswith(f".{CONSTRAINTS}"):
            continue
        what = f"{item.name} ({CONSTRAINTS})"
        part = _make_part(item, what)
        of_policy = min(bound[item.name], part.number or 0)
        if of_policy:
            yield SourcePart(what, of_policy, SourceState.JUDGED, "an admission policy has them as params")
        if not of_policy or of_policy != part.number:
            yield part if not of_policy else SourcePart(what, (part.number or 0) - of_policy, part.state, part.why)


def _is_generated(used: PolicyRecord) -> bool:
    """Return whether a policy takes constraints as params, as those do that Gatekeeper generates from templates."""
    kind = used.policy.param_kind
    return kind is not None and kind.api_version.partition("/")[0] == CONSTRAINTS


def _count_bound_constraints(policies: Iterable[PolicyRecord]) -> Mapping[str, int]:
    """The numbers of constraints by kind to which bindings of policies refer by name."""
    names = {
        (used.policy.param_kind.kind, binding.param_ref.name)
        for used in policies
        for binding in used.bindings
        if used.policy.param_kind and binding.param_ref and binding.param_ref.name
    }
    return Counter(kind for kind, _ in names)


def _list_control_plane(record: ScanRecord) -> Iterator[SourcePart]:
    """The policies in files of the API server, which no API lists: those that the user adds as files are judged."""
    static = [used for used in record.policies if used.policy.static and _is_bound(used)]
    if static:
        why = "added as files; whether the API server has others is not visible"
        yield SourcePart("policies", len(static), SourceState.JUDGED, why)
    elif record.scan.cluster.source != FILES and record.scan.cluster.release.rules >= _STATIC_SINCE:
        yield SourcePart("policies", None, SourceState.NOT_VISIBLE, "files of the API server, which no API shows")


def _list_webhooks(record: ScanRecord) -> Iterator[SourcePart]:
    for kind in _WEBHOOKS:
        items = [item for item in record.outside if item.kind == kind]
        idle = sum(item.why.endswith(NEVER_CALLED) for item in items)
        unlisted = [item for item in items if item.number is None]
        for item in unlisted:
            yield SourcePart(kind, None, SourceState.NOT_VISIBLE, item.why)
        if deciding := len(items) - idle - len(unlisted):
            why = "what a program decides is not written in the API"
            yield SourcePart(kind, deciding, SourceState.NAMED, why)
        if idle or not items:
            why = f"without a rule: {NEVER_CALLED}" if idle else ""
            yield SourcePart(kind, idle, SourceState.NONE, why)


def _list_limits(record: ScanRecord) -> Iterator[SourcePart]:
    items = {item.kind: item for item in record.outside if item.kind in _LIMITS}
    for resource in _LIMITS:
        if resource in items:
            yield _make_part(items[resource], items[resource].name)
        elif record.scan.cluster.source != FILES:
            yield SourcePart(resource, None, SourceState.NOT_VISIBLE, "the scan did not list them")


def _list_authorizers(record: ScanRecord) -> Iterator[SourcePart]:
    """Authorizers that allow a request with conditions, which the API server evaluates like admission."""
    if record.scan.cluster.source != FILES and record.scan.cluster.release.rules >= _CONDITIONS_SINCE:
        yield SourcePart(
            "conditions", None, SourceState.NOT_VISIBLE, "answers of programs to each request, which no API lists"
        )


_SOURCES: Final[tuple[tuple[SourceName, Callable[[ScanRecord], Iterator[SourcePart]], str], ...]] = (
    (SourceName.VALIDATING, _list_validating, _REQUESTS),
    (SourceName.MUTATING, _list_mutating, _REQUESTS),
    (SourceName.POD_SECURITY, _list_pod_security, "a scan without --no-pod-security that may list namespaces"),
    (SourceName.POD_SECURITY_DEFAULTS, _list_pod_security_defaults, "--pod-security-config with that file"),
    (SourceName.KYVERNO, _list_kyverno, _DRY_RUN),
    (SourceName.GATEKEEPER, _list_gatekeeper, _DRY_RUN),
    (SourceName.CONTROL_PLANE, _list_control_plane, "-f with the files of its staticManifestsDir"),
    (SourceName.WEBHOOKS, _list_webhooks, _DRY_RUN),
    (SourceName.LIMITS, _list_limits, _DRY_RUN),
    (SourceName.AUTHORIZERS, _list_authorizers, "the configuration of the authorizers of the API server"),
)


def is_everything_judged(sources: Iterable[Source]) -> bool:
    """Return whether no source is left that may refuse what judged policies admit."""
    return all(source.state in (SourceState.JUDGED, SourceState.NONE) for source in sources)


def not_judged_line(sources: Iterable[Source]) -> str:
    """The sources that were not judged, as a clause; empty if every one was: `not judged: 2 webhook configurations; not visible: …`."""
    sources = tuple(sources)
    named = [plural(source.named, *_NOUNS[source.name]) for source in sources if source.named]
    hidden = [source.title for source in sources if source.state is SourceState.NOT_VISIBLE]
    parts = (("not judged", named), ("not visible", hidden))
    return "; ".join(f"{words}: {join_texts(texts)}" for words, texts in parts if texts)
