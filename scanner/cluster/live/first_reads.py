"""The reads of every command that asks a live cluster for its rules: sent first, while the modules that evaluate the answers are imported.

The lists are those of the stable API of admission. A server that does not serve one of them answers 404, and nothing asks for the answer.
"""

from __future__ import annotations

from typing import Final

_JSON: Final = "application/json"
DISCOVERY: Final = (
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,"
    "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,"
    "application/json"
)
"""The forms of discovery documents, the newest first."""
KUBE_SYSTEM: Final = "/api/v1/namespaces/kube-system"
VERSION: Final = "/version"
_LISTS: Final = (
    "validatingadmissionpolicies",
    "validatingadmissionpolicybindings",
    "mutatingadmissionpolicies",
    "mutatingadmissionpolicybindings",
    "validatingwebhookconfigurations",
    "mutatingwebhookconfigurations",
)


def list_first_reads(chunk_size: int) -> tuple[tuple[str, str], ...]:
    """The paths with their content types, in the order in which they are needed; a page of a list has `chunk_size` objects."""
    lists = (f"/apis/admissionregistration.k8s.io/v1/{plural}?limit={chunk_size}" for plural in _LISTS)
    return (
        (KUBE_SYSTEM, _JSON),
        (VERSION, _JSON),
        ("/apis", DISCOVERY),
        ("/api", DISCOVERY),
        *((path, _JSON) for path in lists),
    )
