"""Packets: made of a sample and the snapshot of its scan, and evaluated again without cluster and database."""

from __future__ import annotations

from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from scanner.cli.scanning.scan_flags import ScanFlags
from scanner.cli.scanning.snapshots import NOTE, restore_options
from scanner.errors import UsageError
from scanner.model.json import Json, as_list, as_text, dig, texts
from scanner.model.policy import PolicyKey
from scanner.model.resource import api_group_of
from scanner.proof.sampling import SampleOf, SampleRequest, SampleSize, draw

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import BinaryIO

    from scanner.cluster.snapshots.packets import ChosenObjects
    from scanner.cluster.snapshots.recording import RecordingCluster
    from scanner.cluster.snapshots.replay import ReplayedCluster
    from scanner.model.outcome import Finding
    from scanner.model.population import ExaminedObject, MatchedCheck, RecordedObject
    from scanner.model.scans.scan import ScanRecord
    from scanner.model.scans.stored_finding import StoredFinding
    from scanner.proof.reperformance import ExpectedItem, ItemResult
    from scanner.proof.sampling import Sample
    from scanner.proof.verdicts import ObjectName, Replay
    from scanner.report.document.document import Document
    from scanner.report.formats.samples import SampleDescription
    from scanner.report.html.packet import PacketPart
    from scanner.scan.options import Options
    from scanner.store import SqlReader

MOST: Final = 500
"""The most items of a packet: its page shows each of them."""
_NOTE: Final = NOTE.partition("{")[0]


def open_chosen(path: Path, record: ScanRecord) -> ChosenObjects:
    """The snapshot of a scan. Raises UsageError for one that is damaged, and for that of another scan."""
    from scanner.cluster.snapshots.packets import ChosenObjects

    opened = ChosenObjects(path)
    if NOTE.format(opened.sha256) in record.scan.notes:
        return opened
    opened.close()
    recorded = next((note.removeprefix(_NOTE).rstrip(".") for note in record.scan.notes if note.startswith(_NOTE)), "")
    if not recorded:
        raise UsageError(
            f"scan {record.scan.id} recorded no snapshot: scan with --snapshot FILE, then name that scan and that file"
        )
    raise UsageError(
        f"--snapshot {path} has the SHA-256 {opened.sha256}, and scan {record.scan.id} recorded {recorded}: name the snapshot of that scan"
    )


def restore_default_options(recorded: ReplayedCluster) -> Options:
    """The options of the scan that made a snapshot: no flag, variable or file of this machine changes them. Raises UsageError."""
    from scanner.cluster.snapshots.facts import SCAN
    from scanner.scan.options import Options

    flags = ScanFlags.take({flag.name: flag.default for flag in ScanFlags.flags()})
    try:
        return restore_options(Options(), flags, recorded.options)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        recorded.archive.fail(f"{SCAN} has an unknown form: {error}")


def evaluate_again(
    cluster: RecordingCluster | ReplayedCluster, source: ReplayedCluster, wanted: Sequence[ObjectName]
) -> Replay:
    """Evaluate some objects again, at the time of the scan. Objects are listed after the rules."""
    from scanner.cluster.snapshots.packets import ChosenObjects
    from scanner.proof.verdicts import evaluate_objects
    from scanner.scan.prepare import prepare

    prepared = prepare(cluster, restore_default_options(source), source.started)
    if isinstance(source, ChosenObjects):
        source.choose(wanted)
    return evaluate_objects(prepared, wanted)


# A packet is made.


def write_packet(
    store: SqlReader,
    document: Document,
    description: SampleDescription,
    population: BinaryIO,
    snapshot: Path,
    out: Path,
) -> tuple[ItemResult, ...]:
    """Write the packet of a sample, and return what evaluating its items again gives. Raises UsageError."""
    from scanner import __version__
    from scanner.cluster.snapshots.packets import PacketWriter
    from scanner.cluster.snapshots.recording import RecordingCluster
    from scanner.proof.reperformance import compare
    from scanner.proof.verdicts import ObjectName
    from scanner.report.html.packet import Packet

    if len(description.sample.items) > MOST:
        raise UsageError(f"a packet has at most {MOST} items: name fewer with --n, or leave out --snapshot")
    chosen = open_chosen(snapshot, document.stored)
    try:
        policies = _find_policies(description, document)
        parts = tuple(_list_parts(store, document, description, policies))
        items = tuple(part.expected for part in parts)
        with RecordingCluster(chosen, PacketWriter(out, __version__)) as recording:
            replay = evaluate_again(recording, chosen, [item.object for item in items])
            results = compare(items, replay, policies)
            bodies = {ObjectName(*name): body for name, body in chosen.bodies.items()}
            packet = Packet(document, description, parts, results, replay, bodies, chosen.sha256, policies)
            for name, content in packet.members(population):
                recording.add(name, content)
            recording.close(started=chosen.started, options=chosen.options)
        return results
    finally:
        chosen.close()


def _find_policies(description: SampleDescription, document: Document) -> frozenset[PolicyKey] | None:
    """The policies of which an item has every verdict: none for findings, which are one verdict each; None for all policies."""
    from scanner.report.formats.samples import find_policies

    if description.sample.request.of is SampleOf.FINDINGS:
        return frozenset()
    return find_policies(document.stored, description.policy) if description.policy else None


def _list_parts(
    store: SqlReader, document: Document, description: SampleDescription, policies: frozenset[PolicyKey] | None
) -> Iterator[PacketPart]:
    """The items of a sample with their objects, verdicts and findings, in the order of the sample."""
    from scanner.report.formats.samples import name_object
    from scanner.report.html.packet import PacketPart

    ids = {item.id: place for place, item in enumerate(description.sample.items)}
    drawn: dict[str, StoredFinding] = {}
    objects: dict[str, _Identity] = {}
    if description.sample.request.of is SampleOf.FINDINGS:
        drawn = {stored.id: stored for stored in document.findings() if stored.id in ids}
        objects = {key: _identity_of(stored.finding) for key, stored in drawn.items()}
    else:
        named = ((name_object(item), item) for item in document.stored.population())
        objects = {key: _identity_of(item) for key, item in named if key in ids}
    findings = _group_findings(document, frozenset(objects.values()))
    for key in ids:
        examined = _find_examined(store, document.stored, objects[key])
        own = [each for each in findings.get(objects[key], ()) if _belongs(each, drawn.get(key), policies)]
        yield PacketPart(key, examined, tuple(own), checks=_select_checks(examined, drawn.get(key), policies))


_Identity = tuple[str, str, str, str, str]


def _identity_of(item: RecordedObject | Finding) -> _Identity:
    """Group, kind, namespace, name and UID: a policy may evaluate an object in another version than the list had."""
    return api_group_of(item.api_version), item.kind, item.namespace, item.name, item.uid


def _group_findings(document: Document, wanted: frozenset[_Identity]) -> dict[_Identity, list[StoredFinding]]:
    grouped: dict[_Identity, list[StoredFinding]] = {}
    for stored in document.findings():
        if (identity := _identity_of(stored.finding)) in wanted:
            grouped.setdefault(identity, []).append(stored)
    return grouped


def _find_examined(store: SqlReader, record: ScanRecord, identity: _Identity) -> ExaminedObject:
    """The object with every check that matched it. Raises UsageError for one that the database does not have any more."""
    _, kind, namespace, name, _ = identity
    objects = store.read_objects_named(record.scan.id, kind=kind, namespace=namespace, name=name)
    examined = next((each for each in objects if _identity_of(each.object) == identity), None)
    if examined is None:
        raise UsageError(f"scan {record.scan.id} has no checks of {kind} {namespace}/{name}: name a newer scan")
    return examined


def _belongs(each: StoredFinding, drawn: StoredFinding | None, policies: frozenset[PolicyKey] | None) -> bool:
    """Return whether a finding of an object belongs to the item: the drawn finding itself, or those of the policies."""
    if drawn is not None:
        return each.finding.fingerprint == drawn.finding.fingerprint
    return policies is None or each.finding.policy_key in policies


def _select_checks(
    examined: ExaminedObject, drawn: StoredFinding | None, policies: frozenset[PolicyKey] | None
) -> tuple[MatchedCheck, ...]:
    """The checks of an item besides those of its findings: none for a finding."""
    if drawn is not None:
        return ()
    return tuple(each for each in examined.checks if policies is None or (each.language, each.policy) in policies)


# A packet is evaluated again.


class PacketResult(NamedTuple):
    """A packet that was evaluated again: its file's SHA-256 in hex, the version of Assay that made it, and the results."""

    sha256: str
    made_by: str
    subject: str
    results: tuple[ItemResult, ...]


def reperform(path: Path) -> PacketResult:
    """Evaluate the items of a packet again, and draw its sample again. Raises UsageError for a packet that cannot be used."""
    from scanner.cluster.snapshots.archive import FORMAT, PACKET
    from scanner.cluster.snapshots.packets import ChosenObjects
    from scanner.proof.reperformance import compare, read_items
    from scanner.report.formats.samples import POPULATION_FILE
    from scanner.report.html.packet import EXPECTED_FILE

    packet = ChosenObjects(path, PACKET)
    try:
        archive = packet.archive
        expected = archive.read_json(EXPECTED_FILE)
        try:
            items = read_items(dig(expected, "items"))
            policies = _read_policies(dig(expected, "policies"))
            request = _read_request(dig(expected, "sample"))
        except (ValueError, TypeError) as error:
            archive.fail(f"{EXPECTED_FILE} has an unknown form: {error}")
        drawn = draw(request, BytesIO(archive.read(POPULATION_FILE)))
        if [item.id for item in drawn.items] != [item.id for item in items]:
            archive.fail(f"its items are not those that the seed {request.seed!r} draws from {POPULATION_FILE}")
        replay = evaluate_again(packet, packet, [item.object for item in items])
        _reject_other_sample(packet, drawn)
        compared = compare(items, replay, policies)
        results = tuple(_compare_part(packet, place, each) for place, each in enumerate(compared, 1))
        made_by = as_text(dig(archive.read_json(FORMAT), "assay"))
        subject = as_text(dig(expected, "sample", "subject"))
        return PacketResult(archive.sha256, made_by, subject, results)
    finally:
        packet.close()


def _reject_other_sample(packet: ChosenObjects, drawn: Sample) -> None:
    """Fail for a packet whose readers see another sample than the one that is evaluated again."""
    from scanner.report.formats.samples import SAMPLE_FILE, write_sample
    from scanner.report.html.packet import EXPECTED_FILE, ITEM_FILE

    archive, sample = packet.archive, BytesIO()
    write_sample(drawn, sample)
    if archive.read(SAMPLE_FILE) != sample.getvalue():
        archive.fail(f"{SAMPLE_FILE} is not the sample that the seed draws")
    if (further := ITEM_FILE.format(len(drawn.items) + 1)) in archive:
        archive.fail(f"{further} is no item of {EXPECTED_FILE}")


def _compare_part(packet: ChosenObjects, place: int, result: ItemResult) -> ItemResult:
    """The result of an item, which differs if the part for readers has another object or other verdicts. Raises UsageError."""
    from scanner.proof.reperformance import ItemState
    from scanner.report.html.packet import ITEM_FILE

    item, name = result.item, ITEM_FILE.format(place)
    part, expected = packet.archive.read_json(name), item.to_json()
    differences = []
    if any(dig(part, key) != expected[key] for key in ("id", "verdicts")) or dig(part, "order") != place:
        differences.append(f"{name} has other verdicts than the packet")
    if sorted(map(_describe_finding, as_list(dig(part, "findings")))) != sorted(_list_failures(item)):
        differences.append(f"{name} has other findings than verdicts")
    if item.object in packet.bodies and dig(part, "object") != packet.bodies[item.object]:
        differences.append(f"{name} has another object than the one that was evaluated")
    if not differences:
        return result
    return replace(result, state=ItemState.DIFFERS, differences=(*result.differences, *differences))


def _list_failures(item: ExpectedItem) -> Iterator[tuple[str, ...]]:
    for verdict in item.verdicts:
        if verdict.outcome not in ("passed", "skipped"):
            yield (verdict.check.language, verdict.check.policy, verdict.check.binding, verdict.outcome, verdict.detail)


def _describe_finding(finding: Json) -> tuple[str, ...]:
    return tuple(as_text(dig(finding, key)) for key in ("language", "policy", "binding", "outcome", "message"))


def _read_policies(value: Json) -> frozenset[PolicyKey] | None:
    if value is None:
        return None
    keys = [texts(each) for each in as_list(value)]
    return frozenset((language, name) for language, name in keys)


def _read_request(value: Json) -> SampleRequest:
    """The sample that `SampleDescription.json` wrote. Raises ValueError for another document."""
    size = SampleSize(len(as_list(dig(value, "items"))))
    return SampleRequest(
        SampleOf(as_text(dig(value, "of"))), size, as_text(dig(value, "seed")), texts(dig(value, "strata"))
    )
