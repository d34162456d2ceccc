"""The Helm chart: what it renders, which values it refuses, and its README."""

from __future__ import annotations

import json
import re
from zoneinfo import ZoneInfo

import pytest
import yaml
from jsonschema import Draft7Validator

from scanner import __version__
from scanner.cli.commands.catalog import list_settings
from scanner.config.schema import make_schema
from scanner.errors import UsageError
from scanner.model.json import Json, JsonObject, as_list, as_object, as_text, dig, texts
from scanner.model.schedule import parse_schedule
from scripts.generate_chart import PAGE, SCHEMA, TIME_ZONES, page, schema, time_zones, values
from tests.deploy.matrix import EVERYTHING, FLEET, MATRIX, RULES, SCRAPED, SERVE
from tests.deploy.objects import container, job, kinds, of_kind, pods, variables
from tests.deploy.programs import CHART, helm, refused, rendered

ACCEPTED = (
    "@hourly",
    "0 0 * * *",
    "*/15 1-5,22 ? JAN-mar Mon",
    "007 23 31 12 6",
    "5/10  0 1,15 * 1-5/2",
    "59 0 * dec sun",
)
DENIED = (
    "x",
    "* * * *",
    "0 0 0 * * *",
    "60 0 * * *",
    "0 24 * * *",
    "0 0 0 * *",
    "0 0 32 * *",
    "0 0 * 13 *",
    "0 0 * * 7",
    "0 0 * * mond",
    "30-10 0 * * *",
    "0 0 * mar-jan *",
    "*/0 * * * *",
    "*/5/5 * * * *",
    "1-2-3 * * * *",
    "@every 1h",
    "@Daily",
    "TZ=Etc/UTC 0 0 * * *",
    "-5 * * * *",
)
"""Schedules of a CronJob, and texts that are none."""
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
        (FLEET, ["ConfigMap", "CronJob", "Pod", "ServiceAccount"]),
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
    """1, 2, 3 and 5 fail the Job; 4, a signal and a drained node are followed by a retry."""
    rules = as_list(dig(job(rendered()), "podFailurePolicy", "rules"))
    assert [
        ("Ignore", "DisruptionTarget", None, None),
        ("FailJob", None, "assay", [1, 2, 3, 5]),
        ("FailJob", None, "upgrade", [2, 5]),
        ("FailJob", None, "prune", [2, 5]),
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
        if document["kind"] in ("CronJob", "ConfigMap", "ServiceAccount", "PersistentVolumeClaim")
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


def test_the_schema_of_the_configuration_is_that_of_its_file() -> None:
    """It is made from the flags, as docs/config.schema.json is: run `make docs`."""
    assert schema() == SCHEMA.read_text()


def test_the_time_zones_are_current() -> None:
    """They are those of the package with which scans read them: run `make docs`."""
    assert time_zones() == TIME_ZONES.read_text()


@pytest.mark.parametrize("name", sorted(as_object(make_schema(list_settings())["properties"])))
def test_null_takes_a_key_of_the_configuration_away(name: str) -> None:
    """The schema accepts null for every key, as helm leaves it in the values of an upgrade."""
    validator = Draft7Validator(json.loads(SCHEMA.read_text()))
    assert [] == [error.message for error in validator.iter_errors({"config": {name: None}})]


@pytest.mark.parametrize("schedule", ACCEPTED)
def test_a_schedule_of_cron_is_accepted(schedule: str) -> None:
    """Those that scans can read, too."""
    parse_schedule(schedule, ZoneInfo("Etc/UTC"))
    assert schedule == dig(of_kind(rendered({"schedule": schedule}), "CronJob"), "spec", "schedule")


@pytest.mark.parametrize("schedule", DENIED)
@pytest.mark.parametrize("place", ["schedule", "config"])
def test_a_schedule_that_scans_cannot_read_is_refused(schedule: str, place: str) -> None:
    """By the same rules as in assay.yaml, with the place and an example."""
    with pytest.raises(UsageError):
        parse_schedule(schedule, ZoneInfo("Etc/UTC"))
    values: dict[str, JsonObject] = {
        "schedule": {"schedule": schedule},
        "config": {"config": {"schedule": {"cron": schedule}}},
    }
    assert "is no schedule: write five fields" in refused(values[place])


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"config": {"skipKnd": ["secrets"]}}, "skipKnd"),
        ({"config": {"failOn": "new"}}, "/config/failOn"),
        ({"config": {"schedule": "@daily"}}, "/config/schedule"),
        ({"config": {"workers": "two"}}, "/config/workers"),
        ({"config": {"owners": [{"label": "a", "annotation": "b"}]}}, "/config/owners"),
        ({"timeZone": "Europe/Berln"}, 'schedule: the time zone "Europe/Berln" is not known'),
        ({"timeZone": "Local"}, 'the time zone "Local" is not known'),
        ({"config": {"schedule": {"timeZone": "CEST"}}}, 'config.schedule: the time zone "CEST" is not known'),
    ],
    ids=str,
)
def test_a_wrong_configuration_is_refused(values: JsonObject, message: str) -> None:
    """The chart checks `config` as the program checks its file, before anything is installed."""
    assert message in refused(values)


def test_names_outside_the_namespace_carry_it() -> None:
    """Releases of one name in two namespaces have roles of their own, also in a third namespace."""
    kinds = ("ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")
    values: JsonObject = {
        "rbac": {"roles": [{"namespace": "settings", "rules": [RULES]}]},
        "waivers": {"enabled": True},
    }
    roles = [
        {
            (document["kind"], as_text(dig(document, "metadata", "name")))
            for document in documents
            if document["kind"] in kinds
        }
        for documents in (rendered(values, namespace="a"), rendered(values, namespace="b"))
    ]
    assert {"a:assay", "a:assay-waivers"} == {name for _, name in roles[0]}
    assert set() == roles[0] & roles[1]


@ROUND
def test_the_end_of_every_container_has_a_message(case: JsonObject) -> None:
    """The end of the log, if the program could not write its own message."""
    containers = [
        each
        for pod in pods(rendered(case))
        for place in ("initContainers", "containers")
        for each in as_list(dig(pod, "spec", place))
    ]
    assert {"FallbackToLogsOnError"} == {dig(each, "terminationMessagePolicy") for each in containers}


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
    assert described == {key for key in keys if not key.startswith("config.")} | {"config"}


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
