"""Items that a scan does not evaluate, and that make no scan incomplete."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Unneeded(StrEnum):
    """The kinds of items that a scan does not need. The list is closed.

    No bound policy can match them, or other tools read them; or they are older policies of Kyverno, counted by kind.
    """

    API_GROUP = "apiGroup"
    DOCUMENT = "document"
    REPEATED = "repeated"
    KUSTOMIZATION = "kustomization"
    KUSTOMIZE_INPUT = "kustomizeInput"
    HELM_CHART = "helmChart"
    HELM_VALUES = "helmValues"
    HELM_TEMPLATE = "helmTemplate"
    TEST_SUITE = "testSuite"
    PACKAGE_METADATA = "packageMetadata"
    NO_MANIFEST = "noManifest"
    UNUSED_DOCUMENT = "unusedDocument"
    LEGACY_POLICY = "legacyPolicy"
    LEGACY_EXCEPTION = "legacyException"


LEGACY_ENDING: Final = ": Kyverno 1.20 plans to stop running them"
"""The end of the reason for older policies that were counted."""
NOT_KNOWN: Final = "whether there are any"
"""The beginning of the reason for objects that could not be listed: whether there are any is not known."""
NEVER_CALLED: Final = "the API server never calls it"
"""The end of the reason for webhooks that decide nothing."""
CONSTRAINTS: Final = "constraints.gatekeeper.sh"
"""The API group of Gatekeeper's constraints."""
_COUNTED: Final = re.compile(r"([\d,]+)(?: objects?\b| \(|:)")
_UNNEEDED: Final = frozenset(Unneeded)


@dataclass(frozen=True, slots=True, order=True)
class OutOfScope:
    """An item that a scan does not evaluate, and that makes no scan incomplete.

    Either an object of the cluster that also decides about requests, such as a webhook, or all objects of a kind that do: `kind` is the
    resource then, such as `resourcequotas`, and `name` the kind. Or (`unneeded`) an item that no bound policy can match, or older
    policies: `kind` is one of `Unneeded` then, and `name` the place of the item, or the kind of the policies.
    """

    kind: str
    name: str
    why: str

    @property
    def unneeded(self) -> bool:
        """Return whether the scan does not need the item, and names it as *out of scope*."""
        return self.kind in _UNNEEDED

    @property
    def number(self) -> int | None:
        """The number of objects for which the item stands, None if it is not known. The reason begins with it, if it is not 1."""
        if self.why.startswith(NOT_KNOWN):
            return None
        counted = _COUNTED.match(self.why)
        return int(counted[1].replace(",", "")) if counted else 1
