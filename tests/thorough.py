"""What the suite has a part of and `make nightly` has all of: examples of the slowest property tests, and cases of the longest tests."""

from __future__ import annotations

import os

FULL = bool(os.environ.get("EVERY_EXAMPLE"))
SHARE = 3


def examples(full: int) -> int:
    """The number of examples to try now, of the full number."""
    return full if FULL else -(-full // SHARE)
