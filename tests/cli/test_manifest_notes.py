"""Manifests from files that kubectl would refuse, on the first screen of a scan."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from scanner.model.json import as_list, as_text, dig
from tests.cli.conftest import Assay
from tests.cli.manifests import BINDING, bound, config_map, policy
from tests.command import Ran

Write = Callable[[str, str], Path]
UNKNOWN = "UNKNOWN FIELD"
MISSPELT = f"{BINDING.format(name='strict')}  matchResource: {{namespaceSelector: {{matchLabels: {{team: red}}}}}}\n"
KYVERNO = """\
apiVersion: policies.kyverno.io/v1
kind: ValidatingPolicy
metadata: {name: strict}
spec:
  validationAction: [Audit]
  matchConstraints:
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]
  validations: [{expression: "false"}]
"""


@pytest.fixture
def scan(assay: Assay, write: Write) -> Callable[..., Ran]:
    """Scan a ConfigMap by the policies in a text."""

    def run(policies: str, *arguments: str) -> Ran:
        write("objects/map.yaml", config_map("first"))
        return assay("scan", "--from", "objects", "-f", write("policies.yaml", policies), *arguments)

    return run


def screen(ran: Ran) -> str:
    """The table as one line."""
    return " ".join(ran.stdout.decode().split())


def test_a_misspelt_selector_of_a_binding_is_on_the_first_screen(scan: Callable[..., Ran]) -> None:
    """The binding covers everything, as an API server would store it; the first screen has the nearest name."""
    ran = scan(f"{policy('strict')}---\n{MISSPELT}")

    assert (
        f"{UNKNOWN} binding strict of policy strict: kubectl refuses the manifest, and the API server ignores "
        "spec.matchResource (did you mean matchResources?)."
    ) in screen(ran)
    assert (0, "1 problem would be refused") == (ran.code, screen(ran).partition(" COMPLETE ")[2][:26])


def test_a_misspelt_field_of_a_kyverno_policy_is_on_the_first_screen(scan: Callable[..., Ran]) -> None:
    """A misspelt action denies, because Deny is the default."""
    ran = scan(KYVERNO)

    assert f"{UNKNOWN} policy strict: kubectl refuses" in screen(ran)
    assert "ignores spec.validationAction (did you mean validationActions?)." in screen(ran)


def test_a_misspelt_required_field_is_named_with_its_gap(scan: Callable[..., Ran]) -> None:
    """A policy that the API rejects is a gap, whose reason has the nearest name."""
    ran = scan(bound("strict").replace("matchConstraints", "matchConstraint"))

    assert 0 != ran.code
    assert "unknown fields: spec.matchConstraint (did you mean matchConstraints?)" in f"{screen(ran)}{ran.stderr}"


def test_every_report_has_the_unknown_field(scan: Callable[..., Ran], home: Path) -> None:
    """JSON has a health entry; Markdown and the first page have the sentence."""
    manifests = f"{policy('strict')}---\n{MISSPELT}"
    ran, markdown = scan(manifests, "-o", "json", "--html", "pages"), scan(manifests, "-o", "markdown")

    entries = [(as_text(dig(entry, "kind")), as_text(dig(entry, "binding"))) for entry in as_list(ran.report["health"])]
    assert ("unknownField", "strict") in entries
    for text in ((home / "pages/index.html").read_text(), markdown.stdout.decode()):
        assert "did you mean matchResources?" in text.replace("\\", "")


def test_only_five_manifests_are_named(scan: Callable[..., Ran]) -> None:
    """The first screen counts the others."""
    policies = [f"{policy(f'p{number}')}  mutation: []\n" for number in range(7)]
    bindings = [BINDING.format(name=f"p{number}") for number in range(7)]
    ran = scan("---\n".join([*policies, *bindings]))

    assert 6 == screen(ran).count(UNKNOWN)
    assert f"{UNKNOWN} 2 more manifests have unknown fields: see policy health." in screen(ran)


def test_a_version_that_the_release_does_not_serve_is_noted(scan: Callable[..., Ran]) -> None:
    """The policy is evaluated; one note names the first of the manifests and counts the others."""
    ran = scan(
        bound("strict").replace("k8s.io/v1", "k8s.io/v1beta1"), "--kubernetes-version", "1.36", "--fail-on", "health"
    )

    assert (
        "VERSION NOT SERVED policy strict and 1 other manifest: "
        "Kubernetes 1.36 does not serve v1beta1 of this kind, but v1; it is evaluated all the same."
    ) in screen(ran)
    assert 0 == ran.code, "a note fails no gate"


def test_an_unknown_field_fails_a_gate_on_health(scan: Callable[..., Ran]) -> None:
    """A field without effect is a problem of the policy, and no note."""
    assert 1 == scan(f"{policy('strict')}---\n{MISSPELT}", "--fail-on", "health").code
