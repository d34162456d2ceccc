"""Between Assay and a real API server everything goes wrong that can: nothing is lost in silence or counted twice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from scanner.cluster.live.cluster import LiveCluster
from scanner.model.json import JsonObject, as_list, as_object, as_text, dig
from tests.cli.conftest import Assay
from tests.integration import faults
from tests.integration.apiserver import ApiServer, running
from tests.integration.faults import Proxy, spoiling, wait_until
from tests.integration.made import binding, bound, labelled, may, namespace, policy
from tests.integration.manifests import apply, delete

OBJECTS = 23
PAGE = 5
MAPS = "/api/v1/configmaps"
NAMES = [f"map-{number:02}" for number in range(OBJECTS)]
LISTS = -(-(OBJECTS + 1) // PAGE)
ADMISSION = "/apis/admissionregistration.k8s.io/v1"
ONCE = dict.fromkeys(
    (
        "/version",
        "/api/v1/namespaces/kube-system",
        "/apis/authentication.k8s.io/v1/selfsubjectreviews",
        "/api",
        "/apis",
        "/api/v1/namespaces",
        "/api/v1/limitranges",
        "/api/v1/resourcequotas",
        *(
            f"{ADMISSION}/{way}admissionpolic{end}"
            for way in ("validating", "mutating")
            for end in ("ies", "ybindings")
        ),
        *(f"{ADMISSION}/{way}webhookconfigurations" for way in ("validating", "mutating")),
    ),
    1,
)
GADGETS = "/apis/faults.example.com/v1/gadgets"


@pytest.fixture(scope="module")
def server(assets: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """One namespace with a few pages of config maps, all of which violate one policy."""
    with running(assets, tmp_path_factory.mktemp("faults")) as server:
        apply(server, [namespace("faulty"), policy("maps", "configmaps"), binding("maps")])
        apply(server, [labelled("ConfigMap", "maps", name, namespace="faulty") for name in NAMES])
        yield server


@pytest.fixture
def proxy(server: ApiServer) -> Iterator[Proxy]:
    """A proxy that spoils what the test wants spoiled."""
    with spoiling(server) as between:
        yield between


@dataclass(frozen=True)
class ScanResult:
    """The result of a scan through the proxy: exit code, names with findings, the ledger line of config maps."""

    code: int
    names: list[str]
    line: JsonObject
    report: JsonObject
    stderr: str

    @property
    def ledger(self) -> tuple[int, object, object]:
        """Exit code, state and number of objects."""
        return self.code, self.line["state"], self.line["objects"]

    @property
    def note(self) -> str:
        """Why the list was not as it should be."""
        return as_text(self.line["note"])


Scan = Callable[..., ScanResult]


@pytest.fixture
def scan(assay: Assay, proxy: Proxy, home: Path) -> Scan:
    """Scan through the proxy."""

    def run(*flags: str, kubeconfig: Path | None = None, kind: str = "ConfigMap") -> ScanResult:
        config = kubeconfig or proxy.kubeconfig(home)
        always = ("--db", "assay.db", "-o", "json", "--chunk-size", str(PAGE))
        ran = assay("scan", "--kubeconfig", config, *always, *flags)
        report = ran.report
        lines = [as_object(line) for line in as_list(dig(report, "coverage", "kinds")) if dig(line, "kind") == kind]
        names = [as_text(dig(finding, "object", "name")) for finding in as_list(report["findings"])]
        return ScanResult(ran.code, names, lines[0] if lines else {}, report, ran.stderr)

    return run


def test_without_faults_everything_is_seen(scan: Scan, proxy: Proxy) -> None:
    """The coverage has pages, bytes, seconds and the moment, and only as many requests are sent as lists need."""
    seen = scan()
    objects = OBJECTS + 1  # one map is the server's own

    assert (0, "listed", objects, NAMES) == (*seen.ledger, seen.names)
    assert (LISTS, True, True) == (
        seen.line["pages"],
        int(str(seen.line["bytes"])) > 1000,
        0 < float(str(seen.line["seconds"])) < 60,
    )
    assert as_text(seen.line["resourceVersion"]).isdecimal()
    assert f"{len(proxy.requests)} requests to the API server" in seen.stderr
    # The second answer has the clock of the server.
    assert {**ONCE, "/version": 2, "/metrics": 2, MAPS: LISTS} == Counter(request.path for request in proxy.requests)


@pytest.mark.parametrize(
    ("number", "how"),
    [
        pytest.param(3, faults.reset, id="reset in mid-body"),
        pytest.param(1, faults.reset, id="reset on the first page"),
        pytest.param(3, faults.truncated, id="cut off without a word"),
        pytest.param(5, faults.truncated, id="cut off on the last page"),
        pytest.param(3, faults.dripping(0.001), id="slow, but in time"),
        pytest.param(2, faults.refused(500, "etcdserver: leader changed"), id="500"),
        pytest.param(2, faults.refused(503, "apiserver is shutting down", retry_after="1"), id="503"),
        pytest.param(2, faults.instead(b"<html>please log in</html>"), id="another page altogether"),
        pytest.param(2, faults.instead(b'{"kind":"ConfigMapList","items":['), id="malformed"),
    ],
)
def test_what_passes_leaves_no_trace(scan: Scan, proxy: Proxy, number: int, how: faults.Spoil) -> None:
    """One bad response is requested again: every object once, the same ledger, the same exit code."""
    proxy.spoil(MAPS, number, how)

    seen = scan()

    assert (0, "listed", OBJECTS + 1, NAMES) == (*seen.ledger, seen.names)
    assert number in {request.number for request in proxy.requests_for(MAPS)}


@pytest.mark.parametrize("how", [faults.reset, faults.truncated, faults.unfinished])
def test_a_tls_connection_that_breaks_is_made_anew(
    server: ApiServer, assay: Assay, home: Path, how: faults.Spoil
) -> None:
    """Whether it is torn down or ends without TLS saying so: it worked before, so it is no trouble with TLS."""
    with spoiling(server, tls=True) as between:
        between.spoil(MAPS, 3, how)
        flags = ("--db", "tls.db", "-o", "json", "--chunk-size", str(PAGE))
        ran = assay("scan", "--kubeconfig", between.kubeconfig(home), *flags)

    assert (0, NAMES) == (ran.code, [dig(finding, "object", "name") for finding in as_list(ran.report["findings"])])


def test_a_storm_of_429_is_waited_out(scan: Scan, proxy: Proxy) -> None:
    """Every second request is refused with Retry-After, on every path: the scan takes longer and loses nothing."""
    for path in (*ONCE, MAPS):
        proxy.spoil(path, lambda number: number % 2 == 1, faults.refused(429, "slow down", retry_after="0"))

    seen = scan()

    assert (0, "listed", OBJECTS + 1, NAMES) == (*seen.ledger, seen.names)
    assert 2 * LISTS == len(proxy.requests_for(MAPS))


def test_an_expired_list_goes_on(scan: Scan, proxy: Proxy) -> None:
    """410 at page 3 with a token that the real server accepts: no object is lost, and the list is recorded as inconsistent."""
    proxy.spoil(MAPS, 3, faults.expired)

    seen = scan()

    assert (3, "inconsistent", OBJECTS + 1, NAMES) == (*seen.ledger, seen.names)
    assert "the list expired after page 2 and was continued at a later moment" == seen.note
    assert "incomplete" == faults.status_of(seen.report)


def test_an_expired_list_without_a_token_is_begun_again(scan: Scan, proxy: Proxy) -> None:
    """The pages that come again add nothing: no object is counted twice."""
    proxy.spoil(MAPS, 3, faults.refused(410, "too old"))

    seen = scan()

    assert (3, "inconsistent", OBJECTS + 1, NAMES) == (*seen.ledger, seen.names)
    assert "the list expired after page 2 and was started again" in seen.note


def test_a_list_that_keeps_expiring_is_partial(scan: Scan, proxy: Proxy) -> None:
    """After the second time the kind is given up, with what was seen until then."""
    proxy.spoil(MAPS, lambda number: number in {4, 7}, faults.refused(410, "too old"))

    seen = scan()

    assert (3, "partial", 3 * PAGE, NAMES[: 3 * PAGE]) == (*seen.ledger, sorted(seen.names))
    assert "the list expired after page 5" in seen.note


def test_a_page_that_comes_twice_is_counted_once(scan: Scan, proxy: Proxy) -> None:
    """A cache that returns the previous page: its token shows it, and the right page is requested again."""
    keep, again = faults.remembered()
    proxy.spoil(MAPS, 2, keep)
    proxy.spoil(MAPS, 3, again)

    seen = scan()

    assert (0, "listed", OBJECTS + 1, NAMES) == (*seen.ledger, seen.names)


def test_a_server_that_stays_away_leaves_the_kind_partial(scan: Scan, proxy: Proxy) -> None:
    """Bounded attempts; what came before stays good, and the exit code is that of an incomplete scan."""
    proxy.spoil(MAPS, lambda number: number >= 3, faults.reset)

    seen = scan("--kind-timeout", "2s")

    assert (3, "partial", 2 * PAGE) == seen.ledger
    assert NAMES[: 2 * PAGE] == seen.names
    assert "the connection to" in seen.note


def test_a_body_that_drips_for_ever_is_given_up(scan: Scan, proxy: Proxy) -> None:
    """The watch over the kind ends what no timeout of a socket would."""
    proxy.spoil(MAPS, lambda number: number >= 2, faults.dripping(0.2))

    seen = scan("--kind-timeout", "1.5s")

    assert (3, "partial", PAGE) == seen.ledger
    assert "raise --kind-timeout" in seen.note


def test_rights_that_are_taken_away_in_mid_scan(scan: Scan, proxy: Proxy, home: Path) -> None:
    """403 at page 3: the pages before are kept, the kind is partial, and the message names the missing right."""
    proxy.server.client.request("GET", "/readyz")
    rights = [*may("auditor", "read-maps", "configmaps", "namespaces")]
    rights += may("auditor", "read-policies", *POLICIES, group="admissionregistration.k8s.io")
    apply(proxy.server, rights)
    config = proxy.kubeconfig(home, proxy.server.tokens["auditor"])

    def revoke() -> None:
        delete(proxy.server, bound("auditor", "read-maps"))
        wait_until(lambda: proxy.server.request("GET", MAPS, token=proxy.server.tokens["auditor"]).status == 403)

    proxy.spoil(MAPS, 2, faults.after(revoke))
    seen = scan("--concurrency", "1", kubeconfig=config)

    assert (3, "partial", 2 * PAGE) == seen.ledger
    assert "cannot list configmaps: forbidden for auditor. Grant `list` on configmaps" in seen.note


POLICIES = ("validatingadmissionpolicies", "validatingadmissionpolicybindings")


def test_a_token_that_is_rotated_in_mid_scan_is_read_anew(scan: Scan, proxy: Proxy, home: Path) -> None:
    """The server refuses the old token from page 3 on; the kubeconfig holds the new one by then."""
    proxy.tokens["first"] = proxy.server.token
    config = proxy.kubeconfig(home, "first")

    def rotate() -> None:
        proxy.tokens["second"] = proxy.tokens.pop("first")
        proxy.kubeconfig(home, "second")

    proxy.spoil(MAPS, 2, faults.after(rotate))
    seen = scan(kubeconfig=config)

    assert (0, "listed", OBJECTS + 1, NAMES) == (*seen.ledger, seen.names)


def test_a_token_that_is_withdrawn_in_mid_scan_ends_what_is_left(scan: Scan, proxy: Proxy, home: Path) -> None:
    """Without a new one the kind is partial, and the message asks the user to log in again."""
    proxy.tokens["first"] = proxy.server.token
    config = proxy.kubeconfig(home, "first")
    proxy.spoil(MAPS, 2, faults.after(proxy.tokens.clear))

    seen = scan(kubeconfig=config)

    assert (3, "partial", 2 * PAGE) == seen.ledger
    assert "the server no longer accepts the credentials. Log in" in seen.note


def test_a_definition_that_is_deleted_in_mid_scan(scan: Scan, proxy: Proxy) -> None:
    """Its kind is partial with what was seen; the others are not touched."""
    custom = [definition(), *(gadget(name) for name in NAMES), policy_about_gadgets(), binding("gadgets")]
    apply(proxy.server, custom)

    def drop() -> None:
        delete(proxy.server, definition())
        wait_until(lambda: proxy.server.request("GET", GADGETS).status == 404)

    proxy.spoil(GADGETS, 2, faults.after(drop))
    seen = scan(kind="Gadget")
    for document in (binding("gadgets"), policy_about_gadgets()):
        delete(proxy.server, document)

    assert (3, "partial", 2 * PAGE) == seen.ledger
    assert "the server no longer serves this kind" in seen.note
    assert {*NAMES} == set(seen.names)


def definition() -> JsonObject:
    """A custom kind."""
    schema: JsonObject = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "gadgets.faults.example.com"},
        "spec": {
            "group": "faults.example.com",
            "names": {"kind": "Gadget", "plural": "gadgets"},
            "scope": "Namespaced",
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
        },
    }


def gadget(name: str) -> JsonObject:
    """An object of it."""
    return {
        "apiVersion": "faults.example.com/v1",
        "kind": "Gadget",
        "metadata": {"name": name, "namespace": "faulty"},
    }


def policy_about_gadgets() -> JsonObject:
    """A policy that none of them satisfies."""
    document = policy("gadgets", "gadgets")
    rule = {
        "apiGroups": ["faults.example.com"],
        "apiVersions": ["v1"],
        "operations": ["CREATE"],
        "resources": ["gadgets"],
    }
    return {
        **document,
        "spec": {"matchConstraints": {"resourceRules": [rule]}, "validations": [{"expression": "false"}]},
    }


def test_a_definition_may_name_its_lists(scan: Scan, proxy: Proxy) -> None:
    """A `listKind` can have any name; the server's OpenAPI document has it, and there is no gap."""
    base = definition()
    names = {**as_object(dig(base, "spec", "names")), "listKind": "GadgetCollection"}
    custom = {**base, "spec": {**as_object(base["spec"]), "names": names}}
    apply(proxy.server, [custom, *(gadget(name) for name in NAMES), policy_about_gadgets(), binding("gadgets")])
    listed = proxy.server.request("GET", GADGETS).body

    seen = scan(kind="Gadget")
    for document in (binding("gadgets"), policy_about_gadgets(), custom):
        delete(proxy.server, document)

    assert "GadgetCollection" == dig(listed, "kind")
    assert (0, "listed", OBJECTS) == seen.ledger


def test_every_kind_of_a_server_is_listed_without_a_doubt(proxy: Proxy, home: Path) -> None:
    """Every list of kube-apiserver is consistent, those of computed objects included."""
    cluster = LiveCluster(kubeconfig=str(proxy.kubeconfig(home)), chunk_size=PAGE)
    discovery = cluster.discover()
    # The definition that another test has made and deleted may still be served for a while.
    lasting = [kind for kind in discovery.kinds if kind.group != "faults.example.com"]
    pages = {kind: [page.inconsistency for page in cluster.pages(kind)] for kind in lasting}
    assert () == discovery.gaps
    assert {} == {kind: inconsistencies for kind, inconsistencies in pages.items() if any(inconsistencies)}
    requests = {(request.path, request.query.get("continue", "")) for request in proxy.requests}
    assert len(requests) == len(proxy.requests)


def unneeded(seen: ScanResult) -> list[tuple[object, object]]:
    """The kind and the place of what is out of scope."""
    return [(dig(item, "kind"), dig(item, "where")) for item in as_list(seen.report["outOfScope"])]


def test_an_api_group_that_no_rule_names_may_be_gone(scan: Scan, proxy: Proxy) -> None:
    """The aggregated form marks it stale; everything that the policy can match is scanned, and the scan is complete."""
    service: JsonObject = {
        "apiVersion": "apiregistration.k8s.io/v1",
        "kind": "APIService",
        "metadata": {"name": "v1.broken.example.com"},
        "spec": {
            "group": "broken.example.com",
            "version": "v1",
            "groupPriorityMinimum": 100,
            "versionPriority": 10,
            "insecureSkipTLSVerify": True,
            "service": {"name": "absent", "namespace": "faulty"},
        },
    }
    apply(proxy.server, [service])
    accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    pool = proxy.server.client.pool
    headers = {"Authorization": f"Bearer {proxy.server.token}", "Accept": accept}
    wait_until(lambda: b"broken.example.com" in pool.request("GET", f"{proxy.server.url}/apis", headers=headers).data)

    seen = scan()
    delete(proxy.server, service)

    assert (0, "listed", OBJECTS + 1, NAMES) == (*seen.ledger, seen.names)
    assert (("apiGroup", "broken.example.com/v1"), []) == (*unneeded(seen), seen.report["gaps"])


def test_an_older_server_is_asked_group_by_group(scan: Scan, proxy: Proxy) -> None:
    """Without the aggregated form the older documents tell the same; a group that answers 503 is out of scope if no rule names it."""
    proxy.headers = {"Accept": "application/json"}
    proxy.spoil("/apis/batch/v1", lambda _: True, faults.refused(503, "service unavailable", retry_after="0"))

    seen = scan()

    assert (0, "listed", OBJECTS + 1, NAMES) == (*seen.ledger, seen.names)
    assert (("apiGroup", "batch/v1"), []) == (*unneeded(seen), seen.report["gaps"])


def test_discovery_that_has_a_bad_moment_is_asked_again(scan: Scan, proxy: Proxy) -> None:
    """503 on the root documents passes."""
    proxy.spoil("/apis", 1, faults.refused(503, "service unavailable"))
    proxy.spoil("/api", 1, faults.reset)

    assert (0, "listed", OBJECTS + 1) == scan().ledger


def test_less_than_everything_can_be_enough(scan: Scan, proxy: Proxy) -> None:
    """--min-coverage forgives a kind that was not listed to its end, as long as enough others were."""
    proxy.spoil(MAPS, lambda number: number >= 3, faults.refused(404, "not here"))
    other = [policy("spaces", "namespaces"), binding("spaces")]
    apply(proxy.server, other)

    strict, lenient = scan(), scan("--min-coverage", "50")
    for document in reversed(other):
        delete(proxy.server, document)

    assert [(3, "partial", 2 * PAGE), (0, "failed", 0)] == [strict.ledger, lenient.ledger]
