"""Whether a change of a rule may decide another verdict: each policy language knows which parts of its rules are texts.

The manifests of both scans are compared as this version reads them, and no stored digest: so scans of every version are
compared by the same rules.

Rules: `docs/adr/0047-texts-decide-nothing.md`.
"""

from __future__ import annotations

from scanner.model.json import JsonObject, as_object, dig
from scanner.model.outcome import CheckKind


def texts_alone(language: str, before: JsonObject, now: JsonObject, check: CheckKind) -> bool:
    """Return whether two manifests of a policy or of a binding differ in parts that decide about no check of a kind.

    Without a difference nothing is known: a digest that was recorded without its manifest may have changed.
    """
    # Languages bring the compiler of expressions, which is needed only if a rule differs.
    from scanner.policies.language import deciding  # noqa: PLC0415

    specs = [as_object(dig(manifest, "spec")) for manifest in (before, now)]
    if not all(specs) or specs[0] == specs[1]:
        return False
    earlier, later = (deciding(language, spec, check) for spec in specs)
    return earlier == later


def patch_decides(language: str) -> bool:
    """Return whether a patch release of the API server may decide other verdicts of a language's policies."""
    from scanner.policies.language import patch_decides as decides  # noqa: PLC0415 -- see above

    return decides(language)
