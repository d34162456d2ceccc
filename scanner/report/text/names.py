"""Names of objects, workloads, owners and params as text."""

from __future__ import annotations

from scanner.model.outcome import Finding
from scanner.model.policy import ParamRef
from scanner.model.scans.stored_finding import StoredFinding
from scanner.model.selector import Selector
from scanner.report.text.numbers import join_texts

UNOWNED_TITLE = "unowned"
"""The title of the objects without an owner."""


def owner_title(owner: str) -> str:
    """The name of an owner, or the title of the objects without one."""
    return owner or UNOWNED_TITLE


def object_name(finding: Finding) -> str:
    """`namespace/name`, or the name of a cluster-scoped object."""
    return f"{finding.namespace}/{finding.name}" if finding.namespace else finding.name


def workload_name(stored: StoredFinding) -> str:
    """`Deployment web`, with a mark if derived; empty if the workload is not known, or is the object itself.

    A workload that has a namespace is in that of the object.
    """
    workload, finding = stored.workload, stored.finding
    if workload is None:
        return ""
    object_place = finding.api_version, finding.kind, finding.namespace, finding.name
    if object_place == (workload.api_version, workload.kind, workload.namespace, workload.name):
        return ""
    return f"{workload.kind} {workload.name}{' (derived)' if workload.derived else ''}"


def param_name(namespace: str, name: str) -> str:
    """`namespace/name` of a param, or an empty string when there is none."""
    return f"{namespace}/{name}" if namespace else name


def param_ref(ref: ParamRef | None) -> str:
    """The params of a binding, in words."""
    if ref is None:
        return ""
    where = f" in namespace {ref.namespace}" if ref.namespace else ""
    params = ref.name if ref.selector is None else f"selected by {_selector(ref.selector)}"
    missing = f"; if missing: {ref.parameter_not_found_action}" if ref.parameter_not_found_action else ""
    return f"{params}{where}{missing}"


def _selector(selector: Selector) -> str:
    parts = (f"{label.key} {label.operator} {join_texts(label.values)}".rstrip() for label in selector.requirements)
    return " and ".join(parts) or "everything"
