"""The numbers of a scan's findings, in the groups from which reports add them up."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, TypeAlias

from scanner.model.policy import PolicyKey


class Bucket(NamedTuple):
    """The key under which findings are counted. `status` is that of `StoredFinding`."""

    policy: PolicyKey
    namespace: str
    status: str
    denies: bool
    drift: bool


Census: TypeAlias = Mapping[Bucket, int]
