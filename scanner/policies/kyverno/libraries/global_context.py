"""`globalContext.Get`: data that GlobalContextEntry objects hold ready.

Mirrors Kyverno's globalcontext library: an entry that nobody declared is null.
"""

from __future__ import annotations

from typing import ClassVar

from scanner.cel.functions.declaration import Function, Library, member
from scanner.cel.types.type_system import DYN, STRING, Type, opaque
from scanner.cel.values.values import Opaque, Value
from scanner.policies.kyverno.libraries.cluster_data import Surroundings

GLOBAL_CONTEXT = opaque("globalcontext.Context")


class GlobalContext(Opaque):
    """The value of `globalContext`."""

    __slots__ = ("surroundings",)
    TYPE: ClassVar[Type] = GLOBAL_CONTEXT
    GO_TYPE: ClassVar[str] = "globalcontext.Context"

    def __init__(self, surroundings: Surroundings) -> None:
        self.surroundings = surroundings


def _get(context: GlobalContext, name: str, projection: str = "") -> Value:
    return context.surroundings.entry(name, projection)


_OVERLOADS = (
    member("globalcontext_get_string", (GLOBAL_CONTEXT, STRING), DYN, _get),
    member("globalcontext_get_string_string", (GLOBAL_CONTEXT, STRING, STRING), DYN, _get),
)
LIBRARY = Library("kyverno.globalcontext", (Function("Get", _OVERLOADS), Function("get", _OVERLOADS)))
