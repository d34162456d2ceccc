"""The Helm chart: what it renders, which values it refuses, and its README."""

from __future__ import annotations

import json
import re

import pytest
import yaml

from scanner import __version__
from scanner.cli.commands.catalog import list_settings
from scanner.config.schema import make_schema
from scanner.model.json import Json, JsonObject, as_list, as_object, as_text, dig, texts
from scripts.generate_chart_readme import PAGE, page, values
from tests.deploy.matrix import EVERYTHING, FLEET, MATRIX, RULES, SCRAPED, SERVE
from tests.deploy.objects import container, job, kinds, of_kind, pods, variables
from tests.deploy.programs import CHART, helm, refused, rendered

ROUND = pytest.mark.parametrize("case", MATRIX.values(), ids=MATRIX)


def configuration(documents: list[JsonObject]) -> JsonObject:
    """The content of assay.yaml."""
    return as_object(yaml.safe_load(as_text(dig(of_kind(documents, "ConfigMap"), "data", "assay.yaml"))))


@ROUND
def test_helm_finds_no_fault(case: JsonObject) -> None:
    """`helm lint` accepts the chart with these values, and warns of nothing."""
    ran = helm("lint", str(CHART), "--strict", values=case)
    assert 0 == ran.returncode, ran.stdout
    assert not re.search(r"\[(WARNING|ERROR)\]", ran.stdout)


@ROUND
def test_every_object_is_in_the_namespace_of_the_release(case: JsonObject) -> None:
    """Except those of the cluster, and roles for which the values name a namespace."""
    places = {
        (as_text(document["kind"]), dig(document, "metadata", "namespace"))
        for document in rendered(case)
        if document["kind"] not in ("ClusterRole", "ClusterRoleBinding")
    }
    assert {"assay"} == {place for kind, place in places if kind not in ("Role", "RoleBinding")}
    assert {"assay", "settings"} >= {place for _, place in places}


@ROUND
def test_no_pod_gets_variables_of_services(case: JsonObject) -> None:
    """A Service named assay would otherwise set variables that begin with ASSAY_."""
    assert {False} == {dig(pod, "spec", "enableServiceLinks") for pod in pods(rendered(case))}


@ROUND
def test_the_configuration_has_known_keys_alone(case: JsonObject) -> None:
    """Every key of assay.yaml is one of its schema."""
    assert set(configuration(rendered(case))) <= set(as_object(make_schema(list_settings())["properties"]))


@pytest.mark.parametrize(
    ("case", "expected"),
    [
        (
            {},
            [
                "ClusterRole",
                "ClusterRoleBinding",
                "ConfigMap",
                "CronJob",
                "PersistentVolumeClaim",
                "Pod",
                "ServiceAccount",
            ],
        ),
        (MATRIX["postgresql"], ["ClusterRole", "ClusterRoleBinding", "ConfigMap", "CronJob", "Pod", "ServiceAccount"]),
        (MATRIX["no identity"], ["ConfigMap", "CronJob", "PersistentVolumeClaim", "Pod"]),
        (
            EVERYTHING,
            [
                "ClusterRole",
                "ClusterRoleBinding",
                "ConfigMap",
                "CronJob",
                "Deployment",
                "HTTPRoute",
                "Ingress",
                "NetworkPolicy",
                "NetworkPolicy",
                "Pod",
                "PodDisruptionBudget",
                "PrometheusRule",
                "Role",
                "Role",
                "RoleBinding",
                "RoleBinding",
                "Service",
                "ServiceAccount",
                "ServiceAccount",
                "ServiceMonitor",
            ],
        ),
        (FLEET, ["ConfigMap", "CronJob", "Pod", "Pod", "ServiceAccount"]),
    ],
    ids=["defaults", "postgresql", "no identity", "everything", "fleet"],
)
def test_values_choose_the_objects(case: JsonObject, expected: list[str]) -> None:
    """Only what the values ask for is created."""
    assert expected == kinds(rendered(case))


@pytest.mark.parametrize(
    ("case", "message"),
    [
        ({"shedule": "@daily"}, "additional properties 'shedule' not allowed"),
        ({"image": {"digest": "latest"}}, "/image/digest"),
        ({"exitZeroOn": "failed"}, "/exitZeroOn"),
        ({"persistence": {"accessModes": ["ReadWriteMany"]}}, "/persistence/accessModes/0"),
        ({"rbac": {"extraRules": [{**RULES, "verbs": ["delete"]}]}}, "/rbac/extraRules/0/verbs/0"),
        ({"startingDeadlineSeconds": 5}, "/startingDeadlineSeconds"),
        ({"kindTimeout": "soon"}, "/kindTimeout"),
        ({"kindTimeout": "1h45m1s"}, "activeDeadlineSeconds (7200) must be at least kindTimeout and 15 minutes (7201)"),
        ({"config": {"kindTimeout": "2h"}}, "activeDeadlineSeconds (7200) must be at least"),
        ({"serve": {"enabled": True}}, "serve.enabled needs a PostgreSQL database"),
        ({**SERVE, "config": {}}, "serve.enabled needs a way to authenticate readers"),
        ({**SERVE, "serve": {"enabled": True, "replicas": 2}}, "needs serve.sessionKey.existingSecret"),
        ({"serviceMonitor": {"enabled": True}}, "serviceMonitor.enabled needs serve.enabled"),
        (
            {**SERVE, "serviceMonitor": {"enabled": True}},
            "serviceMonitor.enabled needs serve.metrics.enabled, or a token",
        ),
        ({**SCRAPED, "config": SERVE["config"]}, "serviceMonitor.token.existingSecret needs config.tokens"),
        ({"serviceMonitor": {"interval": "often"}}, "/serviceMonitor/interval"),
        ({"prometheusRule": {"rules": []}}, "additional properties 'rules' not allowed"),
    ],
    ids=str,
)
def test_wrong_values_are_refused(case: JsonObject, message: str) -> None:
    """Helm renders nothing, and names the value."""
    assert message in refused(case)


@pytest.mark.parametrize("timeout", ["0", "6300", "105m", "1h45m", "1h44m60s"])
def test_a_deadline_that_agrees_with_the_time_limit_is_accepted(timeout: str) -> None:
    """The deadline of 7,200 seconds is at least the time limit of a kind and 15 minutes."""
    assert timeout == configuration(rendered({"kindTimeout": timeout}))["kindTimeout"]


@pytest.mark.parametrize(
    ("case", "arguments"),
    [
        ({}, ("scan", "--termination-log=/dev/termination-log", "--exit-zero-on=incomplete")),
        ({"exitZeroOn": ""}, ("scan", "--termination-log=/dev/termination-log")),
        (
            {"extraArgs": ["--fail-on", "new"]},
            ("scan", "--termination-log=/dev/termination-log", "--exit-zero-on=incomplete", "--fail-on", "new"),
        ),
    ],
    ids=str,
)
def test_the_values_are_the_arguments_of_the_scan(case: JsonObject, arguments: tuple[str, ...]) -> None:
    """An incomplete scan does not fail its Job, unless the values ask for that."""
    assert arguments == texts(container(job(rendered(case))["template"])["args"])


def test_exit_codes_decide_about_a_retry() -> None:
    """1, 2 and 3 fail the Job; 4, a signal and a drained node are followed by a retry."""
    rules = as_list(dig(job(rendered()), "podFailurePolicy", "rules"))
    assert [
        ("Ignore", "DisruptionTarget", None, None),
        ("FailJob", None, "assay", [1, 2, 3]),
        ("FailJob", None, "upgrade", [2]),
        ("FailJob", None, "prune", [2]),
    ] == [
        (
            dig(rule, "action"),
            dig(next(iter(as_list(dig(rule, "onPodConditions"))), None), "type"),
            dig(rule, "onExitCodes", "containerName"),
            dig(rule, "onExitCodes", "values"),
        )
        for rule in rules
    ]


def test_the_database_is_upgraded_before_the_scan_and_the_pages() -> None:
    """The init container has the database of the scan, also where the pages have a role that may only read."""
    documents = rendered(EVERYTHING)
    for pod in pods(documents)[:2]:
        upgrade = container(pod, "upgrade", "initContainers")
        assert ("db", "upgrade") == texts(upgrade["args"])
        assert "assay-db" == dig(variables(upgrade)["ASSAY_DB"], "valueFrom", "secretKeyRef", "name")
    pages = dig(of_kind(documents, "Deployment"), "spec", "template")
    serve = container(pages, "serve")
    volumes = {as_text(dig(volume, "name")): volume for volume in as_list(dig(pages, "spec", "volumes"))}
    assert "assay-db-reader" == dig(volumes["database"], "secret", "secretName")
    assert "--db-file=/etc/assay-database/url" in texts(serve["args"])
    assert "ASSAY_DB" not in variables(serve)


@pytest.mark.parametrize(
    ("case", "expected"),
    [
        ({}, [["db", "upgrade"], ["db", "prune", "--keep-days=400", "--keep-monthly=36"]]),
        (
            {"retention": {"keepDays": 30, "keepMonthly": 0}},
            [["db", "upgrade"], ["db", "prune", "--keep-days=30", "--keep-monthly=0"]],
        ),
        ({"retention": {"keepDays": 0}}, [["db", "upgrade"]]),
        ({"upgrade": {"enabled": False}}, []),
    ],
    ids=str,
)
def test_old_scans_are_pruned_after_the_upgrade(case: JsonObject, expected: list[list[str]]) -> None:
    """A prune needs a database of this version, so there is none without an upgrade."""
    pod = job(rendered(case))["template"]
    assert expected == [dig(each, "args") for each in as_list(dig(pod, "spec", "initContainers"))]


def test_pages_have_no_rights_and_no_token() -> None:
    """The identity of `assay serve` is bound to no role, and its pods get no token."""
    documents = rendered(SERVE)
    pod = dig(of_kind(documents, "Deployment"), "spec", "template", "spec")
    subjects = {
        as_text(dig(subject, "name")) for document in documents for subject in as_list(document.get("subjects"))
    }
    assert ("assay-serve", False) == (dig(pod, "serviceAccountName"), dig(pod, "automountServiceAccountToken"))
    assert {"assay"} == subjects


def test_selectors_tell_scans_and_pages_apart() -> None:
    """The Service, the PodDisruptionBudget and the NetworkPolicies select the pods of their component alone."""
    documents = rendered(EVERYTHING)
    scan, serve = (as_object(dig(pod, "metadata", "labels")) for pod in pods(documents)[:2][::-1])
    selectors = {
        f"{document['kind']} {dig(document, 'metadata', 'name')}": as_object(
            dig(document, "spec", "selector", "matchLabels")
            or dig(document, "spec", "podSelector", "matchLabels")
            or dig(document, "spec", "selector")
        )
        for document in documents
        if document["kind"] in ("Service", "PodDisruptionBudget", "NetworkPolicy", "Deployment")
    }
    expected = {
        "Service audit-serve": (False, True),
        "PodDisruptionBudget audit-serve": (False, True),
        "NetworkPolicy audit-serve": (False, True),
        "Deployment audit-serve": (False, True),
        "NetworkPolicy audit": (True, False),
    }
    assert expected == {
        name: (selector.items() <= scan.items(), selector.items() <= serve.items())
        for name, selector in selectors.items()
    }


@pytest.mark.parametrize(
    ("case", "expected"),
    [
        (
            {},
            {
                "databaseTimeout": "10m",
                "kindTimeout": "30m",
                "schedule": {"cron": "17 2 * * *", "timeZone": "Etc/UTC"},
                "skipKind": ["secrets"],
            },
        ),
        (
            {
                "config": {"skipKind": None, "schedule": {"tolerance": "30m"}},
                "clusterName": "prod",
                "schedule": "@daily",
            },
            {
                "databaseTimeout": "10m",
                "kindTimeout": "30m",
                "schedule": {"cron": "@daily", "timeZone": "Etc/UTC", "tolerance": "30m"},
                "clusterName": "prod",
            },
        ),
        (
            {"waivers": {"enabled": True}},
            {
                "databaseTimeout": "10m",
                "kindTimeout": "30m",
                "schedule": {"cron": "17 2 * * *", "timeZone": "Etc/UTC"},
                "skipKind": ["secrets"],
                "waiversNamespace": "assay",
            },
        ),
    ],
    ids=["defaults", "other keys", "waivers"],
)
def test_the_configuration_has_the_values(case: JsonObject, expected: JsonObject) -> None:
    """The schedule is known to `assay runs`; a key of `config` has priority, and null takes it away."""
    assert expected == configuration(rendered(case))


@pytest.mark.parametrize(
    ("release", "case", "name"),
    [
        ("assay", {}, "assay"),
        ("prod-assay", {}, "prod-assay"),
        ("audit", {}, "audit-assay"),
        ("audit", {"nameOverride": "scan"}, "audit-scan"),
        ("audit", {"fullnameOverride": "nightly"}, "nightly"),
        ("r" * 53, {}, "r" * 46),
    ],
)
def test_objects_are_named_by_the_release(release: str, case: JsonObject, name: str) -> None:
    """Names are short enough for what the controllers add to those of CronJobs."""
    assert {name} == {
        dig(document, "metadata", "name")
        for document in rendered(case, release=release)
        if document["kind"] in ("CronJob", "ConfigMap", "ClusterRole", "ServiceAccount", "PersistentVolumeClaim")
    }


@pytest.mark.parametrize(
    ("image", "expected"),
    [
        ({}, f"kube-assay:{__version__}"),
        ({"tag": "main"}, "kube-assay:main"),
        (
            {"repository": "r.example.com/assay", "digest": f"sha256:{'a' * 64}"},
            f"r.example.com/assay@sha256:{'a' * 64}",
        ),
    ],
    ids=["default", "tag", "digest"],
)
def test_every_container_has_the_image(image: JsonObject, expected: str) -> None:
    """A digest replaces the tag, and the default tag is the version of the chart."""
    places = ("containers", "initContainers")
    found = {
        as_text(dig(each, "image"))
        for pod in pods(rendered({**SERVE, "image": image}))
        for place in places
        for each in as_list(dig(pod, "spec", place))
    }
    assert {expected} == found


def test_rules_can_be_replaced_and_extended() -> None:
    """`rbac.rules` replaces the default rules, `rbac.extraRules` adds to them."""
    default = as_list(of_kind(rendered(), "ClusterRole")["rules"])
    assert [RULES] == of_kind(rendered(MATRIX["least privilege"]), "ClusterRole")["rules"]
    assert [*default, RULES] == of_kind(rendered({"rbac": {"extraRules": [RULES]}}), "ClusterRole")["rules"]


def test_waivers_come_from_the_namespace_of_the_release() -> None:
    """The Role grants the list of ConfigMaps there, for a ClusterRole that does not."""
    documents = rendered({**MATRIX["least privilege"], "rbac": {"rules": [RULES]}, "waivers": {"enabled": True}})
    role = of_kind(documents, "Role")
    assert ("assay", [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list"]}]) == (
        dig(role, "metadata", "namespace"),
        role["rules"],
    )


def test_the_readme_is_current() -> None:
    """The table of the chart's README is made from values.yaml: run `make docs`."""
    assert page() == PAGE.read_text()


def test_every_value_is_described() -> None:
    """Every key of values.yaml has a comment."""
    assert [] == [value.key for value in values() if not value.description]


def test_the_schema_has_the_values_and_no_others() -> None:
    """A key that values.yaml lacks is refused, and none of its keys is; `global` is what Helm passes to charts in charts."""
    schema = json.loads((CHART / "values.schema.json").read_text())
    described = {value.key for value in values()}
    keys = {key for key in _keys(schema) if key != "global"}
    assert described == keys


def _keys(schema: Json, path: str = "") -> set[str]:
    """The keys of a schema that have no keys of their own."""
    properties = as_object(dig(schema, "properties"))
    nested = {f"{path}{key}": value for key, value in properties.items()}
    return {
        key
        for name, value in nested.items()
        for key in (_keys(value, f"{name}.") if dig(value, "properties") else {name})
    }


def test_the_chart_has_the_version_of_the_package() -> None:
    """Chart, default image and package are released together."""
    chart = as_object(yaml.safe_load((CHART / "Chart.yaml").read_text()))
    assert (__version__, __version__) == (chart["version"], chart["appVersion"])
