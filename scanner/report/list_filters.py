"""The values of the fields that filter and sort a list of problems, with their words: the same in static pages and in a web application."""

from __future__ import annotations

from typing import Final

ACTIONS: Final = (
    ("refused", "would be refused"),
    ("Deny", "Deny"),
    ("Warn", "Warn"),
    ("Audit", "Audit"),
    ("Errored", "Errored"),
    ("change", "would change"),
)
"""`refused` are the problems that the verdict counts; Deny, Warn and Audit the strictest action of any problem."""

STATUSES: Final = (
    ("unresolved", "all but resolved"),
    ("open", "open, not waived"),
    ("new", "new"),
    ("reopened", "reopened"),
    ("waived", "waived"),
    ("excepted", "excepted"),
    ("unchecked", "not checked"),
    ("preview", "preview"),
    ("outdated", "outdated"),
    ("resolved", "resolved"),
)
"""`open`, `new` and `reopened` are the problems that the verdict counts: neither waived nor excepted."""

SORTS: Final = (
    ("", "worst first"),
    ("oldest", "oldest first"),
    ("newest", "newest first"),
    ("severity", "by severity"),
    ("workload", "by workload"),
    ("rule", "by rule"),
    ("owner", "by owner"),
)
UNRESOLVED: Final = "unresolved"
"""The status of links that name none: the findings of a policy, a namespace or an owner that its number counts."""
COUNTED: Final = ("new", "open", "reopened")
"""The statuses of problems that the verdict counts, if they are neither waived nor excepted."""
