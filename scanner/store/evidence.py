"""Evidence as compact JSON, the text that `evidence` stores: equal evidence has equal texts."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import orjson

from scanner.model.evidence import NO_EVIDENCE, Evidence, Reason
from scanner.model.texts import clean


def evidence_text(evidence: Evidence) -> str:
    """The text of evidence; empty without reasons. Texts are cleaned here: nested in JSON, unfit characters would be escapes."""
    if not evidence:
        return ""
    reasons = [
        [clean(reason.expression), clean(reason.value), clean(reason.path), clean(reason.variable), int(reason.erred)]
        for reason in evidence.reasons
    ]
    return orjson.dumps([evidence.left_out, *reasons]).decode()


@lru_cache(maxsize=4096)
def evidence_of(text: str) -> Evidence:
    """The evidence of a text from `evidence_text`."""
    if not text:
        return NO_EVIDENCE
    left_out, *reasons = orjson.loads(text)
    return Evidence(tuple(_reason(*reason) for reason in reasons), left_out)


def _reason(expression: str, value: str, path: str, variable: str, erred: Any) -> Reason:
    return Reason(expression, value, path, variable, erred=bool(erred))
