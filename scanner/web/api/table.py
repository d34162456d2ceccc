"""The table of the endpoints, from which the routes and the OpenAPI document are made."""

from __future__ import annotations

from typing import Any, Final

from scanner.web.api import clusters, findings, population, problems, runs, sections, trend
from scanner.web.api.endpoints import Endpoint

ENDPOINTS: Final[tuple[Endpoint[Any], ...]] = (
    *clusters.ENDPOINTS,
    *sections.ENDPOINTS,
    *problems.ENDPOINTS,
    *findings.ENDPOINTS,
    *population.ENDPOINTS,
    *trend.ENDPOINTS,
    *runs.ENDPOINTS,
)
