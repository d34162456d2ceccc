"""What users install: the rendered chart of deploy/, and the Jobs that `kubectl create job --from` makes of its CronJob."""

from __future__ import annotations

from collections.abc import Mapping

from scanner.model.json import Json, JsonObject, as_list, as_object, dig
from tests.deploy.programs import NAMESPACE, rendered

CONTAINER = "assay"
SECRET = "assay-db"
HOOK = "helm.sh/hook"


def manifests(release: str, values: JsonObject) -> list[JsonObject]:
    """The objects of a release, without its tests."""
    return [
        document
        for document in rendered(values, release=release)
        if HOOK not in as_object(dig(document, "metadata", "annotations"))
    ]


def hooks(release: str, values: JsonObject) -> list[JsonObject]:
    """The pods that `helm test` makes of a release."""
    return [
        document
        for document in rendered(values, release=release)
        if HOOK in as_object(dig(document, "metadata", "annotations"))
    ]


def namespace() -> JsonObject:
    """The namespace of the releases, which enforces the restricted pod security standard."""
    labels: JsonObject = {"pod-security.kubernetes.io/enforce": "restricted"}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE, "labels": labels}}


def database_secret(url: str) -> JsonObject:
    """The Secret that names the database."""
    metadata: JsonObject = {"name": SECRET, "namespace": NAMESPACE}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": {"url": url}}


def job_from(
    cron_job: Json,
    name: str,
    *arguments: str,
    without: tuple[str, ...] = (),
    env: Mapping[str, str] | None = None,
    job: JsonObject | None = None,
    account: str = "",
    upgrades: bool = True,
) -> JsonObject:
    """A Job from the template of a CronJob.

    The scan has more `arguments`, and others not; all containers have more variables. `job` has other fields of the Job,
    and `account` is another service account. Without `upgrades` the init containers change nothing.
    """
    template = as_object(dig(cron_job, "spec", "jobTemplate", "spec"))
    spec = as_object(dig(template, "template", "spec"))
    before = [_with_variables(as_object(item), env or {}) for item in as_list(spec["initContainers"])]
    [scan] = [_with_variables(as_object(item), env or {}) for item in as_list(spec["containers"])]
    kept = [argument for argument in as_list(scan["args"]) if argument not in without]
    changed: JsonObject = {
        **spec,
        "serviceAccountName": account or spec["serviceAccountName"],
        "initContainers": before if upgrades else [{**container, "args": ["--help"]} for container in before],
        "containers": [{**scan, "args": [*kept, *arguments]}],
    }
    metadata: JsonObject = {
        "name": name,
        "namespace": NAMESPACE,
        "annotations": {"cronjob.kubernetes.io/instantiate": "manual"},
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": metadata,
        "spec": {**template, "template": {**as_object(template["template"]), "spec": changed}, **(job or {})},
    }


def _with_variables(container: JsonObject, env: Mapping[str, str]) -> JsonObject:
    others = [item for item in as_list(container.get("env")) if dig(item, "name") not in env]
    variables: list[Json] = [{"name": name, "value": value} for name, value in env.items()]
    return {**container, "env": [*others, *variables]}
