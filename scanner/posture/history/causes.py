"""The changes between two scans of everything that decides about one finding.

Without a change that may decide besides the object, a finding that is gone was fixed. Otherwise nothing is known about the
object: its rules changed. A text, as the message of a check, changes a finding that is open and decides nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeAlias, TypeVar

from scanner.model.json import EMPTY, Json, JsonObject, as_list, as_object, as_text, dig, text_map
from scanner.model.outcome import CheckKind
from scanner.model.policy import Binding, BindingKey, ParamKind, ParamRef, Policy, PolicyKey
from scanner.model.release import have_same_minor
from scanner.model.rule import RuleObject, RuleType
from scanner.model.scans.cause import CauseKind
from scanner.posture.history.namespace_keys import EVERY

_Key = TypeVar("_Key")
Invoked: TypeAlias = tuple[str, str, str, str, str]
"""Language, policy, binding, and namespace and name of the param of an invocation."""
RULES: Final = frozenset(
    {CauseKind.POLICY, CauseKind.BINDING, CauseKind.PARAM, CauseKind.EXCEPTION, CauseKind.NAMESPACE}
)
"""The kinds of rules that the digest of a policy set covers."""


@dataclass(frozen=True, slots=True)
class Circumstances:
    """All that decides in one scan besides objects. Values are digests or versions; equal ones mean the same decisions.

    `sources` are where the policies were read: a scan of other sources does not show that a policy was deleted. `of_files` tells
    that the objects were those of files, `kyverno` is the release of Kyverno, empty if it is not known. `namespace_keys` returns the labels and annotations of namespaces that a policy and its
    bindings read (see `namespace_keys`): by default, every one. `policy` and `binding` return what was recorded, or None.
    """

    policies: Mapping[PolicyKey, str]
    bindings: Mapping[BindingKey, str]
    rules: tuple[RuleObject, ...]
    server: str
    assay: str
    options: tuple[str, ...]
    sources: tuple[str, ...] = ()
    of_files: bool = False
    kyverno: str = ""
    namespace_keys: Callable[[PolicyKey], frozenset[str]] = field(default=lambda _: frozenset({EVERY}), compare=False)
    policy: Callable[[PolicyKey], Policy | None] = field(default=lambda _: None, compare=False)
    binding: Callable[[BindingKey], Binding | None] = field(default=lambda _: None, compare=False)

    def list_keys_in_force(self) -> frozenset[str]:
        """The labels and annotations of namespaces that any bound policy reads."""
        bound = {(language, policy) for language, policy, _ in self.bindings}.intersection(self.policies)
        return frozenset[str]().union(*map(self.namespace_keys, bound))


class Coordinates(NamedTuple):
    """The parts of a decision that concern one finding. `check` is the kind of its check.

    `params_in` is the namespace in which a configuration without a param looks for params: that of the request, which for a
    Namespace has its own name. It is empty for other findings.
    """

    language: str
    policy: str
    binding: str
    param_namespace: str
    param_name: str
    namespace: str
    check: CheckKind = CheckKind.VALIDATION
    params_in: str = ""

    @property
    def invocation(self) -> Invoked:
        """The invocation."""
        return self[:5]

    @property
    def policy_key(self) -> PolicyKey:
        """The policy."""
        return self.language, self.policy

    @property
    def binding_key(self) -> BindingKey:
        """The binding."""
        return self.language, self.policy, self.binding

    @property
    def param(self) -> str:
        """The place of the param, as names of rule objects end; empty without a param."""
        return "/".join(filter(None, (self.param_namespace, self.param_name))) if self.param_name else ""

    @property
    def lacks_param(self) -> bool:
        """Return whether the finding is an error of a configuration without a param: it may be missing."""
        return self.check is CheckKind.CONFIGURATION and not self.param_name


def coordinates_of(invocation: Invoked, check: str, place: tuple[str, str, str, str]) -> Coordinates:
    """The coordinates of a finding, by its invocation, the kind of its check, and its object.

    `invocation` is language, policy, binding, and namespace and name of the param; `place` is API version, kind, namespace and name.
    """
    api_version, kind, namespace, name = place
    coordinates = Coordinates(*invocation, namespace, CheckKind(check))
    if not coordinates.lacks_param:
        return coordinates
    return coordinates._replace(params_in=name if (api_version, kind) == ("v1", "Namespace") else namespace)


class CircumstanceChanges:
    """The changes between two scans besides objects. The cost of a question does not depend on the number of rules."""

    def __init__(self, before: Circumstances, now: Circumstances) -> None:
        """Compare all parts once. `policies` and `bindings` are those that differ.

        `namespaces` has the labels and annotations that differ, by the name of the namespace. A label that no policy read
        before was not recorded then, so nothing is known of it.
        """
        self.before, self.now = before, now
        self.policies: Final = _find_differing(before.policies, now.policies)
        self.bindings: Final = _find_differing(before.bindings, now.bindings)
        self._rules = _group_by_type(before.rules), _group_by_type(now.rules)
        self._params = self._find_differing_rules(RuleType.PARAM)
        self._exceptions = self._find_differing_rules(RuleType.EXCEPTION)
        self._configurations = self._find_differing_rules(RuleType.CONFIGURATION)
        self._contexts = bool(self._find_differing_rules(RuleType.GLOBAL_CONTEXT))
        self._concerned: dict[tuple[PolicyKey, str], bool] = {}
        self._decisive: dict[tuple[PolicyKey | BindingKey, CheckKind], bool] = {}
        self._missable: dict[tuple[BindingKey, str], bool] = {}
        self.namespaces: Final = dict(self._find_differing_namespaces())
        everywhere = {
            CauseKind.SERVER: before.server != now.server,
            CauseKind.KYVERNO: bool(before.kyverno and now.kyverno) and before.kyverno != now.kyverno,
            CauseKind.ASSAY: before.assay != now.assay,
            CauseKind.OPTIONS: before.options != now.options,
        }
        self._everywhere = tuple(kind for kind, differs in everywhere.items() if differs)

    @property
    def kinds(self) -> tuple[CauseKind, ...]:
        """The kinds of changes for any finding, in the order of `CauseKind`."""
        parts = {
            CauseKind.POLICY: self.policies,
            CauseKind.BINDING: self.bindings,
            CauseKind.PARAM: self._params,
            CauseKind.EXCEPTION: self._contexts or self._exceptions or self._configurations,
            CauseKind.NAMESPACE: self.namespaces,
        }
        return (*(kind for kind, differs in parts.items() if differs), *self._everywhere)

    @property
    def rules_changed(self) -> bool:
        """Return whether any part differs for any finding."""
        return bool(self.kinds)

    def list_changes(self, finding: Coordinates) -> tuple[CauseKind, ...]:
        """The kinds of changes for a finding, in the order of `CauseKind`."""
        kinds = (*self._list_rule_changes(finding), *self._everywhere)
        if CauseKind.KYVERNO not in kinds:
            return kinds
        # The bindings of Kyverno's policies are no objects: those of autogen variants follow from the policy and the release.
        excluded = CauseKind.BINDING if is_kyvernos(finding.language) else CauseKind.KYVERNO
        return tuple(kind for kind in kinds if kind is not excluded)

    def list_deciding(self, finding: Coordinates) -> tuple[CauseKind, ...]:
        """The changes that may decide whether there is a finding, in the order of `CauseKind`: not those of texts."""
        return tuple(kind for kind in self.list_changes(finding) if self._decides(kind, finding))

    def invokes(self, finding: Coordinates) -> bool:
        """Return whether the newer scan can have the invocation of a finding: with its param, or without any."""
        earlier, later = self._references(finding)
        if finding.param:
            params = self._rules[1][RuleType.PARAM].get(finding.param, ())
            if later is None:
                return bool(params) and earlier is None
            return any(later.selects(param, finding.param_namespace) for param in params)
        if finding.lacks_param:
            return earlier == later and not self._params_differ(finding)
        return later is None

    def refers_to_params(self, finding: Coordinates) -> bool:
        """Return whether a finding is an error of a configuration that lacks a param to which its binding refers."""
        return finding.lacks_param and any(self._references(finding))

    def lacks_configuration(self, finding: Coordinates) -> bool:
        """Return whether only the earlier scan knew the configuration of the language of a finding: this one can decide nothing."""
        before, now = (rules[RuleType.CONFIGURATION] for rules in self._rules)
        return finding.language in before and finding.language not in now

    def renames_binding(self, before: BindingKey, now: BindingKey) -> bool:
        """Return whether a binding is new, and has the content of one that is gone."""
        earlier, later = self.before.bindings, self.now.bindings
        gone = before in earlier and before not in later
        return gone and now in later and now not in earlier and earlier[before] == later[now]

    def renames_param(self, before: str, now: str) -> bool:
        """Return whether a param, by its place, is new, and has the content of one that is gone."""
        earlier, later = (rules[RuleType.PARAM] for rules in self._rules)
        gone = before in earlier and before not in later
        return gone and now in later and now not in earlier and _contents(earlier[before]) == _contents(later[now])

    def _list_rule_changes(self, finding: Coordinates) -> Iterator[CauseKind]:
        if finding.policy_key in self.policies:
            yield CauseKind.POLICY
        if finding.binding_key in self.bindings:
            yield CauseKind.BINDING
        if self._params_differ(finding) and self._compares_param(finding):
            yield CauseKind.PARAM
        if self._contexts or finding.policy in self._exceptions or finding.language in self._configurations:
            yield CauseKind.EXCEPTION
        if finding.namespace in self.namespaces and self._reads_namespace(finding.policy_key, finding.namespace):
            yield CauseKind.NAMESPACE

    def _decides(self, kind: CauseKind, finding: Coordinates) -> bool:
        match kind:
            case CauseKind.POLICY:
                return self._rule_decides(finding.policy_key, finding.check)
            case CauseKind.BINDING:
                return self._rule_decides(finding.binding_key, finding.check)
            case CauseKind.SERVER:
                return patch_decides(finding.language) or not have_same_minor(self.before.server, self.now.server)
            case _:
                return True

    def _rule_decides(self, key: PolicyKey | BindingKey, check: CheckKind) -> bool:
        """Return whether a policy or a binding that differs may decide another verdict of a kind of check."""
        place = key, check
        if place not in self._decisive:
            before, now = (_manifest(scan, key) for scan in (self.before, self.now))
            self._decisive[place] = not differ_in_texts_alone(key[0], before, now, check)
        return self._decisive[place]

    def _references(self, finding: Coordinates) -> tuple[ParamReference | None, ParamReference | None]:
        """The params to which the binding of a finding refers, before and now."""
        before, now = (
            reference_of(scan.policy(finding.policy_key), scan.binding(finding.binding_key))
            for scan in (self.before, self.now)
        )
        return before, now

    def _params_differ(self, finding: Coordinates) -> bool:
        """Return whether the param of a finding differs, or, without one, a param that it can miss."""
        if not finding.lacks_param:
            return finding.param in self._params
        place = finding.binding_key, finding.params_in
        if place not in self._missable:
            references = [reference for reference in self._references(finding) if reference]
            self._missable[place] = any(
                reference.selects(param, finding.params_in)
                for reference in references
                for name in self._params
                for rules in self._rules
                for param in rules[RuleType.PARAM].get(name, ())
            )
        return self._missable[place]

    def _reads_namespace(self, policy: PolicyKey, namespace: str) -> bool:
        """Return whether a policy reads a label or an annotation of a namespace that differs."""
        place = policy, namespace
        if place not in self._concerned:
            reads = self.before.namespace_keys(policy) | self.now.namespace_keys(policy)
            self._concerned[place] = bool(_intersect(reads, self.namespaces[namespace]))
        return self._concerned[place]

    def _find_differing_namespaces(self) -> Iterator[tuple[str, frozenset[str]]]:
        names = self._find_differing_rules(RuleType.NAMESPACE_LABELS)
        if not names:
            return
        known = _intersect(self.before.list_keys_in_force(), self.now.list_keys_in_force())
        before, now = (rules[RuleType.NAMESPACE_LABELS] for rules in self._rules)
        for name in names:
            differing = _intersect(_find_differing_keys(before.get(name, ()), now.get(name, ())), known)
            if differing:
                yield name, differing

    def _compares_param(self, finding: Coordinates) -> bool:
        """Return whether both scans can have a param: one without policy or binding had no reason to read the param."""
        if finding.param and all(finding.param in rules[RuleType.PARAM] for rules in self._rules):
            return True
        scans = self.before, self.now
        return all(finding.policy_key in scan.policies and finding.binding_key in scan.bindings for scan in scans)

    def _find_differing_rules(self, kind: RuleType) -> frozenset[str]:
        before, now = ({key: _identities(rules) for key, rules in each[kind].items()} for each in self._rules)
        return _find_differing(before, now)


def _manifest(scan: Circumstances, key: PolicyKey | BindingKey) -> JsonObject:
    match key:
        case (language, policy):
            rule: Policy | Binding | None = scan.policy((language, policy))
        case (language, policy, binding):
            rule = scan.binding((language, policy, binding))
    return rule.manifest if rule else EMPTY


_Rules = Mapping[RuleType, Mapping[str, list[RuleObject]]]


def _group_by_type(rules: tuple[RuleObject, ...]) -> _Rules:
    """The rules by type, and by what a finding must have for them to concern it: a param's place, a policy, a namespace."""
    sorted_rules: dict[RuleType, defaultdict[str, list[RuleObject]]] = {kind: defaultdict(list) for kind in RuleType}
    for rule in rules:
        for key in _list_concerned(rule):
            sorted_rules[rule.type][key].append(rule)
    return sorted_rules


def _list_concerned(rule: RuleObject) -> Collection[str]:
    match rule.type:
        case RuleType.PARAM:
            # Two kinds of params may have one name: a policy reads one of them.
            return (rule.name.rpartition(" ")[2],)
        case RuleType.EXCEPTION:
            references = as_list(dig(rule.document, "spec", "policyRefs"))
            return {as_text(dig(reference, "name")) for reference in references}
        case _:
            return (rule.name,)


def _identities(rules: Collection[RuleObject]) -> frozenset[tuple[str, str]]:
    """Names and digests; with the names, because two objects may have equal content."""
    return frozenset((rule.name, rule.digest) for rule in rules)


def _find_differing_keys(before: Collection[RuleObject], now: Collection[RuleObject]) -> frozenset[str]:
    """The labels and annotations of a namespace that differ; every one if a part of them is withheld."""
    if any(rule.masked for rule in (*before, *now)):
        return frozenset({EVERY})
    return _find_differing(*(_texts(rules) for rules in (before, now))) or frozenset({EVERY})


def _texts(rules: Collection[RuleObject]) -> dict[str, Json]:
    return {
        f"{part}/{key}": value
        for rule in rules
        for part in ("labels", "annotations")
        for key, value in as_object(dig(rule.document, "metadata", part)).items()
    }


def _intersect(first: frozenset[str], second: frozenset[str]) -> frozenset[str]:
    """The keys that both sets have, of which one may have every key."""
    if EVERY in first:
        return second
    return first if EVERY in second else first & second


_NAMED: Final = frozenset({"name", "namespace"})


def _contents(rules: Collection[RuleObject]) -> list[JsonObject]:
    """The content of rule objects besides their names."""
    return [
        {
            **rule.document,
            "metadata": {
                key: value for key, value in as_object(dig(rule.document, "metadata")).items() if key not in _NAMED
            },
        }
        for rule in rules
    ]


def _find_differing(before: Mapping[_Key, object], now: Mapping[_Key, object]) -> frozenset[_Key]:
    return frozenset(key for key in before.keys() | now.keys() if before.get(key) != now.get(key))


# The changes of a rule that may decide another verdict: each policy language knows which parts of its rules are
# texts.
#
# The manifests of both scans are compared as this version reads them, and no stored digest: so scans of every version
# are compared by the same rules.
#
# Rules: `docs/adr/0047-texts-decide-nothing.md`.


def differ_in_texts_alone(language: str, before: JsonObject, now: JsonObject, check: CheckKind) -> bool:
    """Return whether two manifests of a policy or of a binding differ in parts that decide about no check of a kind.

    Without a difference nothing is known: a digest that was recorded without its manifest may have changed.
    """
    # Languages bring the compiler of expressions, which is needed only if a rule differs.
    from scanner.policies.language import select_deciding  # noqa: PLC0415

    specs = [as_object(dig(manifest, "spec")) for manifest in (before, now)]
    if not all(specs) or specs[0] == specs[1]:
        return False
    earlier, later = (select_deciding(language, spec, check) for spec in specs)
    return earlier == later


def is_kyvernos(language: str) -> bool:
    """Return whether the release of Kyverno may decide verdicts of a language's policies."""
    from scanner.policies.language import is_kyvernos as decides  # noqa: PLC0415 -- see above

    return decides(language)


def patch_decides(language: str) -> bool:
    """Return whether a patch release of the API server may decide other verdicts of a language's policies."""
    from scanner.policies.language import patch_decides as decides  # noqa: PLC0415 -- see above

    return decides(language)


# The params that a binding refers to, among the rule objects of a scan.
#
# Source of truth: `generic.CollectParams` of kube-apiserver 1.36, as in `admission.params`: a reference without a
# namespace looks in that of the request.


@dataclass(frozen=True, slots=True)
class ParamReference:
    """The reference of a binding to params of a kind."""

    kind: ParamKind
    reference: ParamRef

    def selects(self, param: RuleObject, namespace: str) -> bool:
        """Return whether this refers to a param, for a request in a namespace. Withheld labels may be any."""
        kind, _, place = param.name.rpartition(" ")
        where, _, name = place.rpartition("/")
        group = self.kind.api_version.rpartition("/")[0]
        if kind != "/".join(filter(None, (group, self.kind.kind))):
            return False
        if where and where != (self.reference.namespace or namespace):
            return False
        if self.reference.name:
            return name == self.reference.name
        selector = self.reference.selector
        if selector is None or selector.find_fault():
            return False
        return param.masked or selector.matches(text_map(dig(param.document, "metadata", "labels")))


def reference_of(policy: Policy | None, binding: Binding | None) -> ParamReference | None:
    """The params to which a binding refers; None if its policy is evaluated without params, or one of both is not known."""
    if policy is None or binding is None or policy.param_kind is None or binding.param_ref is None:
        return None
    return ParamReference(policy.param_kind, binding.param_ref)
