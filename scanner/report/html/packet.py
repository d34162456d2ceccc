"""The readable parts of a packet: a page that needs no script and loads nothing, the verdicts as data, and how to check them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from io import BytesIO
from itertools import islice
from typing import BinaryIO, Final, NamedTuple

import orjson

from scanner.cel.explanation.explained import write_path
from scanner.model.json import Json, JsonObject
from scanner.model.policy import PolicyKey
from scanner.model.population import ExaminedObject, MatchedCheck
from scanner.model.scans.stored_finding import StoredFinding
from scanner.posture.deciding_fields import find_deciding_fields
from scanner.proof.reperformance import ExpectedItem, ItemResult, describe
from scanner.proof.verdicts import ObjectName, Replay, Verdict, list_verdicts
from scanner.report.document.document import Document
from scanner.report.document.policy_text import yaml_of
from scanner.report.document.rules_in_force import RuleInForce, list_rules
from scanner.report.document.waivers import WaiverLine, line_json, waiver_text
from scanner.report.formats import samples
from scanner.report.formats.samples import SampleDescription
from scanner.report.html.site import style_of
from scanner.report.html.templates import environment
from scanner.report.lists.finding_columns import FINDINGS
from scanner.report.text.evidence import evidence_lines
from scanner.report.text.json_text import Plain, dump, head_json
from scanner.report.text.names import owner_title
from scanner.report.text.times import iso

EXPECTED_FILE: Final = "expected.json"
ITEM_FILE: Final = "items/{:06}.json"
PAGE_FILE: Final = "index.html"
CHECK_FILE: Final = "check.txt"
_LONGEST: Final = 2_000
"""The characters of a line of an object."""
_MOST_LINES: Final = 2_000
_DEEPEST: Final = 60
_ANY: Final = "*"
_SHAPE: Final = "#"


@dataclass(frozen=True, slots=True)
class PacketPart:
    """An item with its object, its findings, and the other checks that matched the object and belong to the item."""

    id: str
    examined: ExaminedObject
    findings: tuple[StoredFinding, ...]
    checks: tuple[MatchedCheck, ...]

    @property
    def expected(self) -> ExpectedItem:
        """The verdicts that the scan recorded."""
        item = self.examined.object
        name = ObjectName(item.api_version, item.kind, item.namespace, item.name, item.uid)
        return ExpectedItem(self.id, name, list_verdicts(self.checks, [each.finding for each in self.findings]))


class ObjectLine(NamedTuple):
    """A line of the text of an object; it is `marked` if its field decided."""

    text: str
    marked: bool


@dataclass(frozen=True)
class Packet:
    """A packet of a sample. `bodies` are the objects as the snapshot with the digest `snapshot` has them.

    `policies` are those of which an item has every verdict; None for all, none for findings.
    """

    document: Document
    description: SampleDescription
    parts: tuple[PacketPart, ...]
    results: tuple[ItemResult, ...]
    replay: Replay
    bodies: Mapping[ObjectName, JsonObject]
    snapshot: str
    policies: frozenset[PolicyKey] | None

    def members(self, population: BinaryIO) -> Iterator[tuple[str, bytes]]:
        """The names and contents of the parts."""
        population.seek(0)
        yield samples.POPULATION_FILE, population.read()
        sample = BytesIO()
        samples.write_sample(self.description.sample, sample)
        yield samples.SAMPLE_FILE, sample.getvalue()
        yield samples.RULE_FILE, "".join(f"{line}\n" for line in self.description.lines()).encode()
        yield EXPECTED_FILE, dump(self._expected())
        for place, part in enumerate(self.parts, 1):
            yield ITEM_FILE.format(place), dump(self._item(place, part))
        yield CHECK_FILE, "".join(f"{line}\n" for line in self.how_to_check()).encode()
        yield PAGE_FILE, self._page().encode("utf-8", "backslashreplace")

    def _expected(self) -> dict[str, Json]:
        policies: Json = None if self.policies is None else [list(key) for key in sorted(self.policies)]
        return {
            **head_json(self.document.stored.scan),
            "snapshot": self.snapshot,
            "policies": policies,
            "digests": {each.section: each.digest for each in self.document.digests.sections},
            "sample": orjson.loads(dump(self.description.json())),
            "items": [part.expected.to_json() for part in self.parts],
        }

    def _item(self, place: int, part: PacketPart) -> dict[str, Plain]:
        """The parts of an item for readers and other programs."""
        name, since = part.expected.object, part.examined.since
        return {
            "order": place,
            "id": part.id,
            "object": {**self.bodies.get(name, {})},
            "verdicts": [verdict.to_json() for verdict in part.expected.verdicts],
            "findings": [FINDINGS.json(each, self.document) for each in part.findings],
            "waivers": [line_json(line, counted=True) for line in self.list_waivers([part])],
            "recordedSince": iso(since) if since else None,
            "owner": owner_title(self.document.triage.owner_of(part.examined.kept)),
        }

    def how_to_check(self) -> Iterator[str]:
        """How another person checks the packet."""
        yield "Check that the packet is whole, and evaluate its items again, without network and database:"
        yield "  assay reperform PACKET.zip"
        yield "Exit code 0: every verdict is reproduced. 1: a verdict differs. 3: the redaction prevents some. 2: the packet is damaged."
        yield "The command also draws the sample again from population.csv and the seed, and compares sample.csv and items/ with the result."
        yield "index.html, rule.txt and the history in items/ are what the sender's database has: nothing in the packet proves them."
        yield (
            "Without Assay: trailer.json has the SHA-256 of the bytes of each member; rule.txt has the rule of the sample, which "
            "needs SHA-256 alone; items/ has each object, and its verdicts with the values that decided."
        )
        yield f"The scan recorded the SHA-256 of its snapshot, {self.snapshot}: ask for the snapshot to repeat the whole scan."
        yield "Digests do not prove who made a file: ask the sender for the SHA-256 of the packet over another channel."

    # The page.

    def _page(self) -> str:
        document = self.document
        return (
            environment()
            .get_template("packet.html")
            .render(
                web=None,
                title="Packet",
                **style_of(environment(), document.provenance),
                document=document,
                sample=self.description.sample,
                lines=list(self.description.lines()),
                results=list(describe(self.results)),
                parts=list(zip(self.parts, self.results, strict=True)),
                packet=self,
                rules=self.rules,
                yaml_of=yaml_of,
                snapshot=self.snapshot,
            )
        )

    @cached_property
    def rules(self) -> tuple[RuleInForce, ...]:
        """The policies of the items, their bindings, and the other rules of the scan, of which every one may decide."""
        keys = {verdict.check.policy_key for part in self.parts for verdict in part.expected.verdicts}
        every = list_rules(self.document.stored)
        return tuple(
            rule
            for rule in every
            if (rule.type not in ("policy", "binding")) or (rule.language, rule.policy or rule.name) in keys
        )

    def verdict_rows(self, part: PacketPart) -> list[tuple[Verdict, StoredFinding | None]]:
        """The verdicts of an item, those of findings first, each with its finding."""
        by_verdict = {list_verdicts((), [each.finding])[0]: each for each in part.findings}
        rows = [(verdict, by_verdict.get(verdict)) for verdict in part.expected.verdicts]
        return sorted(rows, key=lambda row: row[1] is None)

    def list_waivers(self, parts: Iterable[PacketPart]) -> list[WaiverLine]:
        """The waivers that apply to findings of items as of the day of the report, as their authors wrote them."""
        find, section = self.document.triage.waiver, self.document.waivers
        applied = {waiver.name for part in parts for each in part.findings if (waiver := find(each))}
        return [line for line in section.lines if line.name in applied] if section else []

    def waiver_of(self, stored: StoredFinding) -> str:
        """The waiver of a finding as of the day of the report."""
        text = waiver_text(self.document.triage.waiver(stored))
        return f"waived by {text}" if text else ""

    def values_of(self, stored: StoredFinding) -> list[str]:
        """The values that decided a finding."""
        return list(evidence_lines(stored.finding.evidence))

    def owner_of(self, part: PacketPart) -> str:
        """The owner of an object."""
        return owner_title(self.document.triage.owner_of(part.examined.kept))

    def object_lines(self, part: PacketPart) -> list[ObjectLine]:
        """The object as lines; marked are the fields that decided its findings, else those that the policies read."""
        written = list(islice(_write_lines(self.bodies.get(part.expected.object, {})), _MOST_LINES + 1))
        by_path = {write_path(("object", *place)): number for number, (_, place) in enumerate(written)}
        decided = {path for each in part.findings for path in find_deciding_fields(each.finding)}
        marked = {_find_nearest(path, by_path) for path in decided}
        if not decided:
            reads = self._find_reads(part)
            marked = {number for number, (_, place) in enumerate(written) if any(_reads(path, place) for path in reads)}
        lines = [
            ObjectLine(text[:_LONGEST], number in marked) for number, (text, _) in enumerate(written[:_MOST_LINES])
        ]
        rest = ObjectLine("… the rest is in the page of the list in this packet", marked=False)
        return [*lines, rest] if len(written) > _MOST_LINES else lines

    def _find_reads(self, part: PacketPart) -> Collection[tuple[str, ...]]:
        keys = {verdict.check.policy_key for verdict in part.expected.verdicts}
        return {path for key in keys for path in self.replay.reads.get(key, ())}


def _reads(path: tuple[str, ...], place: tuple[str | int, ...]) -> bool:
    """Return whether a path of an expression names a place of an object; a marked part has its own line marked alone."""
    steps = path[:-1] if path and path[-1] == _SHAPE else path
    return (
        bool(place)
        and len(steps) == len(place)
        and all(step in (_ANY, str(at)) for step, at in zip(steps, place, strict=True))
    )


def _find_nearest(path: str, by_path: Mapping[str, int]) -> int | None:
    """The line of a field, or of the nearest map around one that is not set; None for a field of another document."""
    while path and path not in by_path:
        path = path[: max(path.rfind("."), path.rfind("["), 0)]
    return by_path.get(path) if path else None


def _write_lines(value: Json, place: tuple[str | int, ...] = ()) -> Iterator[tuple[str, tuple[str | int, ...]]]:
    """A JSON value in lines like those of YAML, scalars as JSON, each with its place."""
    indent = "  " * max(0, len(place) - 1)
    lead = "" if not place else f"{indent}- " if isinstance(place[-1], int) else f"{indent}{place[-1]}: "
    steps: Iterator[tuple[str | int, Json]]
    if isinstance(value, Mapping) and value and len(place) < _DEEPEST:
        steps = iter(value.items())
    elif isinstance(value, list) and value and len(place) < _DEEPEST:
        steps = iter(enumerate(value))
    else:
        yield lead + dump(value).decode(), place
        return
    if place:
        yield lead.rstrip(), place
    for step, item in steps:
        yield from _write_lines(item, (*place, step))
