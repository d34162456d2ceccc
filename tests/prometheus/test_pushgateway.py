"""A real Pushgateway keeps what `--push-metrics` sends, and shows it to Prometheus."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import urllib3
from prometheus_client.parser import text_string_to_metric_families

from scanner.notify.pushgateway import gateway_of, push
from scanner.report.formats.metric_families import printable
from tests.cli.conftest import Assay, assay, home, write
from tests.cli.manifests import bound, config_map
from tests.notify.gateway import gauge
from tests.prometheus.programs import check, pushgateway

__all__ = ["assay", "home", "write"]
Write = Callable[[str, str], Path]
Shown = dict[tuple[str, tuple[tuple[str, str], ...]], float]
COMPLETE = "assay_last_complete_scan_timestamp_seconds"


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a Pushgateway."""
    with pushgateway(tmp_path_factory.mktemp("pushgateway")) as running:
        yield running


def shown(url: str, cluster: str) -> Shown:
    """What Prometheus would scrape about a cluster, without what the Pushgateway adds."""
    text = urllib3.request("GET", f"{url}/metrics").data.decode()
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.labels.get("cluster") == cluster and sample.name.startswith("assay_")
    }


def names(url: str, cluster: str) -> set[str]:
    """The names of the metrics of a cluster."""
    return {name for name, _ in shown(url, cluster)}


@pytest.mark.parametrize("cluster", ["prod", "a/b", "..", "", 'a"b\\c\nd', "\u202e\x1b[31m", "Größe?#%"])
def test_every_name_of_a_cluster_arrives(url: str, cluster: str) -> None:
    """As Prometheus shows it in a label."""
    trouble = push(gateway_of(url), printable(cluster), gauge("assay_clusters"), replace=True)

    assert "" == trouble
    assert {"assay_clusters"} == names(url, printable(cluster))


def test_metrics_that_it_rejects_are_named(url: str) -> None:
    """Nothing arrives."""
    twice = gauge("assay_gaps", 1, 2)

    assert "it rejects the metrics (status 400)" == push(gateway_of(url), "wrong", twice, replace=True)
    assert {} == shown(url, "wrong")


def test_a_scan_replaces_what_an_earlier_one_sent(url: str, assay: Assay, write: Write) -> None:
    """A gap that is closed, and a policy that is gone, do not stay."""
    write("shop/all.yaml", f"{config_map('one')}---\n{bound('strict', expression='false')}")
    scan = ("scan", "--from", "shop", "--db", "assay.db", "-q", "--cluster-name", "replaced", "--push-metrics", url)
    assay(*scan)
    before = names(url, "replaced")
    write("shop/all.yaml", f"{config_map('one')}---\n{bound('strict', expression='true')}")
    assay(*scan)

    assert {"assay_problems", COMPLETE, "assay_last_run_exit_code"} <= before
    of_problems = {"assay_problems_refused", "assay_problems_pods_refused", "assay_problems_new"}
    assert {"assay_problems"} == before - names(url, "replaced") - of_problems


def test_a_run_that_fails_leaves_the_time_of_the_last_complete_scan(url: str, assay: Assay, write: Write) -> None:
    """And all other metrics of the cluster."""
    write("shop/all.yaml", f"{config_map('one')}---\n{bound('strict', expression='false')}")
    options = ("--db", "assay.db", "-q", "--cluster-name", "kept", "--push-metrics", url)
    assay("scan", "--from", "shop", *options)
    before = shown(url, "kept")
    failed = assay("scan", "--from", "missing", *options)
    after = shown(url, "kept")

    assert 2 == failed.code
    changed = {name for name, labels in before if before[name, labels] != after[name, labels]}
    assert before.keys() == after.keys()
    assert {"assay_last_run_exit_code", "assay_last_run_end_timestamp_seconds"} == changed


def test_an_incomplete_scan_of_a_new_database_leaves_it_too(url: str, assay: Assay, write: Write) -> None:
    """As in a job whose database is lost with it."""
    write("shop/all.yaml", f"{config_map('one')}---\n{bound('strict')}")
    options = ("--from", "shop", "-q", "--cluster-name", "new", "--push-metrics", url)
    assay("scan", "--db", "first.db", *options)
    before = shown(url, "new")
    write("shop/broken.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: [\n")
    incomplete = assay("scan", "--db", "second.db", *options)
    after = shown(url, "new")

    place = next(key for key in before if key[0] == COMPLETE)
    complete = next(key for key in before if key[0] == "assay_scan_complete")
    assert 3 == incomplete.code
    assert (before[place], 0) == (after[place], after[complete])


def test_what_it_shows_is_accepted_by_promtool(url: str, assay: Assay, write: Write) -> None:
    """The metrics of the pushes, beside its own."""
    write("shop/all.yaml", f"{config_map('one')}---\n{bound('strict', expression='false')}")
    assay("scan", "--from", "shop", "--db", "assay.db", "-q", "--cluster-name", "checked", "--push-metrics", url)
    text = urllib3.request("GET", f"{url}/metrics").data.decode()

    assert [] == [line for line in check(text).splitlines() if line.startswith("assay_")]
