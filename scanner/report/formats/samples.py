"""A sample as files: the population that it was drawn from, the chosen items, and the rule in words and in numbers."""

from __future__ import annotations

import csv as plain_csv
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date, timedelta
from io import TextIOWrapper
from typing import BinaryIO, Final, TextIO

from scanner.errors import UsageError
from scanner.model.policy import PolicyKey
from scanner.model.population import RecordedObject
from scanner.model.scans.scan import ScanRecord
from scanner.posture.run_register import RegisterEntry, RunState
from scanner.proof.sampling import ID_COLUMNS, Sample, SampleOf, SampleRequest, draw
from scanner.report.document.document import Document
from scanner.report.formats import csv
from scanner.report.formats.csv import POPULATION_TITLES, PopulationRows
from scanner.report.lists.finding_columns import FINDINGS
from scanner.report.text.json_text import Plain, dump
from scanner.report.text.names import owner_title
from scanner.report.text.numbers import plural

POPULATION_FILE: Final = "population.csv"
SAMPLE_FILE: Final = "sample.csv"
RULE_FILE: Final = "rule.txt"
DATA_FILE: Final = "sample.json"
_OWNER: Final = "owner"
_INCOMPLETE: Final = "The scan is incomplete: objects that it could not list or evaluate are in no population."
_MOST_DAYS: Final = 36_600
_ONE_DAY: Final = timedelta(days=1)
_SHOWN: Final = 10


@dataclass(frozen=True, slots=True)
class PopulationChoice:
    """The items from which a sample of a scan is drawn: of the policies with a name, or of all; `owner` adds the owner of each object."""

    of: SampleOf
    policy: str = ""
    owner: bool = False

    @classmethod
    def of_request(cls, request: SampleRequest, policy: str) -> PopulationChoice:
        """The population of a sample. Findings have their owner anyway."""
        return cls(request.of, policy, _OWNER in request.strata and request.of is not SampleOf.FINDINGS)


def write_population(document: Document, choice: PopulationChoice, out: BinaryIO) -> None:
    """Write a heading and a line for each item: those of `csv` for findings, those of `csv-population` for objects.

    Raises UsageError for a policy that the scan does not have.
    """
    policies = find_policies(document.stored, choice.policy) if choice.policy else None
    if choice.of is SampleOf.FINDINGS:
        findings = document.findings()
        own = (each for each in findings if policies is None or each.finding.policy_key in policies)
        with _text(out) as text:
            csv.write(text, FINDINGS.titles, (FINDINGS.cells(each, document) for each in own))
    else:
        titles = (*POPULATION_TITLES, _OWNER) if choice.owner else POPULATION_TITLES
        with _text(out) as text:
            csv.write(text, titles, _list_objects(document, choice, policies))


@contextmanager
def _text(out: BinaryIO) -> Iterator[TextIO]:
    """A stream of text in UTF-8 over one of bytes, which stays open. Lone surrogates are written as escapes."""
    text = TextIOWrapper(out, "utf-8", errors="backslashreplace", newline="")
    try:
        yield text
        text.flush()
    finally:
        text.detach()


def find_policies(record: ScanRecord, name: str) -> frozenset[PolicyKey]:
    """The policies of a scan with a name, of any language. Raises UsageError without one."""
    keys = frozenset(used.policy.key for used in record.policies if used.policy.name == name)
    if not keys:
        names = sorted({used.policy.name for used in record.policies})
        more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
        has = f"It has {', '.join(names[:_SHOWN])}{more}" if names else "It has none"
        raise UsageError(f"--policy {name[:200]}: scan {record.scan.id} has no such policy. {has}")
    return keys


def _list_objects(
    document: Document, choice: PopulationChoice, policies: frozenset[PolicyKey] | None
) -> Iterator[tuple[str, ...]]:
    """The lines of the objects, which are those of `csv-population` also where a policy chooses them."""
    stored, rows = document.stored, PopulationRows(document.stored)
    passes = choice.of is SampleOf.PASSES
    failing: Mapping[int, int] = stored.count_findings_by_object(policies) if passes else {}
    owner_of = document.triage.owner_of
    every = passes is False and policies is None
    objects = (
        ((each.object, (owner_title(owner_of(each.kept)),)) for each in stored.labelled_population())
        if choice.owner
        else ((item, ()) for item in stored.population())
    )
    for item, owner in objects:
        if item.id not in failing and (every or rows.matched(item, policies, evaluated=passes)):
            yield (*rows.cells(item), *owner)


def name_object(item: RecordedObject) -> str:
    """The id of an object in a sample: the cells of its line of the population."""
    return "/".join(map(csv.cell, (item.api_version, item.kind, item.namespace, item.name, item.uid)))


# Days of the register of runs.

_STATES: Final = (RunState.COMPLETE, RunState.INCOMPLETE, RunState.FAILED, RunState.RUNNING)
_DAY_TITLES: Final = ("day", "runs", *(state.value for state in _STATES), "numbers")


def write_days(entries: Sequence[RegisterEntry], since: date | None, until: date | None, out: BinaryIO) -> None:
    """Write a heading and a line for each day (UTC) with the number of its runs, by state, and the numbers of the runs.

    A day without a run has a line, too. By default the days are those from the first to the last entry. Raises UsageError for too
    many days.
    """
    by_day: dict[date, list[RegisterEntry]] = {}
    for entry in entries:
        by_day.setdefault(entry.moment.astimezone(UTC).date(), []).append(entry)
    first, last = since or min(by_day, default=None), until or max(by_day, default=None)
    days = (last - first).days + 1 if first and last else 0
    if days > _MOST_DAYS:
        raise UsageError(
            f"the register has {days:,} days, more than {_MOST_DAYS:,}: choose a period with --since and --until"
        )
    dates = (first + _ONE_DAY * place for place in range(days)) if first else ()
    with _text(out) as text:
        csv.write(text, _DAY_TITLES, (_day(each, by_day.get(each, [])) for each in dates))


def _day(day: date, entries: Sequence[RegisterEntry]) -> tuple[str, ...]:
    runs = sorted(entry.run.run.number for entry in entries if entry.run)
    states = Counter(entry.state for entry in entries)
    return (day.isoformat(), str(len(runs)), *(str(states[state]) for state in _STATES), " ".join(map(str, runs)))


# The sample.


@dataclass(frozen=True, slots=True)
class SampleDescription:
    """The sentences and values that describe a sample: `subject` names the scan or the register, and `policy` may be empty.

    `incomplete` tells that the scan is incomplete.
    """

    sample: Sample
    subject: str
    policy: str = ""
    incomplete: bool = False

    @property
    def population(self) -> str:
        """The population in words."""
        policy = f" policy {self.policy}" if self.policy else ""
        match self.sample.request.of:
            case SampleOf.OBJECTS:
                what = f"the objects that{policy} matched" if policy else "the objects that the scan examined"
            case SampleOf.PASSES:
                what = f"the objects that passed every check{' of' + policy if policy else ''} that evaluated them"
            case SampleOf.FINDINGS:
                what = f"the findings{' of' + policy if policy else ''}"
            case SampleOf.RUNS:
                what = "the days of the register of runs"
        return f"{what}, {self.subject}: {self.sample.population:,} in {POPULATION_FILE}"

    def lines(self, most_strata: int | None = None) -> Iterator[str]:
        """The rule in words and in numbers, and how to follow it, each line a sentence; of the strata at most so many."""
        request, sample = self.sample.request, self.sample
        yield f"Population: {self.population}."
        yield f"Its file has the SHA-256 {sample.sha256}."
        if self.incomplete:
            yield _INCOMPLETE
        yield f"Seed: {request.seed}"
        yield f"Sample: {plural(len(sample.items), 'item')} in {SAMPLE_FILE}."
        if request.size.formula:
            yield (
                f"Size: for a confidence of {request.size.confidence} % that fewer than {request.size.tolerable} % of the items deviate, "
                "if no item of the sample does:"
            )
            yield f"  {request.size.formula}"
        yield from sample.notes
        yield "Rule: each item has the digest SHA-256(seed, line feed, SHA-256 of the file in hex, line feed, id), in UTF-8."
        columns = ID_COLUMNS[request.of]
        joined = ", joined by slashes" if len(columns) > 1 else ""
        cells = "cells of the line" if len(columns) > 1 else "cell"
        yield f"The id has the {cells} in {', '.join(columns)}{joined}. The items with the lowest digests are the sample."
        if request.strata:
            yield from self._describe_strata(most_strata)

    def _describe_strata(self, most: int | None) -> Iterator[str]:
        sample = self.sample
        yield (
            f"Strata: items with the same {' and '.join(sample.request.strata)}. Each stratum has one item; the others are "
            "divided in proportion to the items that remain, by largest remainder, and of equal remainders the first stratum in the "
            "order of its text has one more. The rule holds in each stratum."
        )
        yield "  population  sample  stratum"
        for share in sample.shares[:most]:
            yield f"  {share.population:>10,}  {share.sample:>6,}  {' / '.join(cell or '-' for cell in share.stratum)}"
        if most is not None and (more := len(sample.shares) - most) > 0:
            yield f"  and {more:,} more in {RULE_FILE}"

    def json(self) -> dict[str, Plain]:
        """The values of the sample."""
        request, sample = self.sample.request, self.sample
        return {
            "subject": self.subject,
            "of": request.of.value,
            "policy": self.policy or None,
            "seed": request.seed,
            "strata": list(request.strata),
            "confidence": request.size.confidence or None,
            "tolerable": request.size.tolerable or None,
            "formula": request.size.formula or None,
            "population": {"items": sample.population, "sha256": sample.sha256},
            "shares": [
                {"stratum": list(each.stratum), "population": each.population, "sample": each.sample}
                for each in sample.shares
            ],
            "items": [{"id": each.id, "digest": each.digest, "stratum": list(each.stratum)} for each in sample.items],
        }


def sample_of(document: Document, request: SampleRequest, policy: str, into: BinaryIO) -> SampleDescription:
    """Draw a sample of a scan, of which the population is written into a file. Raises UsageError."""
    write_population(document, PopulationChoice.of_request(request, policy), into)
    scan = document.stored.scan
    return SampleDescription(
        draw(request, into),
        f"scan {scan.id} of {scan.cluster.name}",
        policy,
        incomplete=not document.complete,
    )


def write_sample(sample: Sample, out: BinaryIO) -> None:
    """Write a heading, and each item in the order of the digests: its place, its digest, its id, and its line of the population."""
    # The cells are those of `population.csv`, which are guarded already.
    with _text(out) as text:
        writer = plain_csv.writer(text, lineterminator="\n")
        writer.writerow(("order", "digest", "id", *sample.titles))
        writer.writerows((place, each.digest, each.id, *each.cells) for place, each in enumerate(sample.items, 1))


def write_data(description: SampleDescription, out: BinaryIO) -> None:
    """Write the values of a sample as JSON."""
    out.write(dump(description.json()) + b"\n")


def write_rule(description: SampleDescription, out: BinaryIO) -> None:
    """Write the rule as text."""
    out.writelines(f"{line}\n".encode() for line in description.lines())
