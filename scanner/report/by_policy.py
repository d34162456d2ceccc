"""A scan policy by policy: its bindings, params and checks, what they led to, and where."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import TypeVar

from scanner.model.json import EMPTY, JsonObject, as_object
from scanner.model.outcome import Check
from scanner.model.policy import Action, Binding, BindingKey, Policy, PolicyKey
from scanner.model.reading import UNKNOWN, Auditability, Reading
from scanner.model.scan import Health, PolicyRecord, ScanRecord
from scanner.report.counts import NO_FINDINGS, NOTHING, Census, Counts, FindingCounts, counts_by, findings_by
from scanner.report.words import binding_note, param_ref

KeyT = TypeVar("KeyT", bound=Hashable)
ItemT = TypeVar("ItemT")

_SERVER_SET = ("managedFields", "resourceVersion", "generation", "uid", "creationTimestamp", "selfLink")
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_REQUESTER_WORDS = ("userInfo", "authorizer")


@dataclass(frozen=True, slots=True)
class ParamSection:
    """What one param object led to. Both names are empty for a policy that takes no param."""

    namespace: str
    name: str
    counts: Counts


@dataclass(frozen=True, slots=True)
class BindingSection:
    """A binding as the scan used it. `param_ref` says in words which params it asks for."""

    name: str
    actions: tuple[Action, ...]
    param_ref: str
    note: str
    digest: str
    counts: Counts
    params: tuple[ParamSection, ...]


@dataclass(frozen=True, slots=True)
class CheckSection:
    """What one check of a policy led to, and how far that holds for admission."""

    check: Check
    counts: Counts
    auditability: tuple[Auditability, ...]


@dataclass(frozen=True, slots=True)
class NamespaceCounts:
    """What a policy led to in one namespace; the empty name stands for cluster-scoped objects."""

    namespace: str
    counts: Counts


@dataclass(frozen=True, slots=True)
class PolicySection:
    """Everything about one policy but its findings. `matched` counts objects.

    `auditability` says how far an audit can stand for admission, and is empty when an older version recorded the scan;
    `not_auditable` gives the reason when no stored object can be judged. `reads_requester` marks a policy of which some
    outcomes, passes included, can depend on who asks: `requester` counts those. `manifest` is empty when the scan has
    outcomes of a policy that it did not record.
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
    counts: Counts
    requester: Counts
    findings: FindingCounts
    bindings: tuple[BindingSection, ...]
    checks: tuple[CheckSection, ...]
    namespaces: tuple[NamespaceCounts, ...]
    health: tuple[Health, ...]
    manifest: JsonObject

    @property
    def key(self) -> PolicyKey:
        """What tells it from every other policy."""
        return self.language, self.name


@dataclass(frozen=True, slots=True)
class _Numbers:
    """The counts of a whole scan, grouped once for all policies."""

    policies: dict[PolicyKey, Counts]
    requester: dict[PolicyKey, Counts]
    params: dict[PolicyKey, dict[tuple[str, str, str], Counts]]
    bindings: dict[BindingKey, Counts]
    checks: dict[PolicyKey, dict[Check, Counts]]
    namespaces: dict[PolicyKey, dict[str, Counts]]
    findings: dict[PolicyKey, FindingCounts]
    health: dict[PolicyKey, list[Health]]


def policies_of(record: ScanRecord, census: Census) -> tuple[PolicySection, ...]:
    """Every policy of a scan, by name; one that only left outcomes behind is not passed over."""
    numbers = _numbers_of(record, census)
    known = {it.policy.key for it in record.policies}
    lost = sorted((numbers.policies.keys() | numbers.findings.keys()) - known, key=lambda it: (it[1], it[0]))
    recorded = (_section(it, numbers) for it in sorted(record.policies, key=_by_name))
    return (*recorded, *(_lost(key, numbers) for key in lost))


def _by_name(record: PolicyRecord) -> tuple[str, str]:
    return record.policy.name, record.policy.language


def _numbers_of(record: ScanRecord, census: Census) -> _Numbers:
    tallies = record.tallies
    by_param = counts_by(tallies, lambda it: (it.policy_key, (it.binding, it.param_namespace, it.param_name)))
    health: defaultdict[PolicyKey, list[Health]] = defaultdict(list)
    for entry in sorted(record.health):
        health[entry.policy_key].append(entry)
    return _Numbers(
        policies=counts_by(tallies, lambda it: it.policy_key),
        requester=counts_by(tallies, lambda it: it.policy_key if it.requester else None),
        params=_nested(by_param),
        bindings=counts_by(tallies, lambda it: it.binding_key),
        checks=_nested(counts_by(tallies, lambda it: (it.policy_key, it.check))),
        namespaces=_nested(counts_by(tallies, lambda it: (it.policy_key, it.namespace))),
        findings=findings_by(census, lambda it: it.policy),
        health=health,
    )


def _nested(flat: Mapping[tuple[PolicyKey, KeyT], ItemT]) -> dict[PolicyKey, dict[KeyT, ItemT]]:
    nested: defaultdict[PolicyKey, dict[KeyT, ItemT]] = defaultdict(dict)
    for (policy, key), item in flat.items():
        nested[policy][key] = item
    return nested


def _section(record: PolicyRecord, numbers: _Numbers) -> PolicySection:
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
        bindings=tuple(_binding(it, numbers) for it in sorted(record.bindings, key=lambda it: it.name)),
        checks=_checks(policy.key, record.reading, numbers),
        namespaces=_namespaces(policy.key, numbers),
        health=tuple(numbers.health.get(policy.key, ())),
        manifest=_definition(policy.manifest),
    )


def _lost(key: PolicyKey, numbers: _Numbers) -> PolicySection:
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
        checks=_checks(key, UNKNOWN, numbers),
        namespaces=_namespaces(key, numbers),
        health=tuple(numbers.health.get(key, ())),
        manifest=EMPTY,
    )


def _checks(policy: PolicyKey, reading: Reading, numbers: _Numbers) -> tuple[CheckSection, ...]:
    found = numbers.checks.get(policy, {})
    return tuple(CheckSection(check, counts, reading.of(check)) for check, counts in found.items())


def _namespaces(policy: PolicyKey, numbers: _Numbers) -> tuple[NamespaceCounts, ...]:
    return tuple(NamespaceCounts(name, counts) for name, counts in numbers.namespaces.get(policy, {}).items())


def _binding(binding: Binding, numbers: _Numbers) -> BindingSection:
    params = numbers.params.get(binding.policy_key, {})
    return BindingSection(
        name=binding.name,
        actions=binding.actions,
        param_ref=param_ref(binding.param_ref),
        note=binding_note(binding),
        digest=binding.digest,
        counts=numbers.bindings.get(binding.key, NOTHING),
        params=tuple(ParamSection(ns, name, it) for (of, ns, name), it in params.items() if of == binding.name),
    )


def _actions(bindings: Iterable[Binding]) -> tuple[Action, ...]:
    return tuple(sorted({action for binding in bindings for action in binding.actions}))


def _reads_requester(record: PolicyRecord) -> bool:
    """As the scan read it; of an older scan, by the words alone: one policy too many is harmless, one too few is not."""
    if record.reading.classes:
        return Auditability.REQUESTER in record.reading.classes
    return _names_requester(record.policy)


def _names_requester(policy: Policy) -> bool:
    expressions = (
        *(it.expression for it in policy.match_conditions),
        *(it.expression for it in policy.variables),
        *(it.expression + it.message_expression for it in policy.validations),
        *(it.value_expression for it in policy.audit_annotations),
    )
    return any(word in text for text in expressions for word in _REQUESTER_WORDS)


def _definition(manifest: JsonObject) -> JsonObject:
    """The manifest as its author wrote it: without status and what only the server keeps in metadata."""
    metadata = {key: it for key, it in as_object(manifest.get("metadata")).items() if key not in _SERVER_SET}
    notes = {key: it for key, it in as_object(metadata.pop("annotations", None)).items() if key != _LAST_APPLIED}
    if notes:
        metadata["annotations"] = notes
    return {key: metadata if key == "metadata" else it for key, it in manifest.items() if key != "status"}


def policy_set_digest(records: Iterable[PolicyRecord]) -> str:
    """The SHA-256, in hex, of which policies and bindings a scan used: equal sets have equal digests."""
    lines = {
        line
        for record in records
        for line in (
            f"{record.policy.language} policy {record.policy.name} {record.policy.digest}",
            *(f"{it.language} binding {it.name} {it.digest} {it.assumed}" for it in record.bindings),
        )
    }
    return sha256("\n".join(sorted(lines)).encode("utf-8", "surrogatepass")).hexdigest()
