"""A fleet: the chart, the file beside it, and the values that the chart refuses."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from scanner.documents.fleet import Member, read_fleet
from scanner.model.json import Json, JsonObject, as_list, as_object, as_text, dig, texts
from tests.deploy.comparison import comparable
from tests.deploy.matrix import FLEET, FLEET_AND_SERVE, RULES
from tests.deploy.objects import container, job, of_kind, pods
from tests.deploy.programs import DEPLOY, NAMESPACE, documents, refused, rendered

KUBECONFIG: JsonObject = {"name": "kubeconfigs", "key": "one"}
EAST: JsonObject = {"name": "east", "kubeconfigSecret": KUBECONFIG}


def fleet(*clusters: JsonObject, **values: Json) -> JsonObject:
    """The values of a fleet with a database."""
    return {"database": {"existingSecret": "assay-db"}, **values, "fleet": {"clusters": [*clusters]}}


def of_size(clusters: int, parallelism: int, deadline: int) -> JsonObject:
    """The values of a fleet with this number of clusters."""
    members: list[Json] = [{**EAST, "name": f"cluster-{number}"} for number in range(clusters)]
    return {
        **fleet(),
        "fleet": {"clusters": members, "parallelism": parallelism},
        "activeDeadlineSeconds": deadline,
    }


def test_the_chart_and_the_file_install_the_same() -> None:
    """Field by field, but for the test of the chart."""
    values: JsonObject = {**FLEET, "fullnameOverride": "assay-fleet", "activeDeadlineSeconds": 14400}
    chart = [document for document in rendered(values) if document["kind"] != "Pod"]
    file = documents((DEPLOY / "fleet.yaml").read_text())
    placed: list[JsonObject] = [
        {**each, "metadata": {**as_object(each["metadata"]), "namespace": NAMESPACE}} for each in file
    ]
    assert comparable(placed) == comparable(chart)


def test_the_scan_reads_the_file_that_the_chart_writes(tmp_path: Path) -> None:
    """Each cluster has a kubeconfig of its own, and the schedule with which its runs are compared."""
    path = tmp_path / "fleet.yaml"
    path.write_text(as_text(dig(of_kind(rendered(FLEET_AND_SERVE), "ConfigMap"), "data", "fleet.yaml")))
    assert read_fleet(path) == tuple(
        Member(name, f"/kubeconfigs/{name}", "", "@weekly", "Europe/Berlin")
        for name in ("east", "west.example.com", "3")
    )


def test_a_schedule_of_a_cluster_has_the_time_zone_of_the_scans(tmp_path: Path) -> None:
    """Unless it has one of its own; a cluster without a schedule has that of the configuration."""
    path = tmp_path / "fleet.yaml"
    values = fleet(EAST, {**EAST, "name": "west", "schedule": "@weekly"}, timeZone="Asia/Tokyo")
    path.write_text(as_text(dig(of_kind(rendered(values), "ConfigMap"), "data", "fleet.yaml")))
    assert [("", ""), ("@weekly", "Asia/Tokyo")] == [(each.schedule, each.time_zone) for each in read_fleet(path)]


def test_a_container_has_the_kubeconfig_of_its_cluster_alone() -> None:
    """The volume has a folder for each index, and the container mounts that of its own."""
    pod = job(rendered(FLEET_AND_SERVE))["template"]
    [volume] = (each for each in as_list(dig(pod, "spec", "volumes")) if dig(each, "name") == "kubeconfigs")
    files = [
        (dig(source, "secret", "name"), dig(item, "key"), dig(item, "path"))
        for source in as_list(dig(volume, "projected", "sources"))
        for item in as_list(dig(source, "secret", "items"))
    ]
    [mount] = (each for each in as_list(container(pod)["volumeMounts"]) if dig(each, "name") == "kubeconfigs")
    assert [
        ("east-kubeconfig", "kubeconfig", "0/east"),
        ("west.example.com-kubeconfig", "kubeconfig", "1/west.example.com"),
        ("3-kubeconfig", "kubeconfig", "2/3"),
    ] == files
    assert ("/kubeconfigs", "$(JOB_COMPLETION_INDEX)", True) == (
        dig(mount, "mountPath"),
        dig(mount, "subPathExpr"),
        dig(mount, "readOnly"),
    )


def test_a_missing_secret_keeps_no_other_cluster_from_being_scanned() -> None:
    """The kubelet starts the pods without it, and the run of its cluster fails."""
    pod = job(rendered(FLEET))["template"]
    sources = [
        source
        for volume in as_list(dig(pod, "spec", "volumes"))
        for source in as_list(dig(volume, "projected", "sources"))
    ]
    assert [True, True] == [dig(source, "secret", "optional") for source in sources]


def test_no_pod_has_a_token_of_the_cluster_of_the_release() -> None:
    """The scans connect with their kubeconfigs, and there is no role."""
    documents = rendered(FLEET_AND_SERVE)
    assert [False] * 3 == [dig(pod, "spec", "automountServiceAccountToken") for pod in pods(documents)]
    assert [] == [document["kind"] for document in documents if "Role" in as_text(document["kind"])]


def test_the_pages_have_the_fleet_without_kubeconfigs() -> None:
    """`assay serve` applies the schedule of each cluster."""
    pod = dig(of_kind(rendered(FLEET_AND_SERVE), "Deployment"), "spec", "template")
    assert "--fleet=/etc/assay/fleet.yaml" in texts(container(pod, "serve")["args"])
    assert "kubeconfig" not in str(dig(pod, "spec"))


def test_another_fleet_starts_the_pages_anew() -> None:
    """The server reads the file of the fleet once."""
    digests = {
        dig(
            of_kind(rendered({**FLEET_AND_SERVE, "fleet": clusters}), "Deployment"),
            "spec",
            "template",
            "metadata",
            "annotations",
            "checksum/config",
        )
        for clusters in (FLEET["fleet"], FLEET_AND_SERVE["fleet"], {"clusters": []})
    }
    assert 3 == len(digests)


def test_one_pod_tests_the_rights_in_all_clusters() -> None:
    """The `helm test` command ends with the first pod that fails, so the one pod has every kubeconfig, at the path of the file."""
    documents = rendered(FLEET_AND_SERVE)
    check = of_kind(documents, "Pod")
    config = yaml.safe_load(as_text(dig(of_kind(documents, "ConfigMap"), "data", "fleet.yaml")))
    [volume] = (each for each in as_list(dig(check, "spec", "volumes")) if dig(each, "name") == "kubeconfigs")
    [mount] = (each for each in as_list(container(check)["volumeMounts"]) if dig(each, "name") == "kubeconfigs")
    sources = [dig(source, "secret") for source in as_list(dig(volume, "projected", "sources"))]
    files = [dig(item, "path") for source in sources for item in as_list(dig(source, "items"))]
    assert ["rbac", "check", "--fleet=/etc/assay/fleet.yaml"] == container(check)["args"]
    assert [dig(each, "kubeconfig") for each in as_list(config["clusters"])] == [
        f"{dig(mount, 'mountPath')}/{file}" for file in files
    ]
    assert [True] * 3 == [dig(source, "optional") for source in sources]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"fleet": {"clusters": [EAST]}}, "fleet.clusters needs a PostgreSQL database"),
        (fleet({"name": "east"}), "kubeconfigSecret"),
        (fleet({**EAST, "kubeconfigSecret": {"name": "kubeconfigs"}}), "key"),
        (fleet({**EAST, "name": "../east"}), "/fleet/clusters/0/name"),
        (fleet({**EAST, "kubeconfig": "path"}), "additional properties 'kubeconfig' not allowed"),
        (fleet(EAST, EAST), "fleet.clusters has the name east twice"),
        (fleet({**EAST, "timeZone": "Asia/Tokyo"}), "the timeZone of east belongs to a schedule"),
        (fleet({**EAST, "schedule": "0 24 * * *"}), "the schedule of east"),
        (fleet({**EAST, "schedule": "@daily", "timeZone": "Asia/Tokio"}), 'the time zone "Asia/Tokio" is not known'),
        (fleet(EAST, clusterName="production"), "fleet.clusters names the clusters: leave out clusterName"),
        (fleet(EAST, config={"context": "admin"}), "fleet.clusters names the clusters: leave out clusterName"),
        (fleet(EAST, rbac={"extraRules": [RULES]}), "Leave out rbac.rules, rbac.extraRules and rbac.roles"),
        (fleet(EAST, waivers={"enabled": True}), "set config.waiversNamespace to a namespace of these clusters"),
        ({**fleet(EAST), "fleet": {"clusters": [EAST], "parallelism": 0}}, "/fleet/parallelism"),
        (
            of_size(9, 4, 8099),
            "activeDeadlineSeconds (8099) must be at least 3 times kindTimeout and 15 minutes (8100)",
        ),
        (of_size(9, 4, 8099), "9 clusters are scanned 4 at a time"),
    ],
    ids=str,
)
def test_wrong_fleets_are_refused(values: JsonObject, message: str) -> None:
    """Helm renders nothing, and names the value."""
    assert message in refused(values)


@pytest.mark.parametrize(("clusters", "parallelism", "deadline"), [(9, 4, 8100), (8, 4, 5400), (3, 4, 2700)])
def test_the_deadline_is_that_of_all_clusters(clusters: int, parallelism: int, deadline: int) -> None:
    """Each of them has the time limit of a kind and 15 minutes, also those that wait for others."""
    spec = job(rendered(of_size(clusters, parallelism, deadline)))
    assert (clusters, parallelism, deadline, clusters) == (
        spec["completions"],
        spec["parallelism"],
        spec["activeDeadlineSeconds"],
        spec["maxFailedIndexes"],
    )


def test_a_fleet_repeats_and_fails_each_cluster_alone() -> None:
    """No rule fails the Job, and no number of retries is shared."""
    spec = job(rendered({**FLEET, "backoffLimit": 5}))
    actions = [dig(rule, "action") for rule in as_list(dig(spec, "podFailurePolicy", "rules"))]
    assert ["Ignore", "FailIndex", "FailIndex", "FailIndex"] == actions
    assert ("Indexed", 5, None) == (spec["completionMode"], spec["backoffLimitPerIndex"], spec.get("backoffLimit"))


def test_the_documentation_has_values_that_the_chart_accepts() -> None:
    """The example of docs/fleets.md is that of the file."""
    page = (DEPLOY.parent / "docs" / "fleets.md").read_text()
    example = as_object(yaml.safe_load(page.partition("# values.yaml\n")[2].partition("```")[0]))
    place: JsonObject = {"repository": "registry.example.com/assay/kube-assay"}
    assert {**FLEET, "image": place} == {**example, "fleet": {**as_object(example["fleet"]), "parallelism": 2}}
