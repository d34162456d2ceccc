"""A page of a running scan as one value, so that staging a page is one row, with any number of findings.

Within the page every check, verdict, kind and evidence is stored once, as in the tables. Texts are cleaned for the databases
here (see `texts`).
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import orjson

from scanner.model.outcome import Finding, Gap, GapKind
from scanner.model.policy import BindingKey
from scanner.model.scan import PageResult, TallyKey
from scanner.model.texts import clean
from scanner.store.columns import (
    FindingColumns,
    check_values,
    evidence_values,
    excerpt_values,
    kind_values,
    verdict_values,
)

_LEVEL: Final = 1

Key: TypeAlias = tuple[str | int | bool | bytes | None, ...]

StagedFinding: TypeAlias = tuple[str, FindingColumns]
"""The fingerprint of a finding, and its columns with positions in the page's lists in place of ids."""

Tallied: TypeAlias = tuple[int, int, str, str, int, bool]
"""Check, kind, namespace, outcome, count, requester; the first two are positions in the page's lists."""


@dataclass(frozen=True, slots=True)
class StagedPage:
    """A page as it was staged. Keys are the columns of the tables `checks`, `verdicts`, `kinds`, `evidence` and `excerpts`.

    `objects` is the number of the examined objects.
    """

    objects: int
    checks: tuple[Key, ...]
    verdicts: tuple[Key, ...]
    kinds: tuple[Key, ...]
    evidence: tuple[Key, ...]
    excerpts: tuple[Key, ...]
    findings: Sequence[StagedFinding]
    tallies: Iterable[Tallied]
    matched: dict[BindingKey, int]
    gaps: tuple[Gap, ...]


class _Positions:
    """Gives each distinct key its position in a list."""

    def __init__(self) -> None:
        self.keys: dict[Key, int] = {}

    def __call__(self, *key: str | int) -> int:
        return self.keys.setdefault(key, len(self.keys))

    def of(self, key: Key) -> int:
        return self.keys.setdefault(key, len(self.keys))


class _Lists:
    """The lists of a page, to which its findings and tallies refer."""

    def __init__(self) -> None:
        self.checks, self.verdicts, self.kinds, self.evidence, self.excerpts = (_Positions() for _ in range(5))

    def columns(self, finding: Finding, place: int) -> FindingColumns:
        """The columns of a finding, whose object has this place on the page."""
        return FindingColumns(
            check=self.checks.of(check_values(finding)),
            kind=self.kinds.of(kind_values(finding)),
            object=place,
            resource_version=finding.resource_version,
            verdict=self.verdicts.of(verdict_values(finding)),
            evidence=self.evidence.of(evidence_values(finding)) if finding.evidence else None,
            excerpt=self.excerpts.of(excerpt_values(finding)) if finding.evidence.excerpt else None,
        )

    def packed(self) -> list[object]:
        """The lists, as `unpack` reads them."""
        lists = (self.checks, self.verdicts, self.kinds, self.evidence, self.excerpts)
        return [list(positions.keys) for positions in lists]


def pack(result: PageResult) -> bytes:
    """The bytes that stage a page: compressed JSON."""
    lists = _Lists()
    placed = zip(result.findings, result.places, strict=True)
    findings = [(finding.fingerprint, tuple(lists.columns(finding, place))) for finding, place in placed]
    tallies = _tallies(result.tallies, lists)
    matched = [(*key, count) for key, count in result.matched.items()]
    gaps = [(gap.kind, gap.where, gap.why) for gap in result.gaps]
    return zlib.compress(_dumped([result.objects, *lists.packed(), findings, tallies, matched, gaps]), _LEVEL)


def unpack(data: bytes) -> StagedPage:
    """The page that `pack` staged."""
    objects, checks, verdicts, kinds, evidence, excerpts, findings, tallies, matched, gaps = orjson.loads(
        zlib.decompress(data)
    )
    return StagedPage(
        objects=objects,
        checks=_keys(checks),
        verdicts=_keys(verdicts),
        kinds=_keys(kinds),
        evidence=_keys(evidence),
        excerpts=_keys(excerpts),
        findings=[(fingerprint, FindingColumns(*columns)) for fingerprint, columns in findings],
        tallies=_tallied(*tallies),
        matched={(language, policy, binding): count for language, policy, binding, count in matched},
        gaps=tuple(Gap(GapKind(kind), where, why) for kind, where, why in gaps),
    )


def _keys(rows: Iterable[Iterable[str | int]]) -> tuple[Key, ...]:
    return tuple(tuple(row) for row in rows)


def _tallies(tallies: Mapping[TallyKey, int], lists: _Lists) -> list[object]:
    """Tallies column by column, because there are many, and numbers decode several times faster than rows."""
    namespaces, outcomes = _Positions(), _Positions()
    positions = (
        [lists.checks.of(check_values(key)) for key in tallies],
        [lists.kinds.of(kind_values(key)) for key in tallies],
        [namespaces(key.namespace) for key in tallies],
        [outcomes(key.outcome) for key in tallies],
    )
    counts, requester = list(tallies.values()), [int(key.requester) for key in tallies]
    return [*positions, counts, requester, *([name for (name,) in each.keys] for each in (namespaces, outcomes))]


def _tallied(
    checks: list[int],
    kinds: list[int],
    namespaces: list[int],
    outcomes: list[int],
    counts: list[int],
    requester: list[int],
    *names: list[str],
) -> Iterable[Tallied]:
    namespace, outcome = (each.__getitem__ for each in names)
    depends = map(bool, requester)
    return zip(checks, kinds, map(namespace, namespaces), map(outcome, outcomes), counts, depends, strict=True)


def _dumped(value: list[object]) -> bytes:
    try:
        data = orjson.dumps(value)
    except orjson.JSONEncodeError:
        return orjson.dumps(_cleaned(value))
    return orjson.dumps(_cleaned(value)) if b"\\u0000" in data else data


def _cleaned(value: object) -> object:
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, (list, tuple)):
        return [_cleaned(item) for item in value]
    return value
