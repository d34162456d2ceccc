"""The third promise, only seeing fixes: the findings that a scan may resolve.

A scan resolves a finding only if it would have found it again, if it read all policies and the finding's is not bound any more, or if
the cluster does not serve the finding's kind any more. Findings in excluded, forbidden, incomplete or unevaluated
parts stay open. Kinds are compared by group and kind, because all versions of a group serve the same objects; if a scan
listed several versions of a kind, all of them must be complete.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase

from scanner.model.outcome import CheckKind, Gap, GapKind
from scanner.model.policy import BindingKey, PolicyKey
from scanner.model.population import GroupKind
from scanner.model.scan import Coverage, CoverageState, ScanEnd, ScanState, Scope
from scanner.posture.causes import Coordinates, coordinates_of


@dataclass(frozen=True, slots=True)
class UnseenFinding:
    """An open finding that a scan did not find. `check` is the kind of its check."""

    language: str
    policy: str
    binding: str
    param_namespace: str
    param_name: str
    api_version: str
    kind: str
    namespace: str
    name: str
    check: str = CheckKind.VALIDATION

    @property
    def coordinates(self) -> Coordinates:
        """The parts of a decision that concern this finding."""
        invocation = self.language, self.policy, self.binding, self.param_namespace, self.param_name
        return coordinates_of(invocation, self.check, (self.api_version, self.kind, self.namespace, self.name))


@dataclass(frozen=True, slots=True)
class Reach:
    """The reach of a scan. `kinds` are the (group, kind) that were listed without any gap.

    `unread` are the documents that could not be read: any object may be in one of them. A finding of an earlier scan that could
    read them may be fixed, or hidden in such a document. `languages` are those of which every policy and binding was read, and
    `read` is what was read. `served` are the kinds that the cluster serves, empty if discovery was not complete.
    """

    nothing: bool
    scope: Scope
    policies: frozenset[PolicyKey]
    bindings: frozenset[BindingKey]
    kinds: frozenset[GroupKind]
    unread: frozenset[str] = frozenset()
    languages: frozenset[str] = frozenset()
    read: frozenset[PolicyKey | BindingKey] = frozenset()
    served: frozenset[GroupKind] = frozenset()

    def reaches(self, missing: UnseenFinding) -> bool:
        """Return whether the scan would have found the finding again, or saw that its kind is not served any more."""
        if self.nothing:
            return False
        if self.unserved(missing.api_version, missing.kind):
            return self._selects_rules(missing) and self._reaches_namespace(
                missing.api_version, missing.kind, missing.namespace, missing.name
            )
        if (_group(missing.api_version), missing.kind) not in self.kinds:
            return False
        policy = missing.language, missing.policy
        if policy not in self.policies or (*policy, missing.binding) not in self.bindings:
            return False
        return self._selects_rules(missing) and self._reaches_namespace(
            missing.api_version, missing.kind, missing.namespace, missing.name
        )

    def unbinds(self, missing: UnseenFinding) -> bool:
        """Return whether the policy or the binding of a finding, within the scope of this scan, does not exist any more."""
        if self.nothing or self.unread or missing.language not in self.languages:
            return False
        if {missing.coordinates.policy_key, missing.coordinates.binding_key} <= self.read:
            return False
        if (self.scope.kinds or self.scope.skip_kinds) and (
            _group(missing.api_version),
            missing.kind,
        ) not in self.kinds:
            return False
        return self._selects_rules(missing) and self._reaches_namespace(
            missing.api_version, missing.kind, missing.namespace, missing.name
        )

    def unserved(self, api_version: str, kind: str) -> bool:
        """Return whether the cluster does not serve a kind any more: all of its objects are gone."""
        if self.nothing or self.unread or self.scope.kinds or not self.served:
            return False
        return (_group(api_version), kind) not in self.served

    def lists(self, api_version: str, kind: str, namespace: str, name: str) -> bool:
        """Return whether the scan would have listed an object if it existed."""
        if self.nothing or self.unread:
            return False
        if (_group(api_version), kind) not in self.kinds and not self.unserved(api_version, kind):
            return False
        return self._reaches_namespace(api_version, kind, namespace, name)

    def selects(self, finding: UnseenFinding) -> bool:
        """Return whether a finding is in the scope of the scan, whatever the scan could list. Labels of its object are not known."""
        if self.scope.selector or not self._selects_rules(finding):
            return False
        return self._reaches_namespace(finding.api_version, finding.kind, finding.namespace, finding.name)

    def _selects_rules(self, missing: UnseenFinding) -> bool:
        return _selects(missing.policy, self.scope.policies) and _selects(missing.binding, self.scope.bindings)

    def _reaches_namespace(self, api_version: str, kind: str, namespace: str, name: str) -> bool:
        if not _selects(namespace, self.scope.namespaces):
            return False
        # The exclusion of a namespace also excludes the Namespace object of that name.
        home = name if (api_version, kind) == ("v1", "Namespace") else namespace
        return not any(fnmatchcase(home, pattern) for pattern in self.scope.exclude_namespaces)


def reach_of(
    scope: Scope,
    bindings: Iterable[BindingKey],
    end: ScanEnd,
    gaps: Iterable[Gap],
    policies: Iterable[PolicyKey] = (),
    *,
    nothing: bool = False,
) -> Reach:
    """The reach of a scan with this scope, these policies and bindings, in force or not, and this end.

    A scan that reaches `nothing` resolves nothing.
    """
    gaps, bindings = tuple(gaps), frozenset(bindings)
    return Reach(
        nothing=nothing or end.state is ScanState.FAILED or bool(scope.selector),
        scope=scope,
        policies=frozenset(end.evaluated_policies),
        bindings=bindings,
        kinds=_complete_kinds(end.coverage, gaps),
        unread=frozenset(gap.where for gap in gaps if gap.kind is GapKind.DOCUMENT),
        languages=frozenset(end.read_languages),
        read=bindings.union(policies),
        served=end.served,
    )


def listing_reach(scope: Scope, coverage: Iterable[Coverage], gaps: Iterable[Gap]) -> Reach:
    """The reach of a stored scan, of which `lists` alone may be asked."""
    gaps = tuple(gaps)
    return Reach(
        nothing=bool(scope.selector),
        scope=scope,
        policies=frozenset(),
        bindings=frozenset(),
        kinds=_complete_kinds(coverage, gaps),
        unread=frozenset(gap.where for gap in gaps if gap.kind is GapKind.DOCUMENT),
    )


def _complete_kinds(coverage: Iterable[Coverage], gaps: tuple[Gap, ...]) -> frozenset[GroupKind]:
    listed: dict[GroupKind, bool] = {}
    for line in coverage:
        key = (_group(line.api_version), line.kind)
        complete = line.state is CoverageState.LISTED and not any(_concerns(gap, line) for gap in gaps)
        listed[key] = listed.get(key, True) and complete
    return frozenset(key for key, complete in listed.items() if complete)


def _concerns(gap: Gap, line: Coverage) -> bool:
    """Return whether a gap concerns a kind or its objects: `where` begins with apiVersion/Kind."""
    kind = f"{line.api_version}/{line.kind}"
    return gap.where.startswith(kind) and not gap.where[len(kind) : len(kind) + 1].isalnum()


def _selects(name: str, patterns: tuple[str, ...]) -> bool:
    return not patterns or any(fnmatchcase(name, pattern) for pattern in patterns)


def _group(api_version: str) -> str:
    return api_version.rpartition("/")[0]
