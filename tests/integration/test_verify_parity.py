"""`assay verify-parity` on a real server: its report, the rights that it needs, and no change of an object."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from scanner.model.json import Json, JsonObject, as_list, as_text, dig
from tests.cli.conftest import Assay
from tests.command import Ran
from tests.integration.apiserver import ApiServer, running
from tests.integration.made import binding, bound, labelled, may, namespace, policy
from tests.integration.manifests import apply, wait_until_enforced
from tests.integration.parity import stored

HERE = "replayed"
LONG = "long " * 60


@pytest.fixture(scope="module")
def server(assets: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """A server with a handful of objects, and a policy for everything that a client can or cannot notice."""
    with running(assets, tmp_path_factory.mktemp("replayed")) as server:
        apply(server, [namespace(HERE), *objects(), *policies()])
        wait_until_enforced(server)
        yield server


def objects() -> list[JsonObject]:
    """The objects that the policies match, with a Service whose address no second Service can have."""
    port: Json = {"port": 80}
    return [
        labelled("ConfigMap", "warned", "one", namespace=HERE, data={"a": "1"}),
        labelled("ConfigMap", "refused", "two", namespace=HERE),
        labelled("ConfigMap", "audited", "three", namespace=HERE),
        labelled("ConfigMap", "talkative", "four", namespace=HERE),
        labelled("ConfigMap", "anew", "five", namespace=HERE),
        labelled("Secret", "secretive", "six", namespace=HERE, stringData={"password": "hunter2hunter2"}),
        labelled("Service", "served", "seven", namespace=HERE, spec={"ports": [port]}),
    ]


def policies() -> list[JsonObject]:
    """Each about the one object that carries its name."""
    deny: Json = ["Deny"]
    talk: list[Json] = [{"expression": "false", "message": f"{number} {LONG}"} for number in range(20)]
    secret: Json = {"expression": "false", "messageExpression": "string(object.data.password)"}
    return [
        policy("warned", "configmaps", expression="object.data.size() > 1"),
        binding("warned"),
        policy("refused", "configmaps"),
        binding("refused", validationActions=deny),
        policy("audited", "configmaps"),
        binding("audited", validationActions=["Audit"]),
        policy("talkative", "configmaps", validations=talk),
        binding("talkative"),
        policy("anew", "configmaps", expression="object.metadata.uid == ''"),
        binding("anew"),
        policy("secretive", "secrets", validations=[secret]),
        binding("secretive"),
        policy("served", "services", expression="object.spec.ports.size() > 1"),
        binding("served"),
    ]


def verify(server: ApiServer, assay: Assay, *flags: str, user: str = "admin") -> Ran:
    """Replay what there is to replay."""
    return assay("verify-parity", "--kubeconfig", server.kubeconfig_for(user), "-o", "json", *flags)


def reasons(ran: Ran) -> dict[str, Json]:
    """The number of verdicts that were not comparable, by reason."""
    groups = as_list(ran.report["notComparable"])
    return {as_text(dig(group, "reason")): dig(group, "verdicts") for group in groups}


def test_the_server_says_the_same(server: ApiServer, assay: Assay) -> None:
    """Warnings, a denial and the address of a service agree; what no client sees is counted by its reason."""
    ran = verify(server, assay)

    print(ran.stdout.decode())  # noqa: T201 - what `pytest -s` is for
    assert (0, True, []) == (ran.code, ran.report["complete"], ran.report["differences"])
    assert (18, 41, 41) == tuple(ran.report[key] for key in ("writes", "comparable", "agreed"))
    assert {
        "only the audit log has the verdict of a binding without Deny and Warn": 2,
        "the check reads a field that the server sets in a copy, such as metadata.uid or status": 1,
        "the warnings of the request exceed 4,096 characters, so the server cuts and drops some": 2 * (20 - 16),
    } == reasons(ran)


def test_nothing_is_changed(server: ApiServer, assay: Assay) -> None:
    """Every object of the server has the same UID, resourceVersion and content before and after."""
    before = everything(server)
    ran = verify(server, assay)

    assert isinstance(ran.report["writes"], int)
    assert ran.report["writes"] >= 14
    assert before == everything(server)


def everything(server: ApiServer) -> list[JsonObject]:
    """All that is stored, but the leases that servers renew by themselves."""
    return [document for document in stored(server) if document["kind"] != "Lease"]


def test_the_table_says_it_in_sentences(server: ApiServer, assay: Assay) -> None:
    """The first lines say how much was written and how much agrees."""
    ran = assay("verify-parity", "--kubeconfig", server.kubeconfig, "-q")

    first, second, *_ = ran.stdout.decode().splitlines()
    assert (0, "") == (ran.code, ran.stderr)
    assert "as admin; no object was changed" in first
    assert second.startswith("SAME: ")
    assert second.endswith(" comparable verdicts agree")


def test_who_may_only_read_hears_which_rights_are_missing(server: ApiServer, assay: Assay) -> None:
    """Without create and update the verdicts are not comparable, and the exit code is that of an incomplete scan."""
    rights = [*may("auditor", "read-core", "configmaps", "secrets", "services", "namespaces")]
    apply(server, [*rights, *may("auditor", "read-policies", "*", group="admissionregistration.k8s.io")])

    ran = verify(server, assay, user="auditor")

    missing = {as_text(dig(right, "right")) for right in as_list(ran.report["missingRights"])}
    assert (3, False, []) == (ran.code, ran.report["complete"], ran.report["differences"])
    assert {
        f"{verb} on {kind}" for verb in ("create", "update") for kind in ("configmaps", "secrets", "services")
    } == missing


def test_who_may_write_needs_no_more(server: ApiServer, assay: Assay) -> None:
    """The rights of a scan, get, create and update are enough: custom kinds aside, APIServices need not be listed."""
    apply(server, [*may("auditor", "read-core", "configmaps", "secrets", "services", "namespaces")])
    apply(
        server,
        [
            *may("auditor", "read-policies", "*", group="admissionregistration.k8s.io"),
            writer(),
            bound("auditor", "writer"),
        ],
    )

    ran = verify(server, assay, user="auditor")

    assert (0, []) == (ran.code, ran.report["differences"])


def writer() -> JsonObject:
    """The role that may write the objects that the policies match."""
    rule: Json = {"apiGroups": [""], "resources": ["configmaps", "secrets", "services"], "verbs": ["create", "update"]}
    metadata: Json = {"name": "writer"}
    return {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": metadata, "rules": [rule]}


def test_no_secret_is_printed(server: ApiServer, assay: Assay) -> None:
    """Not even where the server's own message holds one."""
    ran = verify(server, assay)

    assert b"hunter2" not in ran.stdout
    assert b"aHVudGVyMmh1bnRlcjI" not in ran.stdout


def test_the_sample_is_as_large_as_asked_for(server: ApiServer, assay: Assay) -> None:
    """Objects are taken in turn from each kind, the same ones for the same seed."""
    ran = verify(server, assay, "--sample", "3", "--operation", "update")

    assert (0, 3, 3) == (ran.code, ran.report["objects"], ran.report["writes"])
    assert ran.report == verify(server, assay, "--sample", "3", "--operation", "update").report
