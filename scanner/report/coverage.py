"""What was looked at and what was not: the ledger of kinds, and the words for its holes.

Left out by the user's own choice is said, but is not a hole; whatever else was not seen is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from scanner.model.outcome import Gap, GapKind
from scanner.model.scan import Coverage, CoverageState, ScanRecord, ScanState

_HOLES = {
    CoverageState.PARTIAL: "listed only in part",
    CoverageState.INCONSISTENT: "listed, but not as of one moment",
    CoverageState.FORBIDDEN: "forbidden to list",
    CoverageState.FAILED: "could not be listed",
}
_MISSED = {
    GapKind.DISCOVERY: "an API group was not discovered",
    GapKind.LIST: "a list was not finished",
    GapKind.DOCUMENT: "a document was not read",
    GapKind.OBJECT: "an object was not understood",
    GapKind.CONVERSION: "an object was not converted",
    GapKind.EVALUATION: "an object or a policy was not evaluated",
}
_MISSED_SEVERAL = {
    GapKind.DISCOVERY: "API groups were not discovered",
    GapKind.LIST: "lists were not finished",
    GapKind.DOCUMENT: "documents were not read",
    GapKind.OBJECT: "objects were not understood",
    GapKind.CONVERSION: "objects were not converted",
    GapKind.EVALUATION: "objects or policies were not evaluated",
}


_NAMED = 3


@dataclass(frozen=True, slots=True)
class CoverageSection:
    """How far the cluster was looked at.

    `kinds` has a line for every kind that some bound policy can match; `objects` and `evaluated` add them up. `unseen`
    says in words what was missed, and is empty only when nothing was.
    """

    kinds: tuple[Coverage, ...]
    states: dict[str, int]
    objects: int
    evaluated: int
    unseen: tuple[str, ...]


def coverage_of(record: ScanRecord) -> CoverageSection:
    """The ledger of a scan, worst lines first."""
    states = Counter(line.state for line in record.coverage)
    return CoverageSection(
        kinds=tuple(sorted(record.coverage, key=_worst_first)),
        states={str(state): states[state] for state in CoverageState},
        objects=sum(line.objects for line in record.coverage),
        evaluated=sum(line.evaluated for line in record.coverage),
        unseen=(*_ending(record.scan.state), *_unlisted(record.coverage), *_missed(record)),
    )


def percent_listed(record: ScanRecord) -> float:
    """The share of the kinds in scope that were listed to the end, at one moment: 0 to 100; 100 when there are none."""
    wanted = [line.state for line in record.coverage if line.state is not CoverageState.SKIPPED]
    return 100 * wanted.count(CoverageState.LISTED) / len(wanted) if wanted else 100.0


def beyond_kinds(record: ScanRecord) -> tuple[Gap, ...]:
    """The gaps that hide more than one kind of the ledger can: groups, policies, documents, the end of the scan."""
    kinds = tuple(f"{line.api_version}/{line.kind}" for line in record.coverage)
    return tuple(gap for gap in record.gaps if not gap.where.startswith(kinds))


def _worst_first(line: Coverage) -> tuple[bool, bool, str, str]:
    return line.state not in _HOLES, line.state is not CoverageState.SKIPPED, line.kind, line.api_version


def _ending(state: ScanState) -> Iterable[str]:
    if state is ScanState.FAILED:
        yield "the scan broke off before its end"
    if state is ScanState.RUNNING:
        yield "the scan has not ended yet"


def _unlisted(coverage: Iterable[Coverage]) -> Iterable[str]:
    for line in sorted(coverage, key=_worst_first):
        if hole := _HOLES.get(line.state):
            yield f"{line.kind} ({line.api_version}): {hole}{f', {line.note}' if line.note else ''}"


def _missed(record: ScanRecord) -> Iterable[str]:
    """Name the gaps of each kind when they are few, else count them; holes of the ledger are not said twice."""
    holes = {f"{line.api_version}/{line.kind}" for line in record.coverage if line.state in _HOLES}
    gaps = sorted(gap for gap in record.gaps if gap.kind is not GapKind.LIST or gap.where not in holes)
    for kind in GapKind:
        found = [gap for gap in gaps if gap.kind is kind]
        if len(found) > _NAMED:
            yield f"{len(found):,} {_MISSED_SEVERAL[kind]}"
        else:
            yield from (f"{_MISSED[kind]}: {gap.where}: {gap.why}" for gap in found)
