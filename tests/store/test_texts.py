"""Names and messages may be any text of a cluster: every database stores them as text."""

from __future__ import annotations

from dataclasses import replace

import pytest

from scanner.model.outcome import Check, CheckKind, Errored, Finding, Gap, GapKind, Violated
from scanner.model.scans.health import Health, HealthKind
from scanner.model.scans.scan import ClusterIdentity, Coverage, CoverageState, Scope
from scanner.store import SqlStore
from tests.store.made import CHECK, Round, binding, finding, policy

HOSTILE = "<script>alert(1)</script> '; DROP TABLE findings; -- \\x00 \\u0000 %s :name \t\r\n 😀 \u202e"


def stored(store: SqlStore, item: Finding) -> Finding:
    """A finding as it is read after it was stored."""
    Round((item,)).record(store, 1)
    [stored] = store.read_scan("scan-1").findings()
    return stored.finding


@pytest.mark.parametrize(
    "message",
    [
        pytest.param(HOSTILE, id="hostile"),
        pytest.param("", id="empty"),
        pytest.param("long " * 20_000, id="100 kB"),
        pytest.param("\ufffe\uffff\U0010ffff", id="noncharacters"),
        pytest.param("a\u0301 \u00e1", id="not normalised"),
    ],
)
def test_a_message_stays_as_it_is(store: SqlStore, message: str) -> None:
    """Nothing is cut, escaped or normalised."""
    item = finding("a", outcome=Violated(message, "Forbidden", 403))

    assert item == stored(store, item)


@pytest.mark.parametrize(
    ("given", "kept"), [("a\0b", "a\ufffdb"), ("a\ud800b", "a\ufffdb"), ("\udfff\0", "\ufffd\ufffd")]
)
def test_characters_that_databases_reject_are_replaced(store: SqlStore, given: str, kept: str) -> None:
    """NUL and lone surrogates become U+FFFD in every field."""
    item = finding(
        given,
        namespace=given,
        policy=given,
        param_namespace=given,
        param_name=given,
        check=Check(CheckKind.VALIDATION, 3, given),
        outcome=Errored(given, would_deny=True, always=True, reason=given),
        uid=given,
        resource_version=given,
    )
    clean = finding(
        kept,
        namespace=kept,
        policy=kept,
        param_namespace=kept,
        param_name=kept,
        check=Check(CheckKind.VALIDATION, 3, kept),
        outcome=Errored(kept, would_deny=True, always=True, reason=kept),
        uid=kept,
        resource_version=kept,
    )

    assert clean._replace(fingerprint=item.fingerprint) == stored(store, item)


@pytest.mark.parametrize("text", [HOSTILE, "a\0b\ud800"])
def test_the_rest_of_a_scan_may_hold_any_text(store: SqlStore, text: str) -> None:
    """Manifests, scopes and health are exact where they are kept as JSON, and cleaned elsewhere."""
    kept = text.replace("\0", "\ufffd").replace("\ud800", "\ufffd")
    scope, manifest = Scope(selector=text), {"metadata": {"annotations": {text: [text, 1.5, None, True, 10**30]}}}
    each = Round(
        scope=scope,
        cluster=ClusterIdentity(text, "", text, text),
        coverage=(Coverage(text, text, CoverageState.FAILED, note=text, bytes=2**40),),
        gaps=(Gap(GapKind.DOCUMENT, text, text),),
    )
    used = policy(text, manifest=manifest, source=text)
    bound = binding(text, manifest=manifest, assumed=True)
    store.begin(replace(each.start(1), policies=(used,), bindings=(bound,)))
    store.finish("scan-1", replace(each.end(1), health=(Health(HealthKind.NOTE, text, text, text),)))
    record = store.read_scan("scan-1")

    assert (scope, ClusterIdentity(kept, "", kept, kept)) == (record.scan.scope, record.scan.cluster)
    assert [(used, (bound,))] == [(item.policy, item.bindings) for item in record.policies]
    assert (Gap(GapKind.DOCUMENT, kept, kept),) == record.gaps
    assert (Health(HealthKind.NOTE, kept, kept, kept),) == record.health
    assert (Coverage(kept, kept, CoverageState.FAILED, note=kept, bytes=2**40),) == record.coverage


@pytest.mark.parametrize(
    "outcome",
    [
        Violated("no"),
        Violated("no", "Forbidden", 403),
        Errored("no such key: a", would_deny=True),
        Errored("no such key: a", would_deny=False),
        Errored("no such key: a", would_deny=True, always=True, reason="Invalid", code=500),
    ],
)
def test_every_kind_of_outcome_is_read_unchanged(store: SqlStore, outcome: Violated | Errored) -> None:
    """The operation, the actions and the decision of admission are included."""
    item = finding("a", outcome=outcome, operation="UPDATE", actions=(), denies=False, check=CHECK)

    assert item == stored(store, item)
