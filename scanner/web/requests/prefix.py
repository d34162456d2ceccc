"""The path of the public URL, such as `/assay` of https://host.example.com/assay, below which browsers find every address.

Source of truth: `root_path` of ASGI (https://asgi.readthedocs.io/en/latest/specs/www.html): the path of a request begins with it.
A proxy may pass the path as it is, or without the prefix; probes ask without it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

OWN_PATHS: Final = frozenset(
    {
        "api",
        "callback",
        "clusters",
        "compare",
        "healthz",
        "login",
        "logout",
        "metrics",
        "policies",
        "readyz",
        "search",
        "workloads",
    }
)
"""The first parts of the paths of this server. A prefix that begins with one of them could not be told from a path without it."""


class PathPrefix:
    """An application below a prefix, which is empty or begins with a slash and does not end with one."""

    def __init__(self, app: ASGIApp, prefix: str) -> None:
        self._app = app
        self._prefix = prefix

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, whose path then begins with the prefix."""
        if self._prefix and scope["type"] == "http":
            path = scope["path"]
            if path == self._prefix:
                path += "/"
            elif not path.startswith(f"{self._prefix}/"):
                path = self._prefix + path
            scope = {**scope, "root_path": self._prefix, "path": path}
        await self._app(scope, receive, send)


def path_below(scope: Scope) -> str:
    """The path of a request without the prefix."""
    path = str(scope["path"])
    return path.removeprefix(prefix_of(scope)) or "/"


def prefix_of(scope: Scope) -> str:
    """The prefix, without a slash at its end."""
    return str(scope.get("root_path", ""))
