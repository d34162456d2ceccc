"""A server whose every response can be spoiled: each fault is a gap, no finding is resolved, and the exit code shows it.

The first scan of every test finds six objects that violate a policy. The objects stay unchanged.
"""

from __future__ import annotations

import gzip
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scanner.cluster.live.cluster import LiveCluster
from scanner.errors import ClusterError
from scanner.model.json import as_list, as_text, dig
from scanner.scan.options import Options
from scanner.scan.run import run
from scanner.store import SqlStore, open_store
from tests.cli.conftest import Assay, assay, home  # noqa: F401 - fixtures
from tests.cluster.served import (
    BINDINGS,
    MAPS,
    NAMESPACES,
    POLICIES,
    changed,
    document,
    instead,
    refused,
    serve,
    shop,
    with_fields,
    within_the_shop,
)
from tests.cluster.server import FakeApi, Reply, Spoil, serving
from tests.thorough import examples

pytestmark = pytest.mark.long

OBJECTS, PAGE = 6, 2
MiB = 1 << 20
NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


def first(number: int) -> bool:
    """Return whether this is the first page, retries included."""
    return number <= 3


def second(number: int) -> bool:
    """Return whether this is the second request for a path or a later one."""
    return number >= 2


def metadata(**fields: Any) -> Spoil:
    """Other metadata of the list."""
    return changed(lambda body: body["metadata"].update(fields))


def without(*path: str) -> Spoil:
    """The response without a field."""

    def remove(body: dict[str, Any]) -> None:
        for step in path[:-1]:
            body = body[step]
        del body[path[-1]]

    return changed(remove)


def with_item(number: int, **fields: Any) -> Spoil:
    """The response with a change in one of its items."""
    return changed(lambda body: body["items"][number].update(fields))


def with_metadata(number: int, **fields: Any) -> Spoil:
    """The response with other metadata of one of its items."""
    return changed(lambda body: body["items"][number]["metadata"].update(fields))


def twice(body: dict[str, Any]) -> None:
    """The first item in the place of the last."""
    body["items"][-1] = body["items"][0]


def resources(body: dict[str, Any]) -> list[dict[str, Any]]:
    """The resources of the first version of the first group in a discovery document."""
    listed: list[dict[str, Any]] = body["items"][0]["versions"][0]["resources"]
    return listed


def padded(reply: Reply, _request: object) -> Reply:
    """The same JSON with more blanks than the largest allowed response has bytes."""
    return Reply(reply.data + b" " * (65 * MiB))


def packed(_reply: Reply, _request: object) -> Reply:
    """Few bytes that unpack to more than the largest allowed response has."""
    body = gzip.compress(b'{"kind":"ConfigMapList","apiVersion":"v1"}' + b" " * (65 * MiB), 1)
    return Reply(body, 200, {"Content-Encoding": "gzip"})


ALWAYS: Callable[[int], bool] = lambda _: True  # noqa: E731 - a table of faults below


@dataclass(frozen=True)
class Fault:
    """A way to spoil the responses for a path, and the result of a scan.

    `state` is that of config maps in the coverage, or empty if they are not in it. `where` and `why` are those of a gap.
    """

    id: str
    path: str
    how: Spoil
    state: str
    why: str
    where: str = "v1/ConfigMap"
    when: Callable[[int], bool] = ALWAYS
    flags: tuple[str, ...] = ()
    code: int = 3


LISTS = [
    Fault("another kind", MAPS.path, changed(lambda body: body.update(kind="SecretList")), "failed", "instead of v1 Conf"),
    Fault("no kind", MAPS.path, without("kind"), "failed", "instead of v1 ConfigMapList"),
    Fault("kind of an object", MAPS.path, changed(lambda body: body.update(kind="ConfigMap")), "failed", "instead of"),
    Fault("another version", MAPS.path, changed(lambda body: body.update(apiVersion="v2")), "failed", "is v2 ConfigMapList"),
    Fault("another list later", MAPS.path, changed(lambda body: body.update(kind="PodList")), "partial", "v1 PodList", when=second),
    Fault("no resource version", MAPS.path, without("metadata", "resourceVersion"), "inconsistent", "names no resource v"),
    Fault("empty resource version", MAPS.path, metadata(resourceVersion=""), "inconsistent", "names no resource version"),
    Fault("number as version", MAPS.path, metadata(resourceVersion=7), "failed", "not a list in JSON"),
    Fault("no metadata", MAPS.path, without("metadata"), "failed", "not a list in JSON"),
    Fault("metadata is a list", MAPS.path, changed(lambda body: body.update(metadata=[])), "failed", "not a list in JSON"),
    Fault("no items", MAPS.path, without("items"), "failed", "not a list in JSON"),
    Fault("items is an object", MAPS.path, changed(lambda body: body.update(items={})), "failed", "not a list in JSON"),
    Fault("items is null", MAPS.path, changed(lambda body: body.update(items=None)), "inconsistent", "page 1 has 0 objects", when=first),
    Fault("token is a number", MAPS.path, metadata(**{"continue": 2}), "failed", "not a list in JSON"),
    Fault("no token", MAPS.path, without("metadata", "continue"), "failed", "the server had announced more"),
    Fault("empty token", MAPS.path, metadata(**{"continue": ""}), "failed", "the server had announced more"),
    Fault("count is a text", MAPS.path, metadata(remainingItemCount="4"), "failed", "not a list in JSON"),
    Fault("one item less", MAPS.path, changed(lambda body: body["items"].pop()), "inconsistent", "page 1 has 1 objects", when=first),
    Fault("one item less later", MAPS.path, changed(lambda body: body["items"].pop()), "partial", "announced more",
          when=lambda number: number >= 3),
    Fault("an empty page", MAPS.path, changed(lambda body: body["items"].clear()), "partial", "announced more", when=second),
    Fault("empty and the end", MAPS.path, changed(lambda body: body.update(items=[], metadata={"resourceVersion": "100"})),
          "partial", "the server had announced more", when=second),
    Fault("more than announced", MAPS.path, changed(lambda body: body["items"].append(document(MAPS, "zz"))), "inconsistent",
          "page 3 has 1 objects more", when=lambda number: number >= 3),
    Fault("other announcement", MAPS.path, metadata(remainingItemCount=9), "partial", "had announced",
          when=lambda number: 2 <= number <= 4),
    Fault("another moment", MAPS.path, metadata(resourceVersion="101"), "inconsistent", "shows resource version 101",
          when=second),
    Fault("an object twice", MAPS.path, changed(twice), "inconsistent", "has an object twice"),
    Fault("an object of page 1", MAPS.path, changed(lambda body: body["items"].__setitem__(0, document(MAPS, "map-00"))),
          "inconsistent", "page 2 repeats 1 objects", when=second),
    Fault("a page again", MAPS.path, instead(shop(OBJECTS).page(MAPS, {"limit": "2"}).body), "partial",
          "the server repeats pages", when=second),
    Fault("item of another kind", MAPS.path, with_item(0, kind="Secret", apiVersion="v1"), "partial", "v1 Secret"),
    Fault("item of another group", MAPS.path, with_item(0, apiVersion="x.io/v1"), "partial", "x.io/v1 ConfigMap"),
    Fault("item without name", MAPS.path, with_item(0, metadata={"namespace": "shop"}), "partial", "no name"),
    Fault("item with empty name", MAPS.path, with_metadata(0, name=""), "partial", "no name"),
    Fault("item without metadata", MAPS.path, changed(lambda body: body["items"][0].pop("metadata")), "partial", "no metadata"),
    Fault("item is a text", MAPS.path, changed(lambda body: body["items"].__setitem__(0, "x")), "partial", "no metadata"),
    Fault("item without namespace", MAPS.path, changed(lambda body: body["items"][0]["metadata"].pop("namespace")),
          "inconsistent", "objects without a namespace"),
    Fault("item without UID", MAPS.path, changed(lambda body: body["items"][0]["metadata"].pop("uid")), "inconsistent",
          "with and without a UID"),
    Fault("item of another namespace", within_the_shop(MAPS), with_metadata(0, namespace="bank"), "failed",
          "objects of namespace bank instead of shop", flags=("-n", "shop")),
    Fault("no list", MAPS.path, instead(b"<html>please log in</html>"), "failed", "not a list in JSON"),
    Fault("half a list", MAPS.path, lambda reply, _: Reply(reply.data[: len(reply.data) // 2]), "failed", "not a list in JSON"),
    Fault("nothing", MAPS.path, instead(b""), "failed", "not a list in JSON"),
    Fault("an empty object", MAPS.path, instead({}), "failed", "not a list in JSON"),
    Fault("a Status", MAPS.path, instead({"kind": "Status", "apiVersion": "v1"}), "failed", "not a list in JSON"),
    Fault("a Table", MAPS.path, changed(lambda body: body.update(kind="Table", apiVersion="meta.k8s.io/v1")), "failed", "Table"),
    Fault("forbidden", MAPS.path, refused(403), "forbidden", "Grant `list` on configmaps"),
    Fault("not found", MAPS.path, refused(404), "failed", "no longer serves this kind"),
    Fault("unauthorized", MAPS.path, refused(401), "failed", "no longer accepts the credentials"),
    Fault("gone", MAPS.path, refused(410), "failed", "the list expired"),
    Fault("gone later", MAPS.path, refused(410, **{"continue": "2"}), "inconsistent", "was continued at a later moment",
          when=lambda number: number == 2),
    Fault("broken", MAPS.path, with_fields(cut=True), "failed", "grant it more|broke", flags=("--kind-timeout", "1s")),
    Fault("busy", MAPS.path, instead({}, 429, **{"Retry-After": "7" * 5000}), "failed", "the server answered 429",
          flags=("--kind-timeout", "1s")),
    Fault("busy until a day that is none", MAPS.path, instead({}, 503, **{"Retry-After": "Sun, 99 Foo 99999999999 0:0:0"}),
          "failed", "the server answered 503", flags=("--kind-timeout", "1s")),
    Fault("dripping headers", MAPS.path, with_fields(drip_headers=0.1), "failed", "did not respond in time",
          flags=("--request-timeout", "0.4s")),
    Fault("dripping headers and a kind's time", MAPS.path, with_fields(drip_headers=0.1), "failed", "did not finish it",
          flags=("--kind-timeout", "0.5s")),
    Fault("dripping body", MAPS.path, with_fields(drip=0.1), "failed", "did not respond in time",
          flags=("--request-timeout", "0.4s")),
    Fault("a page of 65 MiB", MAPS.path, padded, "failed", "larger than 64 MiB for the one object after page 0"),
    Fault("a page that unpacks to 65 MiB", MAPS.path, packed, "failed", "larger than 64 MiB for the one object after page 0"),
    Fault("not gzip", MAPS.path, instead(b"no gzip at all", 200, **{"Content-Encoding": "gzip"}), "failed", "broke|grant it more",
          flags=("--kind-timeout", "1s")),
    Fault("half of a gzip", MAPS.path, instead(gzip.compress(b"{}" * 9)[:-9], 200, **{"Content-Encoding": "gzip"}), "failed",
          "not a list in JSON"),
]  # fmt: skip
UNKNOWN = "so the kinds it serves are unknown"
NO_ADMISSION = "serves no admissionregistration.k8s.io"
DISCOVERY = [
    Fault("no groups", "/apis", changed(lambda body: body.update(items=[])), "", UNKNOWN, "/apis"),
    Fault("no groups, so no policies", "/apis", changed(lambda body: body.update(items=[])), "", NO_ADMISSION,
          "admissionregistration.k8s.io"),
    Fault("no groups in the older form", "/apis", instead({"kind": "APIGroupList", "groups": []}), "", UNKNOWN, "/apis"),
    Fault("groups are an object", "/apis", changed(lambda body: body.update(items={})), "", UNKNOWN, "/apis"),
    Fault("junk", "/apis", instead({"hello": "world"}), "", UNKNOWN, "/apis"),
    Fault("a Status", "/apis", instead({"kind": "Status", "apiVersion": "v1"}), "", UNKNOWN, "/apis"),
    Fault("another list", "/apis", changed(lambda body: body.update(kind="PodList")), "", UNKNOWN, "/apis"),
    Fault("other groups only", "/apis", changed(lambda body: body["items"][0]["metadata"].update(name="x.io")), "", NO_ADMISSION,
          "admissionregistration.k8s.io"),
    Fault("no versions", "/apis", changed(lambda body: body["items"][0].update(versions=[])), "", "without any version",
          "admissionregistration.k8s.io"),
    Fault("a version without resources", "/apis", changed(lambda body: resources(body).clear()), "", "names no resource",
          "admissionregistration.k8s.io/v1"),
    Fault("a resource without verbs", "/apis", changed(lambda body: resources(body)[0].pop("verbs")), "", "without their name",
          "admissionregistration.k8s.io/v1"),
    Fault("a resource without kind", "/apis", changed(lambda body: resources(body)[0].pop("responseKind")), "",
          "without their name", "admissionregistration.k8s.io/v1"),
    Fault("a resource without scope", "/apis", changed(lambda body: resources(body)[0].pop("scope")), "", "without their name",
          "admissionregistration.k8s.io/v1"),
    Fault("policies missing", "/apis", changed(lambda body: resources(body).pop(0)), "", "no validatingadmissionpolicies",
          "admissionregistration.k8s.io"),
    Fault("bindings missing", "/apis", changed(lambda body: resources(body).pop(1)), "", "no validatingadmissionpolicybindings",
          "admissionregistration.k8s.io"),
    Fault("no such document", "/apis", refused(404), "", "has no such document", "/apis"),
    Fault("no core group", "/api", changed(lambda body: body.update(items=[])), "", UNKNOWN, "/api"),
    Fault("junk for the core group", "/api", instead({"kind": "Hello"}), "", UNKNOWN, "/api"),
    Fault("nothing in the core group", "/api", changed(lambda body: resources(body).clear()), "", "names no resource", "v1"),
    Fault("not even JSON", "/apis", instead(b"<html>"), "", "no discovery document", code=4),
    Fault("a list", "/apis", instead([]), "", "no discovery document", code=4),
    Fault("forbidden", "/apis", refused(403), "", "system:discovery", code=4),
]  # fmt: skip
OTHERS = [
    Fault("policies of another kind", POLICIES.path, changed(lambda body: body.update(kind="PodList")), "",
          "policies and bindings may be missing", f"{POLICIES.api_version}/{POLICIES.kind}"),
    Fault("policies without a moment", POLICIES.path, without("metadata", "resourceVersion"), "listed",
          "names no resource version", f"{POLICIES.api_version}/{POLICIES.kind}"),
    Fault("bindings of another kind", BINDINGS.path, changed(lambda body: body.update(kind="PodList")), "",
          "policies and bindings may be missing", f"{BINDINGS.api_version}/{BINDINGS.kind}"),
    Fault("namespaces of another kind", NAMESPACES.path, changed(lambda body: body.update(kind="PodList")), "listed",
          "instead of v1 NamespaceList", "v1/Namespace"),
    Fault("one namespace less", NAMESPACES.path, changed(lambda body: body["items"].pop()), "partial", "was not in the list",
          "v1/ConfigMap shop/map-00"),
    Fault("no UID of the cluster", "/api/v1/namespaces/kube-system", instead({"metadata": {}}), "", "cannot identify the cluster", code=4),
    Fault("no version", "/version", instead({"major": "1"}), "", "cannot identify the cluster", code=4),
    Fault("no user", "/apis/authentication.k8s.io/v1/selfsubjectreviews", instead({"status": {}}, 201), "",
          "does not report the user of these credentials", code=4),
]  # fmt: skip


@pytest.fixture(scope="module")
def seen_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with the first scan."""
    folder = tmp_path_factory.mktemp("seen")
    with serving() as api, open_store(f"sqlite:///{folder / 'assay.db'}") as store:
        scanned = scan(serve(api), folder, store, "first")
    assert (OBJECTS, 0) == (scanned, len(api.spoils))
    return folder / "assay.db"


def scan(api: FakeApi, folder: Path, store: SqlStore, name: str) -> int:
    """Scan without pauses; returns the number of findings."""
    cluster = LiveCluster(kubeconfig=api.kubeconfig(folder), chunk_size=PAGE, kind_timeout=20, sleep=lambda _: None)
    return run(cluster, store, Options(), scan_id=name, clock=lambda: NOON).findings


def still_open(database: Path) -> int:
    """The number of findings that no scan has resolved."""
    with open_store(f"sqlite:///{database}") as store:
        newest = store.latest_scan()
        assert newest is not None
        return OBJECTS - sum(stored_scan.resolved for stored_scan in store.scans())


@pytest.fixture
def spoiled(api: FakeApi, assay: Assay, home: Path, seen_once: Path) -> Iterator[Callable[[Fault], tuple[int, Any]]]:  # noqa: F811
    """Scan a second time, with a fault; returns the exit code, and the report if there is one."""
    serve(api)
    shutil.copy(seen_once, home / "assay.db")

    def second_scan(fault: Fault) -> tuple[int, Any]:
        api.spoil(fault.path, fault.how, fault.when)
        always = ("--db", "assay.db", "-o", "json", "--chunk-size", str(PAGE), "--workers", "1")
        ran = assay("scan", "--kubeconfig", api.kubeconfig(home), *always, *fault.flags)
        return ran.code, ran.report if ran.code != 4 else ran.stderr

    yield second_scan
    assert OBJECTS == still_open(home / "assay.db")


@pytest.mark.parametrize("fault", [pytest.param(fault, id=fault.id) for fault in LISTS])
def test_a_spoiled_list_is_a_gap(spoiled: Callable[[Fault], tuple[int, Any]], fault: Fault) -> None:
    """The list is failed, partial or inconsistent; the gap has the reason, the exit code is 3, and no finding is resolved."""
    code, report = spoiled(fault)
    lines = [line for line in as_list(dig(report, "coverage", "kinds")) if dig(line, "kind") == "ConfigMap"]
    assert (fault.code, "incomplete") == (code, dig(report, "provenance", "state"))
    assert [fault.state] == [dig(line, "state") for line in lines]
    assert_gap(report, fault)


@pytest.mark.parametrize("fault", [pytest.param(fault, id=fault.id) for fault in (*DISCOVERY, *OTHERS)])
def test_a_fault_in_another_response_is_a_gap_or_an_error(
    spoiled: Callable[[Fault], tuple[int, Any]], fault: Fault
) -> None:
    """A fault in discovery, policies, namespaces or the review is a gap, or ends the scan."""
    code, report = spoiled(fault)
    assert fault.code == code
    if code == 4:
        assert fault.why in report
        return
    assert "incomplete" == dig(report, "provenance", "state")
    assert_gap(report, fault)


def assert_gap(report: Any, fault: Fault) -> None:
    """A gap has the expected place and reason."""
    gaps = [(as_text(dig(gap, "where")), as_text(dig(gap, "why"))) for gap in as_list(report["gaps"])]
    assert any(where == fault.where and any(part in why for part in fault.why.split("|")) for where, why in gaps), gaps


def test_a_page_that_is_too_large_is_requested_in_smaller_pieces(api: FakeApi, tmp_path: Path) -> None:
    """The pages shrink down to one object, and grow again after it."""
    serve(api, 9)
    api.spoil(
        MAPS.path, lambda reply, request: padded(reply, request) if int(request.query["limit"]) > 2 else reply, second
    )
    cluster = LiveCluster(kubeconfig=api.kubeconfig(tmp_path), chunk_size=4)
    pages = list(cluster.pages(MAPS))
    assert [""] * len(pages) == [page.inconsistency for page in pages]
    queries = [(query.query.get("continue", ""), query.query["limit"]) for query in api.requests_for(MAPS.path)]
    assert [("", "4"), ("4", "4"), ("4", "1"), ("5", "2"), ("7", "4"), ("7", "1"), ("8", "2")] == queries


PASSING = [
    fault
    for fault in LISTS
    if fault.path == MAPS.path and fault.when in (ALWAYS, first) and not fault.flags
    if any(why in fault.why for why in ("instead", "page 1", "version", "in JSON", "announced", "no ", "twice", "UID"))
    if "no longer" not in fault.why
]


@pytest.mark.parametrize("fault", PASSING, ids=lambda fault: fault.id)
def test_what_passes_leaves_no_trace(api: FakeApi, tmp_path: Path, fault: Fault) -> None:
    """A list that was spoiled once is requested again, and is complete."""
    serve(api)
    api.spoil(MAPS.path, fault.how, lambda number: number == 1)
    pages = list(LiveCluster(kubeconfig=api.kubeconfig(tmp_path), chunk_size=PAGE).pages(MAPS))
    assert (3, [""] * 3) == (len(pages), [page.inconsistency for page in pages])


def but_the_first_page(fault: Fault) -> Spoil:
    """The fault in later pages. "empty and the end" as page 1 is what a server without such objects answers."""
    if fault.id != "empty and the end":
        return fault.how
    return lambda reply, request: fault.how(reply, request) if "continue" in request.query else reply


SINGLE_PAGE = [fault.how for fault in LISTS[:14] if fault.id != "items is null"]
"""Faults of a list with one page. Without items the page is a whole list without objects: policies or bindings were deleted."""
SPOILS: dict[str, list[Spoil]] = {
    MAPS.path: [
        *map(
            but_the_first_page,
            (fault for fault in LISTS if fault.path == MAPS.path and not fault.flags and "64 MiB" not in fault.why),
        ),
        changed(lambda body: body["items"].reverse()),
    ],
    POLICIES.path: SINGLE_PAGE,
    BINDINGS.path: SINGLE_PAGE,
    NAMESPACES.path: [fault.how for fault in LISTS[:30]],
    "/apis": [fault.how for fault in DISCOVERY if fault.path == "/apis"],
    "/api": [fault.how for fault in DISCOVERY],
    "/api/v1/namespaces/kube-system": [instead({"metadata": {}}), refused(403), instead(b"<html>")],
    "/version": [instead({}), refused(404)],
}
WAYS = [(path, how) for path, hows in SPOILS.items() for how in hows]


@given(
    st.lists(st.tuples(st.sampled_from(WAYS), st.frozensets(st.integers(1, 6), min_size=1)), min_size=1, max_size=5),
    st.integers(0, 4),
)
@settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_spoiled_answers_resolve_what_is_still_there(
    seen_once: Path, spoils: list[tuple[tuple[str, Spoil], frozenset[int]]], later: int
) -> None:
    """With any spoiled responses, alone and together, the findings of existing objects stay open."""
    with TemporaryDirectory() as name, serving() as api:
        folder = Path(name)
        shutil.copy(seen_once, folder / "assay.db")
        serve(api)
        for (path, how), numbers in spoils:
            api.spoil(path, how, lambda number, numbers=numbers: number in numbers or 0 < later < number)  # type: ignore[misc]
        with open_store(f"sqlite:///{folder / 'assay.db'}") as store, suppress(ClusterError):
            scan(api, folder, store, "second")
        assert OBJECTS == still_open(folder / "assay.db")
