"""Evidence as the text that is kept of it: compact JSON, the same for the same evidence."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import orjson

from scanner.model.evidence import NO_EVIDENCE, Evidence, Reason


def evidence_text(evidence: Evidence) -> str:
    """The text of evidence, whose own texts are fit for a database; empty when there is none."""
    if not evidence:
        return ""
    reasons = [[it.expression, it.value, it.path, it.variable, int(it.erred)] for it in evidence.reasons]
    return orjson.dumps([evidence.left_out, *reasons]).decode()


@lru_cache(maxsize=4096)
def evidence_of(text: str) -> Evidence:
    """The evidence of a text that `evidence_text` wrote."""
    if not text:
        return NO_EVIDENCE
    left_out, *reasons = orjson.loads(text)
    return Evidence(tuple(_reason(*reason) for reason in reasons), left_out)


def _reason(expression: str, value: str, path: str, variable: str, erred: Any) -> Reason:
    return Reason(expression, value, path, variable, erred=bool(erred))
