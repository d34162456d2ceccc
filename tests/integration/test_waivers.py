"""Waivers in the ConfigMaps of a real API server: only those of one namespace waive."""

from __future__ import annotations

from scanner.model.json import JsonObject, as_list, as_text, dig
from tests.cli.conftest import Assay
from tests.cli.test_waivers import waiver
from tests.integration.apiserver import ApiServer
from tests.integration.made import binding, labelled, namespace, policy
from tests.integration.manifests import apply

NAME = "waived-secrets"
TEAM, AUDIT = "waivers-team", "waivers-audit"


def waivers_in(place: str, text: str, name: str = "waivers") -> JsonObject:
    """A ConfigMap with waivers, and with the label that says so."""
    metadata: JsonObject = {"name": name, "namespace": place, "labels": {"assay.dev/waivers": "true"}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"w.yaml": text}}


def test_a_team_cannot_waive_its_own_findings(api_server: ApiServer, assay: Assay) -> None:
    """Its ConfigMap does nothing and is named; a ConfigMap of the namespace for waivers applies, and a broken one is named."""
    apply(api_server, [namespace(TEAM), namespace(AUDIT), policy(NAME, "secrets"), binding(NAME)])
    apply(api_server, [labelled("Secret", NAME, name, namespace=TEAM) for name in ("one", "other")])
    broken = waivers_in(AUDIT, "kind: [", "broken")
    own = waivers_in(TEAM, waiver("own", f"namespace: {TEAM}", policy=NAME))
    given = waivers_in(AUDIT, waiver("given", "object: Secret/one", policy=NAME))
    apply(api_server, [own, given, broken])
    ran = assay(
        *("scan", "--kubeconfig", api_server.kubeconfig_for("admin"), "--policy", NAME, "-n", TEAM),
        *("--waivers-namespace", AUDIT, "--fail-on", "violated", "-q", "-o", "json"),
    )
    findings = as_list(ran.report["findings"])

    assert 1 == ran.code
    assert {"one": "given", "other": ""} == {
        as_text(dig(each, "object", "name")): as_text(dig(each, "waiver", "name")) for each in findings
    }
    assert f"ConfigMap {TEAM}/waivers has the label assay.dev/waivers and waives nothing" in ran.stderr
    assert f"no waiver: ConfigMap {AUDIT}/broken, key w.yaml, line 2, column 1: this is not YAML" in ran.stderr
