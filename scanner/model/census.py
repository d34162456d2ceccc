"""The numbers of a scan's findings, in the groups from which reports add them up."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeAlias

from scanner.model.policy import PolicyKey
from scanner.model.population import KeptOfObject


class Bucket(NamedTuple):
    """The key under which findings are counted. `status` is that of `StoredFinding`, `owner` empty for none."""

    policy: PolicyKey
    namespace: str
    status: str
    denies: bool
    drift: bool
    owner: str = ""


Census: TypeAlias = Mapping[Bucket, int]

OwnerOf: TypeAlias = Callable[[KeptOfObject | None], str]
"""The owner of an object, given its kept labels, which are None if they are not known; empty for none."""


def unowned(_: KeptOfObject | None) -> str:
    """No owner, for a census that does not tell owners apart."""
    return ""
