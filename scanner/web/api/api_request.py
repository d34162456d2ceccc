"""A request to an endpoint, with the cluster and the scan that it names."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from datetime import UTC, date
from functools import cached_property
from typing import Annotated, Final, Generic, NamedTuple, TypeAlias, TypeVar

import msgspec
from msgspec import Meta

from scanner.model.scans.scan import Scan
from scanner.store.catalog.clusters import StoredCluster
from scanner.web.api.queries import Query
from scanner.web.requests.addresses import ScanMoment
from scanner.web.requests.refusals import BadRequest
from scanner.web.views.library import ScanLibrary
from scanner.web.views.scan_view import ScanView

# Cursors: the place in a list after which the next page begins, with the scan of the list, as an opaque text.
#
# A finished scan does not change, so the pages that follow each other by cursors have every item once, also if scans
# end meanwhile.

_HIGHEST: Final = 2**53
_Number: TypeAlias = Annotated[int, Meta(ge=-_HIGHEST, le=_HIGHEST)]
_DECODER: Final = msgspec.json.Decoder(
    tuple[Annotated[str, Meta(max_length=100)], Annotated[list[_Number], Meta(max_length=4)]]
)
NOT_HERE: Final = "after: the list has no such place. Begin with its first page."


class Cursor(NamedTuple):
    """The id of the scan of a list, empty for a list that is about no single scan, and the key of the last item."""

    scan: str
    key: tuple[int, ...]

    def text(self) -> str:
        """The cursor for `next`."""
        return urlsafe_b64encode(msgspec.json.encode((self.scan, self.key))).decode().rstrip("=")

    def numbers(self, count: int) -> tuple[int, ...]:
        """The key of a list whose keys have so many numbers. Raises BadRequest."""
        if len(self.key) != count:
            raise BadRequest(NOT_HERE)
        return self.key


def cursor_of(text: str) -> Cursor | None:
    """The cursor in a text, or None without one. Raises BadRequest for a text that is no cursor."""
    if not text:
        return None
    try:
        scan, key = _DECODER.decode(urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    except ValueError as error:
        raise BadRequest("after: this is no `next` of a page of this API.") from error
    return Cursor(scan, tuple(key))


QueryT_co = TypeVar("QueryT_co", bound=Query, covariant=True)


@dataclass(frozen=True)
class ApiRequest(Generic[QueryT_co]):
    """A request. `path` has the variable parts of its path, `root` is the path of the application."""

    library: ScanLibrary
    query: QueryT_co
    path: Mapping[str, str]
    root: str = ""

    @cached_property
    def cluster(self) -> StoredCluster:
        """The cluster. Raises NotThere."""
        return self.library.cluster(self.path["cluster"])

    @cached_property
    def cursor(self) -> Cursor | None:
        """The place after which the page begins, or None for the first page. Raises BadRequest."""
        return cursor_of(self.query.cursor)

    @cached_property
    def scan(self) -> Scan:
        """The scan that the cursor names, else that of the moment. Raises BadRequest and NotThere."""
        moment, cursor = self.query.moment, self.cursor
        if cursor is None:
            return self.library.scan(self.cluster, moment)
        if not cursor.scan or moment.scan not in ("", cursor.scan):
            raise BadRequest("after: this is `next` of another list.")
        return self.library.scan(self.cluster, ScanMoment(scan=cursor.scan))

    @cached_property
    def day(self) -> date | None:
        """The day of the moment, or None for that of its scan. Raises BadRequest."""
        try:
            return self.query.moment.day
        except ValueError as error:
            raise BadRequest(f"at: {error}") from error

    @cached_property
    def view(self) -> ScanView:
        """The view of the scan."""
        return self.library.view(self.scan, self.day)

    @property
    def today(self) -> date:
        """The day in UTC."""
        return self.library.clock().astimezone(UTC).date()

    @property
    def names_scan(self) -> bool:
        """Return whether the request names its scan by an id: its answer never changes."""
        return bool(self.query.moment.scan or self.cursor)


def key_of_scan(request: ApiRequest[Query]) -> Hashable:
    """The key of an answer that depends on a scan and a day alone."""
    return request.scan.id, request.day


def key_of_scan_and_newest(request: ApiRequest[Query]) -> Hashable:
    """The key of an answer about a scan that also has what later scans saw."""
    return key_of_scan(request), key_of_newest(request)


def key_of_newest(request: ApiRequest[Query]) -> Hashable:
    """The key of an answer that changes with the newest scan of a cluster, and with the day."""
    return request.library.scan(request.cluster, ScanMoment()).id, request.today
