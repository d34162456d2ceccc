"""No Kyverno policy shows a value of a Secret."""

from __future__ import annotations

from typing import Any

import pytest

from scanner.audit.redact import WITHHELD_ANY
from tests.policies.kyverno.made import pod, policy
from tests.policies.kyverno.test_scanned import _scanned

SECRET = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {"name": "token", "namespace": "team"},
    "data": {"key": "aHVzaC1odXNo"},
}
READS = "resource.Get('v1', 'secrets', 'team', 'token').data.key"
VARIABLE = [{"name": "key", "expression": READS}]


def _recorded_text(manifest: Any, *documents: Any) -> str:
    """The findings, the end and the tallies of a scan, as text."""
    scan = _scanned(manifest, SECRET, *documents)
    assert scan.findings
    return repr((scan.findings, scan.end, scan.tallies))


@pytest.mark.parametrize(
    "message",
    [
        "object.data.key + '!'",
        "string(base64.decode(object.data.key))",
        "json.marshal(object)",
        "string(dyn(request).object.data.key)",
    ],
)
def test_a_message_about_a_secret_does_not_quote_it(message: str) -> None:
    """The message shows the value neither decoded nor through the request."""
    manifest = policy({"expression": "false", "messageExpression": message}, resources=("secrets",))
    assert ["team/token: [redacted: the message reads the data of a Secret]"] == _scanned(manifest, SECRET).messages


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({}, READS),
        ({"variables": VARIABLE}, "'it is ' + string(variables.key)"),
        ({}, "string(resource.List('v1', 'secrets', 'team').items[0].data.key)"),
    ],
)
def test_a_secret_that_an_expression_reads_is_not_quoted(spec: Any, message: str) -> None:
    """`resource.Get` and `resource.List` can read a Secret."""
    text = message if message.startswith(("'", "string")) else f"string({message})"
    manifest = policy({"expression": "false", "messageExpression": text}, **spec)
    assert "aHVzaC1odXNo" not in _recorded_text(manifest, pod())


def test_an_error_does_not_quote_it_either() -> None:
    """The text of a failed conversion contains the value."""
    assert "aHVzaC1odXNo" not in _recorded_text(policy(f"int({READS}) == 1"), pod())


@pytest.mark.parametrize(
    ("expression", "shown"),
    [
        ("string(settings.metadata.name)", "token"),
        ("string(settings.kind) + ' in ' + string(settings.metadata.namespace)", "ConfigMap in team"),
        ("string(size(settings.data))", "1"),
        ("string(has(settings.data.password))", "false"),
        (
            "resource.List('v1', 'configmaps', 'team').items.orValue([]).map(i, string(i.metadata.name)).join(' ')",
            "token",
        ),
        ("string(settings.data.key)", WITHHELD_ANY),
        ("string(settings.metadata.annotations.note)", WITHHELD_ANY),
        ("json.marshal(settings)", WITHHELD_ANY),
    ],
)
def test_a_message_shows_names_and_numbers_of_other_objects(expression: str, shown: str) -> None:
    """All else in an object that the policy reads may be a secret."""
    settings = {
        **SECRET,
        "kind": "ConfigMap",
        "metadata": {"name": "token", "namespace": "team", "annotations": {"note": "open"}},
        "data": {"key": "open"},
    }
    text = expression.replace("settings", "resource.Get('v1', 'configmaps', 'team', 'token')")
    scan = _scanned(policy({"expression": "false", "messageExpression": text}), settings, pod())
    assert [f"team/web: {shown}"] == scan.messages
