"""No value of a Secret leaves, whichever way a Kyverno policy has to it."""

from __future__ import annotations

from typing import Any

import pytest

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


def _told(manifest: Any, *documents: Any) -> str:
    """Everything that a scan says."""
    told = _scanned(manifest, SECRET, *documents)
    assert told.findings
    return repr((told.findings, told.end, told.tallies))


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
    """Not even decoded, or through the request."""
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
    """What `resource.Get` and `resource.List` read can be a Secret, too."""
    text = message if message.startswith(("'", "string")) else f"string({message})"
    manifest = policy({"expression": "false", "messageExpression": text}, **spec)
    assert "aHVzaC1odXNo" not in _told(manifest, pod())


def test_an_error_does_not_quote_it_either() -> None:
    """The words of a conversion that fails hold the value."""
    assert "aHVzaC1odXNo" not in _told(policy(f"int({READS}) == 1"), pod())


def test_what_reads_no_secret_is_told() -> None:
    """Messages about other objects that an expression reads stay."""
    settings = {
        **SECRET,
        "kind": "ConfigMap",
        "metadata": {"name": "token", "namespace": "team"},
        "data": {"key": "open"},
    }
    text = f"string({READS.replace('secrets', 'configmaps')})"
    told = _scanned(policy({"expression": "false", "messageExpression": text}), settings, pod())
    assert ["team/web: open"] == told.messages
