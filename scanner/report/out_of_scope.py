"""The items that a scan does not need: no bound policy can match them, or other tools read them.

They are listed and counted, and they make no scan incomplete (`scanner.scan.unneeded`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from scanner.model.scan import OutOfScope, Unneeded
from scanner.report.words import plural

_NOT_MATCHED: Final = {
    Unneeded.API_GROUP: ("API group", "API groups"),
    Unneeded.DOCUMENT: ("document", "documents"),
}
_OF_OTHER_TOOLS: Final = {
    Unneeded.KUSTOMIZATION: ("kustomization", "kustomizations"),
    Unneeded.KUSTOMIZE_INPUT: ("patch or data file of kustomize", "patches or data files of kustomize"),
    Unneeded.HELM_CHART: ("Helm chart", "Helm charts"),
    Unneeded.HELM_VALUES: ("file of Helm values", "files of Helm values"),
    Unneeded.HELM_TEMPLATE: ("Helm template", "Helm templates"),
    Unneeded.TEST_SUITE: ("test suite", "test suites"),
    Unneeded.PACKAGE_METADATA: ("file of package metadata", "files of package metadata"),
    Unneeded.NO_MANIFEST: ("document that is no manifest", "documents that are no manifests"),
}
_NOT_READ_AGAIN: Final = {
    Unneeded.REPEATED: ("copy of a file or document that was read", "copies of files or documents that were read"),
    Unneeded.UNUSED_DOCUMENT: ("document of -f that no policy uses", "documents of -f that no policy uses"),
}
_RENDER: Final = "Render charts and kustomizations, and scan the output, to evaluate what they make"
_RENDERED: Final = frozenset(
    {
        *(Unneeded.KUSTOMIZATION, Unneeded.KUSTOMIZE_INPUT),
        *(Unneeded.HELM_CHART, Unneeded.HELM_TEMPLATE, Unneeded.HELM_VALUES),
    }
)
TITLES: Final = {
    kind: words[0] for table in (_NOT_MATCHED, _OF_OTHER_TOOLS, _NOT_READ_AGAIN) for kind, words in table.items()
}
"""The titles of the kinds of items."""


@dataclass(frozen=True, slots=True, order=True)
class UnneededItem:
    """An item that a scan does not need. `where` is an API group, a file or a document."""

    kind: Unneeded
    where: str
    why: str


def unneeded_of(outside: Iterable[OutOfScope]) -> tuple[UnneededItem, ...]:
    """The items that the scan does not need, among everything that is outside of its scope, sorted."""
    return tuple(sorted(UnneededItem(Unneeded(item.kind), item.name, item.why) for item in outside if item.unneeded))


def unneeded_line(items: Sequence[UnneededItem]) -> str:
    """The numbers of the items, by kind, and what to do to have them evaluated; an empty string without items."""
    numbers = Counter(item.kind for item in items)
    parts = (
        (_NOT_MATCHED, " that no bound policy can match"),
        (_OF_OTHER_TOOLS, ""),
        (_NOT_READ_AGAIN, ""),
    )
    named = [
        ", ".join(plural(numbers[kind], *words) for kind, words in table.items() if numbers[kind]) + ending
        for table, ending in parts
        if any(numbers[kind] for kind in table)
    ]
    advice = f". {_RENDER}" if not _RENDERED.isdisjoint(numbers) else ""
    return f"{'; '.join(named)}{advice}" if named else ""
