"""The objects of the Prometheus Operator: the alerts of deploy/prometheus, and how Prometheus finds the metrics."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
import yaml

from scanner.model.json import Json, JsonObject, as_list, as_object, dig, texts
from tests.deploy.matrix import EVERYTHING, SCRAPED, SERVE
from tests.deploy.objects import container, of_kind
from tests.deploy.programs import DEPLOY, NAMESPACE, rendered
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
