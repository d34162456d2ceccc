"""Reports of the OpenReports project, see `results`."""

from __future__ import annotations

from typing import BinaryIO

from scanner.report import results
from scanner.report.document import Document

_SHAPE = results.Shape("openreports.io/v1alpha1", "Report", "ClusterReport", sourced=True)


def render(document: Document, out: BinaryIO) -> None:
    """Write a List of Report and ClusterReport."""
    results.render(document, out, _SHAPE)
