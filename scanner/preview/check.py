"""Decides about the objects of manifests, one after the other, by the rules of a cluster that has all of them applied.

The pods of workloads are requests of their own: a workload that admission admits may never have pods.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Final, NamedTuple

from scanner.errors import ListFailed
from scanner.model.json import JsonObject, as_object, dig
from scanner.model.missing_right import parse_missing_right
from scanner.model.resource import LAST_APPLIED, NAMESPACES, Kind, Resource, resource_of
from scanner.model.withheld import WithheldMap, has_withheld, unmark
from scanner.preview.admission_request import AdmissionRequest, make_admission_request
from scanner.preview.decide import decide
from scanner.preview.new_objects import Document, Kinds, NewObject, StoredObjects, read_new_objects, read_stored
from scanner.preview.plugins import concerns_plugins
from scanner.preview.pods import PODS, has_pods, make_pod
from scanner.preview.requested import Refused, make_request
from scanner.preview.rules import Rules, RuleSource, gather_rules
from scanner.preview.verdict import CheckedObject, CheckResult, Decision, Effect, Verdict
from scanner.scan.options import Options

if TYPE_CHECKING:
    from scanner.preview.server_answers import DryRunApplier

_HIDDEN_MANIFEST: Final = "the snapshot withholds what `kubectl apply` wrote before: a field that a manifest no longer has counts as one that stays"
_HIDDEN_OBJECT: Final = "the snapshot withholds a part of the object as it is now"


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
    hidden = any(map(_hides_manifest, before.values()))
    checker = _Checker(rules)
    shared = _find_shared(new, rules)

    def decide(new: NewObject) -> CheckedObject:
        checked, admitted, by_kubectl = checker.check(new, before.get(new.name))
        if admitted and checked.verdict is not Verdict.REFUSED and not new.generates_name:
            before[new.name] = admitted.body  # a later manifest of the same object updates it
        if applier is None:
            return checked
        from scanner.preview.server_answers import ask_server  # noqa: PLC0415 - a tenth of the start of a command

        return ask_server(applier, new, checked, is_other=by_kubectl or shared(new))

    return CheckResult(
        cluster=rules.cluster,
        user=rules.context.user.username,
        objects=tuple(decide(each) if isinstance(each, NewObject) else each for each in read),
        gaps=tuple(dict.fromkeys(rules.gaps)),
        notes=(*_list_notes(rules, new), *([_HIDDEN_MANIFEST] if hidden else [])),
    )


def _hides_manifest(stored: JsonObject | ListFailed | None) -> bool:
    """Return whether an object is one of a snapshot to which a manifest was applied."""
    return isinstance(stored, Mapping) and has_withheld(dig(stored, "metadata", "annotations", LAST_APPLIED))


def _list_notes(rules: Rules, objects: Sequence[NewObject]) -> Iterator[str]:
    """The sentences about all objects: an answer without a policy must not look like one of policies that admit."""
    if objects and not (rules.mutating or rules.validating or rules.unknown or rules.gaps):
        yield "no policy in force can match one of these objects"
    if any(parse_missing_right(gap.why) for gap in rules.gaps):
        yield f"{rules.context.user.username} lacks permissions: `assay rbac generate --for-check` prints what a check needs"
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
    """Return whether another manifest counts for an object: its Namespace, an earlier one of the object, or one that can be a param."""
    repeated = {name for name, number in Counter(each.name for each in objects).items() if number > 1}
    names = {each.resource.name for each in objects if each.resource.kind.resource == NAMESPACES.resource}
    param_kinds = {(kind.api_version, kind.kind) for each in rules.validating if (kind := each.policy.param_kind)}
    has_params = any((each.resource.kind.api_version, each.resource.kind.kind) in param_kinds for each in objects)
    return lambda new: has_params or new.resource.namespace in names or new.name in repeated


class _Answer(NamedTuple):
    """The answer about an object, and the object, if it is admitted. `by_kubectl` is that of the request."""

    checked: CheckedObject
    admitted: Resource | None = None
    by_kubectl: bool = False


class _Checker:
    """Decides about one object after the other, by the same rules."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules

    def check(self, new: NewObject, stored: JsonObject | ListFailed | None) -> _Answer:
        """The answer about one object, given the object that the cluster has under its name."""
        if isinstance(stored, ListFailed):
            unknown = Decision(Effect.UNDECIDED, f"whether the object exists is not known: {stored}")
            kind = new.resource.kind
            concerned = self._rules.may_concern(kind) or has_pods(kind) or concerns_plugins(kind)
            return _Answer(new.conclude(*([unknown] if concerned else [])))
        schema = self._rules.schemas.schema(new.resource.kind)
        try:
            requested = make_request(new.sent, stored and as_object(unmark(stored)), schema)
        except Refused as refusal:
            hidden = has_withheld(stored)
            why = f"{_HIDDEN_OBJECT}: {refusal}" if hidden else str(refusal)
            return _Answer(new.conclude(Decision(Effect.UNDECIDED if hidden else Effect.REFUSES, why)))
        request = make_admission_request(self._rules, requested, self._rules.context.user, marked=stored)
        admission = decide(request)
        if admission.admitted is not None:
            admission.decisions += self._decide_pods(request, admission.admitted, admission.decisions)
        checked = replace(
            new.conclude(),
            operation=requested.operation,
            changes=admission.changes,
            changed_by=admission.changed_by,
            decisions=tuple(sorted(admission.decisions, key=_rank)),
        )
        return _Answer(checked, admission.admitted, requested.by_kubectl)

    def _decide_pods(
        self, request: AdmissionRequest, workload: Resource, decisions: Sequence[Decision]
    ) -> list[Decision]:
        """The refusals of the pods that a workload would create, and what is undecided about them, beside the decisions about itself."""
        made = make_pod(workload)
        if made is None:
            return []
        pod, user = made
        try:
            requested = make_request(pod, None, self._rules.schemas.schema(PODS))
        except Refused as refusal:
            return [Decision(Effect.REFUSES_PODS, f"its pods: {refusal}")]
        marked = _mark_pod(request, workload)
        of_pod = decide(make_admission_request(self._rules, requested, user, marked=marked, of_template=True))
        return list(_select_for_pods(of_pod.decisions, decisions))


def _select_for_pods(of_pod: Iterable[Decision], of_workload: Iterable[Decision]) -> Iterator[Decision]:
    """The decisions about the pods of a workload that those about the workload do not have already."""
    known = {(each.language, each.policy, each.effect) for each in of_workload}
    for each in of_pod:
        effect = Effect.REFUSES_PODS if each.effect is Effect.REFUSES else each.effect
        if effect not in (Effect.REFUSES_PODS, Effect.UNDECIDED):
            continue
        if known.isdisjoint((each.language, each.policy, other) for other in (effect, Effect.REFUSES)):
            yield replace(each, effect=effect, message=f"its pods: {each.message}", fields=())


def _mark_pod(request: AdmissionRequest, workload: Resource) -> JsonObject:
    """The pod of a workload with the parts marked that a snapshot withholds."""
    if not has_withheld(marked := request.mark(workload)):
        return {}
    made = make_pod(resource_of(workload.kind, marked))
    return made[0].body if made else {"metadata": WithheldMap(), "spec": WithheldMap()}


def _rank(decision: Decision) -> int:
    """The place of a decision among others: the strictest effect first, and otherwise as decided."""
    return [*Effect].index(decision.effect)
