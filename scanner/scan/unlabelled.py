"""The policies that the unknown labels of a namespace may decide about.

Files describe objects, and often not their namespaces: only the name label of such a namespace is known. Upstream: a
`namespaceSelector` of a policy or of a binding reads the labels of the object's namespace, and expressions read `namespaceObject`.
A policy is left out of the answer only if the name alone decides which namespaces it applies to, and no expression reads more than
the name.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final

from scanner.admission.dispatch import BoundPolicy
from scanner.model.outcome import Gap, GapKind
from scanner.model.policy import MatchResources, Operation, policy_label
from scanner.model.resource import NAMESPACES, Kind
from scanner.model.selector import Selector
from scanner.policies.bound_language import BoundLanguage
from scanner.posture.policy_kinds import may_match

_NAME_LABEL: Final = "kubernetes.io/metadata.name"
_OBJECT: Final = "namespaceObject"
_KNOWN: Final = ((_OBJECT, "metadata", "name"), (_OBJECT, "metadata", "labels", _NAME_LABEL))
_NAMED: Final = 3
_EVERYTHING: Final = "the namespaceObject"


def find_undecided(
    languages: Iterable[BoundLanguage],
    kinds_of: Mapping[str, Collection[Kind]],
    operations: tuple[Operation, ...],
) -> Iterator[tuple[BoundPolicy, Gap]]:
    """The bound policies that the labels of namespaces may decide about, each with its gap.

    `kinds_of` has the namespaces whose labels are not known, each with the kinds of its objects.
    """
    for language in languages if kinds_of else ():
        selectors = tuple(language.request_selectors())
        for bound in language.bound:
            own_paths = (path for _, expression in bound.compiled.expressions() for path in expression.paths)
            paths = (*own_paths, *language.other_paths(bound))
            reads_object = any(map(_reads_more_than_name, paths)) or _takes_namespaces(bound)
            reads = {
                namespace: labels
                for namespace, kinds in sorted(kinds_of.items())
                if bound.evaluates_namespace(namespace)
                and (
                    labels := tuple(
                        dict.fromkeys(
                            _find_read_labels(bound, selectors, namespace, kinds, operations, reads_object=reads_object)
                        )
                    )
                )
            }
            if reads:
                yield bound, make_policy_gap(bound, _explain(reads))


def _find_read_labels(
    bound: BoundPolicy,
    selectors: Iterable[Selector],
    namespace: str,
    kinds: Collection[Kind],
    operations: tuple[Operation, ...],
    *,
    reads_object: bool,
) -> Iterator[str]:
    """The labels of a namespace, or the namespaceObject, that decide about its objects and are not known."""
    known_labels = {_NAME_LABEL: namespace}
    policy = bound.policy
    if bound.reading.reason or policy.match is None or not policy.match.rules:
        return
    if not _may_apply(policy.match, known_labels, kinds, operations):
        return
    narrowed = [binding for binding in bound.bindings if _may_apply(binding.match, known_labels, kinds, operations)]
    if not narrowed:
        return
    of_bindings = (binding.match.namespace_selector for binding in narrowed if binding.match)
    for selector in (*selectors, policy.match.namespace_selector, *of_bindings):
        yield from selector.list_undecided_keys(known_labels)
    yield from (key for key in bound.covered.keys if key not in known_labels) if bound.covered else ()
    if reads_object:
        yield _EVERYTHING


def _takes_namespaces(bound: BoundPolicy) -> bool:
    """Return whether the params of a policy are Namespaces."""
    kind = bound.policy.param_kind
    return kind is not None and (kind.api_version, kind.kind) == (NAMESPACES.api_version, NAMESPACES.kind)


def _may_apply(
    match: MatchResources | None,
    known_labels: Mapping[str, str],
    kinds: Collection[Kind],
    operations: tuple[Operation, ...],
) -> bool:
    """Return whether a policy or a binding may match an object of some kinds in a namespace."""
    if match is None:
        return True
    may_match_kind = not match.rules or any(
        may_match(match.rules, kind.group, kind.kind, plurals=(kind.plural,), operations=operations) for kind in kinds
    )
    return may_match_kind and _may_select(match.namespace_selector, known_labels)


def _may_select(selector: Selector, known_labels: Mapping[str, str]) -> bool:
    """Return whether a selector matches the labels of a namespace, or may match them."""
    return bool(selector.find_fault() or selector.list_undecided_keys(known_labels)) or selector.matches(known_labels)


def _reads_more_than_name(path: tuple[str, ...]) -> bool:
    return path[:1] == (_OBJECT,) and not any(path[: len(known_path)] == known_path for known_path in _KNOWN)


def _explain(reads: Mapping[str, tuple[str, ...]]) -> str:
    """The reason and the remedy, for the namespaces and what the policy reads of each."""
    names = [*reads]
    keys = [*dict.fromkeys(key for of_namespace in reads.values() for key in of_namespace)]
    labels = [key for key in keys if key != _EVERYTHING]
    read_texts = _write_names([f"the label {key}" for key in labels] + [key for key in keys if key == _EVERYTHING])
    example = f"{names[0]}={labels[0] if labels else 'KEY'}=VALUE"
    several = "s" if len(names) > 1 else ""
    return (
        f"it depends on {read_texts} of the namespace{several} {_write_names(names)}, which no file describes: "
        f"add the Namespace{several} to the files, or pass --namespace-label {example}"
    )


def _write_names(names: list[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more


# Gaps that concern one policy.


def make_policy_gap(bound: BoundPolicy, why: str) -> Gap:
    """The gap of a policy that Assay cannot evaluate correctly, for a reason."""
    return Gap(GapKind.EVALUATION, policy_label(bound.policy.key), why)
