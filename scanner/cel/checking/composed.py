"""The variables that a policy has declared before one of its expressions.

A policy may declare thousands, and each expression sees those above it: all share one table, in which every view counts how many
of the declarations are its own.

Rules: `docs/semantics/cel-environment.md#policy-variables`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from hashlib import sha256

from scanner.cel.stack import with_room
from scanner.cel.types.type_system import Type


class Composed:
    """Names and types, in the order of their declaration; the last declaration of a name counts.

    Equal objects have equal declarations. A digest compares them, as comparing thousands of names for each expression is slow.
    """

    __slots__ = ("_count", "_digest", "_log")

    def __init__(self, log: _Log | None = None, digest: bytes = b"") -> None:
        """Take the present declarations of a table; none without a table."""
        self._log = log or _Log()
        self._count = len(self._log.names)
        self._digest = digest

    def declaring(self, name: str, type_: Type) -> Composed:
        """Return these declarations and one more."""
        log = self._log if self._count == len(self._log.names) and self._count else _logged(self)
        log.append(name, type_)
        declaration = with_room(lambda: f"{name} {type_!r}")
        return Composed(log, sha256(self._digest + declaration.encode()).digest())

    def get(self, name: str) -> Type | None:
        """Return the type of a variable, None when none of this name is declared."""
        declared = reversed(self._log.types.get(name, ()))
        return next((type_ for number, type_ in declared if number < self._count), None)

    def __iter__(self) -> Iterator[tuple[str, Type]]:
        for name in dict.fromkeys(self._log.names[: self._count]):
            type_ = self.get(name)
            if type_ is not None:
                yield name, type_

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Composed) and self._digest == other._digest

    def __hash__(self) -> int:
        return hash(self._digest)


class _Log:
    """The table: names in the order of declaration, and the types of each with its number."""

    __slots__ = ("names", "types")

    def __init__(self) -> None:
        self.names: list[str] = []
        self.types: dict[str, list[tuple[int, Type]]] = {}

    def append(self, name: str, type_: Type) -> None:
        self.types.setdefault(name, []).append((len(self.names), type_))
        self.names.append(name)


def _logged(entries: Iterable[tuple[str, Type]]) -> _Log:
    log = _Log()
    for name, type_ in entries:
        log.append(name, type_)
    return log
