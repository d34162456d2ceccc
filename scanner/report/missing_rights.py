"""The rights that a scan lacked, from the reasons of its gaps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from scanner.model.missing_right import MissingRight, missing_right
from scanner.model.outcome import GapKind
from scanner.report.document import Document
from scanner.report.words import plural

_SHOWN: Final = 4
_KINDS: Final = (GapKind.LIST, GapKind.EVALUATION)


def missing_rights(document: Document) -> tuple[MissingRight, ...]:
    """Each right once, in the order of the gaps."""
    rights = (missing_right(gap.why) for gap in document.gaps if gap.kind in _KINDS)
    return tuple(dict.fromkeys(right for right in rights if right))


def rights_heading(rights: Sequence[MissingRight]) -> str:
    """The user and the number of the missing rights, before a list of them."""
    return f"{rights[0].user} lacks {plural(len(rights), 'right')} that the scan needs:"


def rights_line(document: Document) -> str:
    """The user and the missing rights as a sentence, or an empty string."""
    rights = missing_rights(document)
    if not rights:
        return ""
    named = ", ".join(right.right for right in rights[:_SHOWN])
    more = f" and {len(rights) - _SHOWN:,} more" if len(rights) > _SHOWN else ""
    return f"{rights_heading(rights)} {named}{more}. See `assay rbac check`."
