"""A page of a running scan as one value, so that staging a page is one row, with any number of findings.

Within the page every check, verdict, kind and evidence is stored once, as in the tables. Texts are cleaned for the databases
here (see `texts`).
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeAlias

import orjson

from scanner.model.outcome import Finding, Gap, GapKind
from scanner.model.policy import BindingKey
from scanner.model.scan import PageResult, TallyKey
from scanner.model.texts import clean
from scanner.store.columns import (
    UNDECIDING,
    FindingColumns,
    check_values,
    evidence_values,
    excerpt_values,
    kind_values,
    verdict_values,
)

_LEVEL: Final = 1
_SIZE: Final = 4
"""Bytes of the size of a summary."""

Key: TypeAlias = tuple[str | int | bool | bytes | None, ...]

StagedFinding: TypeAlias = tuple[bytes, FindingColumns]
"""The fingerprint of a finding, and its columns with positions in the page's lists in place of ids."""

Tallied: TypeAlias = tuple[int, int, str, str, int, bool]
"""Check, kind, namespace, outcome, count, requester; the first two are positions in the page's lists."""


@dataclass(frozen=True, slots=True)
class FindingsOfPage:
    """The findings of a page. Keys are the columns of the tables `verdicts`, `evidence` and `excerpts`."""

    verdicts: tuple[Key, ...]
    evidence: tuple[Key, ...]
    excerpts: tuple[Key, ...]
    staged: Sequence[StagedFinding]


@dataclass(frozen=True, slots=True)
class StagedPage:
    """A page as it was staged. Keys are the columns of the tables `checks` and `kinds`. `objects` is the number of examined objects.

    `digest` identifies what decides whether its findings changed, which leaves out their resource versions and excerpts; it is
    empty for a page without findings. `findings` decodes them.
    """

    objects: int
    checks: tuple[Key, ...]
    kinds: tuple[Key, ...]
    tallies: Iterable[Tallied]
    matched: dict[BindingKey, int]
    gaps: tuple[Gap, ...]
    digest: bytes
    findings: Callable[[], FindingsOfPage]


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
        # The ids are those of parts of findings, which live until the page is packed.
        self._check_positions: dict[tuple[str | int, ...], int] = {}
        self._evidence_positions: dict[tuple[str | int, ...], tuple[int | None, int | None]] = {}

    def columns(self, finding: Finding, place: int) -> Key:
        """The fields of `FindingColumns` for a finding whose object has this place on the page: a plain tuple, as JSON needs it.

        The problem is known when the page is merged.
        """
        return (
            self._check_of(finding),
            self.kinds.of((finding.api_version, finding.kind)),
            place,
            finding.resource_version,
            self.verdicts.of(verdict_values(finding)),
            *self._evidence_of(finding),
            None,
        )

    def _check_of(self, finding: Finding) -> int:
        key = (
            id(finding.check),
            finding.language,
            finding.policy,
            finding.binding,
            finding.param_namespace,
            finding.param_name,
        )
        position = self._check_positions.get(key)
        if position is None:
            position = self._check_positions[key] = self.checks.of(check_values(finding))
        return position

    def _evidence_of(self, finding: Finding) -> tuple[int | None, int | None]:
        """The positions of the evidence and of the excerpt. Findings of one object share evidence."""
        evidence = finding.evidence
        key = (id(evidence), finding.name, finding.namespace)
        positions = self._evidence_positions.get(key)
        if positions is None:
            positions = self._evidence_positions[key] = (
                self.evidence.of(evidence_values(finding)) if evidence else None,
                self.excerpts.of(excerpt_values(finding)) if evidence.excerpt else None,
            )
        return positions

    def of_page(self) -> list[object]:
        """The lists to which tallies refer, too."""
        return [list(positions.keys) for positions in (self.checks, self.kinds)]

    def of_findings(self) -> list[object]:
        """The lists to which findings alone refer."""
        return [list(positions.keys) for positions in (self.verdicts, self.evidence, self.excerpts)]

    def digest(self, fingerprints: Sequence[str], columns: Sequence[tuple[object, ...]]) -> str:
        """The digest of what decides whether findings changed, given their fingerprints and each of their columns."""
        deciding = [
            column for name, column in zip(FindingColumns._fields, columns, strict=True) if name not in UNDECIDING
        ]
        verdicts, evidence, _ = self.of_findings()
        content = _dumped([*self.of_page(), verdicts, evidence, fingerprints, *deciding])
        return hashlib.blake2b(content, digest_size=16).hexdigest()


def pack(result: PageResult) -> bytes:
    """The bytes that stage a page: the size of its summary, the summary and the findings, each as compressed JSON."""
    lists = _Lists()
    placed = zip(result.findings, result.places, strict=True)
    columns = list(zip(*(lists.columns(finding, place) for finding, place in placed), strict=True))
    fingerprints = [finding.fingerprint for finding in result.findings]
    digest = lists.digest(fingerprints, columns) if fingerprints else ""
    tallies = _tallies(result.tallies, lists)
    matched = [(*key, count) for key, count in result.matched.items()]
    gaps = [(gap.kind, gap.where, gap.why) for gap in result.gaps]
    findings = [*lists.of_findings(), fingerprints, *columns]
    summary = _compressed([result.objects, *lists.of_page(), tallies, matched, gaps, digest])
    return len(summary).to_bytes(_SIZE) + summary + _compressed(findings)


def unpack(data: bytes) -> StagedPage:
    """The page that `pack` staged."""
    end = _SIZE + int.from_bytes(data[:_SIZE])
    objects, checks, kinds, tallies, matched, gaps, digest = _decoded(data[_SIZE:end])
    return StagedPage(
        objects=objects,
        checks=_keys(checks),
        kinds=_keys(kinds),
        tallies=_tallied(*tallies),
        matched={(language, policy, binding): count for language, policy, binding, count in matched},
        gaps=tuple(Gap(GapKind(kind), where, why) for kind, where, why in gaps),
        digest=bytes.fromhex(digest),
        findings=partial(_findings, data[end:]),
    )


def _findings(data: bytes) -> FindingsOfPage:
    verdicts, evidence, excerpts, fingerprints, *columns = _decoded(data)
    staged = list(zip(map(bytes.fromhex, fingerprints), map(FindingColumns, *columns), strict=True)) if columns else []
    return FindingsOfPage(_keys(verdicts), _keys(evidence), _keys(excerpts), staged)


def _compressed(value: list[object]) -> bytes:
    return zlib.compress(_dumped(value), _LEVEL)


def _decoded(data: bytes) -> Any:
    return orjson.loads(zlib.decompress(data))


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
