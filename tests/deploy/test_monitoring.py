"""The objects of the Prometheus Operator: the alerts of deploy/prometheus, and how Prometheus finds the metrics."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from scanner.model.json import Json, JsonObject, as_list, as_object, dig, texts
from tests.deploy.matrix import EVERYTHING, SCRAPED, SERVE
from tests.deploy.objects import container, of_kind
from tests.deploy.programs import CHART, DEPLOY, NAMESPACE, documents, helm, refused, rendered
from tests.prometheus.programs import program

ALERTS: JsonObject = {"prometheusRule": {"enabled": True}}
ON_A_PORT: JsonObject = {
    **SERVE,
    "serve": {"enabled": True, "metrics": {"enabled": True}},
    "serviceMonitor": {"enabled": True},
}
BOTH: JsonObject = {**SCRAPED, "serve": ON_A_PORT["serve"]}


def endpoint(documents: list[JsonObject]) -> JsonObject:
    """The one endpoint of the ServiceMonitor."""
    [each] = as_list(dig(of_kind(documents, "ServiceMonitor"), "spec", "endpoints"))
    return as_object(each)


def test_the_chart_has_the_alerts_of_deploy() -> None:
    """Its PrometheusRule has the same specification as the one in deploy/prometheus."""
    file = yaml.safe_load((DEPLOY / "prometheus" / "rules.yaml").read_text())
    assert file["spec"] == of_kind(rendered(ALERTS), "PrometheusRule")["spec"]


def test_promtool_accepts_the_alerts_of_the_chart(tmp_path: Path) -> None:
    """As Helm has rendered them: a template of a message is not one of Helm."""
    path = tmp_path / "alerts.yaml"
    path.write_text(yaml.safe_dump(of_kind(rendered(ALERTS), "PrometheusRule")["spec"]))
    ran = subprocess.run(
        [program("promtool"), "check", "rules", "--lint-fatal", str(path)],
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert 0 == ran.returncode, ran.stderr
    assert "{{ $labels.cluster }}" in path.read_text()


@pytest.mark.parametrize(
    "values", [{}, {"runbookUrl": "https://docs.example.com/alerts.html"}], ids=["path", "address"]
)
def test_each_alert_of_the_chart_has_the_address_of_its_section(values: JsonObject) -> None:
    """The path in the repository, or the address of the values."""
    rule = of_kind(rendered({"prometheusRule": {"enabled": True, **values}}), "PrometheusRule")
    page = values.get("runbookUrl", "docs/alerts.md")
    rules = as_list(dig(as_list(dig(rule, "spec", "groups"))[0], "rules"))
    assert rules
    assert [f"{page}#{str(dig(each, 'alert')).lower()}" for each in rules] == [
        dig(each, "annotations", "runbook_url") for each in rules
    ]


@pytest.fixture
def notes(tmp_path: Path) -> Callable[[JsonObject], str]:
    """The notes that helm prints after an installation: a copy of the chart has them as the text of an object."""
    chart = tmp_path / "chart"
    shutil.copytree(CHART, chart)
    (chart / "templates" / "NOTES.txt").rename(chart / "NOTES.txt")
    (chart / "templates" / "notes.yaml").write_text('kind: Notes\ntext: {{ tpl (.Files.Get "NOTES.txt") . | quote }}\n')

    def render(values: JsonObject) -> str:
        ran = helm("template", "assay", str(chart), "--namespace", NAMESPACE, values=values)
        assert ran.returncode == 0, ran.stderr
        return " ".join(str(of_kind(documents(ran.stdout), "Notes")["text"]).split())

    return render


Notes = Callable[[JsonObject], str]


def test_an_installation_without_metrics_is_told_how_to_get_them(notes: Notes) -> None:
    """The default one has a SQLite file, which no server can read."""
    assert "No metrics, so no alert" in notes({})
    assert "config.pushMetrics" in notes({})
    assert "or use PostgreSQL (database.existingSecret) with serve.enabled" in notes({})


@pytest.mark.parametrize(
    "values", [ON_A_PORT, {"config": {"pushMetrics": "https://push.example.com"}}], ids=["server", "push"]
)
def test_an_installation_with_metrics_is_told_nothing_of_them(notes: Notes, values: JsonObject) -> None:
    """A server has them, and so has a Pushgateway."""
    assert "No metrics" not in notes(values)


def test_the_limit_of_the_database_is_one_of_the_values(notes: Notes) -> None:
    """PostgreSQL does not show its volume, so without a limit the notes name the value."""
    with_limit: JsonObject = {"database": {"existingSecret": "assay-db", "limit": "50Gi"}}
    config = yaml.safe_load(str(dig(of_kind(rendered(with_limit), "ConfigMap"), "data", "assay.yaml")))
    assert "50Gi" == config["databaseLimit"]
    assert "No limit of the database" not in notes(with_limit)
    assert "set database.limit" in notes({"database": {"existingSecret": "assay-db"}})


@pytest.mark.parametrize("limit", ["50 GB", "0Gi"])
def test_a_limit_that_the_configuration_would_refuse_is_refused(limit: str) -> None:
    """At the installation."""
    assert "/database/limit" in refused({"database": {"existingSecret": "assay-db", "limit": limit}}).replace(".", "/")


@pytest.mark.parametrize(
    ("value", "kind"), [("prometheusRule", "PrometheusRule"), ("serviceMonitor", "ServiceMonitor")]
)
def test_prometheus_selects_by_labels_and_namespace(value: str, kind: str) -> None:
    """The values add labels, and choose another namespace than that of the release."""
    placed: JsonObject = {"enabled": True, "namespace": "monitoring", "labels": {"release": "prometheus"}}
    documents = rendered({**ON_A_PORT, value: placed})
    metadata = as_object(of_kind(documents, kind)["metadata"])
    assert ("monitoring", "prometheus", "assay") == (
        metadata["namespace"],
        dig(metadata, "labels", "release"),
        dig(metadata, "labels", "app.kubernetes.io/instance"),
    )


@pytest.mark.parametrize("values", [ON_A_PORT, SCRAPED, EVERYTHING], ids=["port", "token", "everything"])
def test_a_service_monitor_selects_the_service_of_the_pages(values: JsonObject) -> None:
    """Its port is one of the Service, and it looks into the namespace of the release."""
    documents = rendered(values)
    monitor, service = of_kind(documents, "ServiceMonitor"), of_kind(documents, "Service")
    selected = as_object(dig(monitor, "spec", "selector", "matchLabels"))
    assert selected.items() <= as_object(dig(service, "metadata", "labels")).items()
    assert [NAMESPACE] == dig(monitor, "spec", "namespaceSelector", "matchNames")
    assert endpoint(documents)["port"] in {dig(port, "name") for port in as_list(dig(service, "spec", "ports"))}


@pytest.mark.parametrize(
    ("values", "port", "credentials"),
    [
        (ON_A_PORT, "metrics", None),
        (SCRAPED, "http", {"name": "assay-token", "key": "token"}),
        (BOTH, "http", {"name": "assay-token", "key": "token"}),
    ],
    ids=["port", "token", "both"],
)
def test_metrics_are_read_at_a_port_of_their_own_or_with_a_token(
    values: JsonObject, port: str, credentials: Json
) -> None:
    """A Secret with a token has priority; its ServiceMonitor does not need the port without authentication."""
    scraped = endpoint(rendered(values))
    assert (port, "/metrics", credentials) == (
        scraped["port"],
        scraped["path"],
        dig(scraped, "authorization", "credentials"),
    )


def test_the_cluster_of_a_metric_is_the_scanned_one() -> None:
    """Also where Prometheus gives targets a label of this name."""
    assert endpoint(rendered(ON_A_PORT))["honorLabels"] is True


def test_times_of_scrapes_are_those_of_prometheus_unless_values_have_them() -> None:
    """The fields are missing without a value."""
    assert {"interval", "scrapeTimeout"}.isdisjoint(endpoint(rendered(ON_A_PORT)))
    scraped = endpoint(rendered(EVERYTHING))
    assert ("1m", "30s") == (scraped["interval"], scraped["scrapeTimeout"])


def test_the_port_of_the_metrics_is_the_one_of_the_values() -> None:
    """On the pod, on the Service and in the flag."""
    values: JsonObject = {**ON_A_PORT, "serve": {"enabled": True, "metrics": {"enabled": True, "port": 9191}}}
    documents = rendered(values)
    pod = dig(of_kind(documents, "Deployment"), "spec", "template")
    ports = {
        dig(each, "name"): dig(each, "port") for each in as_list(dig(of_kind(documents, "Service"), "spec", "ports"))
    }
    assert "--metrics-listen=0.0.0.0:9191" in texts(container(pod, "serve")["args"])
    assert 9191 == ports["metrics"]
