"""Dry-run writes, which change nothing: the response of an API server to the create or update of an object.

Source of truth: server-side dry run. All of admission runs, nothing is stored, and webhooks with side effects reject the request.
The API server forwards requests for the kinds of an APIService to another server, which may ignore `dryRun`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Final, Literal
from urllib.parse import quote

from scanner.cluster.definitions import builtin_kinds
from scanner.cluster.requests.session import ApiSession, HttpResponse, NoResponse, Requester
from scanner.errors import ClusterError, ListFailed
from scanner.model.json import JsonObject, as_list, as_text, dig
from scanner.model.resource import Kind, UserInfo, build_user_info, find_name_fault

if TYPE_CHECKING:
    from scanner.parity import Response

_WARNING: Final = re.compile(r'299 \S+ "((?:[^"\\]|\\.)*)"')
_SERVICES: Final = "/apis/apiregistration.k8s.io/v1/apiservices"
_MANAGER: Final = "assay-check"
"""A field manager that owns no field: what it does not name stays."""
_OK: Final = 200
_FORBIDDEN: Final = 403
_NOT_FOUND: Final = 404


class DryRuns:
    """Sends dry-run writes to a cluster."""

    def __init__(self, session: ApiSession) -> None:
        """Use the credentials of a session."""
        self._session = session

    def is_foreign(self, kind: Kind) -> bool:
        """See Writer. Without permission to list APIServices, all kinds that are not built in count as foreign."""
        if self._foreign_versions is None:
            return kind not in builtin_kinds()
        return kind.api_version in self._foreign_versions

    @cached_property
    def _foreign_versions(self) -> frozenset[str] | None:
        answer = self._send(lambda: self._session.get(_SERVICES), "the list of APIServices")
        if answer.status != _OK:
            return None
        specs = [dig(item, "spec") for item in as_list(answer.body().get("items"))]
        remote = [
            (as_text(dig(spec, "group")), as_text(dig(spec, "version"))) for spec in specs if dig(spec, "service")
        ]
        return frozenset(f"{group}/{version}" if group else version for group, version in remote)

    def read(self, kind: Kind, namespace: str, name: str) -> JsonObject | None:
        """See Writer. Raises ListFailed and ClusterError."""
        if not name or find_name_fault(namespace) or find_name_fault(name):
            return None  # no object has the name, and its URL would be another one
        answer = self._send(lambda: self._session.get(_make_path(kind, namespace, name)), f"{kind.resource} {name}")
        if answer.status == _NOT_FOUND:
            return None
        if answer.status == _FORBIDDEN:
            raise ListFailed("forbidden", f"cannot get {kind.resource}: grant `get` on {kind.resource}")
        if answer.status != _OK:
            raise ListFailed("failed", f"cannot get {kind.resource} {name}: the server answered {answer.status}")
        return answer.exact_body()

    def create(self, kind: Kind, body: JsonObject, user: UserInfo | None = None) -> Response:
        """See Writer and RequestWriter."""
        return self._write("POST", kind, body, body, user)

    def update(self, kind: Kind, body: JsonObject, user: UserInfo | None = None) -> Response:
        """See Writer and RequestWriter."""
        return self._write("PUT", kind, body, body, user)

    def patch(self, kind: Kind, body: JsonObject, changes: JsonObject, user: UserInfo | None = None) -> Response:
        """See RequestWriter."""
        return self._write("PATCH", kind, body, changes, user)

    def _write(
        self,
        method: Literal["POST", "PUT", "PATCH"],
        kind: Kind,
        body: JsonObject,
        content: JsonObject,
        user: UserInfo | None,
    ) -> Response:
        namespace, name = _get_names(body)
        path = _make_path(kind, namespace, "" if method == "POST" else name)
        requester = Requester(user.username, _list_groups(user)) if user else None
        return _make_response(
            self._send(
                lambda: self._session.dry_run(method, path, content, requester=requester), f"{kind.resource} {name}"
            )
        )

    def apply(self, kind: Kind, body: JsonObject) -> Response:
        """See DryRunApplier."""
        namespace, name = _get_names(body)
        path = _make_path(kind, namespace, name)
        return _make_response(
            self._send(lambda: self._session.dry_run("PATCH", path, body, manager=_MANAGER), f"{kind.resource} {name}")
        )

    @staticmethod
    def _send(request: Callable[[], HttpResponse], what: str) -> HttpResponse:
        try:
            return request()
        except (NoResponse, ClusterError) as error:
            raise ListFailed("failed", f"no response about {what}: {error}") from error


def _make_path(kind: Kind, namespace: str, name: str = "") -> str:
    within = f"namespaces/{quote(namespace, safe='')}/" if kind.namespaced and namespace else ""
    collection = f"{kind.path.removesuffix(kind.plural)}{within}{kind.plural}"
    return f"{collection}/{quote(name, safe='')}" if name else collection


def _list_groups(user: UserInfo) -> tuple[str, ...]:
    """The groups to impersonate: none for a user that has only those which a server adds."""
    return () if user.groups == build_user_info(user.username).groups else user.groups


def _get_names(body: JsonObject) -> tuple[str, str]:
    """The namespace and the name of an object. Raises ListFailed for one that no object can have: its URL would be another one."""
    namespace, name = (as_text(dig(body, "metadata", field)) for field in ("namespace", "name"))
    if fault := find_name_fault(namespace) or find_name_fault(name):
        raise ListFailed("failed", f"no object can have this name: it {fault}")
    return namespace, name


def _make_response(answer: HttpResponse) -> Response:
    """The response without its transport: a Status has no object, any other body is one."""
    from scanner.parity import Response  # a tenth of the start of a command, and most commands write nothing

    body = answer.exact_body()
    is_status = body.get("kind") == "Status" and body.get("apiVersion") == "v1"
    status = answer.body() if is_status else {}
    return Response(
        status=answer.status,
        reason=as_text(status.get("reason")),
        message=as_text(status.get("message")),
        warnings=tuple(text for line in answer.warnings for text in _read_warnings(line)),
        body={} if is_status else body,
    )


def _read_warnings(header: str) -> list[str]:
    """The warnings of one header line: UTF-8 within it, a backslash before quotes and backslashes."""
    line = header.encode("latin-1", "replace").decode("utf-8", "replace")
    return [re.sub(r"\\(.)", r"\1", text) for text in _WARNING.findall(line)]
