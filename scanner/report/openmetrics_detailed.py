"""OpenMetrics with a sample for each namespace and each owner, see `openmetrics`."""

from __future__ import annotations

from scanner.report.openmetrics import render_detailed as render

__all__ = ["render"]
