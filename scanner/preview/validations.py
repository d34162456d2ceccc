"""What validating policies and Pod Security decide about the object of a request, as mutating policies leave it.

Source of truth: the plug-ins ValidatingAdmissionPolicy and PodSecurity of kube-apiserver 1.36, and the webhook of Kyverno.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import Final

from msgspec import Struct

from scanner.admission.dispatch import BoundPolicy, InvocationResult, select
from scanner.admission.server_fields import (
    MANAGED_FIELDS,
    Path,
    list_fields_set_on_update,
    list_fields_to_be_set,
    paths_overlap,
)
from scanner.audit.evidence import EvidenceParts
from scanner.audit.page import make_findings
from scanner.errors import AuthorizerFailed, ListFailed, SchemaUnknown
from scanner.model.outcome import Check, CheckKind, CheckResult, Errored, Finding, Skipped, SkipReason, Violated
from scanner.model.policy import Action
from scanner.model.resource import Kind, Resource
from scanner.posture.deciding_fields import find_deciding_fields
from scanner.preview.admission_request import AdmissionRequest, explain_client, has_effect, make_undecided
from scanner.preview.verdict import Decision, Effect

_SET_BY_SERVER: Final = "the check reads a field that the server sets when it creates the object, such as metadata.uid"
_SET_ON_UPDATE: Final = "the check reads a field that the server sets when it updates the object: metadata.managedFields or metadata.generation"
_HIDDEN_LABEL: Final = "it selects by a label that the snapshot withholds"


def validate(
    request: AdmissionRequest, resource: Resource, *, parts: EvidenceParts = EvidenceParts.ALL
) -> Iterator[Decision]:
    """The decisions of every validating policy, with some `parts` of their evidence."""
    views = request.list_views(resource)
    to_be_set = _list_to_be_set(request, resource)
    for bound in request.list_evaluable(request.rules.validating):
        try:
            yield from _decide_versions(request, bound, resource, views)
            if request.hides_match(bound, resource):
                yield make_undecided(bound, _HIDDEN_LABEL)
                continue
            for view in views:
                for result in request.evaluate(bound, view):
                    yield from _decide(result, bound, resource.kind, to_be_set, parts)
        except (SchemaUnknown, AuthorizerFailed, ListFailed) as error:
            yield make_undecided(bound, str(error))
        except Exception as error:  # noqa: BLE001 - a bug of Assay must not become a verdict
            yield make_undecided(bound, f"internal error: {type(error).__name__}; please report it")


class _ToBeSet(Struct, frozen=True):
    """The fields whose values only the server knows, because it sets them before validation: paths from a variable on."""

    paths: tuple[Path, ...]
    why: str
    updates: bool = False

    def explain(self, bound: BoundPolicy, check: Check) -> str:
        """The reason why the value of a check is not known; empty if it is."""
        return explain_client(bound, check) or (self.why if self._are_read(bound.compiled.reads(check)) else "")

    def _are_read(self, reads: AbstractSet[Path]) -> bool:
        if not self.updates:
            # An expression that reads all of oldObject alone compares it with null.
            return paths_overlap(reads - {("oldObject",)}, self.paths)
        # All of the metadata matters if it is compared with that of the old object, and not for whether another field is there.
        whole = {path for path in reads if path[1:] in ((), ("metadata",))}
        both = [(root, *MANAGED_FIELDS) for root in ("object", "oldObject")]
        return paths_overlap(reads - whole, self.paths) or all(paths_overlap(whole, (each,)) for each in both)


def _list_to_be_set(request: AdmissionRequest, resource: Resource) -> _ToBeSet:
    old = request.requested.old
    if old is not None and old.uid:
        paths = list_fields_set_on_update(request.kind, old.body, resource.body)
        return _ToBeSet(tuple(("object", *path) for path in paths), _SET_ON_UPDATE, updates=True)
    # An old object without a uid is one that no server has stored yet, such as that of an earlier manifest.
    roots = ("object", "oldObject") if old else ("object",)
    paths = tuple(list_fields_to_be_set(request.kind, resource.body))
    return _ToBeSet(tuple((root, *path) for root in roots for path in paths), _SET_BY_SERVER)


def _decide_versions(
    request: AdmissionRequest, bound: BoundPolicy, resource: Resource, views: Sequence[Resource]
) -> Iterator[Decision]:
    """A decision about a policy that reads the object in a version to which only a server converts it."""
    kinds = {view.kind for view in views}
    if len(kinds) > len(request.context.equivalents.get(request.kind, ())):
        return
    for binding in bound.bindings:
        selected = select(bound, binding, resource, request.kind, request.operation, request.context)
        if selected and selected.matched not in kinds and has_effect(binding):
            version = selected.matched.api_version
            yield make_undecided(bound, f"it reads the object in version {version}, to which only a server converts it")
            return


def _decide(
    result: InvocationResult, bound: BoundPolicy, kind: Kind, to_be_set: _ToBeSet, parts: EvidenceParts
) -> Iterator[Decision]:
    """The decisions about a request of one invocation."""
    binding = result.invocation.binding
    doubts = [(each.check, why) for each in result.check_results if (why := _find_doubt(each, bound, to_be_set))]
    if has_effect(binding):
        yield from (replace(make_undecided(bound, why), binding=binding.name) for _, why in doubts)
    doubtful = {check for check, _ in doubts}
    for finding in make_findings(result, bound, kind, parts=parts):
        effect = _find_effect(finding, binding.actions)
        if effect and finding.check not in doubtful:
            yield _make_decision(finding, effect)


def _find_doubt(result: CheckResult, bound: BoundPolicy, to_be_set: _ToBeSet) -> str:
    """The reason why the result of a check is not known; empty if it is."""
    outcome = result.outcome
    if why := to_be_set.explain(bound, Check(CheckKind.CONDITIONS)):
        return why
    if isinstance(outcome, Skipped) and outcome.reason is SkipReason.CONDITION_FALSE:
        return ""
    if why := to_be_set.explain(bound, result.check):
        return why
    if isinstance(outcome, Skipped) and outcome.reason in (SkipReason.NOT_AUDITABLE, SkipReason.REDACTED):
        return outcome.detail or "it cannot be evaluated"
    return ""


def _make_decision(finding: Finding, effect: Effect) -> Decision:
    return Decision(
        effect,
        finding.outcome.message,
        finding.policy,
        finding.binding,
        finding.language,
        "/".join(filter(None, (finding.param_namespace, finding.param_name))),
        tuple(dict.fromkeys(find_deciding_fields(finding))),
        finding.evidence,
    )


def _find_effect(finding: Finding, actions: Sequence[Action]) -> Effect | None:
    """The effect of a violation or an error; None if it has none: an exempted object, or an error that the policy ignores."""
    outcome = finding.outcome
    if finding.excepted_by or not isinstance(outcome, Violated | Errored):
        return None
    if finding.denies:
        return Effect.REFUSES
    if isinstance(outcome, Errored) and not outcome.would_deny:
        return None
    by_action: dict[Action, Effect] = {
        "RefusePods": Effect.REFUSES_PODS,
        "Warn": Effect.WARNS,
        "Audit": Effect.AUDITS,
    }
    return next((effect for action, effect in by_action.items() if action in actions), None)
