"""What a scan may see decides what it says: nothing is passed over in silence, and nothing needs more than get and list."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from scanner.cluster.manifests import read_documents
from scanner.model.json import Json, JsonObject, as_list, as_text, dig
from tests.command import Ran, assay
from tests.integration.apiserver import ApiServer, running
from tests.integration.made import binding, bound, judged, may, namespace, policy
from tests.integration.manifests import apply

DEPLOY = Path(__file__).parents[2] / "deploy" / "cronjob.yaml"
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
    with running(assets, tmp_path_factory.mktemp("guarded")) as found:
        apply(found, [*cluster(), *policies()])
        apply(found, [role_of_the_deployment(), bound(AUDITOR, "assay")])
        yield found


def cluster() -> list[JsonObject]:
    """A namespace with an object for each policy."""
    return [
        namespace("guarded"),
        judged("ConfigMap", "about-configmaps", "plain", namespace="guarded"),
        judged("Secret", "about-secrets", "hidden", namespace="guarded", stringData={"password": "hunter2hunter2"}),
        judged("PersistentVolume", "about-volumes", "disk", spec=volume()),
    ]


def volume() -> Json:
    """The least that makes a volume."""
    return {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/data"}}


def policies() -> list[JsonObject]:
    """One policy about each kind, put into force."""
    about = {"configmaps", "secrets", "volumes"}
    resources = {"volumes": "persistentvolumes"}
    named = [(f"about-{it}", resources.get(it, it)) for it in sorted(about)]
    return [it for name, resource in named for it in (policy(name, resource), binding(name))]


def role_of_the_deployment() -> JsonObject:
    """The ClusterRole that deploy/cronjob.yaml gives the scanner."""
    documents, _ = read_documents(DEPLOY)
    (role,) = (it.body for it in documents if it.body["kind"] == "ClusterRole")
    return role


def scan(server: ApiServer, user: str, home: Path, *flags: str, token: str | None = None) -> Ran:
    """Scan as a user, into a database of the test's own."""
    config = server.kubeconfig_for(user, token=token)
    return assay("scan", "--kubeconfig", config, "--db", "assay.db", "-o", "json", *flags, home=home)


def found(ran: Ran) -> list[str]:
    """The names of the objects that have findings."""
    return [as_text(dig(it, "object", "name")) for it in as_list(ran.report["findings"])]


def gaps(ran: Ran) -> dict[str, str]:
    """What was not seen, and why."""
    return {as_text(dig(it, "where")): as_text(dig(it, "why")) for it in as_list(ran.report["gaps"])}


def test_the_deployed_rights_are_enough(server: ApiServer, tmp_path: Path) -> None:
    """With the ClusterRole and the flags of deploy/cronjob.yaml a scan is complete: Secrets are left out on purpose."""
    ran = scan(server, AUDITOR, tmp_path, "--skip-kind", "secrets")

    assert (0, {}, ["plain", "disk"]) == (ran.code, gaps(ran), found(ran))


def test_a_refused_list_is_a_gap_and_the_rest_is_reported(server: ApiServer, tmp_path: Path) -> None:
    """Without the right to list Secrets the scan is incomplete, says which right is missing, and how to do without."""
    ran = scan(server, AUDITOR, tmp_path)

    why = (
        "cannot list secrets: forbidden for auditor. Grant `list` on secrets, "
        "or pass --skip-kind secrets to record the gap on purpose."
    )
    assert (3, {"v1/Secret": why}) == (ran.code, gaps(ran))
    assert ["plain", "disk"] == found(ran)


def test_what_may_be_listed_again_closes_the_gap(server: ApiServer, tmp_path: Path) -> None:
    """What a scan was not allowed to see is neither resolved nor forgotten."""
    first = scan(server, "admin", tmp_path)
    second = scan(server, AUDITOR, tmp_path)
    third = scan(server, "admin", tmp_path)

    assert ["plain", "hidden", "disk"] == found(first) == found(third)
    assert ([], 1) == (second.report["resolved"], dig(second.report, "changes", "unchecked"))
    assert {"open"} == {as_text(dig(it, "status")) for it in as_list(third.report["findings"])}


def test_who_may_not_read_policies_hears_that_nothing_was_judged(server: ApiServer, tmp_path: Path) -> None:
    """A scan without rights ends as incomplete, with a sentence for each list that it needs, and no traceback."""
    ran = scan(server, GUEST, tmp_path)

    assert 3 == ran.code
    assert [f"{GROUP}/v1/{it}{end}" for it in LANGUAGES for end in ("", "Binding")] == sorted(
        where for where in gaps(ran) if where.startswith(GROUP)
    )
    assert all("forbidden for guest. Grant `list` on " in why for why in gaps(ran).values())
    assert "Traceback" not in ran.stderr


def test_who_may_not_list_namespaces_judges_what_needs_none(server: ApiServer, tmp_path: Path) -> None:
    """Policies that ask for no namespace are evaluated all the same; the gap names the list that is missing."""
    apply(server, [*may(POOR, "poor-policies", *POLICIES, group=GROUP), *may(POOR, "poor-objects", "configmaps")])

    ran = scan(server, "admin", tmp_path, "--as", POOR)

    assert (3, ["plain"]) == (ran.code, found(ran))
    assert {"v1/Namespace", "v1/Secret", "v1/PersistentVolume"} == set(gaps(ran))


def test_impersonation_is_worth_as_much_as_a_login(server: ApiServer, tmp_path: Path) -> None:
    """With --as, the scan has that user's rights and no more."""
    ran = scan(server, "admin", tmp_path, "--as", AUDITOR)

    assert (3, ["v1/Secret"], ["plain", "disk"]) == (ran.code, [*gaps(ran)], found(ran))


def test_wrong_credentials_end_the_scan(server: ApiServer, tmp_path: Path) -> None:
    """A token that the server does not know is no gap: nothing could be seen at all."""
    ran = scan(server, AUDITOR, tmp_path, token="made-up")

    assert (4, b"") == (ran.code, ran.stdout)
    assert ran.stderr.startswith(f"assay: {server.url} does not accept the credentials (Unauthorized). Log in again")


def test_no_secret_is_written_anywhere(server: ApiServer, tmp_path: Path) -> None:
    """Neither the report nor the progress nor the database holds what a Secret holds."""
    ran = scan(server, "admin", tmp_path, "-v")

    written = b"".join([ran.stdout, ran.stderr.encode(), *(it.read_bytes() for it in tmp_path.glob("assay.db*"))])
    assert b"hidden" in written
    assert b"hunter2" not in written
    assert b"aHVudGVyMmh1bnRlcjI" not in written
