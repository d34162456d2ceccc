"""Draws a sample from a population by a rule that another person can follow with a few lines of any language.

Every item of the population has a digest, which the seed and the population fix: SHA-256 of the seed, a line feed, the SHA-256 of
`population.csv` in hex, a line feed, and the id of the item, all in UTF-8. The sample is the items with the lowest digests. With
strata, it is those of each stratum. The rule is in `docs/evidence.md`, and `docs/adr/0090-a-sample-is-a-rule.md` has the reasons.
"""

from __future__ import annotations

import csv
import hashlib
import heapq
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction
from io import TextIOWrapper
from math import ceil, exp, floor, log
from typing import BinaryIO, Final, TypeAlias

from scanner.errors import UsageError

Stratum: TypeAlias = tuple[str, ...]
"""The cells of an item in the columns that divide the population; empty without strata."""

MOST: Final = 10_000
"""The items of the largest sample."""
LONGEST_SEED: Final = 256
_LARGEST_CELL: Final = 1 << 24
_BLOCK: Final = 1 << 20
_LARGE_PART: Final = Fraction(1, 10)
_PERCENT: Final = 100
_ROUNDING: Final = 1e-9
"""More than the error of the logarithms: a sample in proportion has its exact confidence."""


class SampleOf(StrEnum):
    """The items of a population: examined objects, those that passed, findings, or days of the register of runs."""

    OBJECTS = "objects"
    PASSES = "passes"
    FINDINGS = "findings"
    RUNS = "runs"


ID_COLUMNS: Final[Mapping[SampleOf, Sequence[str]]] = {
    SampleOf.OBJECTS: ("apiVersion", "kind", "namespace", "name", "uid"),
    SampleOf.PASSES: ("apiVersion", "kind", "namespace", "name", "uid"),
    SampleOf.FINDINGS: ("id",),
    SampleOf.RUNS: ("day",),
}
"""The columns of `population.csv` whose cells, joined by slashes, are the id of an item."""
STRATA: Final = ("namespace", "kind", "owner")
"""The columns that can divide a population of objects or findings."""


@dataclass(frozen=True, slots=True)
class SampleSize:
    """The number of items, and how it was computed: `confidence` and `tolerable` are percentages, or 0 for a given number."""

    items: int
    confidence: int = 0
    tolerable: int = 0

    @property
    def formula(self) -> str:
        """The computation in one line; empty for a given number."""
        if not self.confidence:
            return ""
        c, t = self.confidence / _PERCENT, self.tolerable / _PERCENT
        return f"n = ceil(ln(1 - {c:g}) / ln(1 - {t:g})) = ceil({log(1 - c) / log(1 - t):.2f}) = {self.items}"


def size_for(confidence: int, tolerable: int) -> SampleSize:
    """The smallest sample without deviation that shows, with a confidence, that fewer than a tolerable part of the items deviate.

    Both are percentages. The binomial bound: n = ceil(ln(1 - c) / ln(1 - t)), without rounding errors. Raises UsageError.
    """
    for flag, percent in (("--confidence", confidence), ("--tolerable", tolerable)):
        if not 0 < percent < _PERCENT:
            raise UsageError(f"{flag} {percent}: name a percentage between 1 and 99")
    left, doubt = 1 - Fraction(tolerable, _PERCENT), 1 - Fraction(confidence, _PERCENT)
    items = max(1, ceil(log(doubt) / log(left)) - 1)
    while left**items > doubt:
        items += 1
    return SampleSize(items, confidence, tolerable)


@dataclass(frozen=True, slots=True)
class SampleRequest:
    """A sample that a user asks for."""

    of: SampleOf
    size: SampleSize
    seed: str
    strata: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Raise UsageError for a sample that has no rule."""
        if not 1 <= self.size.items <= MOST:
            raise UsageError(f"--n {self.size.items}: name a number of items between 1 and {MOST:,}")
        seed = self.seed
        if not seed or len(seed) > LONGEST_SEED or not seed.isprintable() or seed != seed.strip():
            raise UsageError(
                f"--seed needs a text of 1 to {LONGEST_SEED} printable characters, without spaces around it"
            )
        if unknown := [name for name in self.strata if name not in STRATA]:
            raise UsageError(f"--stratify {unknown[0]}: name columns among {', '.join(STRATA)}")
        if self.strata and self.of is SampleOf.RUNS:
            raise UsageError("--stratify divides objects and findings: leave it out with --of runs")


@dataclass(frozen=True, slots=True)
class StratumShare:
    """A stratum: its items in the population, and those of the sample."""

    stratum: Stratum
    population: int
    sample: int


@dataclass(frozen=True, slots=True)
class ChosenItem:
    """An item of a sample: its digest in hex, its id, its stratum, and its line of `population.csv`."""

    digest: str
    id: str
    stratum: Stratum
    cells: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Sample:
    """The items in the order of their digests. `population` is the number of lines of the file with the digest `sha256` in hex."""

    request: SampleRequest
    titles: tuple[str, ...]
    sha256: str
    population: int
    shares: tuple[StratumShare, ...]
    items: tuple[ChosenItem, ...]
    notes: tuple[str, ...] = field(default=())


def draw(request: SampleRequest, population: BinaryIO) -> Sample:
    """Draw a sample from a `population.csv`, which is read three times and never kept.

    Raises UsageError for an empty population, for more strata than items, and for a file that is no such population.
    """
    try:
        return _draw(request, population)
    except (ValueError, IndexError, csv.Error) as error:
        raise UsageError(f"population.csv is no population of {request.of}: {error}") from error


def _draw(request: SampleRequest, population: BinaryIO) -> Sample:
    sha256 = digest_of(population)
    titles, rows = _read(population)
    places = [titles.index(name) for name in request.strata]
    sizes = Counter(tuple(row[place] for place in places) for row in rows)
    if not sizes:
        where = (
            "the period has no day"
            if request.of is SampleOf.RUNS
            else "see `assay policies` for what the scan evaluated"
        )
        raise UsageError(f"the population is empty, so there is nothing to draw: {where}")
    allocation = allocate(sizes, request.size.items)
    items = _choose_lowest(request, population, sha256, allocation)
    shares = tuple(StratumShare(stratum, sizes[stratum], allocation[stratum]) for stratum in sorted(sizes))
    number = sizes.total()
    notes = tuple(_note_strata(request.size, shares)) or tuple(_note_size(request.size, number))
    return Sample(request, titles, sha256, number, shares, items, notes)


def digest_of(file: BinaryIO) -> str:
    """The SHA-256 of a file in hex."""
    file.seek(0)
    digest = hashlib.sha256()
    while block := file.read(_BLOCK):
        digest.update(block)
    return digest.hexdigest()


def allocate(sizes: Mapping[Stratum, int], items: int) -> dict[Stratum, int]:
    """The number of items of each stratum: one, and of the others a part that is proportional to its other items.

    Numbers are whole: those that remain go to the largest remainders, and among equal ones to the first stratum in the order of
    its texts. No stratum has more items than it has; a sample that is as large as the population has all. Raises UsageError for
    more strata than items.
    """
    total, strata = sum(sizes.values()), sorted(sizes)
    if len(strata) > items:
        raise UsageError(
            f"{len(strata)} strata need a sample of {len(strata)} items or more: each stratum has one at least"
        )
    seats, others = min(items, total) - len(strata), total - len(strata)
    parts = {stratum: divmod(seats * (sizes[stratum] - 1), others) if others else (0, 0) for stratum in strata}
    allocation = {stratum: 1 + whole for stratum, (whole, _) in parts.items()}
    left = seats - sum(whole for whole, _ in parts.values())
    for stratum in sorted(strata, key=lambda stratum: -parts[stratum][1])[:left]:
        allocation[stratum] += 1
    return allocation


def _read(population: BinaryIO) -> tuple[tuple[str, ...], Iterator[list[str]]]:
    """The titles and the rows of a file of CSV, from its beginning."""
    population.seek(0)
    text = TextIOWrapper(population, "utf-8", newline="")
    csv.field_size_limit(_LARGEST_CELL)
    rows = csv.reader(text)
    titles = tuple(next(rows, ()))

    def read_rows() -> Iterator[list[str]]:
        try:
            yield from rows
        finally:
            text.detach()

    return titles, read_rows()


def _choose_lowest(
    request: SampleRequest, population: BinaryIO, sha256: str, allocation: Mapping[Stratum, int]
) -> tuple[ChosenItem, ...]:
    """The items with the lowest digests of each stratum; of items with one digest, which have one id, the first line."""
    titles, rows = _read(population)
    places = [titles.index(name) for name in request.strata]
    id_places = [titles.index(name) for name in ID_COLUMNS[request.of]]
    start = hashlib.sha256(f"{request.seed}\n{sha256}\n".encode())
    lowest: dict[Stratum, list[tuple[int, int, tuple[str, ...]]]] = {stratum: [] for stratum in allocation}
    for number, row in enumerate(rows):
        stratum = tuple(row[place] for place in places)
        digest = start.copy()
        digest.update("/".join([row[place] for place in id_places]).encode())
        key = -int.from_bytes(digest.digest()), -number
        heap = lowest[stratum]
        if len(heap) < allocation[stratum]:
            heapq.heappush(heap, (*key, tuple(row)))
        elif key > heap[0][:2]:
            heapq.heapreplace(heap, (*key, tuple(row)))
    chosen = sorted((-key, -number, stratum, cells) for stratum, heap in lowest.items() for key, number, cells in heap)
    return tuple(
        ChosenItem(f"{digest:064x}", "/".join(cells[place] for place in id_places), stratum, cells)
        for digest, _, stratum, cells in chosen
    )


def _note_size(size: SampleSize, population: int) -> Iterator[str]:
    if size.items >= population:
        items = "one item" if population == 1 else f"{population:,} items"
        yield f"The population has {items}, so the sample has all of them: nothing is inferred."
    elif size.formula and Fraction(size.items, population) > _LARGE_PART:
        yield (
            f"The population has {population:,} items, and the sample is more than a tenth of them: the formula assumes a larger "
            "population, so the confidence is higher than stated."
        )


def _note_strata(size: SampleSize, shares: Sequence[StratumShare]) -> Iterator[str]:
    """The confidence that strata leave, if it is lower: the formula assumes that every item is as likely as another one."""
    if not size.confidence or size.items >= sum(share.population for share in shares):
        return
    reached = find_confidence(shares, size.tolerable)
    if reached < size.confidence:
        yield (
            f"With these strata the confidence is at least {reached} %, and may be lower than stated: each stratum has one item, so "
            "the large ones have fewer than their part."
        )


def find_confidence(shares: Sequence[StratumShare], tolerable: int) -> int:
    """The lowest confidence of a sample with strata, in percent and rounded down, for any strata with items that deviate.

    The chance that no item deviates is the product of (1 - d) ** n over the strata, where d is the part of a stratum that deviates.
    It is highest if 1 - d is proportional to the part of the stratum that is drawn, and 1 where that would be more than 1.
    """
    items = sum(share.sample for share in shares)
    sound = (1 - Fraction(tolerable, _PERCENT)) * sum(share.population for share in shares)
    by_rate = sorted(shares, key=lambda share: Fraction(share.population, share.sample))
    while sound * by_rate[0].sample > by_rate[0].population * items:
        sound, items = sound - by_rate[0].population, items - by_rate[0].sample
        by_rate = by_rate[1:]
    level = sound / items
    missed = sum(share.sample * log(level * Fraction(share.sample, share.population)) for share in by_rate)
    return floor(_PERCENT * (1 - exp(missed)) + _ROUNDING)
