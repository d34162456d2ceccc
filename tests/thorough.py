"""The number of examples of the slowest property tests: a third in the suite, all in `make nightly`."""

from __future__ import annotations

import os

FULL = bool(os.environ.get("EVERY_EXAMPLE"))
SHARE = 3


def examples(full: int) -> int:
    """The number of examples to try now, of the full number."""
    return full if FULL else -(-full // SHARE)
