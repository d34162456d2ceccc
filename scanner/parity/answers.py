"""Reads the response to a dry-run write: warnings, a denial, or an error that does not concern policies.

Source of truth: `dispatcher.Dispatch` of the plug-in for the texts, the warning recorder of apiserver for what it cuts:
once the warnings of a request pass 4,096 characters it cuts each to 256, and drops those beyond the total. A warning
with a control character never becomes a header.
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
GONE: Final = "the object was changed or deleted during the replay"
_WARNING: Final = "Validation failed for ValidatingAdmissionPolicy '{}' with binding '{}': {}"
_WARNED: Final = re.compile(r"Validation failed for ValidatingAdmissionPolicy '([^']*)'(?: with binding '([^']*)')?")
_DENIED: Final = re.compile(
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
class Response:
    """A response: HTTP status, the Status object's reason and message, warnings in their order.

    `body` is the object that the server would have stored if it admitted the write.
    """

    status: int
    reason: str = ""
    message: str = ""
    warnings: tuple[str, ...] = ()
    body: JsonObject = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Denial:
    """The reason in a denial. `binding` is empty if the policy itself is the reason."""

    policy: str
    binding: str
    text: str


@dataclass(frozen=True, slots=True)
class UnrelatedResponse:
    """A response that does not concern policies, with the reason why verdicts cannot be compared.

    `permission` is empty, or the missing permission; `stale` is true if the object was changed or deleted meanwhile.
    """

    reason: str
    permission: str = ""
    stale: bool = False


def write_warning(policy: str, binding: str, text: str) -> str:
    """The warning about a failure, before the server cuts it."""
    return _WARNING.format(policy, binding, text)


def parse_warning(warning: str) -> tuple[str, str] | None:
    """The policy and the binding of a warning, or None for a warning of another origin."""
    match = _WARNED.match(warning)
    return (match[1], match[2] or "") if match else None


def is_unsendable(warning: str) -> bool:
    """Return whether a server drops a warning because no header can hold it."""
    return any(unicodedata.category(character) == "Cc" for character in warning)


def read_denial(response: Response) -> Denial | None:
    """The policy's denial in a response, or None if no policy denied the request.

    Mirrors the message of `validating.dispatcher`: `ValidatingAdmissionPolicy 'p' with binding 'b' denied request: …`.
    """
    match = _DENIED.search(response.message) if response.status not in _ADMITTED else None
    return Denial(match["policy"], match["binding"] or "", match["text"]) if match else None


def read_unrelated(response: Response, operation: Operation, resource: str) -> UnrelatedResponse | None:
    """The reason why a response does not concern policies, or None if it does.

    The server detects an existing object after admission, so AlreadyExists means that admission admitted the object.
    """
    exists = operation == "CREATE" and (response.status, response.reason) == (_CONFLICT, "AlreadyExists")
    if response.status in _ADMITTED or exists or read_denial(response):
        return None
    if response.status == _FORBIDDEN and _MAY_NOT.search(response.message):
        right = f"{operation.lower()} on {resource}"
        return UnrelatedResponse(f"permission to {right} is missing", permission=right)
    if response.status in (_CONFLICT, _NOT_FOUND):
        return UnrelatedResponse(GONE, stale=True)
    if response.status == _NOT_ALLOWED:
        return UnrelatedResponse(f"the server does not support {operation} of {resource}")
    reason = f"{response.status} {response.reason}".strip()
    return UnrelatedResponse(f"the server rejects the {operation} of {resource} for another reason ({reason})")
