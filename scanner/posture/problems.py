"""Problems: one check of one policy that one workload breaks, whatever its objects are called, and however often they are replaced.

The ids of checks and problems follow from names alone, so that two databases and a baseline file agree on them.
"""

from __future__ import annotations

import hashlib
from typing import Final

_DIGITS: Final = 12
_SEPARATOR: Final = "\0"


def check_id(language: str, policy: str, kind: str, expression: str, ordinal: int, again: int = 0) -> str:
    """The id of a check: `c-` and 12 hex digits of a SHA-256. `expression` is trimmed, `ordinal` counts equal ones before it.

    `again` tells apart checks that would have the same id: 0 unless another check of the policy has it.
    """
    parts = (language, policy, kind, expression, str(ordinal), *([str(again)] if again else []))
    return f"c-{_digest(parts)[:_DIGITS]}"


def workload_key(group: str, kind: str, namespace: str, name: str) -> int:
    """The number that stands for a workload in `problem_number`: the first 64 bits of a SHA-256."""
    return int(_digest((group, kind, namespace, name))[:16], 16)


def problem_number(check: str, workload: int) -> int:
    """The problem of a check, by its id, and of a workload, by its key: 48 bits, which `problem_id` shows."""
    digest = hashlib.sha256(check.encode())
    digest.update(workload.to_bytes(8))
    return int.from_bytes(digest.digest()[: _DIGITS // 2])


def problem_id(number: int) -> str:
    """The id of a problem: `p-` and 12 hex digits."""
    return f"p-{number:0{_DIGITS}x}"


def _digest(parts: tuple[str, ...]) -> str:
    return hashlib.sha256(_SEPARATOR.join(parts).encode("utf-8", "surrogatepass")).hexdigest()
