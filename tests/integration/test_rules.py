"""What a scan of a live cluster records of its rules and of itself."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from scanner.model.json import JsonObject, as_list, dig
from tests.command import assay_here
from tests.integration.apiserver import ApiServer
from tests.integration.made import binding, labelled, namespace, policy
from tests.integration.manifests import apply, wait_until_enforced

NAME = "kept-rules"
LIMITS = labelled("ConfigMap", "nobody", "limits", namespace=NAME, data={"maximum": "3"})
REFERENCE = {"name": "limits", "namespace": NAME, "parameterNotFoundAction": "Deny"}
POLICY = policy(NAME, "configmaps", "secrets", expression="true", paramKind={"apiVersion": "v1", "kind": "ConfigMap"})
DOCUMENTS = (namespace(NAME), LIMITS, POLICY, binding(NAME, paramRef=REFERENCE))


@pytest.fixture(scope="module")
def live(api_server: ApiServer, tmp_path_factory: pytest.TempPathFactory) -> JsonObject:
    """The report of a scan for another user."""
    apply(api_server, [*DOCUMENTS, labelled("Secret", "nobody", "login", namespace=NAME)])
    wait_until_enforced(api_server)
    home = tmp_path_factory.mktemp("home")
    where = ("--kubeconfig", api_server.kubeconfig, "--policy", NAME, "--db", "assay.db")
    return assay_here("scan", *where, "--as-user", "guest", "--chunk-size", "100", "-o", "json", home=home).report


def test_the_scanner_is_the_user_of_the_credentials(live: JsonObject) -> None:
    """The server reports it, although the scan simulates another user."""
    method = live["method"]

    assert ("admin", "guest", True, 100) == (
        dig(method, "scanner", "username"),
        dig(method, "requester", "username"),
        dig(method, "simulated"),
        dig(method, "chunkSize"),
    )


def test_a_param_of_a_server_equals_the_param_in_a_file(live: JsonObject, tmp_path: Path) -> None:
    """What the server adds to an object is no content of a rule."""
    (tmp_path / "all.yaml").write_text(yaml.safe_dump_all(DOCUMENTS))
    files = assay_here("scan", "--from", ".", "-o", "json", "--db", "assay.db", home=tmp_path).report

    assert 1 == len(as_list(live["rules"]))
    assert live["rules"] == files["rules"]


def test_every_listed_kind_has_a_digest_of_its_pages(live: JsonObject) -> None:
    """ConfigMaps and Secrets were listed, and other kinds are covered by no policy."""
    kinds = as_list(dig(live, "coverage", "kinds"))

    assert [("ConfigMap", 64), ("Secret", 64)] == sorted(
        (str(dig(kind, "kind")), len(str(dig(kind, "digest")))) for kind in kinds
    )
    assert {"apiVersion": "apps/v1", "kind": "Deployment"} in as_list(live["kindsWithoutPolicy"])
