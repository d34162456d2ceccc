"""A scan reports everything that it may not read, and needs no rights but get and list."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from scanner.model.json import Json, JsonObject, as_list, as_text, dig
from tests.cli.conftest import Assay
from tests.command import Ran
from tests.deploy.programs import base
from tests.integration.apiserver import ApiServer, running
from tests.integration.made import binding, bound, labelled, may, namespace, policy
from tests.integration.manifests import apply

AUDITOR, GUEST, POOR = "auditor", "guest", "poor"
LANGUAGES = ("MutatingAdmissionPolicy", "ValidatingAdmissionPolicy")
POLICIES = (
    "mutatingadmissionpolicies",
    "mutatingadmissionpolicybindings",
    "validatingadmissionpolicies",
    "validatingadmissionpolicybindings",
)
GROUP = "admissionregistration.k8s.io"


@pytest.fixture(scope="module")
def server(assets: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """A small cluster: three objects that violate a policy each, and the ClusterRole of the deployment."""
    with running(assets, tmp_path_factory.mktemp("guarded")) as server:
        apply(server, [*cluster(), *policies()])
        apply(server, rights_of_the_deployment(AUDITOR))
        yield server


def cluster() -> list[JsonObject]:
    """A namespace with an object for each policy."""
    return [
        namespace("guarded"),
        labelled("ConfigMap", "about-configmaps", "plain", namespace="guarded"),
        labelled("Secret", "about-secrets", "hidden", namespace="guarded", stringData={"password": "hunter2hunter2"}),
        labelled("PersistentVolume", "about-volumes", "disk", spec=volume()),
    ]


def volume() -> Json:
    """The least that makes a volume."""
    return {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/data"}}


def policies() -> list[JsonObject]:
    """One policy about each kind, put into force."""
    about = {"configmaps", "secrets", "volumes"}
    resources = {"volumes": "persistentvolumes"}
    named = [(f"about-{plural}", resources.get(plural, plural)) for plural in sorted(about)]
    return [document for name, resource in named for document in (policy(name, resource), binding(name))]


def rights_of_the_deployment(user: str) -> list[JsonObject]:
    """The ClusterRole that the base of kustomize gives the scanner, and its binding to a user."""
    (role,) = (document for document in base() if document["kind"] == "ClusterRole")
    return [role, bound(user, as_text(dig(role, "metadata", "name")))]


def scan(server: ApiServer, user: str, assay: Assay, *flags: str, token: str | None = None) -> Ran:
    """Scan as a user, into a database of the test's own."""
    config = server.kubeconfig_for(user, token=token)
    return assay("scan", "--kubeconfig", config, "--db", "assay.db", "-o", "json", *flags)


def violators(ran: Ran) -> list[str]:
    """The names of the objects that have findings."""
    return [as_text(dig(finding, "object", "name")) for finding in as_list(ran.report["findings"])]


def gaps(ran: Ran) -> dict[str, str]:
    """The reason of every gap, by its place."""
    return {as_text(dig(gap, "where")): as_text(dig(gap, "why")) for gap in as_list(ran.report["gaps"])}


def test_the_deployed_rights_are_enough(server: ApiServer, assay: Assay) -> None:
    """With the ClusterRole of the base, and without Secrets, a scan is complete: Secrets are left out on purpose."""
    ran = scan(server, AUDITOR, assay, "--skip-kind", "secrets")

    assert (0, {}, ["plain", "disk"]) == (ran.code, gaps(ran), violators(ran))


def test_a_refused_list_is_a_gap_and_the_rest_is_reported(server: ApiServer, assay: Assay) -> None:
    """Without the right to list Secrets the scan is incomplete; the report names the missing right and the flag for scans without it."""
    ran = scan(server, AUDITOR, assay)

    why = (
        "cannot list secrets: forbidden for auditor. Grant `list` on secrets, "
        "or pass --skip-kind secrets to record the gap on purpose."
    )
    assert (3, {"v1/Secret": why}) == (ran.code, gaps(ran))
    assert ["plain", "disk"] == violators(ran)


def test_what_may_be_listed_again_closes_the_gap(server: ApiServer, assay: Assay) -> None:
    """Findings of objects that a scan may not list stay open."""
    first = scan(server, "admin", assay)
    second = scan(server, AUDITOR, assay)
    third = scan(server, "admin", assay)

    assert ["plain", "hidden", "disk"] == violators(first) == violators(third)
    assert ([], 1) == (second.report["resolved"], dig(second.report, "changes", "unchecked"))
    assert {"open"} == {as_text(dig(finding, "status")) for finding in as_list(third.report["findings"])}


def test_a_user_who_may_not_read_policies_gets_a_report_without_evaluations(server: ApiServer, assay: Assay) -> None:
    """A scan without rights ends as incomplete, with a sentence for each list that it needs, and no traceback."""
    ran = scan(server, GUEST, assay)

    assert 3 == ran.code
    assert [f"{GROUP}/v1/{language}{end}" for language in LANGUAGES for end in ("", "Binding")] == sorted(
        where for where in gaps(ran) if where.startswith(GROUP)
    )
    assert all("forbidden for guest. Grant `list` on " in why for why in gaps(ran).values())
    assert "Traceback" not in ran.stderr


def test_without_namespaces_policies_that_need_none_are_evaluated(server: ApiServer, assay: Assay) -> None:
    """Policies that ask for no namespace are evaluated all the same; the gap names the list that is missing."""
    apply(server, [*may(POOR, "poor-policies", *POLICIES, group=GROUP), *may(POOR, "poor-objects", "configmaps")])

    ran = scan(server, "admin", assay, "--as", POOR)

    assert (3, ["plain"]) == (ran.code, violators(ran))
    assert {"v1/Namespace", "v1/Secret", "v1/PersistentVolume"} == set(gaps(ran))


def test_impersonation_is_worth_as_much_as_a_login(server: ApiServer, assay: Assay) -> None:
    """With --as, the scan has that user's rights and no more."""
    ran = scan(server, "admin", assay, "--as", AUDITOR)

    assert (3, ["v1/Secret"], ["plain", "disk"]) == (ran.code, [*gaps(ran)], violators(ran))


def test_wrong_credentials_end_the_scan(server: ApiServer, assay: Assay) -> None:
    """A token that the server does not know is no gap: nothing could be seen at all."""
    ran = scan(server, AUDITOR, assay, token="made-up")

    assert (4, b"") == (ran.code, ran.stdout)
    assert ran.stderr.startswith(f"assay: {server.url} does not accept the credentials (Unauthorized). Log in again")


def test_no_secret_is_written_anywhere(server: ApiServer, assay: Assay, home: Path) -> None:
    """Neither the report nor the progress nor the database holds what a Secret holds."""
    ran = scan(server, "admin", assay, "-v")

    written = b"".join([ran.stdout, ran.stderr.encode(), *(path.read_bytes() for path in home.glob("assay.db*"))])
    assert b"hidden" in written
    assert b"hunter2" not in written
    assert b"aHVudGVyMmh1bnRlcjI" not in written
