"""The names of the gates of `--fail-on`. The command line reads them for its help, so this module imports nothing of a scan."""

from __future__ import annotations

from enum import StrEnum


class Gate(StrEnum):
    """The gates."""

    NEW = "new"
    DENY = "deny"
    VIOLATED = "violated"
    ERRORED = "errored"
    DRIFT = "drift"
    HEALTH = "health"
