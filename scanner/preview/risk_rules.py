"""The rules before and after a change, as they decide about the requests of controllers, and the others, which both sides have.

Most requests pass, and most of the work of a request does not depend on the rules that differ: it is done once for both sides.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Final

import orjson

from scanner.admission.dispatch import BoundPolicy, evaluate_object
from scanner.admission.match import could_match
from scanner.admission.server_fields import GENERATION, list_fields_to_be_set, reads_any
from scanner.audit.fast_path import FastPath
from scanner.audit.withheld_reads import WithheldReads
from scanner.errors import ListFailed
from scanner.model.json import as_object
from scanner.model.outcome import NO_EVIDENCE, Check, CheckKind, Passed
from scanner.model.policy import Operation, ParamKind, PolicyKey
from scanner.model.resource import Kind, Resource, UserInfo, resource_of
from scanner.policies.plan import KindPlan, plan
from scanner.preview.admission_request import explain_client
from scanner.preview.decide import AdmittedRequest, admit_request, decide_request
from scanner.preview.plugins import BUILT_IN, LISTED, NAMED, SERVICE_ACCOUNT, Plugins, concerns_plugins
from scanner.preview.plugins.service_account import ENFORCES
from scanner.preview.requested import Requested, generate_name
from scanner.preview.rules import Rules
from scanner.preview.verdict import Decision, Effect
from scanner.scan.lists import ScanLists
from scanner.scan.prepare import PreparedScan

_WRITES: Final[tuple[Operation, ...]] = ("CREATE", "UPDATE")
_FILLING: Final = frozenset(BUILT_IN) - {SERVICE_ACCOUNT}
"""The plug-ins without whose result a template is undecided. An account adds its own volume and secrets to pull images with."""


class PassTests:
    """Tests whether every validating policy of some rules certainly admits a request, on the fast path of a scan.

    Policies treat all objects of a kind in a namespace alike, so each test is made once, for each user.
    """

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._fast_paths: dict[tuple[Kind, Operation, UserInfo], FastPath | None] = {}
        self.may_mutate: Callable[[Kind], bool] = cache(self._may_mutate)

    def _may_mutate(self, kind: Kind) -> bool:
        """Return whether a mutating policy may match requests on a kind."""
        matches = [bound.policy.match for bound in self._rules.mutating]
        return any(match is None or any(could_match(rule, kind, _WRITES) for rule in match.rules) for match in matches)

    def passes(self, resource: Resource, old: Resource | None, user: UserInfo) -> bool:
        """Return whether every check certainly passes; False is no answer. The object has one version."""
        fast_path = self._get_fast_path(resource.kind, "UPDATE" if old else "CREATE", user)
        if fast_path is None:
            return False
        policies = fast_path.get_tally(resource.namespace).policies
        remaining = policies.others
        try:
            if old is None or old.body is resource.body:
                size = len(orjson.dumps(resource.body))
                if policies.find_not_passed(resource, size, 0, defaultdict(int)):
                    return False
            else:
                remaining = (*remaining, *((each.bound, each.original) for each in policies.fast_policies))
            return all(self._evaluate(bound, resource, old, user) for bound, _ in remaining)
        except Exception:  # noqa: BLE001 - the request itself decides, and tells the reason
            return False

    def _evaluate(self, bound: BoundPolicy, resource: Resource, old: Resource | None, user: UserInfo) -> bool:
        operation: Operation = "UPDATE" if old else "CREATE"
        context = replace(self._rules.context, user=user, operations=(operation,), old=old)
        results = evaluate_object(bound, resource, resource.kind, context)
        return all(isinstance(each.outcome, Passed) for result in results for each in result.check_results)

    def _get_fast_path(self, kind: Kind, operation: Operation, user: UserInfo) -> FastPath | None:
        key = kind, operation, user
        if key not in self._fast_paths:
            self._fast_paths[key] = self._make_fast_path(*key)
        return self._fast_paths[key]

    def _make_fast_path(self, kind: Kind, operation: Operation, user: UserInfo) -> FastPath | None:
        """The fast path of a kind; None if a policy reads what only the server or the client of a request knows."""
        context = replace(self._rules.context, user=user, operations=(operation,))
        plans = plan((kind,), self._rules.validating, context.operations)
        policies = plans[0].policies if plans else ()
        to_be_set = (*list_fields_to_be_set(kind, {}), ("status",)) if operation == "CREATE" else (GENERATION,)
        if any(reads_any(_list_reads(bound), to_be_set) or explain_client(bound) for bound, _ in policies):
            return None
        return FastPath(context, KindPlan(kind, policies))


def _list_reads(bound: BoundPolicy) -> Iterable[tuple[str, ...]]:
    checks = (Check(CheckKind.CONDITIONS), *bound.compiled.checks)
    return [path for check in checks for path in bound.compiled.reads(check)]


@dataclass(frozen=True, slots=True)
class RiskRules:
    """The rules before and after the change that can differ, and the others, which may refuse a request in both cases.

    The objects are `stored` if a server has set their defaults, also those of templates. With `same_objects` both sides validate the
    same object: no mutating policy and no plug-in differs. `changes_mutation` is true if a mutating policy may differ.
    """

    before: Rules
    after: Rules
    others: Rules
    plugin_objects: PluginObjects
    before_tests: PassTests
    after_tests: PassTests
    other_tests: PassTests
    withheld: WithheldReads | None = None
    stored: bool = True
    same_objects: bool = True
    changes_mutation: bool = False

    @property
    def knows_objects(self) -> bool:
        """Return whether a server has decoded every object, and set its defaults, and nothing is withheld."""
        return self.stored and self.withheld is None

    def may_concern(self, kind: Kind) -> bool:
        """Return whether the change may concern requests on a kind."""
        return self.before.may_concern(kind) or self.after.may_concern(kind)

    def passes(self, resource: Resource, old: Resource | None, user: UserInfo) -> bool:
        """Return whether every check after the change certainly passes, without the steps of a request that change the object.

        Most objects pass: this is a shortcut, and False is no answer.
        """
        rules, kind = self.after, resource.kind
        if not self.knows_objects or rules.context.equivalents.get(kind) or self.after_tests.may_mutate(kind):
            return False
        if old is None and concerns_plugins(kind):
            undecided: list[Decision] = []
            changed = rules.plugins.change(resource, undecided, created=True)
            if changed is None or undecided:
                return False
            resource = changed
        if old is None:
            resource = resource_of(kind, generate_name(resource.body))
        return self.after_tests.passes(resource, old, user)

    def compare(self, requested: Requested, user: UserInfo, *, made: bool = False) -> tuple[Decision, ...]:
        """The decisions that newly refuse a request, or are newly undecided; none if it is refused in any case.

        A pod that is `made` from a template is undecided where a plug-in is that could change it.
        """
        if self._hides(requested.resource):
            return (Decision(Effect.UNDECIDED, "the snapshot withholds a part of the object that a policy may read"),)
        shared = self.share(requested, user)
        if shared and _refuses(shared.decisions):
            return ()

        def decide(rules: Rules) -> Iterable[Decision]:
            return shared.decide(rules) if shared else decide_request(rules, requested, user)

        after = tuple(decide(self.after))
        if not any(each.effect in (Effect.REFUSES, Effect.UNDECIDED) for each in after):
            return ()
        passed = self._certainly_pass(self.before_tests, self.before, shared)
        before = shared.decisions if shared and passed else tuple(decide(self.before))
        if _refuses(before):
            return ()
        newly = [each for each in after if each.effect is Effect.REFUSES]
        newly = newly or [each for each in after if each.effect is Effect.UNDECIDED and each not in before]
        # The others have the mutating policies after the change, which may be what newly refuses: only their checks count here.
        passed = not self.others.validating or self._certainly_pass(self.other_tests, self.others, shared)
        if newly and not passed and _refuses(decide(self.others)):
            return ()
        filling = [each for each in after if each.effect is Effect.UNDECIDED and each.policy in _FILLING]
        # The difference of the object has the deciding values: thousands of workloads need not hold them again.
        return tuple(
            replace(each, fields=(), evidence=NO_EVIDENCE)
            for each in (filling if made and newly and filling else newly)
        )

    def share(self, requested: Requested, user: UserInfo) -> AdmittedRequest | None:
        """The request about which both sides decide, None if each of them makes its own."""
        return admit_request(self.after, requested, user) if self.same_objects else None

    def _certainly_pass(self, tests: PassTests, rules: Rules, shared: AdmittedRequest | None) -> bool:
        """Return whether the validating policies of some rules certainly admit a request; False is no answer."""
        if shared is None or shared.admitted is None or not self.knows_objects:
            return False
        resource = shared.admitted
        has_versions = bool(rules.context.equivalents.get(resource.kind))
        return not has_versions and tests.passes(resource, shared.requested.old, shared.user)

    def decide_before(self, requested: Requested, user: UserInfo) -> Iterator[Decision]:
        """The decisions about a request by all rules before the change: those that the API server has."""
        yield from decide_request(self.before, requested, user)
        yield from decide_request(self.others, requested, user)

    def _hides(self, resource: Resource) -> bool:
        if self.withheld is None:
            return False
        bound = (*self.before.validating, *self.before.mutating, *self.after.validating, *self.after.mutating)
        return self.withheld.concern(resource, resource.body, bound)


def _refuses(decisions: Iterable[Decision]) -> bool:
    return any(each.effect is Effect.REFUSES for each in decisions)


def make_risk_rules(before: PreparedScan, after: PreparedScan, changed: Sequence[PolicyKey]) -> RiskRules:
    """The rules of the requests. What mutating policies change may differ for every policy that follows them."""
    keys = frozenset(changed)
    objects = PluginObjects(after.listing)
    sides = [_select(each, keys, objects) for each in (before, after)]
    mutates = any(not keys.isdisjoint(each.policy.key for each in rules.mutating) for rules in sides)
    if mutates:
        keys = frozenset(bound.policy.key for each in (before, after) for bound in each.evaluation.bound)
        sides = [_select(each, keys, objects) for each in (before, after)]
    left = frozenset(bound.policy.key for bound in after.evaluation.bound) - keys
    withheld = after.evaluation.page_evaluator.withheld
    one, other = sides
    others = _select(after, left, objects)
    others = replace(others, validating=tuple(filter(may_deny, others.validating)))
    return RiskRules(
        before=one,
        after=other,
        others=others,
        plugin_objects=objects,
        before_tests=PassTests(one),
        after_tests=PassTests(other),
        other_tests=PassTests(others),
        withheld=None if withheld is None else WithheldReads(after.evaluation_context, withheld),
        stored=not after.context.files,
        changes_mutation=mutates,
        same_objects=not mutates and before.context.rules == after.context.rules,
    )


def may_deny(bound: BoundPolicy) -> bool:
    """Return whether a policy can deny a request; errors of its configuration deny with any action."""
    has_deny = any("Deny" in binding.actions for binding in bound.bindings)
    return bound.combination is None and (has_deny or bound.policy.param_kind is not None)


def _select(prepared: PreparedScan, keys: frozenset[PolicyKey], objects: PluginObjects) -> Rules:
    """The rules of one side: all mutating policies, and the validating policies with some keys."""
    bound = prepared.evaluation.bound
    return Rules(
        cluster=prepared.cluster,
        context=prepared.evaluation_context,
        schemas=prepared.listing.relay,
        plugins=Plugins(
            objects=objects,
            schemas=prepared.listing.relay,
            namespaces=prepared.evaluation_context.namespaces,
            release=prepared.context.rules,
            files=prepared.context.files,
        ),
        mutating=tuple(sorted((each for each in bound if each.combination), key=lambda each: each.policy.key)),
        validating=tuple(each for each in bound if each.combination is None and each.policy.key in keys),
    )


class PluginObjects:
    """The objects that built-in plug-ins read, listed before the first of them is needed: workers list nothing. A `ParamSource`.

    Its methods raise ListFailed for objects that could not be listed.
    """

    def __init__(self, listing: ScanLists) -> None:
        self._listing = listing
        self._objects: dict[Kind, dict[str, dict[str, Resource]] | ListFailed] = {}

    def load(self) -> None:
        """List the objects of all kinds that plug-ins read, in the namespaces of the scope."""
        for kind in (*LISTED, *NAMED):
            try:
                self._objects[kind] = self._list(kind)
            except ListFailed as error:
                self._objects[kind] = error
            except ValueError as error:
                self._objects[kind] = ListFailed("failed", str(error))

    def _list(self, kind: Kind) -> dict[str, dict[str, Resource]]:
        """The objects of a kind by namespace and name, ordered by name."""
        namespaces = self._listing.namespaces if kind.namespaced else ("",)
        objects: dict[str, dict[str, Resource]] = {}
        listed = self._listing.list_all(kind, namespaces, keep=False)
        for each in sorted(map(_keep_read, listed), key=lambda each: each.name):
            objects.setdefault(each.namespace, {})[each.name] = each
        return objects

    def find_kind(self, param_kind: ParamKind) -> Kind | None:
        """No kind: plug-ins know theirs."""
        del param_kind
        return None

    def get(self, kind: Kind, namespace: str, name: str) -> Resource | None:
        """An object by its name, or None."""
        return self._get_all(kind, namespace).get(name)

    def list_all(self, kind: Kind, namespace: str) -> Iterable[Resource]:
        """The objects of a namespace ("" for a cluster-scoped kind), ordered by name."""
        return self._get_all(kind, namespace).values()

    def _get_all(self, kind: Kind, namespace: str) -> dict[str, Resource]:
        objects = self._objects[kind]
        if isinstance(objects, ListFailed):
            raise objects
        return objects.get(namespace, {})


def _keep_read(resource: Resource) -> Resource:
    """The object without the metadata that no plug-in reads: most of a small object."""
    metadata = as_object(resource.body.get("metadata"))
    kept = {key: metadata[key] for key in ("name", "namespace") if key in metadata}
    annotations = {key: each for key, each in as_object(metadata.get("annotations")).items() if key == ENFORCES}
    return resource_of(resource.kind, {**resource.body, "metadata": {**kept, "annotations": annotations}})
