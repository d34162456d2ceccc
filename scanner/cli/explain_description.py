"""The texts about a policy that its explanation and those of its findings share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from scanner.cli.settings import settings

if TYPE_CHECKING:
    from scanner.model.policy import Policy


def description_of(policy: Policy) -> Iterator[str]:
    """The severity of a policy, and the texts that its author or the configuration gave."""
    from scanner.posture.severity import describe

    description = describe(policy, settings().descriptions)
    category = f", category {description.category}" if description.category else ""
    yield f"Severity {description.severity}{category}"
    if description.unknown_severity:
        yield f"(the annotation of its severity is {description.unknown_severity!r}, which is no severity)"
    if description.title != policy.name:
        yield f"Title: {description.title}"
    for title in ("description", "remediation", "docs"):
        if text := str(getattr(description, title)):
            yield f"{title.capitalize()}: {' '.join(text.split())}"


def expression(title: str, text: str) -> Iterator[str]:
    """A title, and an expression with its lines indented."""
    yield title
    yield from (f"    {line}" for line in text.strip().splitlines())
