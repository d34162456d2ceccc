"""Every key of the file that has no flag: the settings of reports, the tokens of `assay serve`, and the routes of notifications."""

from __future__ import annotations

from typing import Final

from scanner.config.notifications import NOTIFICATIONS_KEY
from scanner.config.posture import POSTURE_KEYS
from scanner.config.tokens import TOKENS_KEY

UNFLAGGED_KEYS: Final = (*POSTURE_KEYS, TOKENS_KEY, NOTIFICATIONS_KEY)
