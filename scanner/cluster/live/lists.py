"""Lists one kind page by page: every object once, or the reason why not.

Source of truth: the API conventions of Kubernetes for chunked lists ("Resource versions", "Retrieving large results sets
in chunks"). All pages of a list show one moment, named by its resource version. When the server has dropped that
moment (410 Gone), it may offer a token to continue from the same place at a later moment; otherwise the list is started
again, once. The reader of the pages counts objects that appear again once.

`remainingItemCount` is exact where no selector narrows the list: it is the count of all that is left, less the limit, and a page
that has another after it has as many objects as the limit (`PrepareContinueToken` and GetList of apiserver's storage). What a page
announces must follow, unless the list continues at a later moment.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, NoReturn

import msgspec

from scanner.audit.repeats import RepeatDetector
from scanner.cel.stack import run_with_room
from scanner.cluster.requests.limits import TimeLimit
from scanner.cluster.requests.session import AnswerTooLarge, ApiSession, HttpResponse, NoResponse
from scanner.errors import ClusterError, ListFailed
from scanner.model.json import as_text, dig
from scanner.model.missing_right import MissingRight
from scanner.model.resource import METADATA_ONLY, Kind, Page

# The metadata of a page of a list, and whether its items can be those of the requested list.
#
# A status of 200 is not enough: a proxy, a cache or a failing API server can return another list, a part of one, or
# none. A finding is resolved because no page has its object, so every page must be the requested one.
#
# Source of truth: the API conventions ("Lists and simple kinds", "Metadata") and GetList of apiserver's etcd3
# storage: every list names its kind, its apiVersion and the resource version of its moment; objects have a name and,
# where their kind is namespaced, a namespace. Lists of built-in kinds leave apiVersion and kind out of the items.
#
# A metadata-only list (`asPartialObjectMetadataList` of apiserver's handlers) and its items are of the kinds of
# `meta.k8s.io` and do not name the kind of the objects: that such a page has objects of another kind cannot be
# recognised. Nothing else identifies the kind: the API sets no `selfLink` since 1.20, and `managedFields` name the
# apiVersion of each writer, which after a move between groups is another one. Such a page gives no object a wrong
# workload, because owner references name UIDs, which other objects do not have.

QUOTED: Final = 100
"""The most characters of a text of the server in a message."""


@dataclass(frozen=True, slots=True)
class Envelope:
    """The metadata of a page. `token` is for the request of the next page; `remaining` is None if the page has no such number.

    `names` are those of the objects, each after its namespace. `faults` are errors in the items, each as the end of a sentence
    about the page; `stray` is the namespace of an item that is not in the requested namespace.
    """

    api_version: str
    kind: str
    resource_version: str
    token: str
    remaining: int | None
    count: int
    faults: tuple[str, ...]
    names: tuple[str, ...] = ()
    stray: str = ""

    @property
    def is_metadata_only(self) -> bool:
        """Return whether the list has only the metadata of its objects."""
        return _is_metadata_only(self.api_version, self.kind)


class _ListMetadata(msgspec.Struct):
    version: str | None = msgspec.field(default=None, name="resourceVersion")
    token: str | None = msgspec.field(default=None, name="continue")
    remaining: int | None = msgspec.field(default=None, name="remainingItemCount")


class _ObjectMetadata(msgspec.Struct):
    name: str | None = None
    namespace: str | None = None
    uid: str | None = None


class _Object(msgspec.Struct):
    metadata: _ObjectMetadata
    version: str | None = msgspec.field(default=None, name="apiVersion")
    kind: str | None = None


class _TypedList(msgspec.Struct):
    metadata: _ListMetadata
    items: list[_Object] | None
    version: str = msgspec.field(default="", name="apiVersion")
    kind: str = ""


class _UnreadableList(msgspec.Struct):
    """A list with items that are no objects."""

    metadata: _ListMetadata
    items: list[msgspec.Raw] | None
    version: str = msgspec.field(default="", name="apiVersion")
    kind: str = ""


_READER = msgspec.json.Decoder(_TypedList)
_COUNTER = msgspec.json.Decoder(_UnreadableList)


def read_envelope(
    data: bytes, kind: Kind, namespace: str = "", quoted: Callable[[str], str] = lambda text: text[:QUOTED]
) -> Envelope | None:
    """The metadata of a page, read as a list of a kind in a namespace or in all; None for a body that is no list in JSON.

    `data` is the body of the response, `quoted` makes of its texts what messages may have.
    """
    try:
        listed = run_with_room(lambda: _READER.decode(data))
    except msgspec.ValidationError:
        return _read_unreadable(data)
    except (msgspec.MsgspecError, RecursionError):
        return None
    items = listed.items or []
    stray = next((outside for item in items if (outside := item.metadata.namespace) not in (None, "", namespace)), None)
    names = tuple(f"{item.metadata.namespace or ''}/{item.metadata.name}" for item in items)
    page = _make_envelope(
        listed, len(items), tuple(_find_faults(items, names, kind, _get_item_kind(listed, kind), quoted))
    )
    return replace(page, names=names, stray=stray or "" if namespace else "")


def _read_unreadable(data: bytes) -> Envelope | None:
    try:
        listed = run_with_room(lambda: _COUNTER.decode(data))
    except (msgspec.MsgspecError, RecursionError):
        return None
    return _make_envelope(listed, len(listed.items or ()), ("has items that are no Kubernetes objects",))


def _make_envelope(read: _TypedList | _UnreadableList, count: int, faults: tuple[str, ...]) -> Envelope:
    metadata = read.metadata
    return Envelope(
        read.version, read.kind, metadata.version or "", metadata.token or "", metadata.remaining, count, faults
    )


def _is_metadata_only(api_version: str, kind: str) -> bool:
    return (api_version, kind) == (METADATA_ONLY[0], f"{METADATA_ONLY[1]}List")


def _get_item_kind(read: _TypedList, kind: Kind) -> tuple[str, str]:
    """The apiVersion and the kind of the items of a list."""
    return METADATA_ONLY if _is_metadata_only(read.version, read.kind) else (kind.api_version, kind.kind)


def _find_faults(
    items: Sequence[_Object],
    names: Sequence[str],
    kind: Kind,
    item_kind: tuple[str, str],
    quoted: Callable[[str], str],
) -> Iterator[str]:
    item_version, item_name = item_kind
    wrong = {
        f"{item.version or item_version} {item.kind or item_name}"
        for item in items
        if item.kind not in (None, "", item_name) or item.version not in (None, "", item_version)
    }
    if wrong:
        yield f"has objects of another kind ({quoted(min(wrong))})"
    if not all(item.metadata.name for item in items):
        yield "has objects without a name"
    if kind.namespaced and not all(item.metadata.namespace for item in items):
        yield "has objects without a namespace"
    if not kind.namespaced and any(item.metadata.namespace for item in items):
        yield "has objects with a namespace, although the kind is cluster-scoped"
    if len({*names}) < len(items):
        yield "has an object twice"
    if len({bool(item.metadata.uid) for item in items}) > 1:
        yield "has objects with and without a UID"


_GONE: Final = 410
_DOUBTS: Final = 2
_EXPIRIES: Final = 3
_SMALLER: Final = 4
# The token is part of a URL, which servers limit to a few thousand characters.
_LONGEST_TOKEN: Final = 16_384
_WHOLE: Final = "application/json"
# A server that cannot reduce objects to their metadata, such as an aggregated API server, sends whole objects.
_METADATA_ONLY: Final = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"
_USER: Final = re.compile(r'User "([^"]+)"')
_NAMESPACE: Final = re.compile(r"/namespaces/([^/]+)/")
# Kinds whose lists have no resource version, because their objects are not stored but computed for each response
# (registry/core/componentstatus of kube-apiserver, and metrics-server).
_COMPUTED: Final = frozenset(
    {("", "ComponentStatus"), ("metrics.k8s.io", "NodeMetrics"), ("metrics.k8s.io", "PodMetrics")}
)


class PagedList:
    """A list of one kind: an iterator of pages, as the server sends them.

    Raises ListFailed when the list is forbidden or fails; earlier pages remain valid.
    """

    def __init__(
        self,
        session: ApiSession,
        kind: Kind,
        path: str,
        query: Mapping[str, str],
        *,
        time_limit: TimeLimit,
        username: Callable[[], str],
        list_kind: Callable[[Kind], str] = lambda _: "",
        metadata_only: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`query` has the limit and the selectors; `username` names the user in a message about missing permission.

        `list_kind` names the kind of a list where that is not the kind of its objects with `List` at the end. With
        `metadata_only` the server is asked for the metadata of the objects; it may send whole objects.
        """
        self._session = session
        self._kind = kind
        self._path = path
        self._query = query
        self._time_limit = time_limit
        self._username = username
        self._list_kind = list_kind
        self._metadata_only = metadata_only
        self._clock = clock
        namespace = _NAMESPACE.search(path)
        self._namespace = namespace[1] if namespace else ""
        self._has_selector = "labelSelector" in query
        self._most = int(query["limit"])
        self._limit = self._most
        self._number = 0
        self._token = ""
        self._tokens = {""}
        self._version = ""
        self._inconsistency = ""
        self._repeats = RepeatDetector()
        self._announced: int | None = None
        self._has_restarted = False
        self._expiries = 0
        self._doubts = 0
        self._has_ended = False

    def __iter__(self) -> PagedList:
        """The list itself: it can be read once."""
        return self

    @property
    def has_ended(self) -> bool:
        """Return whether the last page was read."""
        return self._has_ended

    def __next__(self) -> Page:
        """The next page."""
        if self._has_ended:
            raise StopIteration
        started = self._clock()
        data, envelope, inconsistency = self._get_certain_page()
        self._number += 1
        self._version, self._inconsistency = envelope.resource_version, ""
        self._doubts = self._expiries = 0
        self._announced = self._count_announced(envelope)
        self._token = envelope.token
        self._tokens.add(envelope.token)
        self._repeats.add(envelope.names)
        self._has_ended = not envelope.token
        # A limit that a large response has reduced grows again.
        self._limit = min(self._limit * 2, self._most)
        return Page(self._kind, self._number, data, envelope.resource_version, self._clock() - started, inconsistency)

    def _get_certain_page(self) -> tuple[bytes, Envelope, str]:
        """The bytes of a page, its metadata, and the reason why it shows another moment than the pages before it.

        A page that cannot be the requested one is requested again. If that does not help, it ends the list, unless its
        objects can be used by themselves.
        """
        while True:
            answer = self._ask()
            if answer.status == _GONE:
                self._go_on(answer)
                continue
            self._reject_refusal(answer)
            envelope = read_envelope(answer.data, self._kind, self._namespace, self._quote)
            fault = self._find_fault(envelope)
            doubt = "" if envelope is None or fault else self._find_doubt(envelope)
            if envelope is not None and not fault and (not doubt or self._doubts == _DOUBTS):
                reasons = (self._inconsistency or self._find_leap(envelope), doubt)
                return answer.data, envelope, "; ".join(filter(None, reasons))
            self._doubts += 1
            if self._doubts > _DOUBTS:
                self._fail(fault)

    def _ask(self) -> HttpResponse:
        while True:
            query = {**self._query, "limit": str(self._limit)}
            if self._token:
                query["continue"] = self._token
            try:
                accept = _METADATA_ONLY if self._metadata_only else _WHOLE
                return self._session.get(self._path, query, accept=accept, time_limit=self._time_limit)
            except AnswerTooLarge as error:
                self._ask_for_less(error)
            except (NoResponse, ClusterError) as error:
                self._fail(f"{error}. Scan again when this is fixed")

    def _ask_for_less(self, error: AnswerTooLarge) -> None:
        """A smaller page of the same list, until it would be of one object."""
        if self._limit == 1:
            self._fail(f"{error} for the one object after page {self._number}, so the list ends there")
        self._limit = max(self._limit // _SMALLER, 1)

    def _find_fault(self, envelope: Envelope | None) -> str:
        """The reason why a response is no page of this list, or an empty string. A retry may help."""
        if envelope is None:
            return "the response is not a list in JSON. Check for a proxy between Assay and the API server"
        if not self._is_list_of_kind(envelope):
            returned = self._quote(f"{envelope.api_version} {envelope.kind}".strip()) or "a list without a kind"
            return f"the response is {returned} instead of {self._kind.api_version} {self._kind.kind}List. Scan again"
        if len(envelope.token) > _LONGEST_TOKEN:
            return f"the server returned a token of {len(envelope.token)} characters after page {self._number + 1}. Scan again"
        if envelope.token and envelope.token in self._tokens:
            return f"the server repeats pages after page {self._number}. Scan again, and report this to its operators"
        if not envelope.token and (self._count_missing(envelope) > 0 or envelope.remaining):
            return f"the list ends after page {self._number + 1}, although the server had announced more. Scan again"
        if envelope.stray:
            return f"page {self._number + 1} holds objects of namespace {self._quote(envelope.stray)} instead of {self._namespace}. Scan again"
        return ""

    def _is_list_of_kind(self, envelope: Envelope) -> bool:
        """Return whether a response is a list of the kind. A metadata-only list does not name the kind."""
        if envelope.is_metadata_only:
            return self._metadata_only
        return envelope.api_version == self._kind.api_version and self._is_list_kind(envelope.kind)

    def _is_list_kind(self, name: str) -> bool:
        return name == f"{self._kind.kind}List" or (name != "" and name == self._list_kind(self._kind))

    def _find_doubt(self, envelope: Envelope) -> str:
        """The reason why a readable page may lack objects, or an empty string. A retry may help."""
        doubts = [f"page {self._number + 1} {fault}" for fault in envelope.faults]
        if not envelope.resource_version and (self._kind.group, self._kind.kind) not in _COMPUTED:
            doubts.append(f"page {self._number + 1} names no resource version")
        if repeated := self._repeats.find_repeats(envelope.names):
            doubts.append(f"page {self._number + 1} repeats {len(repeated)} objects of earlier pages")
        if (
            envelope.token
            and envelope.remaining is not None
            and not self._has_selector
            and envelope.count != self._limit
        ):
            announced = f"{self._limit} were asked for and more are announced"
            doubts.append(f"page {self._number + 1} has {envelope.count} objects, although {announced}")
        elif (missing := self._count_missing(envelope)) != 0:
            more = "fewer" if missing > 0 else "more"
            doubts.append(f"page {self._number + 1} has {abs(missing)} objects {more} than the server had announced")
        return "; ".join(doubts)

    def _count_missing(self, envelope: Envelope) -> int:
        """The number of announced objects that are neither on a page nor announced for later pages."""
        if self._announced is None:
            return 0
        rest = self._announced - envelope.count
        remaining = envelope.remaining if envelope.token else 0
        return min(rest, 0) if remaining is None else rest - remaining

    def _count_announced(self, envelope: Envelope) -> int | None:
        """The number of objects that must follow a page. With a selector, the server's number is too high."""
        if self._has_selector:
            return None
        if envelope.remaining is not None or self._announced is None:
            return envelope.remaining
        return max(self._announced - envelope.count, 0)

    def _find_leap(self, envelope: Envelope) -> str:
        """The reason why a page without an expired token shows another moment, or an empty string."""
        version = envelope.resource_version
        if version == self._version or not self._number or not version:
            return ""
        version_text, earlier_text = self._quote(version), self._quote(self._version)
        return f"page {self._number + 1} shows resource version {version_text}, those before it {earlier_text}"

    def _go_on(self, answer: HttpResponse) -> None:
        """Continue an expired list at a later moment, or start it again."""
        expired = f"the list expired after page {self._number}"
        token = as_text(dig(answer.body(), "metadata", "continue"))
        self._expiries += 1
        self._announced, self._repeats = None, RepeatDetector()
        if self._expiries > _EXPIRIES or (self._has_restarted and not token):
            self._fail(f"{expired}: {answer.message()}. Scan again when the server is less busy")
        if token:
            self._token = token
            self._inconsistency = f"{expired} and was continued at a later moment"
        else:
            self._token, self._tokens, self._has_restarted = "", {""}, True
            self._inconsistency = f"{expired} and was started again"

    def _reject_refusal(self, answer: HttpResponse) -> None:
        match answer.status:
            case 200:
                return
            case 403:
                raise ListFailed("forbidden", self._explain_forbidden(answer))
            case 401:
                self._fail("the server no longer accepts the credentials. Log in, then scan again")
            case 404:
                self._fail("the server no longer serves this kind. Scan again")
            case status:
                self._fail(f"the server answered {status}: {answer.message()}. Scan again when this is fixed")

    def _explain_forbidden(self, answer: HttpResponse) -> str:
        user = _USER.search(answer.message())
        who = user[1] if user else self._username()
        return str(MissingRight("list", self._kind.resource, self._namespace, who))

    def _quote(self, text: str) -> str:
        return self._session.quote(text, QUOTED)

    def _fail(self, why: str) -> NoReturn:
        raise ListFailed("failed", f"cannot list {self._kind.resource}: {why}")
