"""One kind, page by page: every object once, or a word about why not.

Source of truth: the API conventions of Kubernetes for chunked lists ("Resource versions", "Retrieving large results sets
in chunks"). All pages of a list show one moment, named by its resource version. When the server has forgotten that
moment (410 Gone) it may offer a token that goes on from the same place at a later one; if it does not, the list is begun
again, once. Objects that come again by that are counted once by whoever reads the pages.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from typing import Final, NoReturn

import orjson

from scanner.cluster.patience import Watch
from scanner.cluster.session import Answer, Session, Unanswered
from scanner.errors import ClusterError, ListFailed
from scanner.model.json import JsonObject, as_object, as_text, dig
from scanner.model.resource import Kind, Page

_GONE: Final = 410
_DOUBTS: Final = 2
_EXPIRIES: Final = 3
_USER: Final = re.compile(r'User "([^"]+)"')
# A page is megabytes long and its metadata a line: before the items where Go types wrote it, after them where they are
# custom resources. Both patterns are anchored at an end of the document, where no object's content can stand.
_METADATA_FIRST: Final = re.compile(
    rb'\s*\{"kind":"[^"\\]*List","apiVersion":"[^"\\]*","metadata":(\{[^{}]*\}),"items":(?:\[|null\})'
)
_ITEMS_FIRST: Final = re.compile(rb'\s*\{"apiVersion":"[^"\\]*","items":\[')
_METADATA_LAST: Final = re.compile(rb'\],"kind":"[^"\\]*List","metadata":(\{[^{}]*\})\}\s*\Z')
_TAIL: Final = 8192


class PagedList:
    """One list of one kind: an iterator of pages, as the server sends them.

    It raises ListFailed when the list is refused or breaks off; pages that came before stay good.
    """

    def __init__(
        self,
        session: Session,
        kind: Kind,
        path: str,
        query: Mapping[str, str],
        *,
        watch: Watch,
        username: Callable[[], str],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`query` holds the limit and what narrows the list; `username` tells whom a refusal is about."""
        self._session = session
        self._kind = kind
        self._path = path
        self._query = query
        self._watch = watch
        self._username = username
        self._clock = clock
        self._number = 0
        self._token = ""
        self._tokens = {""}
        self._version = ""
        self._seam = ""
        self._remaining = 0
        self._begun_again = False
        self._expiries = 0
        self._doubts = 0
        self._ended = False

    def __iter__(self) -> PagedList:
        """The list is its own iterator: it is made once."""
        return self

    def __next__(self) -> Page:
        """The next page."""
        if self._ended:
            raise StopIteration
        started = self._clock()
        answer, metadata = self._certain()
        version = as_text(metadata.get("resourceVersion"))
        seam = self._seam or self._leap(version)
        self._number += 1
        self._version, self._seam = version, ""
        self._doubts = self._expiries = 0
        self._token = as_text(metadata.get("continue"))
        self._tokens.add(self._token)
        self._ended = not self._token
        remaining = metadata.get("remainingItemCount")
        self._remaining = remaining if isinstance(remaining, int) else 0
        return Page(self._kind, self._number, answer.data, version, self._clock() - started, seam)

    def _certain(self) -> tuple[Answer, JsonObject]:
        """An answer that is a page of this list, and its metadata."""
        while True:
            answer = self._ask()
            if answer.status == _GONE:
                self._go_on(answer)
                continue
            self._reject_refusal(answer)
            metadata = list_metadata(answer.data)
            doubt = self._doubt(metadata)
            if metadata is not None and not doubt:
                return answer, metadata
            self._doubts += 1
            if self._doubts > _DOUBTS:
                self._fail(doubt)

    def _ask(self) -> Answer:
        query = {**self._query, "continue": self._token} if self._token else self._query
        try:
            return self._session.get(self._path, query, watch=self._watch)
        except (Unanswered, ClusterError) as error:
            self._fail(f"{error}. Scan again when that is mended")

    def _doubt(self, metadata: JsonObject | None) -> str:
        """Why an answer cannot be the page that was asked for, or an empty string. It is worth asking again."""
        if metadata is None:
            return "the answer is not a list in JSON. Is there something between Assay and the API server?"
        token = as_text(metadata.get("continue"))
        if token and token in self._tokens:
            return f"the server repeats itself after page {self._number}. Scan again, and tell its operators"
        if not token and self._remaining > int(self._query["limit"]):
            return f"the list ends after page {self._number + 1}, although the server had announced more. Scan again"
        return ""

    def _leap(self, version: str) -> str:
        """What a page without an expired token shows when it is of another moment all the same."""
        if version == self._version or not self._number:
            return ""
        return f"page {self._number + 1} shows resource version {version}, those before it {self._version}"

    def _go_on(self, answer: Answer) -> None:
        """An expired list goes on at a later moment, or begins again."""
        expired = f"the list expired after page {self._number}"
        token = as_text(dig(answer.body(), "metadata", "continue"))
        self._expiries += 1
        self._remaining = 0
        if self._expiries > _EXPIRIES or (self._begun_again and not token):
            self._fail(f"{expired}: {answer.message()}. Scan again when the server is less busy")
        if token:
            self._token = token
            self._seam = f"{expired} and went on at a later moment"
        else:
            self._token, self._tokens, self._begun_again = "", {""}, True
            self._seam = f"{expired} and was begun again"

    def _reject_refusal(self, answer: Answer) -> None:
        match answer.status:
            case 200:
                return
            case 403:
                raise ListFailed("forbidden", self._forbidden(answer))
            case 401:
                self._fail("the server does not accept the credentials any more. Log in again, then scan again")
            case 404:
                self._fail("the server does not serve it any more. Scan again, so that it is not asked for")
            case status:
                self._fail(f"the server answered {status}: {answer.message()}. Scan again when that is mended")

    def _forbidden(self, answer: Answer) -> str:
        named = _USER.search(answer.message())
        who = named[1] if named else self._username()
        resource = self._kind.resource
        namespace = re.search(r"/namespaces/([^/]+)/", self._path)
        place = f" in namespace {namespace[1]}" if namespace else ""
        return (
            f"cannot list {resource}{place}: forbidden for {who}. Grant `list` on {resource}, "
            f"or pass --skip-kind {resource} to record the gap on purpose."
        )

    def _fail(self, why: str) -> NoReturn:
        raise ListFailed("failed", f"cannot list {self._kind.resource}: {why}")


def list_metadata(data: bytes) -> JsonObject | None:
    """The list's own metadata, without decoding its items if that can be helped; None if it is no list."""
    if found := _METADATA_FIRST.match(data):
        whole = data[-_TAIL:].rstrip().endswith((b"]}", b":null}"))
        return as_object(orjson.loads(found[1])) if whole else None
    if _ITEMS_FIRST.match(data) and (found := _METADATA_LAST.search(data[-_TAIL:])):
        return as_object(orjson.loads(found[1]))
    try:
        body = as_object(orjson.loads(data))
    except orjson.JSONDecodeError:
        return None
    # Some servers write an empty list as null, or leave it out.
    is_list = isinstance(body.get("items"), list) or (
        body.get("items") is None and as_text(body.get("kind")).endswith("List")
    )
    return as_object(body.get("metadata")) if is_list else None
