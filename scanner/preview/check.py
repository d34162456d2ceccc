"""Decides about new objects as admission would: mutating policies in their order first, then every validating policy.

Source of truth: the create and patch handlers of kube-apiserver 1.36, and the order of its admission plug-ins. What admission would do
and Assay cannot evaluate is a decision of its own, *undecided*: silence is never success.

"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Final

from scanner.admission.context import EvaluationContext
from scanner.admission.dispatch import BoundPolicy, InvocationResult, evaluate_object, make_target, select
from scanner.admission.match import applies, is_exempt
from scanner.admission.server_fields import Path, list_fields_to_be_set, reads_any
from scanner.audit import redact
from scanner.audit.page import make_findings
from scanner.audit.withheld_reads import WithheldReads, touches_withheld
from scanner.errors import AuthorizerFailed, ListFailed, SchemaUnknown
from scanner.model.json import JsonObject, as_object, dig
from scanner.model.outcome import (
    Change,
    Check,
    CheckKind,
    Errored,
    Finding,
    Skipped,
    SkipReason,
    Violated,
    WouldChange,
)
from scanner.model.policy import Action, Binding, MatchResources
from scanner.model.resource import NAMESPACES, Kind, Resource, UserInfo, resource_of
from scanner.model.selector import EVERYTHING
from scanner.model.withheld import WithheldMap, has_withheld, mark_like, unmark
from scanner.mutate.versions import list_views
from scanner.policies.mutating.mutation import compute_patch
from scanner.policies.mutating.together import list_invocations, try_orders
from scanner.policies.pod_security.labels import read_labels
from scanner.policies.webhooks import Webhook
from scanner.posture.deciding_fields import find_deciding_fields
from scanner.preview.new_objects import Document, Kinds, NewObject, StoredObjects, read_new_objects, read_stored
from scanner.preview.plugins import concerns_plugins
from scanner.preview.pods import PODS, has_pods, make_pod
from scanner.preview.requested import Refused, Requested, make_request
from scanner.preview.rules import Rules, RuleSource, gather_rules
from scanner.preview.verdict import CheckedObject, CheckResult, Decision, Effect
from scanner.scan.options import Options

if TYPE_CHECKING:
    from scanner.preview.server_answers import DryRunApplier

_SET_BY_SERVER: Final = "the check reads a field that the server sets when it creates the object, such as metadata.uid"
_ORDER: Final = "the result depends on the order of mutating policies, which an API server does not define"
_HIDDEN_OBJECT: Final = "the snapshot withholds a part of the object as it is now"
_HIDDEN_MUTATION: Final = "mutating policies may read or change what the snapshot withholds"
_HIDDEN_LABEL: Final = "it selects by a label that the snapshot withholds"
_INVOKED_AGAIN: Final = (
    "mutating policies that are invoked again may read what built-in plug-ins add after other policies"
)
_NO_SCHEMA: Final = "no schema of its kind is known, so its defaults are not"
_TERMINATING: Final = "Terminating"
_KYVERNO_WEBHOOKS: Final = ("vpol.validate.kyverno.svc", "nvpol.validate.kyverno.svc")
"""The beginnings of the names of the webhooks that only call policies which Assay evaluates."""
_KYVERNO_CONFIGURATION: Final = "kyverno-resource-validating-webhook-cfg"
"""The only configuration of such webhooks: another one may hold any program under their names."""


def check(
    cluster: RuleSource,
    stored: StoredObjects,
    documents: Iterable[Document],
    options: Options,
    now: datetime,
    applier: DryRunApplier | None = None,
    disabled_plugins: Collection[str] = (),
) -> CheckResult:
    """What admission of a cluster would decide about each document, if they were applied in their order.

    The rules are those of `cluster`, which has the documents applied; `stored` has the objects as they are now. With an `applier`, the
    API server is asked, too. `disabled_plugins` are the built-in plug-ins that the server does not run. Raises ClusterError if the
    cluster does not answer, and UsageError for policy files that cannot be read.
    """
    cluster.identity()  # before discovery, which knows by the version of the server which kinds must not be missing
    discovery = cluster.discover()
    default = options.scope.namespaces[0] if options.scope.namespaces else "default"
    kinds = Kinds(discovery.kinds, discovery.gaps)
    read = tuple(read_new_objects(documents, kinds, default))
    new = tuple(each for each in read if isinstance(each, NewObject))
    rules = gather_rules(cluster, discovery, options, _list_requests(new), now, disabled_plugins)
    before = read_stored(stored, new)
    checker = _Checker(rules)
    shared = _find_shared(new, rules)

    def decide(new: NewObject) -> CheckedObject:
        checked = checker.check(new, before.get(new.name))
        if applier is None:
            return checked
        from scanner.preview.server_answers import ask_server  # noqa: PLC0415 - a tenth of the start of a command

        return ask_server(applier, new, checked, has_others=shared(new))

    return CheckResult(
        cluster=rules.cluster,
        user=rules.context.user.username,
        objects=tuple(decide(each) if isinstance(each, NewObject) else each for each in read),
        gaps=tuple(dict.fromkeys(rules.gaps)),
        notes=tuple(_list_notes(rules)),
    )


def _list_notes(rules: Rules) -> Iterator[str]:
    """The sentences about all objects: an answer without a policy must not look like one of policies that admit."""
    if not (rules.mutating or rules.validating or rules.unknown):
        yield "no policy in force can match one of these objects"
    yield from (f"not evaluated: {item.kind} {item.name}: {item.why}" for item in rules.outside)


def _list_requests(objects: Iterable[NewObject]) -> dict[str, set[Kind]]:
    """The kinds of the requests by their namespaces, those of the pods of templates included."""
    requests: defaultdict[str, set[Kind]] = defaultdict(set)
    for each in objects:
        resource = each.resource
        namespace = resource.name if resource.kind.resource == NAMESPACES.resource else resource.namespace
        requests[namespace].update([resource.kind, *([PODS] if has_pods(resource.kind) else [])])
    return requests


def _find_shared(objects: Sequence[NewObject], rules: Rules) -> Callable[[NewObject], bool]:
    """Return whether another manifest counts for an object: its Namespace, or one that can be a param."""
    names = {each.resource.name for each in objects if each.resource.kind.resource == NAMESPACES.resource}
    param_kinds = {(kind.api_version, kind.kind) for each in rules.validating if (kind := each.policy.param_kind)}
    has_params = any((each.resource.kind.api_version, each.resource.kind.kind) in param_kinds for each in objects)
    return lambda new: has_params or new.resource.namespace in names


class _Checker:
    """Decides about one object after the other, by the same rules."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules

    def check(self, new: NewObject, stored: JsonObject | ListFailed | None) -> CheckedObject:
        """The answer about one object, given the object that the cluster has under its name."""
        if isinstance(stored, ListFailed):
            unknown = Decision(Effect.UNDECIDED, f"whether the object exists is not known: {stored}")
            kind = new.resource.kind
            concerned = self._rules.may_concern(kind) or has_pods(kind) or concerns_plugins(kind)
            return new.conclude(*([unknown] if concerned else []))
        schema = self._rules.schemas.schema(new.resource.kind)
        try:
            requested = make_request(new.resource, stored and as_object(unmark(stored)), schema)
        except Refused as refusal:
            hidden = has_withheld(stored)
            why = f"{_HIDDEN_OBJECT}: {refusal}" if hidden else str(refusal)
            return new.conclude(Decision(Effect.UNDECIDED if hidden else Effect.REFUSES, why))
        request = _Request(self._rules, requested, self._rules.context.user, marked=stored or {})
        request.decide()
        if request.admitted is not None:
            self._check_pods(request)
        return replace(
            new.conclude(),
            operation=requested.operation,
            changes=request.changes,
            changed_by=request.changed_by,
            decisions=tuple(sorted(request.decisions, key=_rank)),
        )

    def _check_pods(self, request: _Request) -> None:
        """Add the refusals of the pods that a workload would create, and what is undecided about them."""
        made = make_pod(request.admitted) if request.admitted else None
        if made is None:
            return
        pod, user = made
        try:
            requested = make_request(pod, None, self._rules.schemas.schema(PODS))
        except Refused as refusal:
            request.decisions.append(Decision(Effect.REFUSES_PODS, f"its pods: {refusal}"))
            return
        of_pod = _Request(self._rules, requested, user, marked=_mark_pod(request), of_template=True)
        of_pod.decide()
        known = {(each.language, each.policy, each.effect) for each in request.decisions}
        for each in of_pod.decisions:
            effect = {Effect.REFUSES: Effect.REFUSES_PODS}.get(each.effect, each.effect)
            if effect not in (Effect.REFUSES_PODS, Effect.UNDECIDED):
                continue
            if known.isdisjoint((each.language, each.policy, other) for other in (effect, Effect.REFUSES)):
                message = f"its pods: {each.message}"
                request.decisions.append(replace(each, effect=effect, message=message, fields=()))


class _Request:
    """One request: the decisions about it, and the object that mutating policies leave."""

    def __init__(
        self,
        rules: Rules,
        requested: Requested,
        user: UserInfo,
        *,
        marked: JsonObject | None = None,
        of_template: bool = False,
    ) -> None:
        """Take a request; `marked` is the object in which the parts are marked that a snapshot withholds, None if there are none."""
        self._rules, self._requested, self._of_template = rules, requested, of_template
        self._kind = requested.resource.kind
        self._marked = marked or {}
        self._context = replace(rules.context, user=user, operations=(requested.operation,), old=requested.old)
        self.decisions: list[Decision] = []
        self.changes: tuple[Change, ...] = ()
        self.changed_by: tuple[str, ...] = ()
        self.admitted: Resource | None = None

    def decide(self) -> None:
        """Decide about the request; `admitted` is the object that validating policies read, None if they are not asked."""
        self.decisions += self._decide_lifecycle()
        if any(decision.effect is Effect.REFUSES for decision in self.decisions) or is_exempt(self._kind):
            return
        if self._requested.schema is None:
            self.decisions.append(Decision(Effect.UNDECIDED, _NO_SCHEMA))
        self.decisions += self._decide_unknown(self._requested.resource)
        plugins, created = self._rules.plugins, self._requested.old is None
        before = plugins.change(self._requested.resource, self.decisions, created=created)
        after = self._mutate(before) if before else None
        if before and after is not None and after != before.body:
            after = self._change_again(resource_of(self._kind, after))
        if after is None:
            return
        self.admitted = self._requested.after_mutation(after)
        plugins.validate(self.admitted, self.decisions, created=created)
        self.decisions += self.validate(self.admitted)
        self.decisions += self._decide_webhooks(self.admitted)

    def _decide_lifecycle(self) -> Iterator[Decision]:
        """What the API server decides about the namespace of the request (`NamespaceLifecycle`), and about labels of a Namespace."""
        resource, created = self._requested.resource, self._requested.old is None
        if resource.kind.resource == NAMESPACES.resource:
            yield from self._decide_labels(resource)
        elif resource.namespace:
            namespace = self._context.find_namespace(resource.namespace)
            if namespace is None and self._rules.knows_namespaces:
                yield Decision(Effect.REFUSES, f'namespaces "{resource.namespace}" not found')
            elif created and dig(namespace, "status", "phase") == _TERMINATING:
                yield Decision(
                    Effect.REFUSES,
                    f"unable to create new content in namespace {resource.namespace}: it is being terminated",
                )

    def _decide_labels(self, namespace: Resource) -> Iterator[Decision]:
        """Pod Security refuses new invalid labels of a Namespace (`ValidateNamespace`)."""
        faults = read_labels(namespace.labels).faults
        old = read_labels(self._requested.old.labels).faults if self._requested.old else ()
        if faults and not old:
            yield Decision(Effect.REFUSES, ", ".join(map(str, faults)))

    def _decide_unknown(self, resource: Resource) -> Iterator[Decision]:
        """A decision for each policy that cannot be evaluated and that matches the request."""
        for unknown in self._rules.unknown:
            matches = self._may_match if unknown.namespace else self._matches
            if unknown.is_about(resource.namespace) and matches(unknown.bound, resource):
                yield _undecided(unknown.bound, unknown.why)

    def _matches(self, bound: BoundPolicy, resource: Resource) -> bool:
        """Return whether some binding that refuses or warns matches the request."""
        return self._hides_match(bound, resource) or any(
            _matters(binding) and select(bound, binding, resource, self._kind, self._requested.operation, self._context)
            for binding in bound.bindings
        )

    def _may_match(self, bound: BoundPolicy, resource: Resource) -> bool:
        """Return whether a policy could match the request with some labels of the namespace, which are not known."""
        match, target = bound.policy.match, make_target(resource, self._kind, self._requested.operation, self._context)
        return any(map(_matters, bound.bindings)) and (
            match is None or applies(replace(match, namespace_selector=EVERYTHING), target) is not None
        )

    def _list_views(self, resource: Resource) -> tuple[Resource, ...]:
        """The object in each of its kinds, as far as no server is needed to convert it."""
        others = self._context.equivalents.get(self._kind, ())
        custom = self._requested.schema.custom if self._requested.schema else None
        relabels = bool(custom and custom.versions and custom.versions.relabels)
        return tuple(list_views(resource.body, self._kind, others, relabels=relabels))

    def _context_of(self, view: Resource) -> EvaluationContext:
        """The context of an evaluation in the kind of a view: the old object is in the same kind."""
        old = self._requested.old
        if old is None or view.kind == old.kind:
            return self._context
        views = {each.kind: each for each in self._list_views(old)}
        return replace(self._context, old=views.get(view.kind, old))

    # What a snapshot withholds.

    def mark(self, view: Resource) -> JsonObject:
        """The object with its withheld parts marked: all of it, in another version than that of the snapshot."""
        if view.kind == self._kind or not has_withheld(self._marked):
            return as_object(mark_like(view.body, self._marked))
        return {**view.body, **{name: WithheldMap() for name in view.body if name not in ("apiVersion", "kind")}}

    def _hides(self, matches: Iterable[MatchResources | None], resource: Resource) -> bool:
        """Return whether a snapshot withholds a label by which something selects."""
        if self._rules.withheld is None:
            return False
        reads = WithheldReads(self._context, self._rules.withheld)
        return reads.hides_labels(matches, resource, self.mark(resource))

    def _hides_match(self, bound: BoundPolicy, resource: Resource) -> bool:
        return self._hides((bound.policy.match, *(binding.match for binding in bound.bindings)), resource)

    def _evaluate(self, bound: BoundPolicy, view: Resource) -> Iterable[InvocationResult]:
        """The results of a policy: `skipped: redacted` for each check that may read what a snapshot withholds."""
        context = self._context_of(view)
        if self._rules.withheld is None:
            return evaluate_object(bound, view, self._kind, context)
        reads, marked = WithheldReads(context, self._rules.withheld), self.mark(view)
        skipped = reads.skip(bound, view, marked, self._kind)
        if skipped is not None:
            return skipped
        return reads.withhold(bound, tuple(evaluate_object(bound, view, self._kind, context)), marked, together=False)

    def _depends_on_withheld(
        self, acting: Sequence[tuple[BoundPolicy, InvocationResult]], resource: Resource, changes: Sequence[Change]
    ) -> bool:
        """Return whether mutating policies may read or write what a snapshot withholds."""
        if self._rules.withheld is None:
            return False
        reads, marked = WithheldReads(self._context, self._rules.withheld), self.mark(resource)
        return any(touches_withheld(change, marked) for change in changes) or any(
            reads.reads_any(bound, resource, marked)
            or has_withheld(result.invocation.param and result.invocation.param.body)
            for bound, result in acting
        )

    # Mutating policies.

    def _change_again(self, resource: Resource) -> JsonObject | None:
        """The object after the built-in plug-ins, which run once more after policies have changed it; None if they refuse it."""
        again = self._rules.plugins.change(resource, self.decisions, created=self._requested.old is None)
        reinvoked = any(each.policy.reinvocation_policy == "IfNeeded" for each in self._rules.mutating)
        if again and again.body != resource.body and reinvoked:
            self.decisions.append(Decision(Effect.UNDECIDED, _INVOKED_AGAIN))
        return again.body if again else None

    def _mutate(self, resource: Resource) -> JsonObject | None:
        """The object after all mutating policies; None if they refuse the request, or if their result is not known."""
        try:
            acting = [
                (bound, result)
                for bound in self._list_evaluable(self._rules.mutating, resource)
                for view in self._list_views(resource)
                for result in list_invocations(bound, view, self._kind, self._context_of(view))
            ]
            acting = [(bound, result) for bound, result in acting if result.request or result.check_results]
            answers = try_orders(acting) if acting else ()
            self._note_mutations(acting)
        except (SchemaUnknown, AuthorizerFailed, ListFailed) as error:
            self.decisions.append(Decision(Effect.UNDECIDED, f"mutating policies cannot be evaluated: {error}"))
            return None
        if any(self._hides_match(bound, resource) for bound in self._rules.mutating):
            self.decisions.append(Decision(Effect.UNDECIDED, _HIDDEN_MUTATION))
            return None
        if not answers:
            return resource.body
        changes = compute_patch(resource.body, answers[0].after)
        if self._depends_on_withheld(acting, resource, changes):
            self.decisions.append(Decision(Effect.UNDECIDED, _HIDDEN_MUTATION))
            return None
        if any(not answer.is_like(answers[0]) for answer in answers):
            self.decisions.append(Decision(Effect.UNDECIDED, _ORDER))
        if refusal := answers[0].refusal:
            shown = redact.redact_mutations(refusal, acting)
            self.decisions.append(Decision(Effect.REFUSES, shown, language="MutatingAdmissionPolicy"))
            return None
        self.changes = redact.redact_patch(changes, acting)
        return answers[0].after

    def _note_mutations(self, acting: Sequence[tuple[BoundPolicy, InvocationResult]]) -> None:
        """Note the names of the policies that change the object, and mutations that cannot be evaluated."""
        names: dict[str, None] = {}
        for bound, result in acting:
            if result.request is None:
                continue
            results = bound.evaluator.evaluate(bound.compiled, result.request, result.invocation.param)
            names.update(dict.fromkeys(bound.policy.name for each in results if isinstance(each.outcome, WouldChange)))
            self.decisions += [
                _undecided(bound, each.outcome.detail)
                for each in results
                if isinstance(each.outcome, Skipped) and each.outcome.reason is SkipReason.NOT_AUDITABLE
            ][:1]
        self.changed_by = tuple(names)

    # Validating policies, Pod Security and webhooks.

    def validate(self, resource: Resource) -> Iterator[Decision]:
        """The decisions of every validating policy about the object that mutating policies leave."""
        views = self._list_views(resource)
        to_be_set = tuple(list_fields_to_be_set(self._kind, resource.body)) if self._requested.old is None else ()
        for bound in self._list_evaluable(self._rules.validating, resource):
            try:
                yield from self._decide_versions(bound, resource, views)
                if self._hides_match(bound, resource):
                    yield _undecided(bound, _HIDDEN_LABEL)
                    continue
                for view in views:
                    for result in self._evaluate(bound, view):
                        yield from _decide(result, bound, resource.kind, to_be_set)
            except (SchemaUnknown, AuthorizerFailed, ListFailed) as error:
                yield _undecided(bound, str(error))
            except Exception as error:  # noqa: BLE001 - a bug of Assay must not become a verdict
                yield _undecided(bound, f"internal error: {type(error).__name__}; please report it")

    def _list_evaluable(self, policies: Iterable[BoundPolicy], resource: Resource) -> Iterator[BoundPolicy]:
        """The policies that can be evaluated in the namespace of the request, and that judge such an object."""
        unknown = {id(each.bound) for each in self._rules.unknown if each.is_about(resource.namespace)}
        for bound in policies:
            if id(bound) not in unknown and not (self._of_template and bound.covered):
                yield bound

    def _decide_versions(self, bound: BoundPolicy, resource: Resource, views: Sequence[Resource]) -> Iterator[Decision]:
        """A decision about a policy that reads the object in a version to which only a server converts it."""
        kinds = {view.kind for view in views}
        for binding in bound.bindings if len(kinds) <= len(self._context.equivalents.get(self._kind, ())) else ():
            selected = select(bound, binding, resource, self._kind, self._requested.operation, self._context)
            if selected and selected.matched not in kinds and _matters(binding):
                version = selected.matched.api_version
                yield _undecided(bound, f"it reads the object in version {version}, to which only a server converts it")
                return

    def _decide_webhooks(self, resource: Resource) -> Iterator[Decision]:
        """A decision for each webhook that the server calls about the request."""
        target = make_target(resource, self._kind, self._requested.operation, self._context)
        for webhook in self._rules.webhooks:
            if _calls_evaluated_policies(webhook):
                continue
            if not webhook.may_receive(target) and not self._hides((webhook.match,), resource):
                continue
            when = ", if its match conditions are true" if webhook.has_conditions else ""
            does = "change or refuse" if webhook.changes else "refuse"
            message = f"the webhook, of {webhook.configuration}, may {does} it{when}: what a program decides is not in the API"
            yield Decision(Effect.UNDECIDED, message, policy=webhook.name)


def _mark_pod(request: _Request) -> JsonObject:
    """The pod of a workload with the parts marked that a snapshot withholds."""
    workload = request.admitted
    if workload is None or not has_withheld(marked := request.mark(workload)):
        return {}
    made = make_pod(resource_of(workload.kind, marked))
    return made[0].body if made else {"metadata": WithheldMap(), "spec": WithheldMap()}


def _calls_evaluated_policies(webhook: Webhook) -> bool:
    return webhook.configuration == _KYVERNO_CONFIGURATION and webhook.name.startswith(_KYVERNO_WEBHOOKS)


def _rank(decision: Decision) -> int:
    """The place of a decision among others: the strictest effect first, and otherwise as decided."""
    return [*Effect].index(decision.effect)


def _matters(binding: Binding) -> bool:
    """Return whether a failure has an effect on the request: bindings of mutating policies have no actions."""
    return not binding.actions or not {"Deny", "Warn", "RefusePods"}.isdisjoint(binding.actions)


def _undecided(bound: BoundPolicy, why: str) -> Decision:
    return Decision(Effect.UNDECIDED, why, bound.policy.name, language=bound.policy.language)


def _decide(result: InvocationResult, bound: BoundPolicy, kind: Kind, to_be_set: Sequence[Path]) -> Iterator[Decision]:
    """The decisions about a request of one invocation."""
    invocation = result.invocation
    binding = invocation.binding
    doubtful: set[Check] = set()
    for each in result.check_results:
        reads = bound.compiled.reads(Check(CheckKind.CONDITIONS)) | bound.compiled.reads(each.check)
        if to_be_set and reads_any(reads, to_be_set):
            doubtful.add(each.check)
            why = _SET_BY_SERVER
        elif isinstance(each.outcome, Skipped) and each.outcome.reason in (
            SkipReason.NOT_AUDITABLE,
            SkipReason.REDACTED,
        ):
            why = each.outcome.detail or "it cannot be evaluated"
        else:
            continue
        if _matters(binding):
            yield replace(_undecided(bound, why), binding=binding.name)
    for finding in make_findings(result, bound, kind):
        effect = _find_effect(finding, binding.actions)
        if effect and finding.check not in doubtful:
            yield Decision(
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


def decide_request(rules: Rules, requested: Requested, user: UserInfo) -> tuple[Decision, ...]:
    """The decisions about one request of a user: mutating policies first, then every validating policy, and webhooks."""
    request = _Request(rules, requested, user, marked={})
    request.decide()
    return tuple(request.decisions)


@dataclass(frozen=True, slots=True)
class AdmittedRequest:
    """A request after mutating policies and built-in plug-ins, about which several sets of validating policies can decide.

    `decisions` are those before any validating policy; without `admitted`, no such policy is asked.
    """

    requested: Requested
    user: UserInfo
    decisions: tuple[Decision, ...]
    admitted: Resource | None

    def decide(self, rules: Rules) -> Iterator[Decision]:
        """The decisions about the request, validating policies of some rules included. Their mutating policies must be equal."""
        yield from self.decisions
        if self.admitted is not None:
            yield from _Request(rules, self.requested, self.user).validate(self.admitted)


def admit_request(rules: Rules, requested: Requested, user: UserInfo) -> AdmittedRequest:
    """A request of a user up to the validating policies of some rules, which have no webhooks."""
    request = _Request(replace(rules, validating=()), requested, user)
    request.decide()
    return AdmittedRequest(requested, user, tuple(request.decisions), request.admitted)
