"""Every key of the file that has no flag: the settings of reports, and the tokens of `assay serve`."""

from __future__ import annotations

from typing import Final

from scanner.config.posture import POSTURE_KEYS
from scanner.config.tokens import TOKENS_KEY

UNFLAGGED_KEYS: Final = (*POSTURE_KEYS, TOKENS_KEY)
