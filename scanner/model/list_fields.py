"""The values of the fields that filter and order a list of findings or problems, by the names that users give them."""

from __future__ import annotations

from enum import StrEnum


class FindingStatus(StrEnum):
    """The statuses. `open`, `new` and `reopened` are what the verdict counts: neither waived nor excepted."""

    UNRESOLVED = "unresolved"
    OPEN = "open"
    NEW = "new"
    REOPENED = "reopened"
    WAIVED = "waived"
    EXCEPTED = "excepted"
    UNCHECKED = "unchecked"
    PREVIEW = "preview"
    OUTDATED = "outdated"
    RESOLVED = "resolved"


class ActionFilter(StrEnum):
    """The strictest actions of bindings, and what differs: `refused` is what the verdict counts as refused, `change` is drift."""

    REFUSED = "refused"
    DENY = "Deny"
    PODS = "RefusePods"
    WARN = "Warn"
    AUDIT = "Audit"
    ERRORED = "Errored"
    CHANGE = "change"


class SortOrder(StrEnum):
    """The orders. `oldest` and `newest` go by the beginning of the latest episode."""

    WORST = "worst"
    OLDEST = "oldest"
    NEWEST = "newest"
    SEVERITY = "severity"
    WORKLOAD = "workload"
    POLICY = "policy"
    OWNER = "owner"
