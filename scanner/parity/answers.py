"""What an API server says to a dry-run write: warnings, a refusal, or something that is not about policies at all.

Source of truth: `dispatcher.Dispatch` of the plug-in for the texts, the warning recorder of apiserver for what it cuts:
once the warnings of a request pass 4,096 characters it cuts each to 256, and drops those beyond the total. A warning
that holds a control character never becomes a header.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, field
from typing import Final

from scanner.model.json import JsonObject
from scanner.model.policy import Operation

MOST: Final = 4096
CUT: Final = 256
GONE: Final = "the object changed or went while it was replayed"
_WARNING: Final = "Validation failed for ValidatingAdmissionPolicy '{}' with binding '{}': {}"
_WARNED: Final = re.compile(r"Validation failed for ValidatingAdmissionPolicy '([^']*)'(?: with binding '([^']*)')?")
_REFUSED: Final = re.compile(
    r"ValidatingAdmissionPolicy '(?P<policy>[^']*)'(?: with binding '(?P<binding>[^']*)')? denied request: (?P<text>.*)",
    re.DOTALL,
)
_MAY_NOT: Final = re.compile(r'User "[^"]*" cannot (?:create|update|get|patch) resource')
_FORBIDDEN: Final = 403
_NOT_FOUND: Final = 404
_NOT_ALLOWED: Final = 405
_CONFLICT: Final = 409
_ADMITTED: Final = frozenset({200, 201})


@dataclass(frozen=True, slots=True)
class Said:
    """An answer as it came: HTTP status, the Status object's reason and message, warnings in their order.

    `body` is the object that the server would have stored, where it admitted the write.
    """

    status: int
    reason: str = ""
    message: str = ""
    warnings: tuple[str, ...] = ()
    body: JsonObject = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Refusal:
    """The one reason that a refusal names. `binding` is empty when the policy itself is at fault."""

    policy: str
    binding: str
    text: str


@dataclass(frozen=True, slots=True)
class Aside:
    """The server answered, but not about policies: why nothing can be compared.

    `permission` is empty, or the right that is missing; `stale` tells that the object was not the same any more.
    """

    why: str
    permission: str = ""
    stale: bool = False


def warning_of(policy: str, binding: str, text: str) -> str:
    """The warning about a failure, before anything is cut."""
    return _WARNING.format(policy, binding, text)


def speaker_of(warning: str) -> tuple[str, str] | None:
    """The policy and the binding that a warning comes from, or None when it is about something else."""
    found = _WARNED.match(warning)
    return (found[1], found[2] or "") if found else None


def unsendable(warning: str) -> bool:
    """Whether a server drops a warning because no header can hold it."""
    return any(unicodedata.category(character) == "Cc" for character in warning)


def refusal_of(said: Said) -> Refusal | None:
    """What a policy refuses, or None when no policy did."""
    found = _REFUSED.search(said.message) if said.status not in _ADMITTED else None
    return Refusal(found["policy"], found["binding"] or "", found["text"]) if found else None


def aside_of(said: Said, operation: Operation, resource: str) -> Aside | None:
    """Why an answer tells nothing about policies, or None when it does.

    That an object exists already is found out after admission, so it means that admission had nothing against it.
    """
    exists = operation == "CREATE" and (said.status, said.reason) == (_CONFLICT, "AlreadyExists")
    if said.status in _ADMITTED or exists or refusal_of(said):
        return None
    if said.status == _FORBIDDEN and _MAY_NOT.search(said.message):
        right = f"{operation.lower()} on {resource}"
        return Aside(f"the right to {right} is missing", permission=right)
    if said.status in (_CONFLICT, _NOT_FOUND):
        return Aside(GONE, stale=True)
    if said.status == _NOT_ALLOWED:
        return Aside(f"the server takes no {operation} of {resource}")
    why = f"{said.status} {said.reason}".strip()
    return Aside(f"the server refuses the {operation} of {resource} for a reason of its own ({why})")
