"""Recorded responses of a real API server: the client reads them, and the shipped table of kinds agrees with them."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path
from typing import Any

import orjson
import pytest

from scanner.cluster.definitions import builtin_kinds, read_definition
from scanner.cluster.live.cluster import LiveCluster
from scanner.cluster.live.discovery import read_aggregated_kinds, read_legacy_kinds
from scanner.errors import ListFailed
from scanner.model.json import JsonObject
from scanner.model.resource import Kind
from tests.cluster.server import FakeApi, Reply

FOLDER = Path(os.environ.get("ASSAY_RECORDINGS", Path(__file__).parents[2] / "../shared/recordings"))
SECRETS = Kind("", "v1", "Secret", "secrets", namespaced=True)
CONFIG_MAPS = Kind("", "v1", "ConfigMap", "configmaps", namespaced=True)

pytestmark = pytest.mark.skipif(
    not (FOLDER / "lists.json.gz").is_file(),
    reason="no recordings of a real server: name their folder with ASSAY_RECORDINGS",
)


def recorded(name: str) -> dict[str, Any]:
    """One file of recordings."""
    loaded: dict[str, Any] = json.loads(gzip.decompress((FOLDER / f"{name}.json.gz").read_bytes()))
    return loaded


def replay(answer: JsonObject) -> Reply:
    """A recorded answer as a reply."""
    return Reply(answer["body"], int(str(answer["status"])))


def test_the_shipped_table_is_what_a_server_serves(api: FakeApi, cluster: LiveCluster) -> None:
    """Kinds and order are those of a real 1.36 server, apart from custom ones."""
    root, groups = recorded("discovery")["aggregated"]
    api.says("/api", replay(root))
    api.says("/apis", replay(groups))
    discovery = cluster.discover()
    assert builtin_kinds() == tuple(kind for kind in discovery.kinds if not kind.group.endswith(".example.com"))
    assert () == discovery.gaps


def test_both_forms_of_discovery_have_the_same_kinds() -> None:
    """The older documents have the same kinds in the same order."""
    recording = recorded("discovery")
    modern = [kind for answer in recording["aggregated"] for kind in read_aggregated_kinds(answer["body"]).kinds]
    for answer in recording["legacy"][2:]:
        name = answer["body"]["groupVersion"]
        assert {kind for kind in modern if kind.api_version == name} == set(
            read_legacy_kinds(name, answer["body"]).kinds
        )


def test_a_paged_list_is_read_to_its_end(api: FakeApi, cluster: LiveCluster) -> None:
    """The list has three pages of one resource version."""
    api.says("/api/v1/configmaps", *(replay(page) for page in recorded("lists")["pages"]))
    pages = list(cluster.pages(CONFIG_MAPS, selector="rec=1"))
    expected = [(1, "10543", 3), (2, "10543", 3), (3, "10543", 1)]
    assert expected == [(page.number, page.resource_version, len(orjson.loads(page.data)["items"])) for page in pages]


@pytest.mark.parametrize(
    ("answer", "state", "why"),
    [
        ("forbidden", "forbidden", "cannot list secrets: forbidden for auditor. Grant `list` on secrets"),
        ("unauthorized", "failed", "cannot list secrets: the server no longer accepts the credentials"),
        ("unknown_version", "failed", "cannot list secrets: the server no longer serves this kind"),
        ("bad_continue", "failed", "cannot list secrets: the server answered 400: invalid continue token: "),
    ],
)
def test_refusals_are_understood(api: FakeApi, cluster: LiveCluster, answer: str, state: str, why: str) -> None:
    """Each refusal is the reason of a gap."""
    api.says("/api/v1/secrets", replay(recorded("lists")[answer]))
    with pytest.raises(ListFailed) as failure:
        list(cluster.pages(SECRETS))
    assert (state, True) == (failure.value.state, failure.value.why.startswith(why))


def test_definitions_serve_the_discovered_kinds() -> None:
    """The kinds of the recorded custom resource definitions are those that the same server served."""
    groups = recorded("discovery")["aggregated"][1]["body"]
    served = {kind for kind in read_aggregated_kinds(groups).kinds if kind.group.endswith(".example.com")}
    definitions = recorded("lists")["crd_list"]["body"]["items"]
    assert served == {kind for item in definitions for kind in read_definition(item).kinds}
