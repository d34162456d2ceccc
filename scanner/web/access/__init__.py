"""The readers of the pages: the users of a provider (OIDC), the holders of tokens, and the users of a proxy that signs assertions.

Every authenticated user reads everything; there are no roles. See docs/adr/0039. The names are imported when they are used:
`assay token create` needs none of the packages of the extra `serve`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from scanner.web.access.guard import guard_app
    from scanner.web.access.settings import AccessSettings

__all__ = ["AccessSettings", "guard_app"]

_HOMES: Final = {"AccessSettings": "scanner.web.access.settings", "guard_app": "scanner.web.access.guard"}


def __getattr__(name: str) -> object:
    """A name of this package, from the module that has it."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
