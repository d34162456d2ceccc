"""Rights: what a scan needs is known before it, generated roles are enough for it, and nothing in them is too much."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
import yaml

from scanner.model.json import Json, JsonObject, as_list, as_object, as_text, dig
from tests.cli.conftest import Assay
from tests.command import Ran
from tests.integration.apiserver import ApiServer, running
from tests.integration.faults import wait_until
from tests.integration.made import binding, labelled, namespace, policy
from tests.integration.manifests import apply, delete

AUDITOR, GUEST = "auditor", "guest"
ADMISSION = "admissionregistration.k8s.io"
WEBHOOKS = ("mutatingwebhookconfigurations", "validatingwebhookconfigurations")
Scan = Callable[..., Ran]


@pytest.fixture(scope="module")
def server(assets: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """Two teams with objects that violate policies; one policy takes its params from a namespace of its own."""
    with running(assets, tmp_path_factory.mktemp("rights")) as started:
        apply(started, [namespace(name) for name in ("team", "other", "settings")])
        limits = labelled("ConfigMap", "", "limits", namespace="settings", data={"ranges": "none"})
        apply(started, [limits])
        apply(started, [labelled("Secret", "keys", "key", namespace=name) for name in ("team", "other")])
        apply(started, [labelled("LimitRange", "ranges", "range", namespace=name) for name in ("team", "other")])
        apply(started, policies())
        yield started


def policies() -> list[JsonObject]:
    """One about a kind alone, one with params, one about a kind of the whole cluster."""
    reference = {"name": "limits", "namespace": "settings", "parameterNotFoundAction": "Deny"}
    return [
        policy("keys", "secrets"),
        binding("keys"),
        policy(
            "ranges", "limitranges", expression="!has(params.data)", paramKind={"apiVersion": "v1", "kind": "ConfigMap"}
        ),
        binding("ranges", paramRef=reference),
        policy("disks", "persistentvolumes"),
        binding("disks"),
    ]


@pytest.fixture
def ran(server: ApiServer, assay: Assay) -> Scan:
    """Run a command as one of the server's users."""

    def run(user: str, *arguments: str) -> Ran:
        return assay(*arguments, "--kubeconfig", server.kubeconfig_for(user))

    return run


@pytest.mark.parametrize("width", ["40", "80", "120"])
def test_the_rights_keep_to_the_width_of_the_terminal(ran: Scan, width: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The table of the rights, and the sentences below it."""
    monkeypatch.setenv("COLUMNS", width)

    printed = ran(GUEST, "rbac", "check").stdout.decode()

    assert [] == [line for line in printed.splitlines() if len(line) > int(width)]
    assert "permissions are missing:" in " ".join(printed.split())


def generated(ran: Scan, *flags: str) -> list[JsonObject]:
    """The roles that the command prints for an administrator."""
    out = ran("admin", "rbac", "generate", *flags)
    assert 0 == out.code, out.stderr
    return [as_object(document) for document in yaml.safe_load_all(out.stdout)]


def rules(documents: list[JsonObject]) -> dict[str, Json]:
    """The rules by kind and namespace of the role."""
    return {
        f"{document['kind']} {as_text(dig(document, 'metadata', 'namespace'))}".strip(): document["rules"]
        for document in documents
        if "rules" in document
    }


def rule(group: str, *resources: str, verb: str = "list", name: str = "") -> JsonObject:
    """One rule as it is printed."""
    named = {"resourceNames": [name]} if name else {}
    return {"apiGroups": [group], "resources": [*resources], **named, "verbs": [verb]}


METRICS: JsonObject = {"nonResourceURLs": ["/metrics"], "verbs": ["get"]}


def give(server: ApiServer, documents: list[JsonObject], user: str) -> None:
    """Store roles, and wait until the authorizer knows them."""
    apply(server, documents)
    for right in rights_of(documents):
        wait_until(partial(may, server, user, right))


def may(server: ApiServer, user: str, right: JsonObject) -> bool:
    """Whether the authorizer allows it."""
    path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    attributes = "nonResourceAttributes" if "path" in right else "resourceAttributes"
    answer = server.request("POST", path, {"spec": {attributes: right}}, token=server.tokens[user])
    return dig(answer.body, "status", "allowed") is True


def rights_of(documents: list[JsonObject]) -> Iterator[JsonObject]:
    """The attributes of resources and URLs that the roles allow."""
    for document in documents:
        for item in as_list(document.get("rules")):
            for url in as_list(dig(item, "nonResourceURLs")):
                yield {"path": url, "verb": as_list(dig(item, "verbs"))[0]}
            for resource in as_list(dig(item, "resources")):
                yield {
                    "group": as_list(dig(item, "apiGroups"))[0],
                    "resource": resource,
                    "verb": as_list(dig(item, "verbs"))[0],
                    "namespace": as_text(dig(document, "metadata", "namespace")),
                    "name": as_text(next(iter(as_list(dig(item, "resourceNames"))), "")),
                }


def objects_with_findings(out: Ran) -> list[str]:
    """Namespace and name of every object with a finding."""
    return sorted(
        f"{dig(finding, 'object', 'namespace')}/{dig(finding, 'object', 'name')}"
        for finding in as_list(out.report["findings"])
    )


def test_roles_name_exactly_what_the_policies_need(ran: Scan) -> None:
    """One rule for each group, verb and object; the params are read in their own namespace."""
    kinds = [f"{way}admissionpolic{end}" for way in ("mutating", "validating") for end in ("ies", "ybindings")]
    admission = rule(ADMISSION, *sorted([*kinds, *WEBHOOKS]))
    lists = rule("", "limitranges", "namespaces", "persistentvolumes", "resourcequotas", "secrets")
    assert {
        "ClusterRole": [lists, admission, METRICS],
        "Role kube-system": [rule("", "namespaces", verb="get", name="kube-system")],
        "Role settings": [rule("", "configmaps")],
    } == rules(generated(ran))


def test_roles_for_one_namespace(ran: Scan) -> None:
    """Outside of it there are only policies, bindings and params; kinds of the whole cluster are left out."""
    roles = rules(generated(ran, "--namespace", "team"))
    assert {"ClusterRole", "Role kube-system", "Role settings", "Role team"} == {*roles}
    expected = [rule("", "namespaces", verb="get", name="team"), rule("", "limitranges", "resourcequotas", "secrets")]
    assert expected == sorted(as_list(roles["Role team"]), key=lambda item: as_text(str(dig(item, "verbs"))))
    assert ["admissionregistration.k8s.io"] == as_list(dig(as_list(roles["ClusterRole"])[0], "apiGroups"))


def test_what_is_left_out_needs_no_right(ran: Scan) -> None:
    """--skip-kind secrets takes the right to read Secrets out of the role."""
    assert "secrets" not in str(rules(generated(ran, "--skip-kind", "secrets")))


def test_generated_roles_are_enough(server: ApiServer, ran: Scan) -> None:
    """An identity with only these roles lists the same objects as the administrator, and the check before the scan finds no missing right."""
    before = ran(AUDITOR, "rbac", "check")
    roles = generated(ran, "--for", f"user:{AUDITOR}")
    give(server, roles, AUDITOR)
    after = ran(AUDITOR, "rbac", "check")
    admin, auditor = (ran(user, "scan", "-o", "json", "--db", f"{user}.db") for user in ("admin", AUDITOR))
    for document in roles:
        delete(server, document)

    assert (3, 0) == (before.code, after.code)
    assert b"All required permissions are granted" in after.stdout
    assert (0, 0, []) == (admin.code, auditor.code, auditor.report["gaps"])
    assert objects_with_findings(admin) == objects_with_findings(auditor)
    assert ["other/key", "other/range", "team/key", "team/range"] == objects_with_findings(auditor)


def test_roles_for_one_namespace_are_enough_for_it(server: ApiServer, ran: Scan) -> None:
    """A user with rights in one namespace scans it completely; `rbac check` reports the rights that other namespaces need."""
    roles = generated(ran, "-n", "team", "--for", f"user:{GUEST}")
    give(server, roles, GUEST)
    checked = ran(GUEST, "rbac", "check", "-n", "team")
    scanned = ran(GUEST, "scan", "-n", "team", "-o", "json", "--db", "team.db")
    all_checked = ran(GUEST, "rbac", "check", "-o", "json")
    everything = ran(GUEST, "scan", "-o", "json", "--db", "all.db")
    for document in roles:
        delete(server, document)

    assert (0, 0, ["team/key", "team/range"]) == (checked.code, scanned.code, objects_with_findings(scanned))
    refused = [
        as_text(dig(right, "resource") or dig(right, "url"))
        for right in as_list(all_checked.report["rights"])
        if not dig(right, "allowed")
    ]
    cluster_wide = ["/metrics", "limitranges", "namespaces", "persistentvolumes", "resourcequotas", "secrets"]
    assert (3, cluster_wide) == (all_checked.code, refused)
    gaps = {as_text(dig(gap, "where")) for gap in as_list(everything.report["gaps"])}
    assert (3, {"v1/LimitRange", "v1/Namespace", "v1/PersistentVolume", "v1/Secret"}) == (everything.code, gaps)


def test_every_right_is_needed(server: ApiServer, ran: Scan) -> None:
    """Without any of them the scan is incomplete, except for those to identify the cluster and to compare counts."""
    roles = generated(ran, "--for", f"user:{AUDITOR}")
    give(server, roles, AUDITOR)
    outcomes = {}
    for document in roles:
        for left_out in range(len(as_list(document.get("rules")))):
            outcomes[f"{as_text(dig(document, 'metadata', 'namespace'))}{left_out}"] = without(
                server, document, left_out, ran
            )
    for document in roles:
        delete(server, document)

    assert {"0": 3, "1": 3, "2": 0, "kube-system0": 0, "settings0": 3} == outcomes


def without(server: ApiServer, role: JsonObject, left_out: int, ran: Scan) -> int:
    """The exit code of a scan that lacks one rule of a role."""
    kept = [item for number, item in enumerate(as_list(role["rules"])) if number != left_out]
    lost = {**role, "rules": [as_list(role["rules"])[left_out]]}
    right = next(rights_of([lost]))
    apply(server, [{**role, "rules": kept}])
    wait_until(lambda: not may(server, AUDITOR, right))
    code = ran(AUDITOR, "scan", "-o", "json", "--db", f"{left_out}.db").code
    give(server, [role], AUDITOR)
    return code


def recommended(out: Ran, command: str) -> list[str]:
    """The arguments of a recommended command, which a shell reads across the ends of lines."""
    lines = out.stdout.decode().replace("\\\n", " ").splitlines()
    (line,) = (line for line in lines if line.strip().startswith(f"assay {command}"))
    return shlex.split(line.partition("#")[0])[1:]


def test_the_printed_remedy_for_params_works(server: ApiServer, ran: Scan, assay: Assay) -> None:
    """The gap names the right, and not --skip-kind, which helps no params; the recommended commands grant it to the user."""
    roles = [
        role for role in generated(ran, "--for", f"user:{AUDITOR}") if dig(role, "metadata", "namespace") != "settings"
    ]
    give(server, roles, AUDITOR)
    before = ran(AUDITOR, "scan", "--db", "before.db")
    checked = assay(*recommended(before, "rbac check"))
    remedy = recommended(checked, "rbac generate")
    granted = ran("admin", *remedy[: remedy.index("|")])
    grant = [as_object(document) for document in yaml.safe_load_all(granted.stdout)]
    give(server, grant, AUDITOR)
    after = ran(AUDITOR, "scan", "-o", "json", "--db", "after.db")
    for document in (*roles, *grant):
        delete(server, document)

    assert ["kubectl", "apply", "-f", "-"] == remedy[remedy.index("|") + 1 :]
    shown = " ".join(before.stdout.decode().split())
    assert (
        "its params (configmaps) could not be listed: cannot list configmaps in namespace settings: forbidden for auditor. "
        "Grant `list` on configmaps in namespace settings"
    ) in shown
    assert "--skip-kind" not in shown
    assert "auditor lacks 1 right that the scan needs: - list configmaps in namespace settings " in shown
    assert (3, 3, 0, 0, []) == (before.code, checked.code, granted.code, after.code, after.report["gaps"])


def test_a_user_without_rights_learns_which_are_missing(server: ApiServer, ran: Scan, assay: Assay) -> None:
    """The headline claims nothing about problems; the recommended command names the rights, and one that grants them."""
    out = ran(GUEST, "scan", "--db", "guest.db")
    checked = assay(*recommended(out, "rbac check"))

    shown = " ".join(out.stdout.decode().split())
    assert (3, 3) == (out.code, checked.code)
    assert "INCOMPLETE nothing was evaluated" in shown
    assert "no problem would be refused" not in shown
    assert (
        "guest lacks 5 rights that the scan needs: - list mutatingadmissionpolicies.admissionregistration.k8s.io - list"
        in shown
    )
    assert b"Note: not all policies could be listed, so a scan may need further permissions" in checked.stdout
    assert ["--for", f"user:{GUEST}", "--name", f"assay-{GUEST}"] == recommended(checked, "rbac generate")[2:6]


def test_an_administrator_who_impersonates_can_run_the_remedy_as_printed(server: ApiServer, assay: Assay) -> None:
    """The commands name the kubeconfig and the scope of the scan; the one that grants does not impersonate."""
    config = str(server.kubeconfig_for("admin"))
    scope = ["--namespace", "team", "--skip-kind", "secrets"]
    out = assay("scan", *scope, "--kubeconfig", config, "--as", "jane doe", "--db", "jane.db")
    checked = assay(*recommended(out, "rbac check"))
    remedy = recommended(checked, "rbac generate")
    granted = assay(*remedy[: remedy.index("|")])
    grant = [as_object(document) for document in yaml.safe_load_all(granted.stdout)]
    apply(server, grant)
    wait_until(lambda: assay("rbac", "check", *scope, "--kubeconfig", config, "--as", "jane doe").code == 0)
    after = assay("scan", *scope, "--kubeconfig", config, "--as", "jane doe", "--db", "jane.db")
    for document in grant:
        delete(server, document)

    assert (3, 3, 0, 0) == (out.code, checked.code, granted.code, after.code)
    assert ["kubectl", "--kubeconfig", config, "apply", "-f", "-"] == remedy[remedy.index("|") + 1 :]


def test_policies_from_files_need_rights_too(server: ApiServer, ran: Scan, home: Path) -> None:
    """A policy that is not in the cluster yet is counted in, without the right to read those that are."""
    path = home / "new.yaml"
    path.write_text(yaml.safe_dump_all([policy("nodes", "nodes"), binding("nodes")]))
    documents = generated(ran, "-f", str(path), "--no-cluster-policies")
    lists = rule("", "limitranges", "namespaces", "nodes", "resourcequotas")
    assert [lists, rule(ADMISSION, *WEBHOOKS), METRICS] == rules(documents)["ClusterRole"]


def test_a_subject_that_is_none_is_refused(ran: Scan) -> None:
    """A subject without its kind is rejected, so that no role is bound by mistake."""
    out = ran("admin", "rbac", "generate", "--for", "auditor")
    assert (2, b"") == (out.code, out.stdout)
    assert "write user:NAME, group:NAME or serviceaccount:NAMESPACE:NAME" in out.stderr


def test_roles_for_waivers_are_enough_to_read_them(ran: Scan, server: ApiServer) -> None:
    """They are of one namespace: labelled ConfigMaps of others waive nothing, and a note says that they are not named."""
    flags = "--waivers-namespace", "other"
    roles = generated(ran, *flags, "--for", f"user:{AUDITOR}")
    assert rule("", "configmaps") in as_list(rules(roles)["Role other"])
    give(server, roles, AUDITOR)
    out = ran(AUDITOR, "scan", *flags, "-q", "-o", "json")

    assert 0 == out.code, out.stderr
    assert (
        "ConfigMaps of other namespaces with the label assay.dev/waivers waive nothing, and are not named" in out.stderr
    )
