"""Reads the moment that a user writes into a form: `latest`, a date or a time in UTC, or the id of a scan."""

from __future__ import annotations

import re
from typing import Final

from scanner.web.addresses import Moment

LATEST: Final = "latest"
_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d(T[0-9:]*Z)?")
_PATH: Final = re.compile(r"(at|scans)/(.*)")


def moment_of(text: str) -> Moment:
    """The moment; also in the form of a path, `at/2026-03-31` and `scans/<id>`. What is no date is the id of a scan."""
    if not text or text == LATEST:
        return Moment()
    if match := _PATH.fullmatch(text):
        return Moment(at=match[2]) if match[1] == "at" else Moment(scan=match[2])
    return Moment(at=text) if _DATE.fullmatch(text) else Moment(scan=text)
