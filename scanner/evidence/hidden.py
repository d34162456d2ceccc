"""The secret values of the object at hand, found once: several findings are about one object."""

from __future__ import annotations

from scanner.model.resource import Resource
from scanner.redact import hidden_values


class Hidden:
    """The secret values of the latest object and param."""

    def __init__(self) -> None:
        """Begin with none."""
        self._of: tuple[Resource | None, ...] = ()
        self._values: frozenset[str] = frozenset()

    def of(self, *resources: Resource | None) -> frozenset[str]:
        """See `hidden_values`."""
        if len(self._of) != len(resources) or any(a is not b for a, b in zip(self._of, resources, strict=True)):
            self._values = hidden_values(*resources)
            self._of = resources
        return self._values


HIDDEN = Hidden()
