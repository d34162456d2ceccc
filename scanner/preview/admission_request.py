"""One request on an object, with what its evaluation reads: the views of the object, the contexts, and what a snapshot withholds of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from msgspec import Struct

from scanner.admission.context import EvaluationContext
from scanner.admission.dispatch import BoundPolicy, InvocationResult, evaluate_object
from scanner.admission.server_fields import SET_BY_CLIENT, paths_overlap
from scanner.audit.withheld_reads import WithheldReads, touches_withheld
from scanner.model.json import JsonObject, as_object
from scanner.model.outcome import Change, Check, CheckKind
from scanner.model.policy import ADMISSION_API, Binding, MatchResources, Operation
from scanner.model.resource import Kind, Resource, UserInfo
from scanner.model.withheld import WithheldMap, has_withheld, mark_like
from scanner.mutate.versions import list_views
from scanner.preview.requested import Requested
from scanner.preview.rules import Rules
from scanner.preview.verdict import Decision, Effect

_BY_CLIENT: Final = "the check reads request.dryRun or request.options, which the client of the request chooses"


class AdmissionRequest(Struct, frozen=True):
    """A request of a user under the rules of a cluster.

    `marked` is the object with the parts marked that a snapshot withholds, empty if it withholds none. `of_template` tells that the
    object is the pod of a template.
    """

    rules: Rules
    requested: Requested
    context: EvaluationContext
    marked: JsonObject
    of_template: bool = False

    @property
    def kind(self) -> Kind:
        """The kind of the request."""
        return self.requested.resource.kind

    @property
    def operation(self) -> Operation:
        """The operation of the request."""
        return self.requested.operation

    @property
    def creates(self) -> bool:
        """Return whether the cluster does not have the object yet."""
        return self.requested.old is None

    def list_evaluable(self, policies: Iterable[BoundPolicy]) -> Iterator[BoundPolicy]:
        """The policies that can be evaluated in the namespace of the request, and that are about such an object."""
        namespace = self.requested.resource.namespace
        unknown = {id(each.bound) for each in self.rules.unknown if each.is_about(namespace)}
        for bound in policies:
            if id(bound) not in unknown and not (self.of_template and bound.covered):
                yield bound

    def list_views(self, resource: Resource) -> tuple[Resource, ...]:
        """The object in each of its kinds, as far as no server is needed to convert it."""
        others = self.context.equivalents.get(self.kind, ())
        custom = self.requested.schema.custom if self.requested.schema else None
        relabels = bool(custom and custom.versions and custom.versions.relabels)
        return tuple(list_views(resource.body, self.kind, others, relabels=relabels))

    def make_context(self, view: Resource) -> EvaluationContext:
        """The context of an evaluation in the kind of a view: the old object is in the same kind."""
        old = self.requested.old
        if old is None or view.kind == old.kind:
            return self.context
        views = {each.kind: each for each in self.list_views(old)}
        return replace(self.context, old=views.get(view.kind, old))

    def evaluate(self, bound: BoundPolicy, view: Resource) -> Iterable[InvocationResult]:
        """The results of a policy: `skipped: redacted` for each check that may read what a snapshot withholds."""
        context = self.make_context(view)
        if self.rules.withheld is None:
            return evaluate_object(bound, view, self.kind, context)
        reads, marked = WithheldReads(context, self.rules.withheld), self.mark(view)
        skipped = reads.skip(bound, view, marked, self.kind)
        if skipped is not None:
            return skipped
        return reads.withhold(bound, tuple(evaluate_object(bound, view, self.kind, context)), marked, together=False)

    def mark(self, view: Resource) -> JsonObject:
        """The object with its withheld parts marked: all of it, in another version than that of the snapshot."""
        if view.kind == self.kind or not has_withheld(self.marked):
            return as_object(mark_like(view.body, self.marked))
        return {**view.body, **{name: WithheldMap() for name in view.body if name not in ("apiVersion", "kind")}}

    def hides_labels(self, matches: Iterable[MatchResources | None], resource: Resource) -> bool:
        """Return whether a snapshot withholds a label by which something selects."""
        if self.rules.withheld is None:
            return False
        reads = WithheldReads(self.context, self.rules.withheld)
        return reads.hides_labels(matches, resource, self.mark(resource))

    def hides_match(self, bound: BoundPolicy, resource: Resource) -> bool:
        """Return whether a snapshot withholds a label by which the policy or a binding selects."""
        return self.hides_labels((bound.policy.match, *(binding.match for binding in bound.bindings)), resource)

    def hides_mutations(
        self, acting: Sequence[tuple[BoundPolicy, InvocationResult]], resource: Resource, changes: Sequence[Change]
    ) -> bool:
        """Return whether mutating policies may read or write what a snapshot withholds."""
        if self.rules.withheld is None:
            return False
        reads, marked = WithheldReads(self.context, self.rules.withheld), self.mark(resource)
        return any(touches_withheld(change, marked) for change in changes) or any(
            reads.reads_any(bound, resource, marked)
            or has_withheld(result.invocation.param and result.invocation.param.body)
            for bound, result in acting
        )


def make_admission_request(
    rules: Rules,
    requested: Requested,
    user: UserInfo,
    *,
    marked: JsonObject | None = None,
    of_template: bool = False,
) -> AdmissionRequest:
    """The request of a user, with the context in which policies are evaluated."""
    context = replace(rules.context, user=user, operations=(requested.operation,), old=requested.old)
    return AdmissionRequest(rules, requested, context, marked or {}, of_template)


def has_effect(binding: Binding) -> bool:
    """Return whether a failure has an effect on the request: bindings of mutating policies have no actions."""
    return not binding.actions or not {"Deny", "Warn", "RefusePods"}.isdisjoint(binding.actions)


def explain_client(bound: BoundPolicy, *checks: Check) -> str:
    """The reason why some checks, without any all of a policy of the API server, are not known: the client of the request decides.

    Empty if they read no such field. Other languages make requests of their own.
    """
    if bound.policy.language not in ADMISSION_API:
        return ""
    every = checks or (Check(CheckKind.CONDITIONS), *bound.compiled.checks)
    return _BY_CLIENT if any(paths_overlap(bound.compiled.reads(each), SET_BY_CLIENT) for each in every) else ""


def make_undecided(bound: BoundPolicy, why: str) -> Decision:
    """The decision about a request on which a policy cannot be evaluated."""
    return Decision(Effect.UNDECIDED, why, bound.policy.name, language=bound.policy.language)
