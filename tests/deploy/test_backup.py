"""The backups of the chart: a CronJob that copies the SQLite file to a claim of its own."""

from __future__ import annotations

import pytest

from scanner.model.json import Json, JsonObject, as_list, as_object, as_text, dig
from tests.deploy.matrix import BACKUP, READER
from tests.deploy.objects import container, kinds, of_kind
from tests.deploy.programs import refused, rendered

ON: JsonObject = {"backup": {"enabled": True}}
NAME = "assay-backup"


def pod(values: JsonObject) -> JsonObject:
    """The spec of the pod of a backup."""
    job = of_kind(rendered(values), "CronJob", NAME)
    return as_object(dig(job, "spec", "jobTemplate", "spec", "template", "spec"))


def claims(values: JsonObject) -> dict[str, Json]:
    """The claims that the pod mounts, by the path."""
    spec = pod(values)
    of_volumes = {
        as_text(dig(each, "name")): dig(each, "persistentVolumeClaim", "claimName") for each in as_list(spec["volumes"])
    }
    mounts = as_list(container({"spec": spec}, "backup")["volumeMounts"])
    return {
        as_text(dig(each, "mountPath")): claim
        for each in mounts
        if (claim := of_volumes[as_text(dig(each, "name"))]) is not None
    }


def test_backups_are_off() -> None:
    """The default values create no further object."""
    added = ["CronJob", "PersistentVolumeClaim", "ServiceAccount"]
    assert sorted([*kinds(rendered()), *added]) == kinds(rendered(ON))


def test_a_backup_has_the_claim_of_the_scan_and_one_of_its_own() -> None:
    """Both volumes are attached to the same node."""
    assert {"/data": "assay", "/backup": NAME} == claims(ON)
    assert {"/data": "assay", "/backup": "copies"} == claims(BACKUP)
    assert {"/data": "history", "/backup": NAME} == claims({**ON, "persistence": {"existingClaim": "history"}})


def test_a_backup_prefers_the_node_of_a_scan() -> None:
    """Another node cannot attach the volume while a scan runs; the user's own affinity has priority."""
    [term] = as_list(dig(pod(ON), "affinity", "podAffinity", "preferredDuringSchedulingIgnoredDuringExecution"))
    selector = as_object(dig(term, "podAffinityTerm", "labelSelector", "matchLabels"))
    scan = of_kind(rendered(ON), "CronJob", "assay")
    labels = as_object(dig(scan, "spec", "jobTemplate", "spec", "template", "metadata", "labels"))
    assert "kubernetes.io/hostname" == dig(term, "podAffinityTerm", "topologyKey")
    assert selector.items() <= labels.items()
    assert BACKUP["affinity"] == pod(BACKUP)["affinity"]


def test_a_backup_runs_the_command() -> None:
    """It keeps as many copies as the values name."""
    assert ["db", "backup", "/backup", "--keep=7"] == container({"spec": pod(ON)}, "backup")["args"]
    assert ["db", "backup", "/backup", "--keep=3"] == container({"spec": pod(BACKUP)}, "backup")["args"]


def test_a_backup_has_no_rights() -> None:
    """No token, no role, no network, and the restricted standard."""
    documents = rendered(BACKUP)
    spec = pod(BACKUP)
    subjects = {dig(subject, "name") for document in documents for subject in as_list(document.get("subjects"))}
    policy = of_kind(documents, "NetworkPolicy", NAME)
    assert (NAME, False) == (spec["serviceAccountName"], spec["automountServiceAccountToken"])
    assert {"assay"} == subjects
    assert ([], []) == (dig(policy, "spec", "ingress"), dig(policy, "spec", "egress"))
    assert (True, "RuntimeDefault") == (
        dig(spec, "securityContext", "runAsNonRoot"),
        dig(spec, "securityContext", "seccompProfile", "type"),
    )
    expected = {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert expected == container({"spec": spec}, "backup")["securityContext"]


def test_two_backups_never_run_at_once() -> None:
    """And a pod that waits for the volume ends with its Job."""
    job = of_kind(rendered(BACKUP), "CronJob", NAME)
    assert ("Forbid", "@weekly", True) == tuple(
        dig(job, "spec", key) for key in ("concurrencyPolicy", "schedule", "suspend")
    )
    assert 600 == dig(job, "spec", "jobTemplate", "spec", "activeDeadlineSeconds")


def test_the_name_of_the_job_is_short_enough() -> None:
    """A CronJob has at most 52 characters, because its controller adds to them."""
    [name] = [
        as_text(dig(document, "metadata", "name"))
        for document in rendered(ON, release="r" * 53)
        if document["kind"] == "CronJob" and as_text(dig(document, "metadata", "name")).endswith("-backup")
    ]
    assert len(name) == 52


@pytest.mark.parametrize(
    ("case", "reason"),
    [
        ({**ON, "database": {"existingSecret": "assay-db"}}, "Back up PostgreSQL with pg_dump"),
        ({**ON, "persistence": {"enabled": False}}, "this release has none"),
        ({"backup": {"enabled": True, "existingClaim": "assay"}}, "a copy on the same volume is lost with it"),
        ({"backup": {"keep": 0}}, "keep"),
        ({"upgrade": {"grantSelect": ["reader"]}}, "name the Secret of the database with database.existingSecret"),
        (
            {"database": {"existingSecret": "assay-db"}, "upgrade": {"enabled": False, "grantSelect": ["reader"]}},
            "upgrade.grantSelect needs upgrade.enabled",
        ),
    ],
    ids=["postgresql", "no volume", "the same claim", "no copies", "a role without PostgreSQL", "a role, no upgrade"],
)
def test_values_that_exclude_each_other(case: JsonObject, reason: str) -> None:
    """The message names the remedy."""
    assert reason in refused(case)


def test_every_upgrade_grants_the_right_to_read() -> None:
    """Before scans and before `assay serve`; a name may have any characters."""
    documents = rendered(READER)
    scan = dig(of_kind(documents, "CronJob"), "spec", "jobTemplate", "spec", "template", "spec")
    serve = dig(of_kind(documents, "Deployment"), "spec", "template", "spec")
    expected = ["db", "upgrade", "--grant-select=assay_reader", "--grant-select=Grafana, eu"]
    assert [expected, expected] == [
        container({"spec": each}, "upgrade", "initContainers")["args"] for each in (scan, serve)
    ]
