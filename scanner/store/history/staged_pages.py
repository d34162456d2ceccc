"""A page of a running scan as one value, so that staging a page is one row, with any number of findings.

Within the page every check, verdict, kind and evidence is stored once, as in the tables. Texts are cleaned for the databases
here (see `texts`).
"""

from __future__ import annotations

import hashlib
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeAlias

import orjson
from sqlalchemy import ColumnElement, Connection, select, update

from scanner.audit import object_sets, population
from scanner.audit.object_sets import ObjectSets, SetKey
from scanner.model.outcome import Finding, Gap, GapKind
from scanner.model.policy import BindingKey
from scanner.model.population import GroupKind, PopulationMember
from scanner.model.resource import Kind, api_group_of
from scanner.model.scans.scan import PageResult
from scanner.model.scans.tally import TallyKey
from scanner.model.texts import clean
from scanner.posture.workloads import Workloads
from scanner.store.rows.columns import (
    UNDECIDING,
    FindingColumns,
    check_values,
    evidence_values,
    excerpt_values,
    kind_values,
    verdict_values,
)
from scanner.store.rows.interning import Key
from scanner.store.rows.tables import STAGED_PAGES

_LEVEL: Final = 1
_SIZE: Final = 4
"""Bytes of the size of a summary."""


StagedFinding: TypeAlias = tuple[bytes, FindingColumns]
"""The fingerprint of a finding, and its columns with positions in the page's lists in place of ids."""

Tallied: TypeAlias = tuple[int, int, str, str, int, bool]
"""Check, kind, namespace, outcome, count, requester; the first two are positions in the page's lists."""


@dataclass(frozen=True, slots=True)
class PageFindings:
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
    decode_findings: Callable[[], PageFindings]


class _Positions:
    """Gives each distinct key its position in a list."""

    def __init__(self) -> None:
        self.keys: dict[Key, int] = {}

    def __call__(self, *key: str | int) -> int:
        return self.keys.setdefault(key, len(self.keys))

    def find(self, key: Key) -> int:
        return self.keys.setdefault(key, len(self.keys))


class _Lists:
    """The lists of a page, to which its findings and tallies refer."""

    def __init__(self) -> None:
        self.checks, self.verdicts, self.kinds, self.evidence, self.excerpts = (_Positions() for _ in range(5))
        # The ids are those of parts of findings, which live until the page is packed.
        self._check_positions: dict[tuple[str | int, ...], int] = {}
        self._evidence_positions: dict[tuple[str | int, ...], tuple[int | None, int | None]] = {}

    def build_columns(self, finding: Finding, place: int) -> Key:
        """The fields of `FindingColumns` for a finding whose object has this place on the page: a plain tuple, as JSON needs it.

        The problem is known when the page is merged.
        """
        return (
            self._find_check(finding),
            self.kinds.find((finding.api_version, finding.kind)),
            place,
            finding.resource_version,
            self.verdicts.find(verdict_values(finding)),
            *self._find_evidence(finding),
            None,
        )

    def _find_check(self, finding: Finding) -> int:
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
            position = self._check_positions[key] = self.checks.find(check_values(finding))
        return position

    def _find_evidence(self, finding: Finding) -> tuple[int | None, int | None]:
        """The positions of the evidence and of the excerpt. Findings of one object share evidence."""
        evidence = finding.evidence
        # The name and the namespace are part of the key: the text is a template for them.
        key = (id(evidence), finding.name, finding.namespace)
        positions = self._evidence_positions.get(key)
        if positions is None:
            positions = self._evidence_positions[key] = (
                self.evidence.find(evidence_values(finding)) if evidence else None,
                self.excerpts.find(excerpt_values(finding)) if evidence.excerpt else None,
            )
        return positions

    def list_page_keys(self) -> list[object]:
        """The lists to which tallies refer, too."""
        return [list(positions.keys) for positions in (self.checks, self.kinds)]

    def list_finding_keys(self) -> list[object]:
        """The lists to which findings alone refer."""
        return [list(positions.keys) for positions in (self.verdicts, self.evidence, self.excerpts)]

    def digest_content(self, fingerprints: Sequence[str], columns: Sequence[tuple[object, ...]]) -> str:
        """The digest of what decides whether findings changed, given their fingerprints and each of their columns."""
        deciding = [
            column for name, column in zip(FindingColumns._fields, columns, strict=True) if name not in UNDECIDING
        ]
        verdicts, evidence, _ = self.list_finding_keys()
        content = _dump([*self.list_page_keys(), verdicts, evidence, fingerprints, *deciding])
        return hashlib.blake2b(content, digest_size=16).hexdigest()


def pack(result: PageResult) -> bytes:
    """The bytes that stage a page: the size of its summary, the summary and the findings, each as compressed JSON."""
    lists = _Lists()
    placed = zip(result.findings, result.places, strict=True)
    columns = list(zip(*(lists.build_columns(finding, place) for finding, place in placed), strict=True))
    fingerprints = [finding.fingerprint for finding in result.findings]
    digest = lists.digest_content(fingerprints, columns) if fingerprints else ""
    tallies = _encode_tallies(result.tallies, lists)
    matched = [(*key, count) for key, count in result.matched.items()]
    gaps = [(gap.kind, gap.where, gap.why) for gap in result.gaps]
    findings = [*lists.list_finding_keys(), fingerprints, *columns]
    summary = _compress([result.objects, *lists.list_page_keys(), tallies, matched, gaps, digest])
    return len(summary).to_bytes(_SIZE) + summary + _compress(findings)


def unpack(data: bytes) -> StagedPage:
    """The page that `pack` staged."""
    end = _SIZE + int.from_bytes(data[:_SIZE])
    objects, checks, kinds, tallies, matched, gaps, digest = _decode(data[_SIZE:end])
    return StagedPage(
        objects=objects,
        checks=_to_keys(checks),
        kinds=_to_keys(kinds),
        tallies=_decode_tallies(*tallies),
        matched={(language, policy, binding): count for language, policy, binding, count in matched},
        gaps=tuple(Gap(GapKind(kind), where, why) for kind, where, why in gaps),
        digest=bytes.fromhex(digest),
        decode_findings=partial(_decode_findings, data[end:]),
    )


def _decode_findings(data: bytes) -> PageFindings:
    verdicts, evidence, excerpts, fingerprints, *columns = _decode(data)
    staged = list(zip(map(bytes.fromhex, fingerprints), map(FindingColumns, *columns), strict=True)) if columns else []
    return PageFindings(_to_keys(verdicts), _to_keys(evidence), _to_keys(excerpts), staged)


def _compress(value: list[object]) -> bytes:
    return zlib.compress(_dump(value), _LEVEL)


def _decode(data: bytes) -> Any:
    return orjson.loads(zlib.decompress(data))


def _to_keys(rows: Iterable[Iterable[str | int]]) -> tuple[Key, ...]:
    return tuple(tuple(row) for row in rows)


def _encode_tallies(tallies: Mapping[TallyKey, int], lists: _Lists) -> list[object]:
    """Tallies column by column, because there are many, and numbers decode several times faster than rows."""
    namespaces, outcomes = _Positions(), _Positions()
    positions = (
        [lists.checks.find(check_values(key)) for key in tallies],
        [lists.kinds.find(kind_values(key)) for key in tallies],
        [namespaces(key.namespace) for key in tallies],
        [outcomes(key.outcome) for key in tallies],
    )
    counts, requester = list(tallies.values()), [int(key.requester) for key in tallies]
    return [*positions, counts, requester, *([name for (name,) in each.keys] for each in (namespaces, outcomes))]


def _decode_tallies(
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


def _dump(value: list[object]) -> bytes:
    try:
        data = orjson.dumps(value)
    except orjson.JSONEncodeError:
        return orjson.dumps(_clean_texts(value))
    return orjson.dumps(_clean_texts(value)) if b"\\u0000" in data else data


def _clean_texts(value: object) -> object:
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, (list, tuple)):
        return [_clean_texts(item) for item in value]
    return value


_NAMESPACE: Final[GroupKind] = ("", "Namespace")


@dataclass(frozen=True, slots=True)
class StagedList:
    """The pages of one list, in the order in which they were committed."""

    connection: Connection
    api_version: str
    kind: str
    numbers: tuple[int, ...]

    @property
    def group_kind(self) -> GroupKind:
        """Group and kind of the objects."""
        return api_group_of(self.api_version), self.kind

    def read_pages(self) -> Iterator[StagedPage]:
        """The findings and tallies of each page, once: the space of a page is free for others when the next one is read."""
        staged_page = STAGED_PAGES.c
        for number in self.numbers:
            wanted = select(staged_page.content).where(staged_page.id == number)
            yield unpack(bytes(self.connection.execute(wanted).scalar_one()))
            self.connection.execute(update(STAGED_PAGES).where(staged_page.id == number).values(content=b""))

    def read_objects(self) -> Iterator[Sequence[PopulationMember]]:
        """The examined objects of each page."""
        kind = self._build_kind()
        pages = self._read_values(STAGED_PAGES.c.objects)
        return (tuple(population.unpack(kind, data)) if data else () for data in pages)

    def read_sets(self) -> Iterator[ObjectSets[SetKey]]:
        """The sets of each page. A page that could not be evaluated has no objects and no sets."""
        return map(object_sets.unpack, filter(None, self._read_values(STAGED_PAGES.c.sets)))

    def _read_values(self, column: ColumnElement[Any]) -> Iterator[bytes]:
        for number in self.numbers:
            yield bytes(self.connection.execute(select(column).where(STAGED_PAGES.c.id == number)).scalar_one() or b"")

    def _build_kind(self) -> Kind:
        group, _, version = self.api_version.rpartition("/")
        return Kind(group, version, self.kind, plural="", namespaced=True)


class StagedLists:
    """The lists of a scan, in the order in which they began."""

    def __init__(self, connection: Connection, scan: int) -> None:
        """Take the number of a scan."""
        self._connection = connection
        staged_page = STAGED_PAGES.c
        of_objects, of_controllers = staged_page.content.is_not(None), staged_page.content.is_(None)
        self._evaluated = self._read_lists(scan, of_objects)
        self._controllers = self._read_lists(scan, of_controllers)

    def __iter__(self) -> Iterator[StagedList]:
        """The lists of evaluated kinds."""
        return iter(self._evaluated)

    def list_namespaces(self) -> Iterator[StagedList]:
        """The list of the namespaces that were read for their labels alone."""
        return (listed for listed in self._controllers if listed.group_kind == _NAMESPACE)

    def collect_workloads(self, kinds: Mapping[GroupKind, bool]) -> Workloads:
        """The workloads of all objects, given the kinds of their controllers: true for a namespaced kind."""
        workloads = Workloads(kinds)
        for listed in (*self._evaluated, *self._controllers):
            if listed.group_kind in kinds:
                for page in listed.read_objects():
                    for examined in page:
                        workloads.add(examined)
        return workloads

    def _read_lists(self, scan: int, chosen: ColumnElement[bool]) -> list[StagedList]:
        staged_page = STAGED_PAGES.c
        wanted = (
            select(staged_page.api_version, staged_page.kind, staged_page.id)
            .where(staged_page.scan == scan, chosen)
            .order_by(staged_page.id)
        )
        rows = self._connection.execute(wanted).all()
        lists: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
        for api_version, kind, page in rows:
            lists[api_version, kind].append(page)
        return [StagedList(self._connection, *kind, tuple(pages)) for kind, pages in lists.items()]
