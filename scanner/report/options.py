"""The options of the formats for pipelines, Markdown, JUnit and SARIF: which findings fail a test, and which are left out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from scanner.model.gate import Gate
from scanner.posture.severity import Severity


@dataclass(frozen=True, slots=True)
class ReportOptions:
    """`gates` are those of the user: JUnit fails for the findings that they name, or for all if `fail_all`.

    Policies below the `minimum` severity are left out.
    """

    gates: frozenset[Gate] = frozenset()
    fail_all: bool = False
    minimum: Severity | None = None


DEFAULT_OPTIONS: Final = ReportOptions()
