"""A live cluster: its kinds and objects, read page by page with get and list only.

Source of truth: the API conventions of Kubernetes. A page is returned as received; only the metadata of the
list is read.
"""

from __future__ import annotations

import re
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from datetime import MAXYEAR, UTC, datetime
from email.utils import parsedate_to_datetime
from itertools import islice
from threading import Thread
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from scanner.cel import Decider
from scanner.cluster.labels import parse_selector
from scanner.cluster.live import discovery
from scanner.cluster.live.authorizer import Reviewer, may_create_reviews
from scanner.cluster.live.dryrun import DryRuns
from scanner.cluster.live.first_reads import DISCOVERY, KUBE_SYSTEM, VERSION
from scanner.cluster.live.lists import PagedList
from scanner.cluster.live.openapi import ServedSchemas, read_list_kind
from scanner.cluster.live.prefetch import Prefetcher, WantedList
from scanner.cluster.live.rights import is_allowed
from scanner.cluster.requests.limits import RateLimiter, TimeLimit
from scanner.cluster.requests.session import ApiSession, HttpResponse, NoResponse, settle
from scanner.errors import ClusterError, ListFailed
from scanner.model.json import JsonObject, as_object, as_text, dig, texts
from scanner.model.missing_right import MissingRight
from scanner.model.resource import ANONYMOUS, Kind, ObjectKey, Page, UserInfo
from scanner.model.scans.scan import COUNTS_PATH, ClusterIdentity, ServerCounts
from scanner.scan.edges import Discovery
from scanner.scan.lists import decode_objects

if TYPE_CHECKING:
    from scanner.rbac import Permission

CHUNK_SIZE: Final = 500
_AT_ONCE: Final = 8
"""The objects that are read at the same time."""
_SEVERAL: Final = 2
_WORTH_A_LIST: Final = 20
"""The objects of a kind in a namespace for which a page of the list costs less than reading each."""
_OK: Final = 200
_CREATED: Final = 201
_UNAUTHORIZED: Final = 401
_FORBIDDEN: Final = 403
_NOT_FOUND: Final = 404
_NOT_SERVED: Final = (400, _FORBIDDEN, _NOT_FOUND, 405)
_DISCOVERY_ATTEMPTS: Final = 2
_NO_ROOT: Final = "the server has no such document, so the kinds under it are unknown"
_REVIEWS: Final = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
_REVIEW: Final[JsonObject] = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}


class LiveCluster:
    """The cluster of a kubeconfig, or of the pod that Assay runs in."""

    def __init__(
        self,
        *,
        kubeconfig: str = "",
        context: str = "",
        as_user: str = "",
        as_groups: tuple[str, ...] = (),
        request_timeout: float | None = None,
        kind_timeout: float | None = None,
        chunk_size: int = CHUNK_SIZE,
        qps: float = 0,
        burst: int = 0,
        concurrency: int = 0,
        sleep: Callable[[float], None] = time.sleep,
        session: ApiSession | None = None,
    ) -> None:
        """Load the credentials, without a request; a `session` has them. Timeouts are in seconds, `chunk_size` is the number of objects in a page.

        `qps` is the number of requests per second, `burst` the number at once, `concurrency` the number of lists that are
        fetched at a time. Without `qps` the request rate has no limit, without `concurrency` no list is prefetched.

        Raises ClusterError when there are no usable credentials, UsageError for groups without a user.
        """
        self._chunk_size = chunk_size
        self._kind_timeout = kind_timeout
        self._prefetcher = Prefetcher(self._list, concurrency)
        self._requester: UserInfo | None = None
        self._server_version = ""
        self._list_kinds: dict[Kind, str] = {}
        self._kinds_in_versions: frozenset[tuple[str, str]] = frozenset()
        self._session = session or ApiSession(
            kubeconfig=kubeconfig,
            context=context,
            as_user=as_user,
            as_groups=as_groups,
            request_timeout=request_timeout,
            pace=RateLimiter(qps, burst, sleep=sleep),
            sleep=sleep,
        )

    @property
    def place(self) -> str:
        """The context of the kubeconfig; in a pod, the server's URL."""
        return self._session.place

    @property
    def valid_until(self) -> int | None:
        """The Unix time at which the client certificate or the token in the kubeconfig expires, None if unknown."""
        return self._session.valid_until

    @property
    def requests(self) -> int:
        """The number of requests so far."""
        return self._session.requests

    def identity(self) -> ClusterIdentity:
        """The kubeconfig's name for the cluster, its server, and kube-system's UID and the version if they may be read."""
        reading = _begin(lambda: self._read_optional(KUBE_SYSTEM, "metadata", "uid"))
        version, system = self._read_optional(VERSION, "gitVersion"), reading.result()
        self._server_version = as_text(dig(version, "gitVersion"))
        return ClusterIdentity(
            name=self._session.cluster,
            uid=as_text(dig(system, "metadata", "uid")),
            server_version=self._server_version,
            server=self._session.server_digest,
        )

    def now(self) -> datetime | None:
        """The date of a response of the API server to a request of this moment, with any status; None without a valid date."""
        return parse_date(self._request(lambda: self._session.get(VERSION)).date)

    def requester(self) -> UserInfo:
        """The user of the credentials; empty if the server does not report it.

        Raises ClusterError if the server does not answer, or does not name the user.
        """
        if self._requester is None:
            answer = self._request(lambda: self._session.review(_REVIEWS, _REVIEW))
            info = dig(answer.body() if answer.status == _CREATED else {}, "status", "userInfo")
            if not as_text(dig(info, "username")) and answer.status not in _NOT_SERVED:
                raise ClusterError(
                    f"{self._session.server} answered {answer.status} and does not report the user of these credentials, so "
                    "policies that read the user cannot be evaluated. Scan again, or name a user with --as-user"
                )
            self._requester = UserInfo(
                username=as_text(dig(info, "username")),
                uid=as_text(dig(info, "uid")),
                groups=texts(dig(info, "groups")),
                extra=tuple((key, texts(values)) for key, values in as_object(dig(info, "extra")).items()),
            )
        return self._requester

    def authorizer(self) -> Decider | None:
        """The server's authorizer, or None if this user may not create reviews. Raises ClusterError."""
        try:
            return Reviewer(self._session) if may_create_reviews(self._session) else None
        except NoResponse as error:
            raise ClusterError(
                f"cannot determine the permission to create SubjectAccessReviews: {error}. Scan again"
            ) from error

    def read_objects(self, names: Sequence[ObjectKey]) -> list[JsonObject | ListFailed | None]:
        """The objects of some names, read at the same time; None for one that does not exist.

        Of many objects of a kind in a namespace, those in the first page of their list are read with it, if it may be listed.
        An object that cannot be read is the reason why. Raises ClusterError for credentials that are rejected.
        """
        if len(names) < _SEVERAL:
            return [self._read_object(name) for name in names]
        collections: defaultdict[tuple[Kind, str], list[ObjectKey]] = defaultdict(list)
        for name in dict.fromkeys(names):
            collections[name.kind, name.namespace].append(name)
        read: dict[ObjectKey, JsonObject | ListFailed | None] = {}
        for wanted in collections.values():
            read |= self._read_first_page(wanted) if len(wanted) >= _WORTH_A_LIST else {}
        others = [name for name in dict.fromkeys(names) if name not in read]
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            read |= zip(others, pool.map(self._read_object, others), strict=True)
        return [read[name] for name in names]

    def _read_first_page(self, wanted: Sequence[ObjectKey]) -> dict[ObjectKey, JsonObject | None]:
        """The objects of a kind in a namespace that the first page of their list has; the missing ones too, if there is no other page."""
        pages = self._make_list(wanted[0].kind, wanted[0].namespace, {})
        try:
            bodies = {each.name: each.body for page in islice(pages, 1) for each in decode_objects(page)}
        except (ListFailed, ValueError):
            return {}
        return {name: bodies.get(name.name) for name in wanted if pages.has_ended or name.name in bodies}

    def _read_object(self, wanted: ObjectKey) -> JsonObject | ListFailed | None:
        try:
            return self.dry_runs().read(*wanted)
        except ListFailed as error:
            return error

    def schemas(self) -> ServedSchemas:
        """The merge schemas in the server's OpenAPI documents."""
        return ServedSchemas(self._session, lambda: self._kinds_in_versions)

    def dry_runs(self) -> DryRuns:
        """Dry-run writes with the same credentials."""
        return DryRuns(self._session)

    def discover(self) -> Discovery:
        """Every served kind, and a gap for each group-version that cannot be read. Raises ClusterError when discovery fails."""
        reading = _begin(lambda: self._read_root("/apis"))
        roots = {"/api": self._read_root("/api"), "/apis": reading.result()}
        if not any(roots.values()):
            raise ClusterError(f"{self._session.server} does not respond like a Kubernetes API server: check its URL")
        answered = {path: root for path, root in roots.items() if root}
        missing = [discovery.make_gap(path, _NO_ROOT) for path in roots if path not in answered]
        broken = [gap for path, root in answered.items() for gap in discovery.find_root_gaps(path, root)]
        modern = [discovery.read_aggregated_kinds(root) for root in roots.values() if discovery.is_aggregated(root)]
        core, groups = ({} if discovery.is_aggregated(root) else root for root in roots.values())
        names, nameless = discovery.list_legacy_group_versions(core, groups)
        parts = (*modern, *(self._read_group_version(name) for name in names))
        kinds = tuple(kind for part in parts for kind in part.kinds)
        gaps = (*missing, *broken, *nameless, *(gap for part in parts for gap in part.gaps))
        versions = Counter((kind.group, kind.kind) for kind in kinds)
        self._kinds_in_versions = frozenset(name for name, number in versions.items() if number > 1)
        return Discovery(kinds, (*gaps, *discovery.report_missing_policies(kinds, gaps, self._server_version)))

    def pages(self, kind: Kind, *, namespace: str = "", selector: str = "") -> Iterator[Page]:
        """The objects of a kind in pages, as received; cluster-scoped kinds ignore the namespace.

        Raises ListFailed when the list is forbidden or fails, UsageError for a malformed selector.
        """
        parse_selector(selector)
        return self._prefetcher.pages(WantedList(kind, namespace, selector))

    def metadata(self, kind: Kind, *, namespace: str = "") -> Iterator[Page]:
        """The metadata of the objects of a kind in pages, as received; cluster-scoped kinds ignore the namespace.

        A server that cannot leave out the rest of the objects sends whole objects. Raises ListFailed like `pages`.
        """
        return self._make_list(kind, namespace, {}, metadata_only=True)

    def expect(self, lists: Iterable[tuple[Kind, str, str]]) -> None:
        """Prefetch lists in this order: of `concurrency` lists, up to two pages each."""
        self._prefetcher.expect(WantedList(*wanted) for wanted in lists)

    def while_waiting(self, beat: Callable[[], None]) -> None:
        """Call `beat` while the reader waits: for a prefetched page, and before each attempt of a request that it makes itself."""
        self._prefetcher.while_waiting(beat)
        self._session.while_waiting(beat)

    def pause(self) -> AbstractContextManager[None]:
        """A block without prefetching; it starts when the current requests have ended."""
        return self._prefetcher.pause()

    def allows(self, need: Permission) -> bool:
        """Return whether this user has a permission. Raises ClusterError without an answer."""
        return is_allowed(self._session, need)

    def object_counts(self) -> ServerCounts:
        """The API server's own counts of stored objects, or the reason why there are none."""
        return read_object_counts(self._session, self._get_username)

    def _list(self, wanted: WantedList) -> Iterator[Page]:
        if wanted.namespace and wanted.kind.resource == "namespaces":
            return self._get_namespace(wanted)
        narrowed = {"labelSelector": wanted.selector} if wanted.selector else {}
        return self._make_list(wanted.kind, wanted.namespace, narrowed)

    def _make_list(
        self, kind: Kind, namespace: str, narrowed: Mapping[str, str], *, metadata_only: bool = False
    ) -> PagedList:
        return PagedList(
            self._session,
            kind,
            _make_list_path(kind, namespace),
            {"limit": str(self._chunk_size), **narrowed},
            time_limit=TimeLimit(self._kind_timeout),
            username=self._get_username,
            list_kind=self._get_list_kind,
            metadata_only=metadata_only,
        )

    def _get_list_kind(self, kind: Kind) -> str:
        """The kind of a kind's lists, if the response did not have the usual one."""
        if kind not in self._list_kinds:
            self._list_kinds[kind] = read_list_kind(self._session, kind)
        return self._list_kinds[kind]

    def _get_namespace(self, wanted: WantedList) -> Iterator[Page]:
        """One Namespace as a list, which needs a permission in that namespace only."""
        kind, name = wanted.kind, wanted.namespace
        try:
            answer = self._session.get(f"{kind.path}/{quote(name, safe='')}", time_limit=TimeLimit(self._kind_timeout))
        except (NoResponse, ClusterError) as error:
            raise ListFailed(
                "failed", f"cannot get namespace {name}: {error}. Scan again when this is fixed"
            ) from error
        if answer.status == _FORBIDDEN:
            raise ListFailed("forbidden", str(MissingRight("get", f"namespaces/{name}", "", self._get_username())))
        if answer.status == _NOT_FOUND:
            yield Page(kind, 1, b'{"items":[]}')
            return
        body = answer.body()
        if answer.status != _OK or (body.get("kind"), dig(body, "metadata", "name")) != (kind.kind, name):
            why = f"cannot get namespace {name}: the server answered {answer.status} and no such Namespace. Scan again"
            raise ListFailed("failed", why)
        yield Page(kind, 1, b'{"items":[%b]}' % answer.data)

    def _get_username(self) -> str:
        try:
            return self.requester().username or "these credentials"
        except ClusterError:
            return "these credentials"

    def _read_group_version(self, name: str) -> Discovery:
        """The kinds of a group-version in the older form of discovery; a gap if its server does not respond."""
        path = f"/apis/{name}" if "/" in name else f"/api/{name}"
        try:
            answer = self._session.get(path, attempts=_DISCOVERY_ATTEMPTS)
        except NoResponse as error:
            return Discovery((), (discovery.make_gap(name, f"{error}, so the kinds it serves are unknown"),))
        body = answer.body()
        if answer.status == _OK and as_text(body.get("kind")) == "APIResourceList":
            return discovery.read_legacy_kinds(name, body)
        why = f"the server answered {answer.status}: {answer.message()}, so the kinds it serves are unknown"
        return Discovery((), (discovery.make_gap(name, why),))

    def _read_root(self, path: str) -> JsonObject:
        """A root document of discovery, or an empty object."""
        answer = self._request(lambda: self._session.get(path, accept=DISCOVERY))
        if answer.status == _NOT_FOUND:
            return {}
        if answer.status == _FORBIDDEN:
            raise ClusterError(
                f"cannot discover what {self._session.server} serves: {answer.message()}. "
                "Bind the ClusterRole system:discovery to this user"
            )
        body = answer.body()
        if answer.status != _OK or not body:
            raise ClusterError(
                f"{self._session.server}{path} answered {answer.status} and no discovery document. "
                "Check the URL, and that the API server is healthy"
            )
        return body

    def _read_optional(self, path: str, *needed: str) -> JsonObject:
        """The object at a path if it has a text at `needed`; empty if it does not exist or may not be read."""
        answer = self._request(lambda: self._session.get(path))
        if answer.status in (_FORBIDDEN, _NOT_FOUND):
            return {}
        body = answer.body()
        if answer.status != _OK or not as_text(dig(body, *needed)):
            how = (
                "does not answer like a Kubernetes API server" if answer.status == _OK else f"answered {answer.status}"
            )
            raise ClusterError(
                f"cannot identify the cluster: {self._session.server}{path} {how}. "
                "Check the URL, and that the API server is healthy"
            )
        return body

    def _request(self, ask: Callable[[], HttpResponse]) -> HttpResponse:
        """The response, unless it rejects the credentials. Raises ClusterError."""
        try:
            answer = ask()
        except NoResponse as error:
            raise ClusterError(
                f"{error}. Check that the cluster is up and that the kubeconfig's context "
                f"for cluster {self._session.cluster} is the right one"
            ) from error
        if answer.status == _UNAUTHORIZED:
            raise ClusterError(
                f"{self._session.server} does not accept the credentials ({answer.message()}). "
                "Log in again, or choose others with --kubeconfig or --context"
            )
        if answer.status == _FORBIDDEN and f'User "{ANONYMOUS}"' in answer.message():
            raise ClusterError(self._explain_anonymous())
        return answer

    def _explain_anonymous(self) -> str:
        """The reason why requests are anonymous. Rights for the anonymous user are no remedy: every client would have them."""
        if self._session.as_user == ANONYMOUS:
            return f"{ANONYMOUS} may not read what {self._session.server} serves: name another user with --as"
        return (
            f"{self._session.server} takes these requests for anonymous ones: the credentials of context "
            f"{self._session.place} did not reach it. Check for a proxy that ends TLS, or choose others with --context"
        )


def _begin(read: Callable[[], JsonObject]) -> Future[JsonObject]:
    """Begin a read in another thread. An interruption of the program does not wait for it."""
    result: Future[JsonObject] = Future()
    Thread(target=settle, args=(result, read), daemon=True).start()
    return result


def _make_list_path(kind: Kind, namespace: str) -> str:
    if not namespace or not kind.namespaced:
        return kind.path
    return f"{kind.path.removesuffix(kind.plural)}namespaces/{quote(namespace, safe='')}/{kind.plural}"


# The `Date` of an HTTP response: RFC 9110, section 6.6.1. The API server writes the dates of Go's net/http, in whole
# seconds.


def parse_date(date: str) -> datetime | None:
    """The moment that the text of the header names; None for another text, and for the last year, after which no scan can end."""
    try:
        moment = parsedate_to_datetime(date)
        return moment.astimezone(UTC) if moment.tzinfo and moment.year < MAXYEAR else None
    except (ValueError, OverflowError):
        return None


# The number of stored objects of each resource, from the metrics of the API server.
#
# Source of truth: k8s.io/apiserver/pkg/storage/etcd3/metrics. Releases since 1.34 have `apiserver_resource_objects` with the labels `group` and
# `resource`, releases since 1.21 `apiserver_storage_objects` with the label `resource`. The server counts the keys in etcd once a minute;
# -1 stands for a count that failed.

_COUNTED: Final = 200
_NOT_COUNTED: Final = 403
_BY_GROUP: Final = re.compile(
    rb'^apiserver_resource_objects\{group="([^"\\\n]*)",resource="([^"\\\n]+)"\} (\S+)', re.MULTILINE
)
_BY_NAME: Final = re.compile(rb'^apiserver_storage_objects\{resource="([^"\\\n]+)"\} (\S+)', re.MULTILINE)


def read_object_counts(session: ApiSession, username: Callable[[], str]) -> ServerCounts:
    """The counts of a server, or the reason why there are none; `username` names the user in a message about a missing right."""
    try:
        answer = session.get(COUNTS_PATH, accept="text/plain", attempts=1)
    except (NoResponse, ClusterError) as error:
        return ServerCounts(why_not=f"cannot read {COUNTS_PATH}: {error}")
    if answer.status == _NOT_COUNTED:
        grant = f"Grant `get` on the non-resource URL {COUNTS_PATH}"
        return ServerCounts(why_not=f"cannot read {COUNTS_PATH}: forbidden for {username()}. {grant}")
    if answer.status != _COUNTED:
        return ServerCounts(why_not=f"cannot read {COUNTS_PATH}: the server answered {answer.status}")
    counts = parse_object_counts(answer.data)
    return ServerCounts(counts, "" if counts else f"{COUNTS_PATH} has no counts of objects")


def parse_object_counts(metrics: bytes) -> dict[str, int]:
    """The counts in metrics in the text format of Prometheus, by resource, such as `pods` or `deployments.apps`."""
    counts_by_name = [(resource, value) for resource, value in _BY_NAME.findall(metrics)]
    counts_by_group = [
        (resource + b"." + group if group else resource, value) for group, resource, value in _BY_GROUP.findall(metrics)
    ]
    counts = {
        resource.decode(errors="replace"): _parse_count(value)
        for resource, value in (*counts_by_name, *counts_by_group)
    }
    return {resource: count for resource, count in counts.items() if count >= 0}


def _parse_count(value: bytes) -> int:
    """A count, which may be written as `1e+06`; -1 if it is not known."""
    try:
        return int(float(value))
    except (ValueError, OverflowError):
        return -1
