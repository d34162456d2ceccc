"""The parameters of requests: checked texts, and places in lists."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Final

from starlette.requests import Request

from scanner.web.requests.refusals import BadRequest

LONGEST: Final = 256
"""The characters of a parameter."""


def text_of(request: Request, name: str, longest: int = LONGEST) -> str:
    """A parameter without spaces around it, or an empty text. Raises BadRequest for one that is too long."""
    text = request.query_params.get(name, "")
    if len(text) > longest:
        raise BadRequest(f"{name}: at most {longest} characters.")
    return text.strip()


def after_key(request: Request, keys: Sequence[str]) -> int:
    """The place in a list behind the key that `after` names, or 0. Raises BadRequest for a key that the list does not have."""
    after = text_of(request, "after")
    if not after:
        return 0
    if after not in keys:
        raise BadRequest("after: the list has no such line. Begin with its first page.")
    return keys.index(after) + 1


def query_of(request: Request) -> Hashable:
    """The parts of a request on which an answer depends besides its path: the parameters, and the path of the application."""
    return tuple(sorted(request.query_params.items())), root_of(request)


def has_accounts(request: Request) -> bool:
    """Return whether readers sign in, and so can sign out."""
    return bool(request.scope.get("state", {}).get("signs_in"))


def root_of(request: Request) -> str:
    """The path of the application, without a slash at its end."""
    return str(request.scope.get("root_path", ""))
