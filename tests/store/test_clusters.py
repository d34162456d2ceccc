"""Which history a scan continues: clusters are identified by a given name, the UID of kube-system, the server or the folder."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from scanner.errors import UsageError
from scanner.model.scans.scan import ClusterIdentity
from scanner.store import SqlStore
from tests.store.made import Round, finding, statuses

PROD = ClusterIdentity("prod", "uid-1", "v1.36.0", server="server-1")
OTHER = ClusterIdentity("prod", "uid-2", "v1.36.0", server="server-2")
FILES = ClusterIdentity("manifests", "", "v1.36.0", "files", folder="/srv/a/manifests")
A = finding("a")


def named(cluster: ClusterIdentity, name: str) -> ClusterIdentity:
    """The cluster under a given name."""
    return replace(cluster, name=name, given_name=name)


def record(store: SqlStore, number: int, cluster: ClusterIdentity, *names: str) -> dict[str, str]:
    """Scan a cluster, find something on objects with these names, and return the resolved findings."""
    Round(tuple(finding(name) for name in names), cluster=cluster).record(store, number)
    return statuses(store.read_scan(f"scan-{number}").resolved_findings())


@pytest.mark.parametrize(
    ("first", "other"),
    [
        pytest.param(PROD, OTHER, id="two UIDs"),
        pytest.param(
            ClusterIdentity("in-cluster", server="server-1"),
            ClusterIdentity("in-cluster", server="server-2"),
            id="two pods that may not read kube-system",
        ),
        pytest.param(FILES, replace(FILES, folder="/srv/b/manifests"), id="two folders"),
        pytest.param(FILES, ClusterIdentity("manifests", folder="stdin"), id="a folder and standard input"),
    ],
)
def test_clusters_that_are_shown_alike_have_two_histories(
    store: SqlStore, first: ClusterIdentity, other: ClusterIdentity
) -> None:
    """A scan of one resolves nothing of the other."""
    record(store, 1, first, "a")

    assert {} == record(store, 2, other)
    assert {"a": "resolved"} == record(store, 3, first)


@pytest.mark.parametrize(
    ("first", "other"),
    [
        pytest.param(PROD, replace(PROD, name="production"), id="renamed in the kubeconfig"),
        pytest.param(PROD, named(PROD, "prod"), id="shown as prod, then named prod"),
        pytest.param(named(PROD, "prod"), PROD, id="named prod, then shown as prod"),
        pytest.param(FILES, named(FILES, "manifests"), id="a folder that is given its name"),
        pytest.param(named(FILES, "shop"), named(replace(FILES, folder="/tmp/x"), "shop"), id="files that moved"),
        pytest.param(named(FILES, "shop"), named(replace(FILES, folder="stdin"), "shop"), id="files from stdin"),
        pytest.param(
            named(replace(PROD, uid=""), "shop"), named(PROD, "shop"), id="kube-system may be read from now on"
        ),
        pytest.param(named(PROD, "shop"), named(replace(PROD, uid=""), "shop"), id="kube-system may no longer be read"),
    ],
)
def test_one_cluster_has_one_history(store: SqlStore, first: ClusterIdentity, other: ClusterIdentity) -> None:
    """The second scan resolves the findings of the first."""
    record(store, 1, first, "a")

    assert {"a": "resolved"} == record(store, 2, other)


@pytest.mark.parametrize(
    ("first", "other", "sentence"),
    [
        pytest.param(
            named(PROD, "shop"),
            named(OTHER, "shop"),
            "--cluster-name shop is the name of another cluster in this database: it was scanned with the kube-system UID "
            "uid-1, and this one has the kube-system UID uid-2. Give this cluster another name; if it is the same cluster, "
            "restored or built anew, add --restored-cluster",
            id="another UID",
        ),
        pytest.param(
            named(replace(PROD, uid=""), "shop"),
            named(replace(OTHER, uid=""), "shop"),
            "it was scanned with the API server server-1, and this one has the API server server-2",
            id="another server",
        ),
        pytest.param(
            named(PROD, "shop"),
            named(FILES, "shop"),
            "it was scanned with the kube-system UID uid-1, and this one has the folder /srv/a/manifests",
            id="files",
        ),
        pytest.param(
            PROD,
            named(OTHER, "prod"),
            "--cluster-name prod: this database shows another cluster as prod, without a given name; its history is under "
            "uid:uid-1. Give this cluster another name",
            id="a name under which another cluster is shown",
        ),
        pytest.param(
            named(PROD, "prod"),
            OTHER,
            "the name prod was given to another cluster in this database: it was scanned with --cluster-name prod and the "
            "kube-system UID uid-1. Name this cluster otherwise with --cluster-name",
            id="shown under a name that was given to another cluster",
        ),
    ],
)
def test_a_name_of_two_clusters_is_refused(
    store: SqlStore, first: ClusterIdentity, other: ClusterIdentity, sentence: str
) -> None:
    """The message names both clusters and what to do, and nothing is recorded."""
    record(store, 1, first, "a")

    for attempt in (lambda: store.register(other), lambda: record(store, 2, other)):
        with pytest.raises(UsageError, match=re.escape(sentence)):
            attempt()
    assert ["scan-1"] == [scan.id for scan in store.scans()]


@pytest.mark.parametrize("first", [named(PROD, "prod"), PROD], ids=["named", "shown"])
def test_a_restored_cluster_continues_its_history(store: SqlStore, first: ClusterIdentity) -> None:
    """It has another UID: the user states once that it is the same cluster."""
    record(store, 1, first, "a")

    assert "" == store.register(named(OTHER, "prod"), restored=True)
    assert {"a": "resolved"} == record(store, 2, named(OTHER, "prod"))


def test_a_second_history_of_one_cluster_asks_for_the_name(store: SqlStore) -> None:
    """A cluster that has a history of its own, and one under a name, must be named again."""
    record(store, 1, replace(PROD, name="elsewhere"), "a")
    record(store, 2, named(PROD, "prod"), "a")

    with pytest.raises(UsageError, match="earlier scans of this cluster had --cluster-name prod: add it to continue"):
        store.register(PROD)


@pytest.mark.parametrize(
    ("earlier", "cluster", "note"),
    [
        (PROD, PROD, ""),
        (PROD, ClusterIdentity("test", "uid-3"), ""),
        (
            PROD,
            OTHER,
            "the history of prod begins with this scan, under uid:uid-2; uid:uid-1 is another cluster that is shown as prod",
        ),
        (
            PROD,
            named(PROD, "shop"),
            (
                "the history of shop begins with this scan, under name:shop; earlier scans of this cluster are under "
                "uid:uid-1. To continue these under the new name, end this scan and run: assay db rename-cluster prod shop"
            ),
        ),
    ],
)
def test_the_beginning_of_a_history_is_announced_where_it_may_surprise(
    store: SqlStore, earlier: ClusterIdentity, cluster: ClusterIdentity, note: str
) -> None:
    """Once, with the earlier history that the scan does not continue."""
    record(store, 1, earlier)

    assert (note, "") == (store.register(cluster), store.register(cluster))


@pytest.mark.parametrize("name", ["prod", "uid-1", "uid:uid-1", "server-1"])
def test_a_cluster_is_found_by_its_names(store: SqlStore, name: str) -> None:
    """By shown name, UID, server or identity."""
    record(store, 1, PROD)
    record(store, 2, ClusterIdentity("test", "uid-3"))

    assert "scan-1" == store.find_scan("last", name).id


def test_an_ambiguous_name_lists_the_clusters(store: SqlStore) -> None:
    """Two clusters are shown alike: their identities tell them apart."""
    record(store, 1, PROD)
    record(store, 2, OTHER)

    with pytest.raises(UsageError, match=r"--cluster-name prod is ambiguous: .* Name one of: uid:uid-1, uid:uid-2"):
        store.find_scan("last", "prod")
    assert "scan-1" == store.find_scan("last", "uid:uid-1").id


def test_clusters_without_a_finished_scan_are_not_listed(store: SqlStore) -> None:
    """They have no last scan."""
    record(store, 1, PROD)
    store.register(ClusterIdentity("test", "uid-3"))

    assert ["uid:uid-1"] == [cluster.identity for cluster in store.clusters()]
