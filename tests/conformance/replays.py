"""Recorded policies in a scan that is written into a snapshot, and again in a replay of that snapshot.

Both evaluate the policies of a suite together, as those of one cluster. A replay has the verdicts of its scan, and where the scan has the
recorded verdict, that one; or it skips a check that may read what the snapshot withholds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson

from scanner.cluster.files.snapshot import SnapshotCluster
from scanner.cluster.snapshots.page_writer import open_page_writer
from scanner.cluster.snapshots.recording import RecordingCluster
from scanner.cluster.snapshots.replay import ReplayedCluster
from scanner.model.outcome import CheckKind, Errored, Finding, Violated
from scanner.model.resource import Kind, Page, UserInfo
from scanner.model.scans.scan import Scope
from scanner.policies.language import LANGUAGES, Language
from scanner.proof.reperformance import ExpectedItem, ItemResult, compare
from scanner.proof.verdicts import EvaluatedItem, ObjectName, Replay, evaluate_objects
from scanner.scan.edges import Cluster
from scanner.scan.options import Options
from scanner.scan.prepare import prepare
from tests.conformance.policies import ADMIN, RECORDED, AllowAdmin

Json = dict[str, Any]
Key = tuple[str, ObjectName]
"""A policy and an object."""
Answer = Counter[tuple[int, str]] | frozenset[tuple[int, str]] | str
"""The recorded failures by the index of the expression and the message, each counted or once; or one of `_STATUSES`."""

NOW = datetime(2026, 8, 21, tzinfo=UTC)
_STATUSES = {
    "pass": {"pass", "changed"},
    "fail": {"fail"},
    "error": {"error"},
    "skip": {"skip"},
    "changed": {"changed"},
    "unchanged": {"pass", "skip"},
}
"""The statuses of verdicts that an answer stands for."""
_STATUS_OF = {"violated": "fail", "errored": "error", "wouldChange": "changed", "passed": "pass"}


@dataclass(frozen=True, slots=True)
class Suite:
    """The documents of a cluster, and what was recorded about a policy and an object."""

    name: str
    documents: tuple[Json, ...]
    recorded: Mapping[Key, Answer] = field(default_factory=dict)
    operation: str = "auto"
    languages: tuple[Language, ...] = LANGUAGES


@dataclass(slots=True)
class ReplayScore:
    """The number of verdicts of a scan, and of those that its replay skips; the same for recorded answers.

    `other` are answers that the scan itself does not give: the floors of the suites know them. `differences` are sentences.
    """

    verdicts: int = 0
    redacted: int = 0
    answers: int = 0
    redacted_answers: int = 0
    other: int = 0
    differences: list[str] = field(default_factory=list)

    def add(self, more: ReplayScore) -> None:
        """Add the numbers of another cluster of the same suite."""
        self.verdicts += more.verdicts
        self.redacted += more.redacted
        self.answers += more.answers
        self.redacted_answers += more.redacted_answers
        self.other += more.other
        self.differences += more.differences

    def cells(self) -> tuple[str, ...]:
        """The cells of a line of a table; `HEADS` has their titles."""
        share = f"{self.redacted / (self.verdicts or 1):.1%}"
        equal = self.verdicts - self.redacted, self.answers - self.redacted_answers - self.other
        numbers = (self.verdicts, equal[0], self.redacted, share, self.answers, equal[1], self.redacted_answers)
        cells = (each if isinstance(each, str) else f"{each:,}" for each in numbers)
        return (*cells, f"{self.other:,}", f"{len(self.differences):,}")


HEADS = ("verdicts", "equal", "redacted", "share", "recorded", "equal", "redacted", "other", "DIFFERENT")


def write_line(name: str, cells: Iterable[str]) -> str:
    """A line of the table of all suites."""
    return f"{name:22}" + "".join(f"{cell:>10}" for cell in cells)


class RecordedServer(SnapshotCluster):
    """A cluster of files with the user and the authorizer of the recordings, which may have several objects of one name."""

    def __init__(self, documents: Iterable[Json], folder: Path, languages: tuple[Language, ...]) -> None:
        """Write the documents into a file of the folder."""
        first: dict[ObjectName, Json] = {}
        self._twins: list[Json] = []
        for document in documents:
            if first.setdefault(name_of(document)._replace(uid=""), document) is not document:
                self._twins.append(document)
        listed = {"apiVersion": "v1", "kind": "List", "items": [*first.values()]}
        (folder / "in.json").write_bytes(orjson.dumps(listed))
        super().__init__([folder / "in.json"], kubernetes_version=RECORDED, languages=languages)

    def requester(self) -> UserInfo:
        """See Cluster."""
        return ADMIN

    def authorizer(self) -> AllowAdmin:  # type: ignore[override]
        """See Cluster."""
        return AllowAdmin()

    def pages(self, kind: Kind, *, namespace: str = "", selector: str = "") -> Iterator[Page]:
        """See Cluster."""
        yield from super().pages(kind, namespace=namespace, selector=selector)
        twins = [each for each in self._twins if (each["apiVersion"], each["kind"]) == (kind.api_version, kind.kind)]
        if twins and not selector:
            yield Page(kind, 1000, orjson.dumps({"items": twins}))


def name_of(document: Json, namespace: str = "") -> ObjectName:
    """The name of an object; a namespace for one that has none."""
    metadata = document["metadata"]
    place = metadata.get("namespace", namespace)
    return ObjectName(document["apiVersion"], document["kind"], place, metadata["name"], metadata.get("uid", ""))


def score_suites(suites: Iterable[Suite], folder: Path) -> ReplayScore:
    """The numbers of all clusters of a suite."""
    score = ReplayScore()
    for number, suite in enumerate(suites):
        score.add(score_replay(suite, folder / str(number)))
    return score


def score_replay(suite: Suite, folder: Path) -> ReplayScore:
    """Scan a suite with a snapshot in a new folder, replay it, and compare."""
    folder.mkdir()
    live, again = _scan_and_replay(suite, folder)
    items = [ExpectedItem("/".join(name), name, item.verdicts) for name, item in live.items.items()]
    results = {result.item.object: result for result in compare(items, again, None)}
    score = ReplayScore(
        verdicts=sum(len(item.verdicts) for item in items),
        redacted=sum(len(result.redacted) for result in results.values()),
        differences=[f"{each.item.id}: {what}" for each in results.values() for what in each.differences],
    )
    score.differences += [f"{name}: only the replay has it" for name in again.items.keys() - live.items.keys()]
    own_gaps = [gap for gap in {*live.gaps} ^ {*again.gaps} if gap in live.gaps or "withholds" not in gap.why]
    score.differences += [f"{suite.name}: {gap}" for gap in own_gaps]
    _compare_recorded(suite, live, again, results, score)
    return score


def _scan_and_replay(suite: Suite, folder: Path) -> tuple[Replay, Replay]:
    """The verdicts of a scan that writes a snapshot, and those of its replay."""
    server = RecordedServer(suite.documents, folder, suite.languages)
    names = [*_list_names(server, suite.documents)]
    with RecordingCluster(server, open_page_writer(folder / "x.snapshot", "0")) as recording:
        live = _evaluate(recording, suite, names)
        recording.close(started=NOW, options={})
    replayed = ReplayedCluster(folder / "x.snapshot")
    try:
        return live, _evaluate(replayed, suite, names)
    finally:
        replayed.close()


def _evaluate(cluster: Cluster, suite: Suite, names: list[ObjectName]) -> Replay:
    options = Options(scope=Scope(operation=suite.operation), languages=suite.languages)
    return evaluate_objects(prepare(cluster, options, NOW), names)


def _list_names(server: SnapshotCluster, documents: Iterable[Json]) -> Iterator[ObjectName]:
    """The names of the objects in every version in which they may be listed."""
    kinds = server.discover().kinds
    for document in documents:
        for kind in kinds:
            if kind.kind == document["kind"]:
                in_version = {**document, "apiVersion": kind.api_version}
                yield name_of(in_version, "default" if kind.namespaced else "")


def _compare_recorded(
    suite: Suite, live: Replay, again: Replay, results: Mapping[ObjectName, ItemResult], score: ReplayScore
) -> None:
    """Compare the recorded answers with those of the replay, where the scan itself has them."""
    for (policy, name), answer in suite.recorded.items():
        score.answers += 1
        if not _agrees(live.items.get(name), policy, answer):
            score.other += 1
        elif name in results and any(check.policy == policy for check in results[name].redacted):
            score.redacted_answers += 1
        elif not _agrees(again.items.get(name), policy, answer):
            score.differences.append(f"{policy} {name}: not as recorded: {answer}")


def _agrees(item: EvaluatedItem | None, policy: str, answer: Answer) -> bool:
    """Return whether the verdicts of a policy about an object, which may be none, are as recorded."""
    if isinstance(answer, str):
        return _status_of(item, policy) in _STATUSES[answer]
    failures = Counter(_list_failures(item, policy) if item else ())
    return failures.keys() == answer if isinstance(answer, frozenset) else failures == answer


def _status_of(item: EvaluatedItem | None, policy: str) -> str:
    """The worst outcome of a policy; an error that a mutating policy ignores is none."""
    outcomes = {
        verdict.outcome
        for verdict in (item.verdicts if item else ())
        if verdict.check.policy == policy
        and not verdict.excepted_by
        and not (verdict.outcome == "errored" and not verdict.denies and verdict.check.language.startswith("Mutating"))
    }
    return next((status for outcome, status in _STATUS_OF.items() if outcome in outcomes), "skip")


def _list_failures(item: EvaluatedItem, policy: str) -> Iterator[tuple[int, str]]:
    for finding in item.findings:
        if finding.policy == policy and _is_reported(finding):
            yield finding.check.index, finding.outcome.message


def _is_reported(finding: Finding) -> bool:
    """Return whether a server reports a finding as a failure of a validation."""
    match finding.outcome:
        case Violated():
            return finding.check.kind is CheckKind.VALIDATION
        case Errored(would_deny=would_deny, always=always):
            return would_deny and not always
        case _:
            return False
