"""The differences that stay, each with its reason. None of them changes a verdict of a policy that users write."""

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
        """Return whether a difference is of these kinds, and looks like this."""
        return (
            difference.what in self.kinds
            and re.search(self.expression, expression) is not None
            and re.search(self.expected, str(difference.expected)) is not None
        )


_ERRORS = frozenset({"error", "value"})
_COSTS = frozenset({"cost"})

EXPLAINED: tuple[Explained, ...] = (
    Explained(
        "an evaluation that ends in a recovered panic has no use for its cost: the request fails at any rest of the budget",
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
"""Each row states what upstream's side looks like, or the part of the language that it is about."""


def reason(expression: str, difference: Difference) -> str | None:
    """Return the reason why a difference stays, or None when no row explains it."""
    return next((explained.reason for explained in EXPLAINED if explained.covers(expression, difference)), None)
