"""The synthetic list server sends what its row is about: so many different pods, of the size of real ones."""

from __future__ import annotations

import orjson
import pytest

from benchmarks.list_server import fixed, pods
from scanner.cluster.live.lists import read_envelope
from scanner.model.json import as_text, dig
from scanner.model.resource import Kind

PODS = Kind("", "v1", "Pod", "pods", namespaced=True)


def listed(count: int, limit: int) -> list[tuple[str, str]]:
    """Names and UIDs of a whole list."""
    identities: list[tuple[str, str]] = []
    more = "0"
    while more:
        page = orjson.loads(pods(count, limit, int(more)))
        identities += [(item["metadata"]["name"], item["metadata"]["uid"]) for item in page["items"]]
        more = page["metadata"].get("continue", "")
        assert count - len(identities) == page["metadata"].get("remainingItemCount", 0)
    return identities


@pytest.mark.long
@pytest.mark.parametrize(("count", "limit"), [(1, 500), (500, 500), (1_700, 500), (1_700, 1_200), (900, 90)])
def test_every_pod_comes_once(count: int, limit: int) -> None:
    """Names and UIDs are different on all pages, and the announced number of objects follows."""
    identities = listed(count, limit)
    assert (count, count, count) == (len(identities), len(dict(identities)), len({uid for _, uid in identities}))


def test_a_page_is_one_that_a_scan_accepts() -> None:
    """The envelope finds no fault with it."""
    read = read_envelope(pods(1_000, 500, 500), PODS, "")
    assert read is not None
    assert ((), 500, "") == (read.faults, read.count, read.token)


def test_pods_are_as_large_as_real_ones() -> None:
    """With status, managed fields and a controller."""
    page = pods(1_000, 500, 0)
    item = orjson.loads(page)["items"][7]
    assert 6_000 < len(page) / 500 < 12_000
    assert "kubelet" == dig(item, "metadata", "managedFields")[1]["manager"]  # type: ignore[index,call-overload]
    assert as_text(item["metadata"]["name"]).rpartition("-")[0] in item["metadata"]["ownerReferences"][0]["name"]


def test_policies_are_those_of_the_other_rows() -> None:
    """More than forty."""
    path = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
    assert 40 < len(orjson.loads(fixed()[path])["items"])
