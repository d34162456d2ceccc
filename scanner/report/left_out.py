"""What the user left out of a scan, of all that its bound policies can match: a complete scan is complete without it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from scanner.model.method import Method
from scanner.model.scan import Coverage, CoverageState, Scope
from scanner.posture.policy_kinds import plural_of
from scanner.report.words import listed, plural

_NAMED: Final = 5
"""The kinds that are named. Rules that match all kinds can leave out hundreds."""
_OTHER_OPERATION: Final = {"create": "UPDATE requests", "update": "CREATE requests"}


def left_out_of(scope: Scope, coverage: Iterable[Coverage], method: Method | None) -> tuple[str, ...]:
    """What the options of a scan left out, each part as a noun: `Ingresses`, `all namespaces but shop`; nothing for a whole scan."""
    return tuple(_parts(scope, coverage, method))


def _parts(scope: Scope, coverage: Iterable[Coverage], method: Method | None) -> Iterator[str]:
    # Kinds come first: after the names of namespaces they would look like these.
    yield from _kinds(line.kind for line in coverage if line.state is CoverageState.SKIPPED)
    if scope.namespaces:
        yield f"all namespaces but {listed(scope.namespaces)}"
    if scope.exclude_namespaces:
        yield f"{_noun('namespace', scope.exclude_namespaces)} {listed(scope.exclude_namespaces)}"
    if scope.policies:
        yield f"all policies but {listed(scope.policies)}"
    if scope.bindings:
        yield f"all bindings but {listed(scope.bindings)}"
    if method and method.without_cluster_policies:
        yield "the policies of the cluster"
    if scope.selector:
        yield f"objects that {scope.selector} does not select"
    if other := _OTHER_OPERATION.get(scope.operation):
        yield other


def _kinds(names: Iterable[str]) -> Iterator[str]:
    """The kinds that bound policies can match but that the scan did not list, in the plural."""
    kinds = sorted({_plural(name) for name in names})
    yield from kinds[:_NAMED]
    if len(kinds) > _NAMED:
        yield plural(len(kinds) - _NAMED, "more kind")


def _noun(noun: str, names: tuple[str, ...]) -> str:
    return noun if len(names) == 1 and "*" not in names[0] else f"{noun}s"


def _plural(kind: str) -> str:
    """The plural of the name of a kind: `Ingresses`, `NetworkPolicies`."""
    resource = plural_of(kind)
    return f"{kind}{resource[len(kind) :]}" if resource.startswith(kind.lower()) else f"{kind[:-1]}ies"
