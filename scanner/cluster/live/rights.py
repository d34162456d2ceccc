"""The permissions of this user, and the roles that grant needed permissions.

Source of truth: `authorization.k8s.io/v1` (SelfSubjectAccessReview, which the server does not store) and
`rbac.authorization.k8s.io/v1`. One review for each permission is used instead of the rules of a namespace, because
only the authorizer knows the decisions of its webhooks and other modes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from scanner.cluster.requests.session import ApiSession, NoResponse
from scanner.errors import ClusterError, UsageError
from scanner.model.json import Json, JsonObject, dig

if TYPE_CHECKING:
    from scanner.rbac import Permission

_AUTHORIZATION: Final = "authorization.k8s.io/v1"
_REVIEWS: Final = f"/apis/{_AUTHORIZATION}/selfsubjectaccessreviews"
_RBAC: Final = "rbac.authorization.k8s.io"
_CREATED: Final = 201
_SUBJECT: Final = "write user:NAME, group:NAME or serviceaccount:NAMESPACE:NAME"


def is_allowed(session: ApiSession, need: Permission) -> bool:
    """Return whether this user has a permission. Raises ClusterError without an answer."""
    fields = {
        "group": need.group,
        "resource": need.resource,
        "verb": need.verb,
        "namespace": need.namespace,
        "name": need.name,
    }
    attributes: JsonObject = {key: value for key, value in fields.items() if value}
    of_url: JsonObject = {"path": need.url, "verb": need.verb}
    spec: JsonObject = {"nonResourceAttributes": of_url} if need.url else {"resourceAttributes": attributes}
    try:
        answer = session.review(
            _REVIEWS, {"apiVersion": _AUTHORIZATION, "kind": "SelfSubjectAccessReview", "spec": spec}
        )
    except NoResponse as error:
        raise ClusterError(f"cannot determine the permissions of this user: {error}") from error
    if answer.status != _CREATED:
        raise ClusterError(
            f"cannot determine the permissions of this user: the server answered {answer.status}: {answer.message()}. "
            "Bind the ClusterRole system:basic-user to it"
        )
    return dig(answer.body(), "status", "allowed") is True


def make_roles(needs: Iterable[Permission], name: str, subject: str = "") -> Iterator[JsonObject]:
    """The ClusterRole for permissions in all namespaces and a Role for each namespace, with bindings for a `subject`.

    `subject` is `user:NAME`, `group:NAME` or `serviceaccount:NAMESPACE:NAME`. Raises UsageError for any other.
    """
    to = _make_subject(subject) if subject else None
    by_namespace: dict[str, list[Permission]] = {}
    for need in needs:
        by_namespace.setdefault(need.namespace, []).append(need)
    for namespace, permissions in sorted(by_namespace.items()):
        kind = "Role" if namespace else "ClusterRole"
        yield _make_document(kind, name, namespace, {"rules": _make_rules(permissions)})
        if to:
            reference: JsonObject = {"apiGroup": _RBAC, "kind": kind, "name": name}
            yield _make_document(f"{kind}Binding", name, namespace, {"subjects": [to], "roleRef": reference})


def _make_rules(needs: Sequence[Permission]) -> list[Json]:
    """One rule for all needs with the same group, verb and object, and one for each URL."""
    grouped: dict[tuple[str, str, str], set[str]] = {}
    urls = [need for need in needs if need.url]
    for need in needs:
        if not need.url:
            grouped.setdefault((need.group, need.verb, need.name), set()).add(need.resource)
    by_resource: list[Json] = [
        {
            "apiGroups": [group],
            "resources": sorted(resources),
            **({"resourceNames": [name]} if name else {}),
            "verbs": [verb],
        }
        for (group, verb, name), resources in sorted(grouped.items())
    ]
    return [*by_resource, *({"nonResourceURLs": [need.url], "verbs": [need.verb]} for need in urls)]


def _make_document(kind: str, name: str, namespace: str, rest: JsonObject) -> JsonObject:
    metadata: JsonObject = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": f"{_RBAC}/v1", "kind": kind, "metadata": metadata, **rest}


def _make_subject(text: str) -> JsonObject:
    kind, _, name = text.partition(":")
    namespace, _, account = name.partition(":")
    match kind.lower():
        case "user" | "group" if name:
            return {"apiGroup": _RBAC, "kind": kind.capitalize(), "name": name}
        case "serviceaccount" if namespace and account:
            return {"kind": "ServiceAccount", "namespace": namespace, "name": account}
        case _:
            raise UsageError(f"--for {text}: {_SUBJECT}")
