"""The answer as SARIF, for code scanning: each decision at the line of the field that decided.

Source of truth: SARIF 2.1.0 of OASIS, and what GitHub reads of it: a result without a location in a file is refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Final
from urllib.parse import quote

from scanner import __version__
from scanner.errors import UsageError
from scanner.model.json import Json, JsonObject
from scanner.preview.verdict import CheckedObject, Decision, Effect
from scanner.report.check.document import CheckDocument, describe_rule, name_object
from scanner.report.text.json_text import dump
from scanner.report.text.safe_text import visible

SCHEMA: Final = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_LEVELS: Final = {
    Effect.REFUSES: "error",
    Effect.REFUSES_PODS: "error",
    Effect.UNDECIDED: "note",
    Effect.WARNS: "warning",
    Effect.AUDITS: "note",
}
_BASE: Final = "%SRCROOT%"


def render(document: CheckDocument) -> str:
    """One run with a result for each decision. Raises UsageError for manifests from standard input, which have no lines."""
    if any(checked.place.file == "-" for checked in document.result.objects):
        raise UsageError(
            "SARIF needs the files of the manifests: name them with -f instead of -, or choose another format"
        )
    told = [(checked, each) for checked in document.result.objects for each in checked.decisions]
    rules = dict.fromkeys(_name_rule(decision) for _, decision in told)
    run: JsonObject = {
        "tool": {"driver": {"name": "Assay", "version": __version__, "rules": [{"id": rule} for rule in rules]}},
        "automationDetails": {"id": f"assay-check/{visible(document.result.cluster.name)}/"},
        "columnKind": "unicodeCodePoints",
        "results": [_make_result(document, checked, decision) for checked, decision in told],
        "invocations": [_make_invocation(document)],
    }
    return dump({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}).decode() + "\n"


def _name_rule(decision: Decision) -> str:
    """The id of the rule of a decision: the policy, the webhook or the API server."""
    return visible(decision.policy)


def _make_result(document: CheckDocument, checked: CheckedObject, decision: Decision) -> JsonObject:
    text = f"{name_object(checked)}: {describe_rule(decision)}: {decision.message}"
    path = PurePosixPath(checked.place.file)
    location: JsonObject = (
        {"uri": f"file://{quote(str(path))}"}
        if path.is_absolute()
        else {
            "uri": quote(str(path)),
            "uriBaseId": _BASE,
        }
    )
    region = {"startLine": document.find_line(checked, decision)}
    return {
        "ruleId": _name_rule(decision),
        "level": _LEVELS[decision.effect],
        "message": {"text": visible(text, lines=True)},
        "locations": [{"physicalLocation": {"artifactLocation": location, "region": region}}],
    }


def _make_invocation(document: CheckDocument) -> JsonObject:
    notes: list[Json] = [{"level": "error", "message": {"text": visible(text)}} for text in _list_gaps(document)]
    return {"executionSuccessful": not notes, "toolExecutionNotifications": notes}


def _list_gaps(document: CheckDocument) -> Iterator[str]:
    yield from (f"{gap.where}: {gap.why}" for gap in document.result.gaps)
