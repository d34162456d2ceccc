"""The objects of each kind that a scan listed, beside the API server's own count of them.

The server counts the keys in its store once a minute, for each resource, in all namespaces. A count is compared with a list only
if the list is complete and includes all namespaces.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from scanner.model.object_counts import ObjectCount
from scanner.model.scan import Coverage, CoverageState, Scope


class Agreement(StrEnum):
    """The result of a comparison. `changed` is a number between the server's counts before and after the lists."""

    EQUAL = "equal"
    CHANGED = "changed"
    DIFFERENT = "different"
    NOT_COMPARED = "notCompared"


@dataclass(frozen=True, slots=True)
class KindLine:
    """A kind of the completeness sheet.

    `listed` are the objects in the lists: the `examined` ones and those that the user `excluded`. Both are None for a scan of a
    version that did not count them. `difference` is that of `listed` to the last count of the server, None if they are not
    compared; `why_not` is the reason then.
    """

    coverage: Coverage
    listed: int | None
    excluded: int | None
    at_start: int | None
    at_end: int | None
    agreement: Agreement
    difference: int | None = None
    why_not: str = ""

    @property
    def examined(self) -> int:
        """The number of examined objects."""
        return self.coverage.objects

    @property
    def server(self) -> int | None:
        """The last count of the server."""
        return self.at_start if self.at_end is None else self.at_end


def kind_lines(
    coverage: Iterable[Coverage], counts: tuple[ObjectCount, ...], scope: Scope, why_not: str
) -> tuple[KindLine, ...]:
    """The lines of the kinds of a scan. `counts` is empty for a scan of an older version; `why_not` is that of its server's counts."""
    if not counts:
        return tuple(
            KindLine(line, None, None, None, None, Agreement.NOT_COMPARED, why_not="not recorded by this version")
            for line in coverage
        )
    return tuple(_line(line, count, scope, why_not) for line, count in zip(coverage, counts, strict=True))


def _line(line: Coverage, count: ObjectCount, scope: Scope, why_not: str) -> KindLine:
    listed = line.objects + count.excluded
    known = [number for number in (count.at_start, count.at_end) if number is not None]
    reason = _reason(line, scope) or ("" if known else why_not or "the API server does not count this kind")
    if reason:
        agreement, difference = Agreement.NOT_COMPARED, None
    else:
        difference = listed - known[-1]
        inside = min(known) <= listed <= max(known)
        agreement = Agreement.EQUAL if not difference else Agreement.CHANGED if inside else Agreement.DIFFERENT
    return KindLine(line, listed, count.excluded, count.at_start, count.at_end, agreement, difference, reason)


def _reason(line: Coverage, scope: Scope) -> str:
    """The reason why a list cannot be compared with a count of all objects, or an empty string."""
    if line.state is CoverageState.SKIPPED:
        return line.note or "left out by the user"
    if line.state is not CoverageState.LISTED:
        return "the list is not complete"
    if scope.selector:
        return "--selector limits the list"
    return "--namespace limits the list" if scope.namespaces else ""
