"""The results of a scan by policy: its manifests, bindings, params, checks and namespaces, with their counts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, TypedDict, TypeVar

import orjson

from scanner.model.json import EMPTY, Json, JsonObject, as_object, dig, text_map
from scanner.model.outcome import Check
from scanner.model.policy import Action, Binding, BindingKey, Policy, PolicyKey
from scanner.model.reading import UNKNOWN_READING, Auditability, Reading
from scanner.model.resource import LAST_APPLIED, SERVER_SET_METADATA
from scanner.model.scans.census import Census
from scanner.model.scans.health import Health
from scanner.model.scans.scan import PolicyRecord, ScanRecord
from scanner.posture.score import NO_SCORE, Score, Scores
from scanner.posture.severity import Severity
from scanner.posture.triage import Triage
from scanner.posture.vendors import Vendor, find_vendor
from scanner.report.document.counts import (
    NO_FINDINGS,
    NOTHING,
    CheckCounts,
    FindingCounts,
    OutcomeCounts,
    counts_by,
    findings_by,
)
from scanner.report.text.names import param_ref
from scanner.report.text.titles import binding_note, check_title

KeyT = TypeVar("KeyT", bound=Hashable)
ItemT = TypeVar("ItemT")

FOR_PAGES: Final = MappingProxyType({"pages": True})
"""The metadata of fields that pages alone show: JSON has the manifests of the server."""
_REQUESTER_WORDS = ("userInfo", "authorizer")


@dataclass(frozen=True, slots=True)
class ParamSection:
    """The results with one param. Both names are empty for a policy without params."""

    namespace: str
    name: str
    counts: CheckCounts


@dataclass(frozen=True, slots=True)
class BindingSection:
    """A binding as the scan used it. `param_ref` describes its params in words.

    `manifest` is empty if the scan did not record it; `written` is the manifest that its author applied with kubectl, if known.
    """

    name: str
    actions: tuple[Action, ...]
    param_ref: str
    note: str
    digest: str
    counts: CheckCounts
    params: tuple[ParamSection, ...]
    manifest: JsonObject
    written: JsonObject = field(metadata=FOR_PAGES)


@dataclass(frozen=True, slots=True)
class CheckSection:
    """The results of one check of a policy, and their auditability."""

    check: Check
    severity: Severity
    remediation: str
    counts: CheckCounts
    auditability: tuple[Auditability, ...]


@dataclass(frozen=True, slots=True)
class NamespaceCounts:
    """The results of a policy in one namespace; the empty name stands for cluster-scoped objects."""

    namespace: str
    counts: CheckCounts


@dataclass(frozen=True, slots=True)
class PolicySection:
    """Everything about one policy except its findings. `matched` counts objects.

    `auditability` has the classes of the policy, and is empty if an older version recorded the scan; `not_auditable` is the
    reason if no stored object can be evaluated. `reads_requester` marks a policy with outcomes, passes included, that can
    depend on the user: `requester` counts those. `manifest` is empty if the scan did not record the policy, and `written` is the one that its author applied with kubectl,
    if that is known. `vendor` is the one that installed the policy, if marks of its manifest state it. `severity` and the
    texts after it are those of `posture.severity`.
    """

    name: str
    language: str
    source: str
    digest: str
    failure_policy: str
    param_kind: str
    auditability: tuple[Auditability, ...]
    not_auditable: str
    reads_requester: bool
    matched: int
    actions: tuple[Action, ...]
    counts: CheckCounts
    requester: CheckCounts
    findings: FindingCounts
    bindings: tuple[BindingSection, ...]
    checks: tuple[CheckSection, ...]
    namespaces: tuple[NamespaceCounts, ...]
    health: tuple[Health, ...]
    manifest: JsonObject
    written: JsonObject = field(metadata=FOR_PAGES)
    vendor: Vendor | None
    severity: Severity
    title: str
    category: str
    description: str
    remediation: str
    docs: str
    score: Score

    @property
    def key(self) -> PolicyKey:
        """Language and name of the policy."""
        return self.language, self.name

    def name_check(self, check: Check) -> str:
        """The name of a check beside that of the policy; empty for the only one of its kind, unless it has a name of its own."""
        title = check_title(check)
        several = sum(each.check.kind is check.kind for each in self.checks) > 1
        return title if several or title == check.expression else ""


@dataclass(frozen=True, slots=True)
class _PolicyNumbers:
    """The counts of a scan, grouped once for all policies."""

    policies: dict[PolicyKey, CheckCounts]
    requester: dict[PolicyKey, CheckCounts]
    params: dict[PolicyKey, dict[tuple[str, str, str], CheckCounts]]
    bindings: dict[BindingKey, CheckCounts]
    checks: dict[PolicyKey, dict[Check, CheckCounts]]
    namespaces: dict[PolicyKey, dict[str, CheckCounts]]
    findings: dict[PolicyKey, FindingCounts]
    health: dict[PolicyKey, list[Health]]
    scores: dict[PolicyKey, Score]
    triage: Triage


def policies_of(
    record: ScanRecord, outcomes: OutcomeCounts, census: Census, triage: Triage, scores: Scores
) -> tuple[PolicySection, ...]:
    """Every policy of a scan by name, including policies that were not recorded but have outcomes."""
    numbers = _numbers_of(record, outcomes, census, triage, scores)
    recorded = {used.policy.key for used in record.policies}
    unrecorded = sorted(
        (numbers.policies.keys() | numbers.findings.keys()) - recorded, key=lambda key: (key[1], key[0])
    )
    sections = (_section(used, numbers) for used in sorted(record.policies, key=_sort_key))
    return (*sections, *(_make_unrecorded(key, numbers) for key in unrecorded))


def _sort_key(record: PolicyRecord) -> tuple[str, str]:
    return record.policy.name, record.policy.language


def _numbers_of(
    record: ScanRecord, outcomes: OutcomeCounts, census: Census, triage: Triage, scores: Scores
) -> _PolicyNumbers:
    tallies = outcomes.everywhere
    by_param = counts_by(tallies, lambda key: (key.policy_key, (key.binding, key.param_namespace, key.param_name)))
    health: defaultdict[PolicyKey, list[Health]] = defaultdict(list)
    for problem in sorted(record.health):
        health[problem.policy_key].append(problem)
    return _PolicyNumbers(
        policies=counts_by(tallies, lambda key: key.policy_key),
        requester=counts_by(tallies, lambda key: key.policy_key if key.requester else None),
        params=_nest(by_param),
        bindings=counts_by(tallies, lambda key: key.binding_key),
        checks=_nest(counts_by(tallies, lambda key: (key.policy_key, key.check))),
        namespaces=_nest(
            {((language, policy), name): counts for (name, policy, language), counts in outcomes.places.items()}
        ),
        findings=findings_by(census, lambda bucket: bucket.policy),
        health=health,
        scores=scores.score_by_policy(),
        triage=triage,
    )


def _nest(flat: Mapping[tuple[PolicyKey, KeyT], ItemT]) -> dict[PolicyKey, dict[KeyT, ItemT]]:
    nested: defaultdict[PolicyKey, dict[KeyT, ItemT]] = defaultdict(dict)
    for (policy, key), item in flat.items():
        nested[policy][key] = item
    return nested


def _section(record: PolicyRecord, numbers: _PolicyNumbers) -> PolicySection:
    policy = record.policy
    kind = policy.param_kind
    return PolicySection(
        name=policy.name,
        language=policy.language,
        source=policy.source,
        digest=policy.digest,
        failure_policy=policy.failure_policy,
        param_kind=f"{kind.kind} ({kind.api_version})" if kind else "",
        auditability=record.reading.classes,
        not_auditable=record.reading.reason,
        reads_requester=_reads_requester(record),
        matched=record.matched,
        actions=record.actions or _actions(record.bindings),
        counts=numbers.policies.get(policy.key, NOTHING),
        requester=numbers.requester.get(policy.key, NOTHING),
        findings=numbers.findings.get(policy.key, NO_FINDINGS),
        bindings=tuple(_binding(used, numbers) for used in sorted(record.bindings, key=lambda binding: binding.name)),
        checks=_checks(policy.key, record.reading, numbers),
        namespaces=_namespaces(policy.key, numbers),
        health=tuple(numbers.health.get(policy.key, ())),
        manifest=drop_server_fields(policy.manifest),
        written=restore_written(policy.manifest),
        vendor=find_vendor(policy.manifest),
        **_describe(policy.key, numbers),
    )


def _make_unrecorded(key: PolicyKey, numbers: _PolicyNumbers) -> PolicySection:
    return PolicySection(
        name=key[1],
        language=key[0],
        source="not recorded",
        digest="",
        failure_policy="",
        param_kind="",
        auditability=(),
        not_auditable="",
        reads_requester=False,
        matched=0,
        actions=(),
        counts=numbers.policies.get(key, NOTHING),
        requester=numbers.requester.get(key, NOTHING),
        findings=numbers.findings.get(key, NO_FINDINGS),
        bindings=(),
        checks=_checks(key, UNKNOWN_READING, numbers),
        namespaces=_namespaces(key, numbers),
        health=tuple(numbers.health.get(key, ())),
        manifest=EMPTY,
        written=EMPTY,
        vendor=None,
        **_describe(key, numbers),
    )


class _Description(TypedDict):
    severity: Severity
    title: str
    category: str
    description: str
    remediation: str
    docs: str
    score: Score


def _describe(policy: PolicyKey, numbers: _PolicyNumbers) -> _Description:
    """The description of a policy, and its score."""
    description = numbers.triage.description(policy)
    return {
        "severity": description.severity,
        "title": description.title,
        "category": description.category,
        "description": description.description,
        "remediation": description.remediation,
        "docs": description.docs,
        "score": numbers.scores.get(policy, NO_SCORE),
    }


def _checks(policy: PolicyKey, reading: Reading, numbers: _PolicyNumbers) -> tuple[CheckSection, ...]:
    description = numbers.triage.description(policy)
    return tuple(
        CheckSection(
            check=check,
            severity=description.severity_of(check.expression),
            remediation=description.remediation_of(check.expression),
            counts=counts,
            auditability=reading.classes_of(check),
        )
        for check, counts in numbers.checks.get(policy, {}).items()
    )


def _namespaces(policy: PolicyKey, numbers: _PolicyNumbers) -> tuple[NamespaceCounts, ...]:
    return tuple(NamespaceCounts(name, counts) for name, counts in numbers.namespaces.get(policy, {}).items())


def _binding(binding: Binding, numbers: _PolicyNumbers) -> BindingSection:
    params = numbers.params.get(binding.policy_key, {})
    return BindingSection(
        name=binding.name,
        actions=binding.actions,
        param_ref=param_ref(binding.param_ref),
        note=binding_note(binding),
        digest=binding.digest,
        counts=numbers.bindings.get(binding.key, NOTHING),
        params=tuple(
            ParamSection(namespace, name, counts)
            for (bound_by, namespace, name), counts in params.items()
            if bound_by == binding.name
        ),
        manifest=drop_server_fields(binding.manifest),
        written=restore_written(binding.manifest),
    )


def _actions(bindings: Iterable[Binding]) -> tuple[Action, ...]:
    return tuple(sorted({action for binding in bindings for action in binding.actions}))


def _reads_requester(record: PolicyRecord) -> bool:
    """Return whether expressions read the user. For a scan by an older version their words decide, which may mark too many."""
    if record.reading.classes:
        return Auditability.REQUESTER in record.reading.classes
    return _names_requester(record.policy)


def _names_requester(policy: Policy) -> bool:
    expressions = (
        *(condition.expression for condition in policy.match_conditions),
        *(variable.expression for variable in policy.variables),
        *(validation.expression + validation.message_expression for validation in policy.validations),
        *(annotation.value_expression for annotation in policy.audit_annotations),
    )
    return any(word in text for text in expressions for word in _REQUESTER_WORDS)


# The manifests of policies and bindings as reports show them, and as their authors wrote them, where that is known.
#
# `kubectl apply` keeps a copy of what it applied in an annotation of the object. An edit by other means does not
# change the copy, so the copy is what the author wrote only while the object has everything that the copy has.


def drop_server_fields(manifest: JsonObject) -> JsonObject:
    """The manifest without status and without the metadata that a server or kubectl sets."""
    metadata = {
        key: value for key, value in as_object(manifest.get("metadata")).items() if key not in SERVER_SET_METADATA
    }
    annotations = as_object(metadata.pop("annotations", None))
    written = {key: value for key, value in annotations.items() if key != LAST_APPLIED}
    if written:
        metadata["annotations"] = written
    return {key: metadata if key == "metadata" else value for key, value in manifest.items() if key != "status"}


def restore_written(manifest: JsonObject) -> JsonObject:
    """The manifest with the spec that its author applied, without the defaults of the server; empty if that is not known."""
    copy = _copy(manifest)
    spec = copy.get("spec")
    if not spec or not _has(manifest.get("spec"), spec):
        return EMPTY
    version = {"apiVersion": copy["apiVersion"]} if "apiVersion" in copy else {}
    return {**drop_server_fields(manifest), **version, "spec": spec}


def _copy(manifest: JsonObject) -> JsonObject:
    text = text_map(dig(manifest, "metadata", "annotations")).get(LAST_APPLIED, "")
    try:
        return as_object(orjson.loads(text))
    except orjson.JSONDecodeError:
        return EMPTY


def _has(stored: Json, written: Json) -> bool:
    """Return whether a value of the server is a written one, with nothing but further fields."""
    if isinstance(written, Mapping):
        server_fields = as_object(stored)
        return isinstance(stored, Mapping) and all(
            _has(server_fields.get(key), value) for key, value in written.items()
        )
    if isinstance(written, Sequence) and not isinstance(written, str):
        if not isinstance(stored, Sequence) or isinstance(stored, str):
            return not written and stored is None
        return len(stored) == len(written) and all(map(_has, stored, written))
    return stored == written
