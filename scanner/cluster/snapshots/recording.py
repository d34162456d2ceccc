"""A cluster that is written into a snapshot while a scan reads it: every answer that a verdict can depend on, without secrets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, suppress
from datetime import datetime
from typing import Self

import orjson

from scanner.cel import AuthorizerAnswer, Decider, Question
from scanner.cluster.snapshots import facts
from scanner.cluster.snapshots.page_writer import PageWriter
from scanner.errors import AuthorizerFailed, ListFailed
from scanner.model.json import Json, JsonObject
from scanner.model.resource import Kind, Page, UserInfo
from scanner.model.scans.scan import ClusterIdentity, ServerCounts
from scanner.mutate.schema import Conversion, Schema, Schemas
from scanner.scan.edges import Cluster, Discovery


class RecordingCluster:
    """The same cluster; `close` completes the snapshot. Satisfies `Cluster`."""

    def __init__(self, cluster: Cluster, writer: PageWriter) -> None:
        """Record into a snapshot that has begun."""
        self._cluster = cluster
        self._writer = writer
        self._pages = 0
        self._lists: list[facts.RecordedList] = []
        self._facts: dict[str, Json] = {}
        self._counts: list[Json] = []
        self._answers: dict[str, Json] = {}
        self._schemas = facts.WrittenSchemas()
        self.withheld = 0
        """The number of places that are withheld, once the snapshot is complete."""

    def __enter__(self) -> Self:
        """Record until the block ends; a snapshot that is not closed then is removed."""
        return self

    def __exit__(self, *_: object) -> None:
        """Remove a snapshot that is not complete."""
        self._writer.discard()

    def add(self, name: str, content: bytes) -> None:
        """Add a member besides those of a snapshot. Raises UsageError."""
        self._writer.add(name, content)

    def close(self, *, started: datetime, options: JsonObject) -> str:
        """Complete the snapshot of a scan with these options, and return its SHA-256 in hex. Raises UsageError."""
        lists: list[Json] = [recorded.to_json() for recorded in self._lists]
        document = {**self._facts, "started": started.isoformat(), "counts": self._counts, "answers": self._answers}
        self._writer.add(facts.SCAN, orjson.dumps(options))
        self._writer.add(facts.SCHEMAS, self._schemas.to_bytes())
        self._writer.add(facts.CLUSTER, orjson.dumps({**document, "lists": lists}))
        digest, self.withheld = self._writer.close()
        return digest

    def add_lists(self, kinds: Iterable[Kind]) -> None:
        """Record the objects of further kinds; a list that fails is recorded as failed, and one that is recorded is not made again."""
        made = {
            each.kind for each in self._lists if not each.metadata_only and not each.namespace and not each.selector
        }
        for kind in kinds:
            if kind not in made:
                with suppress(ListFailed):
                    for _ in self.pages(kind):
                        pass

    def identity(self) -> ClusterIdentity:
        """See Cluster."""
        identity = self._cluster.identity()
        self._facts["identity"] = facts.write_identity(identity)
        return identity

    def now(self) -> datetime | None:
        """See Cluster."""
        return self._cluster.now()

    def requester(self) -> UserInfo:
        """See Cluster."""
        user = self._cluster.requester()
        self._facts["requester"] = facts.write_user(user)
        return user

    def authorizer(self) -> Decider | None:
        """See Cluster. Its answers are recorded."""
        decider = self._cluster.authorizer()
        self._facts["authorizer"] = decider is not None
        return _RecordingDecider(decider, self._answers) if decider else None

    def schemas(self) -> Schemas:
        """See Cluster. The schemas that are asked for are recorded."""
        return _RecordingSchemas(self._cluster.schemas(), self._schemas)

    def discover(self) -> Discovery:
        """See Cluster."""
        discovery = self._cluster.discover()
        self._facts["discovery"] = facts.write_discovery(discovery)
        return discovery

    def expect(self, lists: Iterable[tuple[Kind, str, str]]) -> None:
        """See Cluster."""
        self._cluster.expect(lists)

    def pages(self, kind: Kind, *, namespace: str = "", selector: str = "") -> Iterator[Page]:
        """See Cluster. Each page is recorded before it is evaluated."""
        recorded = facts.RecordedList(kind, namespace, selector, metadata_only=False)
        return self._record(self._cluster.pages(kind, namespace=namespace, selector=selector), recorded)

    def metadata(self, kind: Kind, *, namespace: str = "") -> Iterator[Page]:
        """See Cluster. Each page is recorded."""
        recorded = facts.RecordedList(kind, namespace, "", metadata_only=True)
        return self._record(self._cluster.metadata(kind, namespace=namespace), recorded)

    def object_counts(self) -> ServerCounts:
        """See Cluster."""
        counts = self._cluster.object_counts()
        self._counts.append(facts.write_counts(counts))
        return counts

    def while_waiting(self, beat: Callable[[], None]) -> None:
        """See Cluster."""
        self._cluster.while_waiting(beat)

    def pause(self) -> AbstractContextManager[None]:
        """See Cluster."""
        return self._cluster.pause()

    def _record(self, pages: Iterator[Page], recorded: facts.RecordedList) -> Iterator[Page]:
        self._lists.append(recorded)
        try:
            for page in pages:
                self._write(page, recorded)
                yield page
        except ListFailed as error:
            recorded.state, recorded.why = error.state, error.why
            raise
        recorded.ended = True

    def _write(self, page: Page, recorded: facts.RecordedList) -> None:
        self._pages += 1
        member = f"pages/{self._pages:06}.json"
        self._writer.add_page(member, page, metadata_only=recorded.metadata_only)
        recorded.pages.append(
            facts.RecordedPage(member, page.number, page.resource_version, page.seconds, page.inconsistency)
        )


class _RecordingDecider:
    """An authorizer whose answers are recorded."""

    def __init__(self, decider: Decider, answers: dict[str, Json]) -> None:
        self._decider, self._answers = decider, answers

    def decide(self, question: Question) -> AuthorizerAnswer:
        """See Decider."""
        key = facts.write_question(question)
        try:
            answer = self._decider.decide(question)
        except AuthorizerFailed as error:
            self._answers[key] = {"failed": str(error)}
            raise
        self._answers[key] = {"allowed": answer.allowed, "reason": answer.reason, "error": answer.error}
        return answer


class _RecordingSchemas:
    """Schemas that are recorded."""

    def __init__(self, schemas: Schemas, written: facts.WrittenSchemas) -> None:
        self._schemas, self._written = schemas, written

    def schema(self, kind: Kind) -> Schema | None:
        """See Schemas."""
        schema = self._schemas.schema(kind)
        self._written.add(kind, schema)
        return schema

    def conversion(self, kind: Kind) -> Conversion:
        """See Schemas."""
        conversion = self._schemas.conversion(kind)
        self._written.add_conversion(kind, conversion)
        return conversion
