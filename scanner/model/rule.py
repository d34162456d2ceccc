"""The objects that decide together with policies and bindings: params, exceptions, global context entries, namespace labels.

Their content is kept with a scan, so that a rule that was loosened does not look like an object that was corrected.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from scanner.model.json import JsonObject, dig


class RuleType(StrEnum):
    """The part that an object has in the decisions of policies."""

    PARAM = "param"
    EXCEPTION = "exception"
    GLOBAL_CONTEXT = "globalContext"
    NAMESPACE_LABELS = "namespaceLabels"
    CONFIGURATION = "configuration"


@dataclass(frozen=True, slots=True)
class RuleObject:
    """The content of one object that decides together with policies.

    `name` is `namespace/name`, or the name alone of a cluster-scoped object; that of a param begins with its kind and group,
    as in `ConfigMap shop/limits` and `example.com/Limits shop/limits`. `document` is the content that expressions can read,
    without the fields that a server sets, and redacted. With `masked` a part is withheld: then the document has the UID and
    the resource version of the object, if the object has them. `digest` is the SHA-256 of the document, in hex.
    """

    type: RuleType
    name: str
    digest: str
    document: JsonObject
    masked: bool = False

    @property
    def identified(self) -> bool:
        """Return whether equal digests mean equal content: False for withheld content of an object without a version."""
        return not self.masked or bool(dig(self.document, "metadata", "resourceVersion"))
