"""The known differences between random expressions of ours and of Kyverno, each with its reason."""

from __future__ import annotations

import re

from scanner.model.release import Minor
from tests.oracle import explained
from tests.oracle.compare import Difference

_OWN_JSON: Minor = (1, 19)


_URL = re.compile(r"url\.URL")
_TAKES_MAPS = re.compile(r"json\.marshal\(|listObjToMap\(")


def reason(expression: str, difference: Difference, release: Minor) -> str | None:
    """Return the reason of a known difference; None for any other."""
    if difference.what == "value" and _URL.search(str(difference.expected)):
        return "a URL in the result of listObjToMap is a Go struct there, whose fields no expression can read"
    if difference.what == "value" and "gzip.compress" in expression:
        return "another compressor writes other bytes for the same text"
    if release < _OWN_JSON and _TAKES_MAPS.search(expression) and "map[ref.Val]ref.Val" in str(difference.expected):
        return "a map literal is an error for these functions there, and looks like any map here"
    return explained.reason(expression, difference)
