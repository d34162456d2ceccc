"""The webhooks that Kyverno registers for its policies, as far as they decide which requests the policies evaluate.

Source of truth: `buildWebhookRules` of `pkg/controllers/webhook`, `CreateMatchConditions` of `pkg/cel/autogen` and
`CompileMatchConditionsWithKubernetesEnv` of `pkg/cel/compiler` of Kyverno 1.16 to 1.19; `validateValidatingWebhook` of kube-apiserver
1.36 for the webhooks that it refuses. A policy has a webhook of its own, with its match conditions, or shares one with all others.

Rules: `docs/semantics/kyverno.md#kyvernos-webhooks`.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cached_property, lru_cache
from itertools import product
from typing import Final, NamedTuple, TypeAlias

from msgspec import Struct

from scanner import cel
from scanner.admission.compiled import Expression, compile_expression
from scanner.cel.releases import Version
from scanner.cel.values.text import quote
from scanner.model.json import Json, JsonObject, as_list, as_object, dig
from scanner.model.policy import MatchResources, NamedExpression, Policy, Rule
from scanner.model.release import Minor
from scanner.model.selector import EVERYTHING, Requirement, Selector
from scanner.policies.api_validation import check_qualified_name, condition_faults, match_faults
from scanner.policies.kyverno.autogen import Variant, is_about_pods_alone, kind_of
from scanner.policies.kyverno.libraries import rules_of
from scanner.policies.kyverno.releases import (
    KEPT_CONDITIONS,
    OWN_NAMESPACE_ALONE,
    REGISTERED_VARIANTS,
    SEPARATE_SELECTORS,
    UNIQUE_NAMES,
)
from scanner.policies.kyverno.spec import KyvernoPolicy

Forms: TypeAlias = tuple[tuple[Variant, Policy], ...]
"""A policy as it is written, and its autogen variants."""
_Group: TypeAlias = tuple[bool, tuple[Selector, Selector] | None]
_EFFECTS: Final = (True, False)
"""The failure policies of shared webhooks: Fail, Ignore."""
_LONGEST_NAME: Final = 253
_NAME_LABEL: Final = "kubernetes.io/metadata.name"


class MovedCondition(NamedTuple):
    """A match condition in a webhook: the form that it is about, its name in the policy, and its name and text in the webhook."""

    variant: str
    name: str
    registered: str
    expression: str


class Registration(Struct, frozen=True):
    """The registration of one policy.

    `conditions` are those that Kyverno moves into the webhook of the policy. `variants` are the names of the forms with rules in a
    webhook, the empty name for the policy as it is written. `called` are the webhooks that call Kyverno for the policy, if its own
    rules do not tell it. `borrowed` are the rules of other policies by which Kyverno evaluates this policy, too. `faults` are the
    errors for which the API server refuses the webhook: then the policy counts for no other one. `companions` are the policies with
    other selectors that share the webhook, which has the selectors of one of them.
    """

    conditions: tuple[MovedCondition, ...] = ()
    variants: frozenset[str] = frozenset()
    called: tuple[MatchResources, ...] = ()
    borrowed: tuple[Rule, ...] = ()
    faults: tuple[str, ...] = ()
    companions: tuple[str, ...] = ()


class Registry:
    """The registrations of all policies in force in a release of Kyverno, on an API server of a Kubernetes release."""

    def __init__(self, forms: Iterable[tuple[KyvernoPolicy, Forms]], release: Minor, rules: Minor) -> None:
        """Take every policy with its forms; those without a webhook are not registered."""
        self._release = release
        self._entries = {policy.key: _Entry(policy, own, release) for policy, own in forms if policy.has_webhook}
        self._names = Counter(entry.webhook_name for entry in self._entries.values() if entry.is_own)
        self._shared: defaultdict[_Group, list[_Entry]] = defaultdict(list)
        self._rules_shared: defaultdict[tuple[_Group, bool], set[Rule]] = defaultdict(set)
        self._faults = {key: tuple(self._list_faults(entry, rules)) for key, entry in self._entries.items()}
        for key, entry in self._entries.items():
            if not (entry.is_own or self._faults[key]):
                self._shared[self._group(entry)].append(entry)
                self._rules_shared[self._group(entry), entry.fails] |= {*entry.rules}

    def of(self, policy: KyvernoPolicy) -> Registration:
        """The registration of a policy that has a webhook."""
        entry = self._entries[policy.key]
        return Registration(
            conditions=entry.conditions,
            variants=frozenset(variant.name for variant, _ in entry.registered),
            called=tuple(self._called(entry)),
            borrowed=() if entry.is_registered else tuple(self._borrowed(entry)),
            faults=self._faults[policy.key],
            companions=() if entry.is_own else tuple(self._companions(entry)),
        )

    def _group(self, entry: _Entry) -> _Group:
        """The key of the policies that share a webhook with this one, if none of them has a webhook of its own."""
        selectors = entry.selectors if SEPARATE_SELECTORS.holds(self._release) else None
        return bool(entry.policy.namespace), selectors

    def _called(self, entry: _Entry) -> Iterator[MatchResources]:
        """The webhooks that call Kyverno for a policy, if other policies or names of objects decide about the version.

        One with a rule for the version of the request is called with it, also if the rules of this policy name other versions.
        """
        if entry.conditions or entry.match_policy == "Exact":
            return
        shared = {} if entry.is_own else {fails: self._rules_shared[self._group(entry), fails] for fails in _EFFECTS}
        foreign = {fails: {*filter(entry.meets, rules)} for fails, rules in shared.items()}
        if not (entry.is_narrowed or any(foreign.values())):
            return
        for fails in _EFFECTS:
            own = {*entry.rules} if fails is entry.fails else set()
            if rules := own | foreign.get(fails, set()):
                yield MatchResources(_in_order(rules), (), EVERYTHING, EVERYTHING, entry.match_policy)

    def _borrowed(self, entry: _Entry) -> Iterator[Rule]:
        """The rules by which Kyverno evaluates a policy whose variants have no webhook: it looks for policies by their name alone."""
        for fails in _EFFECTS:
            yield from self._rules_shared[self._group(entry), fails] - {*entry.rules}
        for key, other in self._entries.items():
            has_name = other.policy.namespace and other.policy.name == entry.policy.name
            if has_name and other.is_own and not self._faults[key]:
                yield from other.rules

    def _companions(self, entry: _Entry) -> Iterator[str]:
        others = self._shared[self._group(entry)]
        yield from sorted(
            other.policy.full_name
            for other in others
            if other.selectors not in (entry.selectors, (EVERYTHING, EVERYTHING))
        )

    def _list_faults(self, entry: _Entry, rules: Minor) -> Iterator[str]:
        yield from entry.faults(rules)
        if entry.is_own and self._names[entry.webhook_name] > 1:
            yield f"webhook.name: Duplicate value: {quote(entry.webhook_name)}"


class _Entry:
    """A policy and the parts of its manifest that decide its registration."""

    def __init__(self, policy: KyvernoPolicy, forms: Forms, release: Minor) -> None:
        self.policy, self._forms, self._release = policy, forms, release
        self._written = forms[0][1]
        self._spec: JsonObject = forms[0][0].spec
        self._match = dig(self._spec, "matchConstraints")
        self.fails = policy.failure_policy != "Ignore"
        self.match_policy = self._written.match.match_policy if self._written.match else "Equivalent"
        has_conditions = isinstance(dig(self._spec, "matchConditions"), list)
        self._moves = has_conditions and _all_compile(self._written.match_conditions, release)
        has_time = dig(self._spec, "webhookConfiguration", "timeoutSeconds") is not None
        self.is_own = self._moves or self.match_policy == "Exact" or has_time
        self._is_pinned = bool(policy.namespace) and OWN_NAMESPACE_ALONE.holds(release)

    @property
    def is_registered(self) -> bool:
        """Return whether the rules of all variants are in a webhook."""
        return self.is_own or not self.policy.namespace or REGISTERED_VARIANTS.holds(self._release)

    @property
    def registered(self) -> Forms:
        """The forms whose rules are in a webhook."""
        return self._forms if self.is_registered else self._forms[:1]

    @property
    def is_narrowed(self) -> bool:
        """Return whether the policy has conditions on objects that its webhook has not: names, and rules of exclusion."""
        names = any(rule.resource_names for rule in _rules(self._written))
        return names or bool(self._written.match and self._written.match.exclude_rules)

    @cached_property
    def rules(self) -> tuple[Rule, ...]:
        """The rules in the webhook, which names no objects."""
        return tuple(replace(rule, resource_names=()) for _, form in self.registered for rule in _rules(form))

    @cached_property
    def selectors(self) -> tuple[Selector, Selector]:
        """The selectors of namespaces and objects in the webhook."""
        match = self._written.match
        if match is None:
            return EVERYTHING, EVERYTHING
        namespaces = select_name(self.policy.namespace) if self._is_pinned else match.namespace_selector
        return namespaces, match.object_selector

    @property
    def webhook_name(self) -> str:
        """The name of a webhook of its own."""
        namespace, effect = self.policy.namespace, "fail" if self.fails else "ignore"
        place = f"{namespace}-" if namespace and UNIQUE_NAMES.holds(self._release) else ""
        return f"{'n' if namespace else ''}vpol.validate.kyverno.svc-{effect}-finegrained-{place}{self.policy.name}"

    @cached_property
    def conditions(self) -> tuple[MovedCondition, ...]:
        """The match conditions of all forms that the API server evaluates."""
        return tuple(self._list_conditions()) if self._moves else ()

    def _list_conditions(self) -> Iterator[MovedCondition]:
        wraps = is_about_pods_alone(self._spec, self._release)
        for variant, form in self._forms:
            if variant.extracts or not _all_compile(form.match_conditions, self._release):
                continue
            for condition in form.match_conditions:
                if KEPT_CONDITIONS.holds(self._release) and _reads_namespace(condition, self._release):
                    continue
                name, text = condition.name, condition.expression
                if wraps:
                    name = "-".join(filter(None, ("autogen", variant.name, name)))
                    text = f"!({_about(form)}) || ({text})"
                yield MovedCondition(variant.name, condition.name, name, text)

    def meets(self, rule: Rule) -> bool:
        """Return whether a rule in the webhook is about a version of this policy's resources that its own rules do not name."""
        return any(
            _overlap(own.resources, rule.resources) and not {*rule.api_versions} <= {*own.api_versions}
            for own in _rules(self._written)
        )

    def faults(self, rules: Minor) -> Iterator[str]:
        """The errors for which an API server refuses the webhook."""
        yield from match_faults("webhook", self._webhook_match(), rules_needed=False)
        if not self.is_own:
            return
        if len(self.webhook_name) > _LONGEST_NAME:
            detail = f"must be no more than {_LONGEST_NAME} characters"
            yield f"webhook.name: Invalid value: {quote(self.webhook_name)}: {detail}"
        documents: list[Json] = [
            {"name": moved.registered, "expression": moved.expression} for moved in self.conditions
        ]
        faults = [compile_condition(moved.expression, rules, new=True).fault for moved in self.conditions]
        path = "webhook.matchConditions"
        by_path = {f"{path}[{index}].expression": fault for index, fault in enumerate(faults) if fault}
        texts_by_path = {f"{path}[{index}].expression": moved.expression for index, moved in enumerate(self.conditions)}

        def expressions(path: str) -> str:
            fault = by_path.get(path, "")
            return f"{path}: Invalid value: {quote(texts_by_path[path])}: {fault}" if fault else ""

        yield from condition_faults(path, documents, expressions)

    def _webhook_match(self) -> JsonObject:
        """The rules and selectors of the webhook, in the form of match constraints."""
        rules: list[Json] = [
            {key: value for key, value in as_object(rule).items() if key != "resourceNames"}
            for rule in as_list(dig(self._match, "resourceRules"))
        ]
        selectors = ("objectSelector",) if self._is_pinned else ("namespaceSelector", "objectSelector")
        return {"resourceRules": rules, **{name: dig(self._match, name) for name in selectors}}


def select_name(namespace: str) -> Selector:
    """The selector of a namespace by its name."""
    return Selector((Requirement(_NAME_LABEL, "In", (namespace,)),))


def compile_condition(text: str, version: Version, *, new: bool) -> Expression:
    """A match condition of a webhook in the environment of a release; `new` if the webhook is being written."""
    environment = cel.Environment(version=version, compatible=(version[0], version[1] - 1) if new else None)
    environment = environment.remove_variable("variables").extend(cel.AUTHORIZATION).require_results(cel.BOOL)
    return compile_expression(text, environment, {})


@lru_cache(maxsize=4096)
def _compiled(text: str, release: Minor) -> Expression:
    """A match condition as Kyverno compiles it, with the libraries of Kubernetes that it is built with."""
    return compile_condition(text.strip(), rules_of(release), new=True)


def _all_compile(conditions: Iterable[NamedExpression], release: Minor) -> bool:
    """Return whether Kyverno moves conditions: one that reads a function or a variable of Kyverno keeps all of them."""
    return all(
        not any(check_qualified_name(condition.name)) and _compiled(condition.expression, release).program is not None
        for condition in conditions
    )


def _reads_namespace(condition: NamedExpression, release: Minor) -> bool:
    return _compiled(condition.expression, release).reads("namespaceObject")


def _about(form: Policy) -> str:
    """The condition that an object is one of those of a form, in the words of Kyverno."""
    named = (
        (f"{group}/{version}" if group else version, kind_of(plural))
        for rule in _rules(form)
        for group, version in product(rule.api_groups, rule.api_versions)
        for plural in rule.resources
    )
    return " || ".join(
        sorted(f"(object.apiVersion == '{version}' && object.kind =='{kind}')" for version, kind in named)
    )


def _rules(form: Policy) -> tuple[Rule, ...]:
    return form.match.rules if form.match else ()


def _overlap(some: tuple[str, ...], others: tuple[str, ...]) -> bool:
    """Return whether two lists of resources have one in common."""
    plurals = [{resource.partition("/")[0] for resource in resources} for resources in (some, others)]
    return any("*" in of_list for of_list in plurals) or not plurals[0].isdisjoint(plurals[1])


def _in_order(rules: Iterable[Rule]) -> tuple[Rule, ...]:
    """Rules in the order in which Kyverno writes them (`sortedRules`)."""

    def place(rule: Rule) -> tuple[object, ...]:
        lists = (rule.api_groups, rule.api_versions, rule.resources, rule.operations)
        return (*((len(values), sorted(values)) for values in lists), rule.scope)

    return tuple(sorted(rules, key=place))
