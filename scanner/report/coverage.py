"""The coverage of a scan: how far each kind was listed, and the gaps in words.

Kinds that the user excluded are no gaps; all other kinds that were not listed completely are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from scanner.model.outcome import Gap, GapKind
from scanner.model.scan import Coverage, CoverageState, ScanRecord, ScanState

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
        kinds=tuple(sorted(record.coverage, key=_worst_first)),
        states={str(state): states[state] for state in CoverageState},
        objects=sum(line.objects for line in record.coverage),
        evaluated=sum(line.evaluated for line in record.coverage),
        unseen=(*ending_of(record.scan.state), *_unlisted(record.coverage), *_missed(record)),
    )


def percent_listed(record: ScanRecord) -> float:
    """The percentage (0 to 100) of the kinds in scope that were listed completely, at one moment; 100 without kinds."""
    states = [line.state for line in record.coverage if line.state is not CoverageState.SKIPPED]
    return 100 * states.count(CoverageState.LISTED) / len(states) if states else 100.0


def beyond_kinds(record: ScanRecord) -> tuple[Gap, ...]:
    """The gaps that do not concern one kind alone: groups, policies, documents, the end of the scan."""
    kinds = tuple(f"{line.api_version}/{line.kind}" for line in record.coverage)
    return tuple(gap for gap in record.gaps if not gap.where.startswith(kinds))


def _worst_first(line: Coverage) -> tuple[bool, bool, str, str]:
    return line.state not in _INCOMPLETE, line.state is not CoverageState.SKIPPED, line.kind, line.api_version


def ending_of(state: ScanState) -> Iterable[str]:
    """The reason why a scan has no usable end, if there is one."""
    if state is ScanState.FAILED:
        yield "the scan failed before its end"
    if state is ScanState.RUNNING:
        yield "the scan is still running"


def _unlisted(coverage: Iterable[Coverage]) -> Iterable[str]:
    yield from filter(None, map(unlisted_text, sorted(coverage, key=_worst_first)))


def unlisted_text(line: Coverage) -> str:
    """The reason why a kind was not listed completely, after its name; empty for a kind that was, or that was left out."""
    state = _INCOMPLETE.get(line.state)
    return f"{line.kind} ({line.api_version}): {state}{f', {line.note}' if line.note else ''}" if state else ""


def _missed(record: ScanRecord) -> Iterable[str]:
    """Name the gaps of each kind if they are few, else count them, without those that the coverage states already."""
    stated = {f"{line.api_version}/{line.kind}" for line in record.coverage if line.state in _INCOMPLETE}
    gaps = sorted(gap for gap in record.gaps if gap.kind is not GapKind.LIST or gap.where not in stated)
    for kind in GapKind:
        of_kind = [gap for gap in gaps if gap.kind is kind]
        if len(of_kind) > _NAMED:
            yield f"{len(of_kind):,} {_MISSED_SEVERAL[kind]}"
        else:
            yield from (f"{_MISSED[kind]}: {gap.where}: {gap.why}" for gap in of_kind)
