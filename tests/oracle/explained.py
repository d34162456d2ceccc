"""The differences that stay, each with its reason. None of them can turn a verdict of a policy that anybody writes."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tests.oracle.compare import Difference


@dataclass(frozen=True, slots=True)
class Explained:
    """Differences of these kinds, where the expression and upstream's side look like this."""

    reason: str
    kinds: frozenset[str]
    expression: str = ""
    expected: str = ""

    def covers(self, expression: str, difference: Difference) -> bool:
        """Whether a difference is one of these."""
        return (
            difference.what in self.kinds
            and re.search(self.expression, expression) is not None
            and re.search(self.expected, str(difference.expected)) is not None
        )


_ERRORS = frozenset({"error", "value"})
_COSTS = frozenset({"cost"})

EXPLAINED: tuple[Explained, ...] = (
    Explained(
        "an evaluation that ends in a recovered panic has no use for its cost: the request fails whatever is left of the budget",
        _COSTS,
        r"\bin\b|distinct|sort|flatten",
    ),
    Explained(
        "how a list was made, by a sum or a macro, is not remembered, and only an impossible index names it",
        _ERRORS,
        r"",
        r"types\.(concatList|mutableList)",
    ),
    Explained(
        "lists and maps inside an object print as Go values inside a list; an error that prints one does not say where it is from",
        _ERRORS,
        r"[?]|unwrap|join",
        r"(cannot initialize optional|is not optional|join: invalid input).*(\[|map\[|<nil>|UTC)",
    ),
    Explained("a map with NaN for a key cannot be read back in Go", _ERRORS | {"value"}, r"/", r"NaN"),
    Explained(
        "what a path that is no zone says depends on the files of the server's machine",
        _ERRORS,
        r"get\w+\(",
        r"directory|malformed time zone|file name too long",
    ),
    Explained(
        "a map that a variable holds may be the expression's own or an object's, and only the former is hashed",
        _ERRORS,
        r"\bin\b",
        r"hash of unhashable",
    ),
    Explained(
        "an Any of a type that is linked into the server, and that expressions cannot name, fails in other words",
        _ERRORS,
        r"google\.protobuf\.Any",
        r"unknown type: '",
    ),
    Explained(
        "how many blanks there are between the fields of a message depends on the build of the server",
        _ERRORS,
        r"google\.protobuf",
        r"\(\*dynamicpb\.Message\)|_value:",
    ),
)
"""Nothing is explained by an entry that does not say what upstream's side looks like, or which part of the language it is about."""


def reason(expression: str, difference: Difference) -> str | None:
    """Why a difference stays, or None when nothing explains it."""
    return next((one.reason for one in EXPLAINED if one.covers(expression, difference)), None)
