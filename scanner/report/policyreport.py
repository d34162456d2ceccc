"""Policy reports of the Kubernetes policy working group, see `results`."""

from __future__ import annotations

from typing import BinaryIO

from scanner.report import results
from scanner.report.document import Document

_SHAPE = results.Shape("wgpolicyk8s.io/v1alpha2", "PolicyReport", "ClusterPolicyReport")


def render(document: Document, out: BinaryIO) -> None:
    """Write a List of PolicyReport and ClusterPolicyReport."""
    results.render(document, out, _SHAPE)
