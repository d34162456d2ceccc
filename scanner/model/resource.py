"""Kinds, and the objects of a cluster."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from scanner.model.json import EMPTY, JsonObject, as_object, as_text, dig, text_map

LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
"""The annotation in which kubectl keeps a copy of an object."""

SERVER_SET_METADATA: Final = (
    "managedFields",
    "resourceVersion",
    "generation",
    "uid",
    "creationTimestamp",
    "selfLink",
)
"""The fields of metadata that a server sets on create, also if the request has them."""


@dataclass(frozen=True, slots=True, order=True)
class Kind:
    """A kind in one version, from discovery. The core group is the empty string."""

    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool

    @property
    def api_version(self) -> str:
        """`apps/v1`, or `v1` for the core group."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def resource(self) -> str:
        """`deployments.apps`, or `pods` for the core group: the name of the resource in the API."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def path(self) -> str:
        """The URL path of the list of all objects of this kind."""
        prefix = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        return f"{prefix}/{self.plural}"


def api_group_of(api_version: str) -> str:
    """The group of an apiVersion such as `apps/v1`; empty for the core group."""
    return api_version.rpartition("/")[0]


def find_name_fault(name: str) -> str:
    """The reason why no object can have a name or a namespace (`IsValidPathSegmentName`), empty if one can: it is a part of a URL."""
    if name in (".", ".."):
        return f"may not be '{name}'"
    return next((f"may not contain '{character}'" for character in "/%" if character in name), "")


METADATA_ONLY: Final = ("meta.k8s.io/v1", "PartialObjectMetadata")
"""The apiVersion and the kind of an object, of any kind, whose metadata alone was requested. A list of them names no other kind."""


NAMESPACES: Final = Kind("", "v1", "Namespace", "namespaces", namespaced=False)


class Resource(NamedTuple):
    """An object. `namespace` is empty for cluster-scoped objects, `uid` for objects from files.

    `withheld` are fields that no policy may read, and that `body` therefore lacks: the data of a Secret. `marked` is the body of an object
    of a snapshot that withholds parts of it, with these parts marked, and empty for any other object.
    """

    kind: Kind
    namespace: str
    name: str
    uid: str
    resource_version: str
    body: JsonObject
    withheld: JsonObject = EMPTY
    marked: JsonObject = EMPTY

    @property
    def labels(self) -> Mapping[str, str]:
        """`metadata.labels`, without entries that are not strings."""
        return text_map(dig(self.body, "metadata", "labels"))


class ObjectKey(NamedTuple):
    """The kind, the namespace (empty for cluster-scoped objects) and the name of an object."""

    kind: Kind
    namespace: str
    name: str


def resource_of(kind: Kind, body: JsonObject) -> Resource:
    """The noun for a decoded object; missing metadata reads as empty strings."""
    metadata = as_object(body.get("metadata"))
    return Resource(
        kind=kind,
        namespace=as_text(metadata.get("namespace")) if kind.namespaced else "",
        name=as_text(metadata.get("name")),
        uid=as_text(metadata.get("uid")),
        resource_version=as_text(metadata.get("resourceVersion")),
        body=body,
    )


@dataclass(frozen=True, slots=True)
class Page:
    """A raw page of a list: the JSON text `{"items": [...]}` as received, not decoded.

    Items may lack apiVersion and kind, as in responses to list requests. `number` counts from 1 within the kind, `seconds` is
    the duration of the request. `inconsistency` is empty, or the reason why this page shows another moment than the earlier
    pages; objects of earlier pages may then appear again.
    """

    kind: Kind
    number: int
    data: bytes
    resource_version: str = ""
    seconds: float = 0.0
    inconsistency: str = ""


@dataclass(frozen=True, slots=True)
class UserInfo:
    """The user of a request. Empty fields are absent in `request.userInfo`, as on a server."""

    username: str = ""
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()


# The user info that a server would give a named user.
#
# Source of truth: the impersonation filter of kube-apiserver 1.36. Every user but the anonymous one is authenticated,
# and a service account without explicit groups is in the groups of its namespace.

AUTHENTICATED = "system:authenticated"
UNAUTHENTICATED = "system:unauthenticated"
ANONYMOUS = "system:anonymous"
_ACCOUNT = "system:serviceaccount:"


def build_user_info(
    username: str,
    groups: tuple[str, ...] = (),
    *,
    uid: str = "",
    extra: tuple[tuple[str, tuple[str, ...]], ...] = (),
) -> UserInfo:
    """The user info in a request, with the groups that a server adds."""
    explicit = groups or tuple(_list_account_groups(username))
    common_group = UNAUTHENTICATED if username == ANONYMOUS else AUTHENTICATED
    added = () if {AUTHENTICATED, UNAUTHENTICATED} & set(explicit) else (common_group,)
    return UserInfo(username, uid, (*explicit, *added), extra)


def _list_account_groups(username: str) -> Iterator[str]:
    namespace, colon, name = username.removeprefix(_ACCOUNT).partition(":")
    if username.startswith(_ACCOUNT) and colon and namespace and name:
        yield "system:serviceaccounts"
        yield f"system:serviceaccounts:{namespace}"
