"""No secret leaves the process: applied to every text before it becomes part of a finding.

The values of Secrets and of container environment variables are masked wherever they appear; a message whose
expression reads a Secret's data, or the Secret as a whole, is replaced altogether, for parts of a value could not be
recognised.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Iterator

from scanner.model.json import Json, as_list, as_object, as_text, dig
from scanner.model.resource import Resource

MASK = "[redacted]"
WITHHELD = "[redacted: the message reads the data of a Secret]"
_DATA = frozenset({"data", "stringData"})
# Shorter values are no secrets, and masking them would leave nothing readable.
_SHORTEST_SECRET = 3
_SHORTEST_ENV = 6


def is_secret(resource: Resource | None) -> bool:
    """Whether an object is a Secret."""
    return resource is not None and (resource.kind.group, resource.kind.kind) == ("", "Secret")


def reads_data(reads: Iterable[tuple[str, ...]], root: str) -> bool:
    """Whether an expression with these access paths sees the data of the Secret called `object` or `params`."""
    roots = {root, "oldObject"} if root == "object" else {root}
    return any(path[0] in roots and (len(path) == 1 or path[1] in _DATA) for path in reads)


def masked(text: str, *resources: Resource | None) -> str:
    """The text without any secret value of these objects."""
    for value in sorted(set(_values(resources)), key=lambda value: (-len(value), value)):
        if value in text:
            text = text.replace(value, MASK)
    return text


def _values(resources: Iterable[Resource | None]) -> Iterator[str]:
    for resource in resources:
        if resource is None:
            continue
        if is_secret(resource):
            yield from _secret_values(resource)
        else:
            yield from _env_values(resource.body)


def _secret_values(resource: Resource) -> Iterator[str]:
    for value in as_object(resource.body.get("data")).values():
        text = as_text(value)
        yield from (found for found in (text, _decoded(text)) if len(found) >= _SHORTEST_SECRET)
    for value in as_object(resource.body.get("stringData")).values():
        if len(as_text(value)) >= _SHORTEST_SECRET:
            yield as_text(value)


def _decoded(text: str) -> str:
    try:
        return base64.b64decode(text, validate=True).decode()
    except (binascii.Error, ValueError):
        return ""


def _env_values(body: Json) -> Iterator[str]:
    for template in (("spec",), ("spec", "template", "spec"), ("spec", "jobTemplate", "spec", "template", "spec")):
        spec = dig(body, *template)
        for containers in ("containers", "initContainers", "ephemeralContainers"):
            for container in as_list(dig(spec, containers)):
                for entry in as_list(dig(container, "env")):
                    value = as_text(dig(entry, "value"))
                    if len(value) >= _SHORTEST_ENV:
                        yield value
