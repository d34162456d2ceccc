"""What users install: the manifests of deploy/, and the Jobs that `kubectl create job --from` makes of their CronJob."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import yaml

from scanner.model.json import Json, JsonObject, as_list, as_object, dig

NAMESPACE = "assay"
CRON_JOB = "assay"
CONTAINER = "assay"
DATABASE_SECRET = "assay-db"
_DEPLOY = Path(__file__).parents[3] / "deploy" / "cronjob.yaml"


def manifests(*, schedule: str) -> list[JsonObject]:
    """The objects of the release in the order of creation, with the schedule of its CronJob."""
    documents = [as_object(document) for document in yaml.safe_load_all(_DEPLOY.read_text())]
    return [_scheduled(document, schedule) if document["kind"] == "CronJob" else document for document in documents]


def database(url: str) -> JsonObject:
    """The Secret that names the database."""
    metadata: JsonObject = {"name": DATABASE_SECRET, "namespace": NAMESPACE}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": {"url": url}}


def job_from(
    cron_job: Json,
    name: str,
    *arguments: str,
    env: Mapping[str, str] | None = None,
    job: JsonObject | None = None,
    pod: JsonObject | None = None,
) -> JsonObject:
    """A Job from the template of the CronJob, with more arguments and variables, and other fields of the Job and of its pod."""
    template = as_object(dig(cron_job, "spec", "jobTemplate", "spec"))
    spec = as_object(dig(template, "template", "spec"))
    changed: JsonObject = {**spec, "containers": [_container(spec, arguments, env or {})], **(pod or {})}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": name,
            "namespace": NAMESPACE,
            "annotations": {"cronjob.kubernetes.io/instantiate": "manual"},
        },
        "spec": {**template, "template": {**as_object(template["template"]), "spec": changed}, **(job or {})},
    }


def _container(spec: JsonObject, arguments: tuple[str, ...], env: Mapping[str, str]) -> JsonObject:
    """The one container of the pod, changed."""
    [container] = [as_object(item) for item in as_list(spec["containers"])]
    others = [item for item in as_list(container.get("env")) if dig(item, "name") not in env]
    variables: list[Json] = [{"name": name, "value": value} for name, value in env.items()]
    return {**container, "args": [*as_list(container.get("args")), *arguments], "env": [*others, *variables]}


def _scheduled(cron_job: JsonObject, schedule: str) -> JsonObject:
    return {**cron_job, "spec": {**as_object(cron_job["spec"]), "schedule": schedule}}
