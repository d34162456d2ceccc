"""The data that Kyverno's functions read outside an expression, and the errors for data that are not available.

The evaluator gives the library values (`resource`, `globalContext`, `image`, `yaml`) an object with this Protocol. A read that
Assay cannot answer raises `Unavailable`: operators absorb it like any other error, but it decides nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, cast

import jmespath
from jmespath.exceptions import JMESPathError, UnknownFunctionError
from msgspec import Struct

from scanner.cel.errors import EvaluationError
from scanner.cel.values.values import Value


class Unavailable(EvaluationError):
    """Data that Assay does not have: a check that depends on them cannot be audited; the message is the reason."""


class Collection(Struct, frozen=True):
    """A group, a version and the plural name of a resource, as in URLs."""

    group: str
    version: str
    plural: str


@dataclass(frozen=True, slots=True)
class Call:
    """An HTTP request of an expression: `data` is the JSON text of its body, `bundle` has the only trusted certificates."""

    method: str
    url: str
    headers: tuple[tuple[str, str], ...] = ()
    data: str = ""
    bundle: str = ""


class Network(Protocol):
    """Sends requests, if the user allows them. Each method raises `EvaluationError` with upstream's text, or `Unavailable`."""

    def request(self, call: Call, /) -> tuple[int, bytes]:
        """Return the HTTP status and the body of a response."""
        ...

    def image(self, reference: str, /) -> Value:
        """Return a registry's data about an image, as a map."""
        ...


class ClusterData(Protocol):
    """The data. Each method raises `EvaluationError` with upstream's text, or `Unavailable`."""

    @property
    def reaches_out(self) -> bool:
        """Return whether requests may leave this process."""
        ...

    def get(self, collection: Collection, namespace: str, name: str, /) -> Value:
        """Return an object as a map, or None if it does not exist."""
        ...

    def list(self, collection: Collection, namespace: str, labels: Mapping[str, str], /) -> Value:
        """Return a list object: apiVersion, kind, metadata and items; the empty namespace means all of them."""
        ...

    def collection(self, group: str, version: str, kind: str, /) -> Collection:
        """Return the collection of the objects of a kind."""
        ...

    def entry(self, name: str, projection: str, /) -> Value:
        """Return the data of a global context entry, or None if the entry does not exist."""
        ...

    def image(self, reference: str, /) -> Value:
        """Return a registry's data about an image, as a map."""
        ...

    def request(self, call: Call, /) -> Value:
        """Return the response to an HTTP request, with its `statusCode`; every other number is a double."""
        ...

    def parse_yaml(self, text: str, /) -> Value:
        """Return the value of a YAML document; every number is a double."""
        ...


class NoClusterData:
    """Cluster data without contents: every read is unavailable."""

    @property
    def reaches_out(self) -> bool:
        """See ClusterData."""
        return False

    def get(self, collection: Collection, _namespace: str, _name: str, /) -> Value:
        """See ClusterData. Raises Unavailable."""
        raise Unavailable(f"it reads {collection.plural}, which are not listed here")

    def list(self, collection: Collection, _namespace: str, _labels: Mapping[str, str], /) -> Value:
        """See ClusterData. Raises Unavailable."""
        raise Unavailable(f"it lists {collection.plural}, which are not listed here")

    def collection(self, _group: str, _version: str, kind: str, /) -> Collection:
        """See ClusterData. Raises Unavailable."""
        raise Unavailable(f"it asks for the resource of kind {kind}, and discovery is not available here")

    def entry(self, name: str, _projection: str, /) -> Value:
        """See ClusterData. Raises Unavailable."""
        raise Unavailable(f"it reads the global context entry {name}, which is not available here")

    def image(self, _reference: str, /) -> Value:
        """See ClusterData. Raises Unavailable."""
        raise Unavailable("it asks a registry about an image, and a scan asks none without --allow-network")

    def request(self, call: Call, /) -> Value:
        """See ClusterData. Raises Unavailable."""
        raise Unavailable(f"it makes an HTTP {call.method}, and a scan makes none without --allow-network")

    def parse_yaml(self, _text: str, /) -> Value:
        """See ClusterData. Raises Unavailable."""
        raise Unavailable("it parses YAML, which is not available here")


class SecretSafe(NoClusterData):
    """Cluster data for a Secret: no request leaves the process."""

    def image(self, _reference: str, /) -> Value:
        """See ClusterData. Raises Unavailable."""
        raise Unavailable("it asks a registry about a Secret, whose values stay in this process")

    def request(self, call: Call, /) -> Value:
        """See ClusterData. Raises Unavailable."""
        raise Unavailable(f"it makes an HTTP {call.method} about a Secret, whose values stay in this process")


# Evaluates JMESPath, the language in which global context entries project their data.
#
# Mirrors go-jmespath within the specification of JMESPath. Functions that Kyverno adds to it are not evaluated: a
# check that depends on such a function cannot be audited.

_FAILED = "failed to get global reference"


def projected(data: Value, path: str) -> Value:
    """Return the result of a path on some data. Raises EvaluationError and Unavailable."""
    try:
        return cast("Value", jmespath.search(path, data))
    except UnknownFunctionError as error:
        raise Unavailable(f"it projects by a function of Kyverno's own: {error}") from None
    except (JMESPathError, ValueError, TypeError) as error:
        raise EvaluationError(f"{_FAILED}: {error}") from None
