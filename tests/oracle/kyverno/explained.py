"""The known differences between random expressions of ours and of Kyverno, each with its reason."""

from __future__ import annotations

import re

from scanner.model.release import Minor
from tests.oracle import explained
from tests.oracle.compare import Difference

_OWN_JSON: Minor = (1, 19)


_GO_STRUCT = re.compile(r"'type': '(url\.URL|resource\.Quantity|netip\.(Addr|Prefix)|v4\.Version|name\.(Tag|Digest))'")
_TAKES_MAPS = re.compile(r"json\.marshal\(|listObjToMap\(")
_GO_MAP = re.compile(r"map\[(interface \{\}|ref\.Val)\]")
_MADE_MAP = "a map in a list or map that the expression makes is an error for these functions there, and looks like any map here"


def reason(expression: str, difference: Difference, release: Minor) -> str | None:
    """Return the reason of a known difference; None for any other."""
    if difference.what == "value" and _GO_STRUCT.search(str(difference.expected)):
        return "what Go code has wrapped again is a Go struct there, whose fields no expression can read"
    if difference.what == "value" and "gzip.compress" in expression:
        return "another compressor writes other bytes for the same text"
    if release < _OWN_JSON and _TAKES_MAPS.search(expression) and _GO_MAP.search(str(difference.expected)):
        return _MADE_MAP
    return explained.reason(expression, difference)


def reason_of_policy(expected: str, release: Minor) -> str | None:
    """Return the reason of a known difference of a policy's results, which are those expected; None for any other."""
    return _MADE_MAP if release < _OWN_JSON and _GO_MAP.search(expected) else None
