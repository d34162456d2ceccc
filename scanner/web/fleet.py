"""The pages about all clusters."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from scanner.web.library import Library
from scanner.web.shell import Shell, render


@dataclass(frozen=True)
class FleetPages:
    """Answers requests for pages about all clusters."""

    library: Library

    def clusters(self, request: Request) -> Response:
        """All clusters."""
        root = str(request.scope.get("root_path", ""))
        shell = Shell(root=root, place="clusters", today=f"{self.library.clock().astimezone(UTC):%Y-%m-%d}")
        clusters = [(cluster.name, self.library.key(cluster)) for cluster in self.library.clusters()]
        return HTMLResponse(render("web/clusters.html", "Clusters", shell, clusters=clusters))
