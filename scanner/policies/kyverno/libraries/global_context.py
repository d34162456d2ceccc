"""`globalContext.Get`: the data of GlobalContextEntry objects.

Mirrors Kyverno's globalcontext library: an entry that does not exist is null.

Rules: `docs/semantics/kyverno.md#kyvernos-functions`.
"""

from __future__ import annotations

from typing import ClassVar

from scanner.cel.functions.declaration import ArgumentFlow, Function, Library, member
from scanner.cel.functions.pricing import ONE
from scanner.cel.types.type_system import DYN, STRING, Type, opaque
from scanner.cel.values.values import Opaque, Value
from scanner.policies.kyverno.libraries.cluster_data import ClusterData

GLOBAL_CONTEXT = opaque("globalcontext.Context")


class GlobalContext(Opaque):
    """The value of `globalContext`."""

    __slots__ = ("cluster_data",)
    TYPE: ClassVar[Type] = GLOBAL_CONTEXT
    GO_TYPE: ClassVar[str] = "globalcontext.Context"

    def __init__(self, cluster_data: ClusterData) -> None:
        self.cluster_data = cluster_data


def _get(context: GlobalContext, name: str, projection: str = "") -> Value:
    return context.cluster_data.entry(name, projection)


_OVERLOADS = (
    member("globalcontext_get_string", (GLOBAL_CONTEXT, STRING), DYN, _get),
    member("globalcontext_get_string_string", (GLOBAL_CONTEXT, STRING, STRING), DYN, _get),
)
LIBRARY = Library(
    "kyverno.globalcontext",
    tuple(Function(name, _OVERLOADS, cost=ONE, flow=ArgumentFlow.READS) for name in ("Get", "get")),
)
