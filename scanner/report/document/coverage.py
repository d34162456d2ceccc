"""The coverage of a scan: how far each kind was listed, the gaps in words, what the user left out, and what no policy needs.

Kinds that the user excluded are no gaps; all other kinds that were not listed completely are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from scanner.model.outcome import Gap, GapKind
from scanner.model.scans.method import Method
from scanner.model.scans.out_of_scope import LEGACY_ENDING, OutOfScope, Unneeded
from scanner.model.scans.scan import Coverage, CoverageState, ScanRecord, ScanState, Scope
from scanner.posture.policy_kinds import plural_of
from scanner.report.text.numbers import join_texts, plural

_INCOMPLETE = {
    CoverageState.PARTIAL: "listed only partly",
    CoverageState.INCONSISTENT: "listed, but its pages show different moments",
    CoverageState.FORBIDDEN: "no permission to list",
    CoverageState.FAILED: "could not be listed",
}
_MISSED = {
    GapKind.DISCOVERY: "an API group could not be discovered",
    GapKind.LIST: "a list was not complete",
    GapKind.DOCUMENT: "a document could not be read",
    GapKind.OBJECT: "an object could not be read",
    GapKind.CONVERSION: "an object could not be converted",
    GapKind.EVALUATION: "an object or a policy could not be evaluated",
}
_MISSED_SEVERAL = {
    GapKind.DISCOVERY: "API groups could not be discovered",
    GapKind.LIST: "lists were not complete",
    GapKind.DOCUMENT: "documents could not be read",
    GapKind.OBJECT: "objects could not be read",
    GapKind.CONVERSION: "objects could not be converted",
    GapKind.EVALUATION: "objects or policies could not be evaluated",
}


_NAMED = 3


@dataclass(frozen=True, slots=True)
class CoverageSection:
    """The coverage of a scan.

    `kinds` has a line for every kind that a bound policy can match; `objects` and `evaluated` are their sums. `unseen`
    describes every gap, and is empty only when there is none.
    """

    kinds: tuple[Coverage, ...]
    states: dict[str, int]
    objects: int
    evaluated: int
    unseen: tuple[str, ...]


def coverage_of(record: ScanRecord) -> CoverageSection:
    """The coverage of a scan, incomplete kinds first."""
    states = Counter(line.state for line in record.coverage)
    return CoverageSection(
        kinds=tuple(sorted(record.coverage, key=_sort_key)),
        states={str(state): states[state] for state in CoverageState},
        objects=sum(line.objects for line in record.coverage),
        evaluated=sum(line.evaluated for line in record.coverage),
        unseen=(*ending_of(record.scan.state), *_list_unlisted(record.coverage), *_list_missed(record)),
    )


def percent_listed(record: ScanRecord) -> float:
    """The percentage (0 to 100) of the kinds in scope that were listed completely, at one moment; 100 without kinds."""
    states = [line.state for line in record.coverage if line.state is not CoverageState.SKIPPED]
    return 100 * states.count(CoverageState.LISTED) / len(states) if states else 100.0


def beyond_kinds(record: ScanRecord) -> tuple[Gap, ...]:
    """The gaps that do not concern one kind alone: groups, policies, documents, the end of the scan."""
    kinds = tuple(f"{line.api_version}/{line.kind}" for line in record.coverage)
    return tuple(gap for gap in record.gaps if not gap.where.startswith(kinds))


def _sort_key(line: Coverage) -> tuple[bool, bool, str, str]:
    return line.state not in _INCOMPLETE, line.state is not CoverageState.SKIPPED, line.kind, line.api_version


def ending_of(state: ScanState) -> Iterable[str]:
    """The reason why a scan has no usable end, if there is one."""
    if state is ScanState.FAILED:
        yield "the scan failed before its end"
    if state is ScanState.RUNNING:
        yield "the scan is still running"


def _list_unlisted(coverage: Iterable[Coverage]) -> Iterable[str]:
    yield from filter(None, map(unlisted_text, sorted(coverage, key=_sort_key)))


def unlisted_text(line: Coverage) -> str:
    """The reason why a kind was not listed completely, after its name; empty for a kind that was, or that was left out."""
    state = _INCOMPLETE.get(line.state)
    return f"{line.kind} ({line.api_version}): {state}{f', {line.note}' if line.note else ''}" if state else ""


def _list_missed(record: ScanRecord) -> Iterable[str]:
    """Name the gaps of each kind if they are few, else count them, without those that the coverage states already."""
    stated = {f"{line.api_version}/{line.kind}" for line in record.coverage if line.state in _INCOMPLETE}
    gaps = sorted(gap for gap in record.gaps if gap.kind is not GapKind.LIST or gap.where not in stated)
    for kind in GapKind:
        of_kind = [gap for gap in gaps if gap.kind is kind]
        if len(of_kind) > _NAMED:
            yield f"{len(of_kind):,} {_MISSED_SEVERAL[kind]}"
        else:
            yield from (f"{_MISSED[kind]}: {gap.where}: {gap.why}" for gap in of_kind)


# The parts that the user left out of a scan, of all that its bound policies can match: a complete scan is complete without it.

_NAMED_KINDS: Final = 5
"""The kinds that are named. Rules that match all kinds can leave out hundreds."""
_OTHER_OPERATION: Final = {"create": "UPDATE requests", "update": "CREATE requests"}


def left_out_of(scope: Scope, coverage: Iterable[Coverage], method: Method | None) -> tuple[str, ...]:
    """The parts that the options of a scan left out, each as a noun: `Ingresses`, `all namespaces but shop`; nothing for a whole scan."""
    return tuple(_parts(scope, coverage, method))


def _parts(scope: Scope, coverage: Iterable[Coverage], method: Method | None) -> Iterator[str]:
    # Kinds come first: after the names of namespaces they would look like these.
    yield from _list_kinds_left_out(line.kind for line in coverage if line.state is CoverageState.SKIPPED)
    if scope.namespaces:
        yield f"all namespaces but {join_texts(scope.namespaces)}"
    if scope.exclude_namespaces:
        yield f"{_noun('namespace', scope.exclude_namespaces)} {join_texts(scope.exclude_namespaces)}"
    if scope.policies:
        yield f"all policies but {join_texts(scope.policies)}"
    if scope.bindings:
        yield f"all bindings but {join_texts(scope.bindings)}"
    if method and method.without_cluster_policies:
        yield "the policies of the cluster"
    if scope.selector:
        yield f"objects that {scope.selector} does not select"
    if other := _OTHER_OPERATION.get(scope.operation):
        yield other


def _list_kinds_left_out(names: Iterable[str]) -> Iterator[str]:
    """The kinds that bound policies can match but that the scan did not list, in the plural."""
    kinds = sorted({_plural_of(name) for name in names})
    yield from kinds[:_NAMED_KINDS]
    if len(kinds) > _NAMED_KINDS:
        yield plural(len(kinds) - _NAMED_KINDS, "more kind")


def _noun(noun: str, names: tuple[str, ...]) -> str:
    return noun if len(names) == 1 and "*" not in names[0] else f"{noun}s"


def _plural_of(kind: str) -> str:
    """The plural of the name of a kind: `Ingresses`, `NetworkPolicies`."""
    resource = plural_of(kind)
    return f"{kind}{resource[len(kind) :]}" if resource.startswith(kind.lower()) else f"{kind[:-1]}ies"


# The items that a scan does not need: no bound policy can match them, or other tools read them.
#
# They are listed and counted, and they make no scan incomplete (`scanner.scan.unneeded`).

_NOT_MATCHED: Final = {
    Unneeded.API_GROUP: ("API group", "API groups"),
    Unneeded.DOCUMENT: ("document", "documents"),
}
_OF_OTHER_TOOLS: Final = {
    Unneeded.KUSTOMIZATION: ("kustomization", "kustomizations"),
    Unneeded.KUSTOMIZE_INPUT: ("patch or data file of kustomize", "patches or data files of kustomize"),
    Unneeded.HELM_CHART: ("Helm chart", "Helm charts"),
    Unneeded.HELM_VALUES: ("file of Helm values", "files of Helm values"),
    Unneeded.HELM_TEMPLATE: ("Helm template", "Helm templates"),
    Unneeded.TEST_SUITE: ("test suite", "test suites"),
    Unneeded.PACKAGE_METADATA: ("file of package metadata", "files of package metadata"),
    Unneeded.NO_MANIFEST: ("document that is no manifest", "documents that are no manifests"),
}
_NOT_READ_AGAIN: Final = {
    Unneeded.REPEATED: ("copy of a file or document that was read", "copies of files or documents that were read"),
    Unneeded.UNUSED_DOCUMENT: ("document of -f that no policy uses", "documents of -f that no policy uses"),
}
_LEGACY: Final = {
    Unneeded.LEGACY_POLICY: ("older policies of Kyverno", ""),
    Unneeded.LEGACY_EXCEPTION: ("exceptions from older policies of Kyverno", ""),
}
_RENDER: Final = "Render charts and kustomizations, and scan the output, to evaluate what they make"
_RENDERED: Final = frozenset(
    {
        *(Unneeded.KUSTOMIZATION, Unneeded.KUSTOMIZE_INPUT),
        *(Unneeded.HELM_CHART, Unneeded.HELM_TEMPLATE, Unneeded.HELM_VALUES),
    }
)
TITLES: Final = {
    kind: words[0]
    for table in (_NOT_MATCHED, _OF_OTHER_TOOLS, _NOT_READ_AGAIN, _LEGACY)
    for kind, words in table.items()
}
"""The titles of the kinds of items."""


@dataclass(frozen=True, slots=True, order=True)
class UnneededItem:
    """An item that a scan does not need. `where` is an API group, a file, a document, or a kind of older policies."""

    kind: Unneeded
    where: str
    why: str


def unneeded_of(outside: Iterable[OutOfScope]) -> tuple[UnneededItem, ...]:
    """The items that the scan does not need, among everything that is outside of its scope, sorted."""
    return tuple(sorted(UnneededItem(Unneeded(item.kind), item.name, item.why) for item in outside if item.unneeded))


def unneeded_line(items: Sequence[UnneededItem]) -> str:
    """The numbers of the items, by kind, and what to do to have them evaluated; an empty string without items."""
    numbers = Counter(item.kind for item in items)
    parts = (
        (_NOT_MATCHED, " that no bound policy can match"),
        (_OF_OTHER_TOOLS, ""),
        (_NOT_READ_AGAIN, ""),
    )
    named = [
        ", ".join(plural(numbers[kind], *words) for kind, words in table.items() if numbers[kind]) + ending
        for table, ending in parts
        if any(numbers[kind] for kind in table)
    ]
    advice = f". {_RENDER}" if not _RENDERED.isdisjoint(numbers) else ""
    return f"{'; '.join(named)}{advice}" if named else ""


def legacy_line(items: Sequence[UnneededItem]) -> str:
    """The older policies of Kyverno and the exceptions from them, by kind; an empty string without any."""
    legacy = [item for kind in _LEGACY for item in items if item.kind == kind]
    counts = ", ".join(
        f"{item.where} {item.why.removesuffix(LEGACY_ENDING) if item.why.endswith(LEGACY_ENDING) else '(number not known)'}"
        for item in legacy
    )
    return f"{counts}{LEGACY_ENDING}" if legacy else ""
