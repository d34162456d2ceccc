"""ValidatingAdmissionPolicy: bindings joined to policies, requests judged.

Source of truth: `generic.PolicySource` and `validating.dispatcher` of kube-apiserver 1.36: nothing short-circuits,
every policy, binding, param and check is evaluated, and configuration errors deny whatever the actions are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from scanner.admission.auditability import AUDITABLE, reading
from scanner.admission.cost_budget import Strain
from scanner.admission.evaluate import CompiledPolicy, Request, compile_policy, evaluate, misconfigured
from scanner.admission.match import Target, applies
from scanner.admission.params import ParamSource, resolve, unserved
from scanner.cel import Decider
from scanner.cel.releases import WRAPPED_OBJECTS
from scanner.errors import ConfigurationError, InvalidManifest
from scanner.model.json import EMPTY, JsonObject, dig, text_map
from scanner.model.outcome import Check, CheckKind, Judgement, Passed, Skipped
from scanner.model.policy import Action, Binding, Invocation, MatchResources, Operation, Policy
from scanner.model.reading import UNKNOWN, Auditability, Reading
from scanner.model.release import NEWEST, Minor
from scanner.model.resource import Kind, Resource, UserInfo
from scanner.policies import api_validation, manifest
from scanner.policies.validating import wrapped
from scanner.policies.validating.wrapped import Schemas

LANGUAGE = "ValidatingAdmissionPolicy"
POLICIES = "validatingadmissionpolicies"
BINDINGS = "validatingadmissionpolicybindings"


@dataclass(frozen=True, slots=True)
class World:
    """What judging an object needs to know of the cluster besides the object.

    `namespaces` maps names to Namespace objects; with `implied_namespaces` (files) one that is not there exists with
    its name label only. `equivalents` maps a kind to the same objects' other served kinds. `authorizer` answers what
    expressions ask about permissions; without one they are not auditable. `strain` feels how near evaluations come to
    what they may cost.
    """

    params: ParamSource
    namespaces: Mapping[str, JsonObject]
    implied_namespaces: bool = False
    equivalents: Mapping[Kind, tuple[Kind, ...]] = field(default_factory=dict)
    user: UserInfo = field(default_factory=UserInfo)
    operations: tuple[Operation, ...] = AUDITABLE
    authorizer: Decider | None = None
    strain: Strain | None = None

    def on(self, operations: tuple[Operation, ...]) -> World:
        """The same world, asked about other operations."""
        return replace(self, operations=operations)

    def namespace(self, name: str) -> JsonObject | None:
        """The Namespace object, or None when there is none."""
        known = self.namespaces.get(name)
        if known is None and self.implied_namespaces and name:
            labels = {"kubernetes.io/metadata.name": name}
            return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}
        return known


Decide: TypeAlias = Callable[[CompiledPolicy, Request, Resource | None], tuple[Judgement, ...]]
"""Every check of a matched invocation; the resource is its param."""
Exempts: TypeAlias = Callable[[Resource, Mapping[str, str]], str]
"""What keeps requests for an object in a namespace with some labels from a policy, or an empty string."""


@dataclass(frozen=True, slots=True)
class Bound:
    """A compiled policy with the bindings that put it into force, ordered by name, and what its expressions read.

    `decide` is how its language judges a request that a binding matches. With a `namespace`, it judges no object outside, but
    (`leaks`) those in none. With `own_namespace_object` a Namespace that exists is its own namespaceObject. `exempts` is what
    admission does not ask the policy about.
    """

    compiled: CompiledPolicy
    bindings: tuple[Binding, ...]
    reading: Reading = UNKNOWN
    requester: frozenset[Check] = frozenset()
    decide: Decide = evaluate
    namespace: str = ""
    leaks: bool = False
    own_namespace_object: bool = False
    exempts: Exempts | None = None

    def sees(self, namespace: str) -> bool:
        """Whether it judges the objects of a namespace, or those in none."""
        return self.namespace in ("", namespace) or (self.leaks and not namespace)

    def heard(
        self, judgements: tuple[Judgement, ...], resource: Resource, namespace: JsonObject | None
    ) -> tuple[Judgement, ...]:
        """The judgements, without effect where requests for the object never get to the policy."""
        if self.exempts is None or all(isinstance(it.outcome, Passed | Skipped) for it in judgements):
            return judgements
        exempted = self.exempts(resource, text_map(dig(namespace, "metadata", "labels")))
        return tuple(_without_effect(it, exempted) for it in judgements) if exempted else judgements

    @property
    def policy(self) -> Policy:
        """The noun."""
        return self.compiled.policy

    def deciding(self, decide: Decide) -> Bound:
        """The same policy, judged in another way."""
        return replace(self, decide=decide)

    def decides_plainly(self, kind: Kind) -> bool:
        """Whether requests for objects of a kind are judged by `evaluate`, and nothing else."""
        if isinstance(self.decide, wrapped.WrappedEvaluator):
            return not self.decide.differs(self.compiled, kind)
        return self.decide is evaluate


def _without_effect(judgement: Judgement, exempted: str) -> Judgement:
    """What is wrong with the policy itself is no matter of the object."""
    if isinstance(judgement.outcome, Passed | Skipped) or judgement.check.kind is CheckKind.CONFIGURATION:
        return judgement
    return replace(judgement, excepted_by=", ".join(filter(None, (exempted, judgement.excepted_by))))


@dataclass(frozen=True, slots=True)
class Ruling:
    """What one invocation says about one object. `resource` is the object in the kind it was evaluated in.

    Without judgements it says that the binding matches but means no param here, so that nothing is evaluated. `request` is
    what was asked, None when nothing was.
    """

    invocation: Invocation
    operation: Operation
    resource: Resource
    judgements: tuple[Judgement, ...]
    request: Request | None = None


def read_policy(document: JsonObject, *, source: str = "cluster", rules: Minor = NEWEST) -> Policy:
    """The policy of a manifest. From a file (`source` is not `cluster`), InvalidManifest when the API would refuse it."""
    if source == "cluster":
        return manifest.read_policy(document, language=LANGUAGE, source=source)
    taken = api_validation.decoded(document)
    policy = manifest.read_policy(taken, language=LANGUAGE, source=source)
    _refuse(api_validation.policy_faults(taken, api_validation.written(policy, rules)))
    return policy


def read_binding(document: JsonObject, *, source: str = "cluster") -> Binding:
    """The binding of a manifest, with the same promise as `read_policy`."""
    if source == "cluster":
        return manifest.read_binding(document, language=LANGUAGE, source=source)
    taken = api_validation.decoded(document)
    _refuse(api_validation.binding_faults(taken))
    return manifest.read_binding(taken, language=LANGUAGE, source=source)


def _refuse(faults: tuple[str, ...]) -> None:
    """The server tells the same fault once (`ErrorList.ToAggregate`)."""
    if faults:
        raise InvalidManifest(tuple(dict.fromkeys(faults)))


def assume_bound(policy: Policy, action: Action) -> Binding:
    """The binding that `--assume-bound` makes up: the whole policy, without a param."""
    return Binding(
        language=LANGUAGE,
        name=f"assumed:{policy.name}",
        policy_name=policy.name,
        param_ref=None,
        match=None,
        actions=(action,),
        manifest=EMPTY,
        digest="",
        source="--assume-bound",
        assumed=True,
    )


def bind(
    policies: Sequence[Policy],
    bindings: Sequence[Binding],
    operations: tuple[Operation, ...] = AUDITABLE,
    rules: Minor = NEWEST,
    schemas: Schemas | None = None,
) -> tuple[Bound, ...]:
    """Policies that some binding puts into force, compiled, ordered by name, to be asked about some operations.

    `rules` is the Kubernetes release that evaluates them; `schemas` tells it which values are native, from 1.37 on.
    """
    decide = (
        evaluate if not WRAPPED_OBJECTS.holds(rules) or schemas is None else wrapped.WrappedEvaluator(schemas, rules)
    )
    return bound_by(policies, bindings, operations, rules, decide)


def bound_by(
    policies: Sequence[Policy],
    bindings: Sequence[Binding],
    operations: tuple[Operation, ...],
    rules: Minor,
    decide: Decide,
) -> tuple[Bound, ...]:
    """Policies of any language whose bindings, params and rules work as here; `decide` judges what they match."""
    joined = {policy.key: [b for b in bindings if b.joins(policy)] for policy in policies}
    return tuple(
        _bound(compile_policy(policy, rules), joined[policy.key], operations, decide)
        for policy in sorted(policies, key=lambda policy: policy.name)
        if joined[policy.key]
    )


def _bound(
    compiled: CompiledPolicy, bindings: Sequence[Binding], operations: tuple[Operation, ...], decide: Decide
) -> Bound:
    read = reading(compiled, operations)
    requester = frozenset(it.check for it in read.checks if Auditability.REQUESTER in it.classes)
    return Bound(compiled, tuple(sorted(bindings, key=lambda binding: binding.name)), read, requester, decide)


def judge(bound: Bound, resource: Resource, original: Kind, world: World) -> Iterator[Ruling]:
    """What each of a policy's bindings says about a stored object, as if a request on `original` created or rewrote it.

    `resource` is in the kind it was listed in. A policy that wants the object in another of its kinds says nothing
    here: it speaks when the object is listed in that kind.
    """
    if bound.reading.reason or not bound.sees(resource.namespace):
        return
    for binding in bound.bindings:
        selections = (
            select(bound.policy, binding, resource, original, operation, world) for operation in world.operations
        )
        selection = next((found for found in selections if found), None)
        if selection and selection.matched == resource.kind:
            yield from _rulings(bound, binding, selection, resource, world)


@dataclass(frozen=True, slots=True)
class Selection:
    """A request that policy and binding match, or (`fault`) that they would match were they configured rightly."""

    target: Target
    matched: Kind
    fault: str = ""


def select(
    policy: Policy, binding: Binding, resource: Resource, original: Kind, operation: Operation, world: World
) -> Selection | None:
    """The request that a policy and one of its bindings match, or None. What decides are only the facts in `Target`."""
    target = _target(resource, original, operation, world)
    try:
        matched = _matched(policy.match, target)
    except ConfigurationError as error:
        return Selection(target, resource.kind, f"failed to configure policy: {error}")
    if matched is None:
        return None
    if fault := unserved(policy, world.params):
        return Selection(target, matched, f"failed to configure policy: {fault}")
    try:
        narrowed_out = binding.match is not None and applies(binding.match, target) is None
    except ConfigurationError as error:
        return Selection(target, matched, f"failed to configure binding: {error}")
    return None if narrowed_out else Selection(target, matched)


def _target(resource: Resource, original: Kind, operation: Operation, world: World) -> Target:
    namespace = request_namespace(resource)
    known = world.namespace(namespace)
    return Target(
        kind=original,
        operation=operation,
        name=resource.name,
        namespace=namespace,
        labels=resource.labels,
        namespace_labels=None if known is None else text_map(dig(known, "metadata", "labels")),
        equivalents=world.equivalents.get(original, ()),
    )


def request_namespace(resource: Resource) -> str:
    """The namespace of a request on an object: a Namespace's own name for Namespace objects."""
    if (resource.kind.group, resource.kind.plural) == ("", "namespaces"):
        return resource.name
    return resource.namespace


def _rulings(
    bound: Bound, binding: Binding, selection: Selection, resource: Resource, world: World
) -> Iterator[Ruling]:
    policy, target = bound.policy, selection.target

    def wrong(text: str) -> Ruling:
        return Ruling(Invocation(policy, binding), target.operation, resource, (misconfigured(policy, text),))

    if selection.fault:
        yield wrong(selection.fault)
        return
    try:
        params = resolve(policy, binding, target.namespace, world.params)
    except ConfigurationError as error:
        yield wrong(f"failed to configure binding: {error}")
        return
    if not params:
        yield Ruling(Invocation(policy, binding), target.operation, resource, ())
        return
    request = _request(bound, binding, selection, resource, world)
    for param in params:
        judgements = bound.decide(bound.compiled, request, param)
        judgements = bound.heard(judgements, resource, world.namespace(resource.namespace))
        yield Ruling(Invocation(policy, binding, param), target.operation, resource, judgements, request)


def _matched(match: MatchResources | None, target: Target) -> Kind | None:
    if match is None:
        raise ConfigurationError("policy contained no match constraints, a required field")
    return applies(match, target)


def _request(bound: Bound, binding: Binding, selection: Selection, resource: Resource, world: World) -> Request:
    target = selection.target
    return Request(
        operation=target.operation,
        original=target.kind,
        matched=selection.matched,
        resource=resource,
        namespace=target.namespace,
        namespace_object=_namespace_object(bound, target, resource, world),
        user=world.user,
        decider=world.authorizer,
        strain=world.strain,
        narrowing=binding.match,
    )


def _namespace_object(bound: Bound, target: Target, resource: Resource, world: World) -> JsonObject | None:
    if not target.namespace:
        return None
    if (resource.kind.group, resource.kind.plural) != ("", "namespaces"):
        return world.namespace(target.namespace)
    return resource.body if bound.own_namespace_object and target.operation != "CREATE" else None
