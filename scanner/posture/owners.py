"""The owner of an object: a team, named by a label or annotation of the object, its workload or its namespace.

An owner is not an owner reference: the top of those is the workload (`posture.workloads`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from scanner.model.population import KeptMetadata, KeptOfObject

Place: TypeAlias = Literal["object", "workload", "namespace"]
Source: TypeAlias = Literal["label", "annotation"]

PLACES: Final[tuple[Place, ...]] = ("object", "workload", "namespace")
UNOWNED: Final = ""
"""The owner of an object that no key names an owner of."""


@dataclass(frozen=True, slots=True)
class OwnerKey:
    """A label or annotation whose value is the owner, if the object, its workload or its namespace has the key."""

    place: Place
    source: Source
    key: str


DEFAULT_OWNER_KEYS: Final = tuple(OwnerKey(place, "label", key) for place in PLACES for key in ("team", "owner"))
"""The labels `team` and `owner`: of the object, else of its workload, else of its namespace."""


@dataclass(frozen=True, slots=True)
class Owners:
    """Names the owner of an object by some keys: by the first of them that has a value."""

    keys: tuple[OwnerKey, ...] = DEFAULT_OWNER_KEYS

    @property
    def names(self) -> frozenset[str]:
        """The names of the labels and annotations that can name an owner."""
        return frozenset(key.key for key in self.keys)

    def __call__(self, kept: KeptOfObject | None, /) -> str:
        """The owner of an object; UNOWNED without a value, or if the labels are not known."""
        if kept is None:
            return UNOWNED
        return next((value for key in self.keys if (value := _value(kept, key))), UNOWNED)


def _value(kept: KeptOfObject, key: OwnerKey) -> str:
    of_place: KeptMetadata = getattr(kept, key.place)
    pairs = of_place.labels if key.source == "label" else of_place.annotations
    return next((value.strip() for name, value in pairs if name == key.key), "")
