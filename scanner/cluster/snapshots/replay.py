"""A snapshot as a cluster: it answers every request of a scan as the cluster did when the snapshot was made."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Final

import orjson

from scanner.audit.items import decode_item, find_withheld, split_items
from scanner.cel import AuthorizerAnswer, Decider, Question
from scanner.cluster.labels import LabelQuery, parse_selector
from scanner.cluster.snapshots import facts
from scanner.cluster.snapshots.archive import SNAPSHOT, ArchiveForm, SnapshotArchive
from scanner.errors import AuthorizerFailed, ListFailed, UsageError
from scanner.model.json import Json, JsonObject, as_list, as_object, as_text, dig, text_map
from scanner.model.resource import NAMESPACES, Kind, Page, UserInfo
from scanner.model.scans.scan import ClusterIdentity, ServerCounts
from scanner.mutate.schema import Conversion, Schema, Schemas
from scanner.scan.edges import Discovery

_Key = tuple[Kind, str, str, bool]
_NO_COUNTS: Final = "the snapshot has none"


class ReplayedCluster:
    """The cluster of a snapshot. Satisfies `Cluster`; its pages are read one by one."""

    def __init__(self, path: Path, *, kubernetes_version: str = "", form: ArchiveForm = SNAPSHOT) -> None:
        """Open and verify a snapshot or a packet; the rules of another Kubernetes release may be applied to it.

        Raises UsageError for a file that is damaged, cut off, or of another version.
        """
        self.archive = SnapshotArchive(path, form)
        self._version = kubernetes_version
        self._made: dict[_Key, int] = defaultdict(int)
        self._counted = 0
        try:
            self._read_facts()
        except UsageError:
            self.archive.close()
            raise

    def _read_facts(self) -> None:
        """Read what a snapshot has besides its pages. Raises UsageError."""
        self._facts = self.archive.read_json(facts.CLUSTER)
        options = self.archive.read_json(facts.SCAN)
        if not isinstance(options, dict):
            self.archive.fail(f"{facts.SCAN} has an unknown form")
        self.options: JsonObject = options
        """The options of the scan that made the snapshot."""
        try:
            self.started = datetime.fromisoformat(as_text(dig(self._facts, "started")))
            """The beginning of the scan that made the snapshot."""
            recorded = [facts.read_list(value) for value in as_list(dig(self._facts, "lists"))]
            self._discovery = facts.read_discovery(dig(self._facts, "discovery"))
            self._schemas = _ReplayedSchemas(self.archive.read_json(facts.SCHEMAS))
        except (ValueError, TypeError) as error:
            self.archive.fail(f"{facts.CLUSTER} or {facts.SCHEMAS} has an unknown form: {error}")
        self._lists: dict[_Key, list[facts.RecordedList]] = defaultdict(list)
        for each in recorded:
            self._lists[each.kind, each.namespace, each.selector, each.metadata_only].append(each)

    def close(self) -> None:
        """Close the file."""
        self.archive.close()

    @property
    def sha256(self) -> str:
        """The SHA-256 of the file in hex."""
        return self.archive.sha256

    def identity(self) -> ClusterIdentity:
        """See Cluster."""
        identity = facts.read_identity(dig(self._facts, "identity"))
        return replace(identity, server_version=self._version) if self._version else identity

    def now(self) -> datetime | None:
        """See Cluster: no server answers."""
        return None

    def requester(self) -> UserInfo:
        """See Cluster."""
        return facts.read_user(dig(self._facts, "requester"))

    def authorizer(self) -> Decider | None:
        """See Cluster. A check that the scan did not make has no answer."""
        if dig(self._facts, "authorizer") is False:
            return None
        return _ReplayedDecider(as_object(dig(self._facts, "answers")))

    def schemas(self) -> Schemas:
        """See Cluster."""
        return self._schemas

    def discover(self) -> Discovery:
        """See Cluster."""
        return self._discovery

    def expect(self, lists: Iterable[tuple[Kind, str, str]]) -> None:
        """See Cluster: nothing is fetched."""

    def pages(self, kind: Kind, *, namespace: str = "", selector: str = "") -> Iterator[Page]:
        """See Cluster. A list that the scan did not make is a part of a larger one, or fails."""
        return self._replay(kind, namespace, selector, metadata_only=False)

    def metadata(self, kind: Kind, *, namespace: str = "") -> Iterator[Page]:
        """See Cluster. Whole objects have their metadata, too."""
        return self._replay(kind, namespace, "", metadata_only=True)

    def object_counts(self) -> ServerCounts:
        """See Cluster."""
        counts = as_list(dig(self._facts, "counts"))
        if not counts:
            return ServerCounts(why_not=_NO_COUNTS)
        self._counted += 1
        return facts.read_counts(counts[min(self._counted, len(counts)) - 1])

    def while_waiting(self, beat: Callable[[], None]) -> None:
        """See Cluster: a file is never waited for."""

    def pause(self) -> AbstractContextManager[None]:
        """See Cluster."""
        return nullcontext()

    def _replay(self, kind: Kind, namespace: str, selector: str, *, metadata_only: bool) -> Iterator[Page]:
        query = parse_selector(selector)
        namespace = namespace if kind.namespaced or kind == NAMESPACES else ""
        for key in _list_larger(kind, namespace, selector, metadata_only=metadata_only):
            if key in self._lists:
                whole = key[1:3] == (namespace, selector)
                pages = self._read_list(key)
                return pages if whole else (_narrow_to(page, namespace, query) for page in pages)
        why = f"cannot list {kind.resource}: the snapshot does not have them, because its scan did not need them"
        return _fail_list(ListFailed("failed", f"{why}. Make a snapshot with a scan that does"))

    def _read_list(self, key: _Key) -> Iterator[Page]:
        """The pages of a list that was made several times: in their order, and at last those of the last time."""
        lists = self._lists[key]
        recorded = lists[min(self._made[key], len(lists) - 1)]
        self._made[key] += 1
        for page in recorded.pages:
            yield Page(
                key[0],
                page.number,
                self.archive.read(page.member),
                page.resource_version,
                page.seconds,
                page.inconsistency,
            )
        if not recorded.ended:
            broken = (
                "failed",
                f"cannot list all {key[0].resource}: the scan that made the snapshot did not read them all",
            )
            raise ListFailed(*((recorded.state, recorded.why) if recorded.state else broken))


def _list_larger(kind: Kind, namespace: str, selector: str, *, metadata_only: bool) -> Iterator[_Key]:
    """The list itself, then those that it is a part of."""
    for only in (True, False) if metadata_only else (False,):
        for place in dict.fromkeys((namespace, "")):
            for narrowed in dict.fromkeys((selector, "")):
                yield kind, place, narrowed, only


def _narrow_to(page: Page, namespace: str, query: LabelQuery) -> Page:
    return narrow(page, lambda item: _is_within(page.kind, item, namespace, query))


def narrow(page: Page, is_chosen: Callable[[Json], bool]) -> Page:
    """The chosen items of a page, with the places that are withheld of them; a page that cannot be decoded stays what it is."""
    try:
        items, withheld = [decode_item(text) for text in split_items(page)], find_withheld(page)
    except ValueError:
        return page
    chosen = [index for index, item in enumerate(items) if is_chosen(item)]
    kept: dict[str, Json] = {
        str(place): list(withheld[index]) for place, index in enumerate(chosen) if index in withheld
    }
    return replace(page, data=orjson.dumps({"withheld": kept, "items": [items[index] for index in chosen]}))


def _is_within(kind: Kind, item: Json, namespace: str, query: LabelQuery) -> bool:
    place = as_text(dig(item, "metadata", "name" if kind == NAMESPACES else "namespace"))
    return namespace in ("", place) and query.matches(text_map(dig(item, "metadata", "labels")))


def _fail_list(error: ListFailed) -> Iterator[Page]:
    """No page: the list fails when it is read."""
    yield from ()
    raise error


class _ReplayedDecider:
    """The answers that the authorizer gave."""

    def __init__(self, answers: Mapping[str, Json]) -> None:
        self._answers = answers

    def decide(self, question: Question) -> AuthorizerAnswer:
        """See Decider. Raises AuthorizerFailed for a question that the scan did not ask."""
        answer = self._answers.get(facts.write_question(question))
        if answer is None:
            raise AuthorizerFailed("the snapshot has no answer to this authorizer check: its scan did not make it")
        if failed := as_text(dig(answer, "failed")):
            raise AuthorizerFailed(failed)
        error = dig(answer, "error")
        return AuthorizerAnswer(
            allowed=dig(answer, "allowed") is True,
            reason=as_text(dig(answer, "reason")),
            error=error if isinstance(error, str) else None,
        )


class _ReplayedSchemas:
    """The schemas that the scan asked for."""

    def __init__(self, document: Json) -> None:
        self._schemas = facts.read_schemas(document)
        self._conversions = facts.read_conversions(document)

    def schema(self, kind: Kind) -> Schema | None:
        """See Schemas: None, too, for a kind of which the scan did not ask for the schema."""
        return self._schemas.get(kind)

    def conversion(self, kind: Kind) -> Conversion:
        """See Schemas."""
        match self._conversions.get(kind):
            case "relabels":
                return "relabels"
            case "server":
                return "server"
            case _:
                return "unknown"
