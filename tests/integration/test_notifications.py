"""Notifications about a real API server, into each kind of database."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from scanner.model.json import JsonObject
from tests.cli.conftest import Assay
from tests.integration.apiserver import ApiServer
from tests.integration.made import binding, labelled, namespace, policy
from tests.integration.manifests import apply, delete
from tests.notify.receiver import receiver
from tests.store.databases import KINDS, database

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
VALUE = "hunter2-in-a-secret"


def team_namespace(name: str, team: str) -> JsonObject:
    """A namespace of a team."""
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": {"team": team}}}


@pytest.mark.parametrize("kind", KINDS)
def test_each_team_learns_of_its_changes(api_server: ApiServer, assay: Assay, home: Path, kind: str) -> None:
    """A new object, a deleted one and an unbound policy; no secret leaves the cluster."""
    name = f"notified-{kind}"
    pay, ship = f"{name}-pay", f"{name}-ship"
    secrets = {"stringData": {"password": VALUE}}
    apply(api_server, [team_namespace(pay, "pay"), namespace(ship), policy(name, "secrets"), binding(name)])
    apply(api_server, [labelled("Secret", name, "old", namespace=pay, **secrets)])
    (home / "key").write_text(SECRET)
    with receiver() as server, database(kind, home) as url:
        routes = [
            {"name": "pay", "url": f"{server.url}/pay", "owners": ["pay"]},
            {"name": "unowned", "url": f"{server.url}/unowned", "owners": ["unowned"]},
        ]
        given = [{**route, "keyFile": "key", "insecureHttp": True} for route in routes]
        (home / "assay.yaml").write_text(json.dumps({"notifications": given}))
        scan = ("scan", "--kubeconfig", api_server.kubeconfig_for("admin"), "--policy", name, "--db", url, "-q")
        changes = (
            lambda: None,
            lambda: apply(
                api_server, [labelled("Secret", name, "new", namespace=each, **secrets) for each in (pay, ship)]
            ),
            lambda: delete(api_server, labelled("Secret", name, "old", namespace=pay)),
            lambda: None,
            lambda: delete(api_server, binding(name)),
            lambda: None,
        )
        codes = []
        for change in changes:
            change()
            codes.append(assay(*scan).code)

    got = [
        (each.path, problem["workload"]["name"], problem["change"], problem["resolution"])
        for each in server.received
        for owner in each.data["owners"]
        for problem in owner["problems"]
    ]
    # The last two scans have no bound policy; the first of them resolves nothing.
    assert [0, 0, 0, 0, 3, 3] == codes
    assert sorted(
        [
            ("/pay", "new", "new", None),
            ("/unowned", "new", "new", None),
            ("/pay", "old", "resolved", "objectGone"),
            ("/pay", "new", "resolved", "unbound"),
            ("/unowned", "new", "resolved", "unbound"),
        ],
        key=str,
    ) == sorted(got, key=str)
    assert all(each.is_signed_with(SECRET) and VALUE.encode() not in each.content for each in server.received)
