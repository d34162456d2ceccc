"""What a cluster serves and holds: kinds and the objects of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from scanner.model.json import JsonObject, as_object, as_text, dig, text_map


@dataclass(frozen=True, slots=True, order=True)
class Kind:
    """One served kind in one version, as discovery tells it. The core group is the empty string."""

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
        """`deployments.apps`, or `pods` for the core group: the API's own name of a resource."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def path(self) -> str:
        """The URL path under which all objects of this kind are listed."""
        prefix = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        return f"{prefix}/{self.plural}"


@dataclass(frozen=True, slots=True)
class Resource:
    """One object of the cluster. `namespace` is empty for cluster-scoped objects; `uid` for objects from files.

    `withheld` are fields that nobody is to evaluate, and that are in no `body` therefore: the data of a Secret.
    """

    kind: Kind
    namespace: str
    name: str
    uid: str
    resource_version: str
    body: JsonObject
    withheld: JsonObject = field(default_factory=dict)

    @property
    def labels(self) -> Mapping[str, str]:
        """`metadata.labels`, without entries that are not strings."""
        return text_map(dig(self.body, "metadata", "labels"))

    @property
    def deleting(self) -> bool:
        """Whether the object carries a deletionTimestamp."""
        return dig(self.body, "metadata", "deletionTimestamp") is not None


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
    """One raw page of a list: the JSON text `{"items": [...]}` as it came, not yet decoded.

    Items may lack apiVersion and kind, as list answers do. `number` counts from 1 within the kind, `seconds` is how long
    the page took to come. `seam` says why this page shows another moment than those before it, and is empty if it does
    not; objects of earlier pages may then come again.
    """

    kind: Kind
    number: int
    data: bytes
    resource_version: str = ""
    seconds: float = 0.0
    inconsistency: str = ""


@dataclass(frozen=True, slots=True)
class UserInfo:
    """Who asks, in a simulated request. Empty fields are absent in `request.userInfo`, as on a server."""

    username: str = ""
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()
