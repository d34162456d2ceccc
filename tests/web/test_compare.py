"""Two scans of a cluster compared, by cause, and two clusters."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from urllib.parse import urlencode

import pytest

from scanner.model.json import as_object
from scanner.model.scans.scan import ScanState, Scope
from scanner.store import open_store
from tests.command import assay_here
from tests.store.made import Round, binding, finding, policy
from tests.web.fleets import (
    DENY,
    GAP,
    LABELS,
    LOOSE_REPLICAS,
    NOW,
    PARTIAL,
    PROD,
    REPLICAS,
    STAGE,
    STRICT,
    A,
    Clock,
    Scanned,
)
from tests.web.served import Got, Served, counted, served

_OK, _BAD, _MISSING = 200, 400, 404


@pytest.fixture(scope="session")
def prod(fleet: Served) -> str:
    """The path of the cluster `prod`."""
    return next(
        f"/clusters/{fleet.library.key(each)}" for each in fleet.library.clusters() if each.name == PROD[0].cluster
    )


def _problems(page: Got) -> list[str]:
    """The rows of problems of a comparison."""
    return [row for row in page.rows() if " | p-" in row or row.split(" | ")[-1].startswith("p-")]


def test_without_moments_the_two_last_comparable_scans_are_compared(fleet: Served, prod: str) -> None:
    """The page names both, the number of problems, and the cause of each."""
    page = fleet.get(f"{prod}/compare")
    assert PROD[0].id in page.text
    assert PROD[1].id in page.text
    assert "Problems</dt><dd>2 new" in page.text
    assert "The object was created" in page.text
    assert ["new", "new"] == [row.split(" | ")[0] for row in _problems(page)]


def test_the_numbers_are_those_of_the_command(
    fleet: Served, fleet_url: str, prod: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """`assay diff` has the same problems in the same order, by cause."""
    home = tmp_path_factory.mktemp("diff")
    names = PROD[0].id, PROD[1].id
    ran = assay_here("diff", *names, "--cluster-name", "prod", "--db", fleet_url, "-o", "json", home=home)
    ids = [problem["id"] for problem in json.loads(ran.stdout)["problems"]]
    page = fleet.get(f"{prod}/compare")
    assert ids == [row.split(" | ")[-1] for row in _problems(page)]


def test_dates_and_scans_name_the_moments(fleet: Served, prod: str) -> None:
    """In any order: the earlier scan is on the left."""
    day = f"{PROD[0].began:%Y-%m-%d}"
    page = fleet.get(f"{prod}/compare")
    for query in (f"before={day}&after=latest", f"before=latest&after={PROD[0].id}", f"after={PROD[1].id}"):
        assert _problems(page) == _problems(fleet.get(f"{prod}/compare?{query}")), query


def test_the_problems_of_a_comparison_lead_to_their_histories(fleet: Served, prod: str) -> None:
    """And the scans to their reports."""
    links = fleet.get(f"{prod}/compare").links(f"{prod}/scans/")
    assert [link for link in links if "/problems/" in link]
    assert {_OK} == {fleet.get(link).status for link in links}


def test_one_cause_has_a_page_of_its_own(fleet: Served, prod: str) -> None:
    """With more problems than the page of all causes."""
    page = fleet.get(f"{prod}/compare?cause=objectCreated")
    assert "What changed because the object was created" == page.heading
    assert 2 == len(_problems(page))
    assert _BAD == fleet.get(f"{prod}/compare?cause=nothing").status


def test_a_scan_has_no_difference_to_itself(fleet: Served, prod: str) -> None:
    """The page states that, and has the form for another moment."""
    page = fleet.get(f"{prod}/compare?before=latest&after=latest")
    assert _OK == page.status
    assert f"Both moments name the same scan, {PROD[1].id}" in page.text


def test_a_cluster_with_one_scan_has_nothing_to_compare(fleet: Served) -> None:
    """The page states what comparable scans are."""
    stage = next(fleet.library.key(each) for each in fleet.library.clusters() if each.name == STAGE.cluster)
    page = fleet.get(f"/clusters/{stage}/compare")
    assert _OK == page.status
    assert "No two scans of stage are comparable" in page.text


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("before=2999-01-01", _BAD),
        ("before=2026-02-30", _BAD),
        ("before=nothing", _MISSING),
        ("before=" + "x" * 257, _BAD),
    ],
)
def test_a_moment_without_a_scan_is_refused(fleet: Served, prod: str, query: str, status: int) -> None:
    """With the reason."""
    assert status == fleet.get(f"{prod}/compare?{query}").status


def test_a_moment_before_the_first_scan_is_that_of_the_first_scan(fleet: Served, prod: str) -> None:
    """A period that begins earlier compares with it."""
    by_date, by_id = (fleet.get(f"{prod}/compare?before={each}") for each in ("2001-01-01", PROD[0].id))
    assert (_OK, _OK) == (by_date.status, by_id.status)
    assert by_id.rows() == by_date.rows()


def _keys(fleet: Served) -> tuple[str, str]:
    keys = {each.name: fleet.library.key(each) for each in fleet.library.clusters()}
    return keys["prod"], keys["stage"]


def test_two_clusters_are_compared_by_policy(fleet: Served) -> None:
    """What only one has, what differs, and the problems of both."""
    left, right = _keys(fleet)
    page = fleet.get(f"/compare?left={left}/latest&right={right}/latest")
    assert "Policy sets</dt><dd>different" in page.text
    [labels] = page.rows("labels ")
    assert labels.split(" | ")[1:] == ["bound on the left only", "Deny, Audit", "missing", "1", "0"]
    [replicas] = page.rows("replicas ")
    difference = "another spec, Deny and Audit on the left, Audit on the right, other bindings"
    assert replicas.split(" | ")[1:] == [difference, "Deny, Audit", "Audit", "2", "1"]
    assert ["3", "0", "2", "1", "0", "0", "2"] == page.rows("prod ")[0].split(" | ")[4:]


def test_problems_of_one_cluster_alone_have_a_cause(fleet: Served) -> None:
    """They are matched by policy, check and workload; each leads to its history, and the cause has the rule's difference."""
    left, right = _keys(fleet)
    page = fleet.get(f"/compare?left={left}&right={right}")
    assert ["1 | 0", "1 | 0"] == [
        page.rows(f"{cause} ")[0].split(" | ", 1)[1]
        for cause in ("The policy is bound on the left only", "The policy or a binding differs")
    ]
    assert "<del>-- expression: object.spec.replicas &lt;= 5</del>" in page.text
    assert ["Deployment shop/api", "too many replicas"] == page.rows("prod | Deployment shop/api")[0].split(" | ")[1:3]
    links = [link for link in page.links("/clusters/") if "/problems/" in link]
    assert 2 == len(links)
    assert {_OK} == {fleet.get(link).status for link in links}


def test_an_equal_text_in_another_order_is_no_difference(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Digests differ with the order of keys and with defaults that a client left out; problems match all the same."""
    url = f"sqlite:///{tmp_path_factory.mktemp('alike') / 'assay.db'}"
    spec = as_object(STRICT["spec"])
    written = {**STRICT, "spec": {"failurePolicy": "Fail", **spec}}
    other = policy("replicas", manifest=written, digest="9" * 64)
    clock = Clock()
    with open_store(url, clock) as store:
        Scanned("one", NOW - timedelta(days=1), (A,), (REPLICAS,), (DENY,)).record(store, clock)
        Scanned("two", NOW - timedelta(days=1), (A,), (other,), (DENY,), digest="8" * 64).record(store, clock)
    with served(url, lambda: NOW) as opened:
        keys = [opened.library.key(each) for each in opened.library.clusters()]
        page = opened.get(f"/compare?left={keys[0]}&right={keys[1]}")
    assert "0 of 1 policy differ in content" in page.text
    assert "1 in both clusters; 0 in <bdi>one</bdi> only, 0 in <bdi>two</bdi> only" in page.text
    assert ["none", "Deny, Audit", "Deny, Audit", "1", "1"] == page.rows("replicas ")[0].split(" | ")[1:]


def test_clusters_are_compared_without_typing_a_moment(fleet: Served) -> None:
    """By default at their newest complete scans; the form lists the scans of the chosen clusters, and periods for both."""
    keys = {each.name: fleet.library.key(each) for each in fleet.library.clusters()}
    path = f"/compare?left={keys['partial']}&right={keys['prod']}"
    page = fleet.get(path)
    assert f"{PARTIAL[0].began + timedelta(minutes=5):%Y-%m-%d %H:%M}" in page.rows("partial ")[0]
    assert f'value="{keys["partial"]}/scans/{PARTIAL[1].id}"' in page.text
    chosen = fleet.get(f"/compare?left={keys['partial']}/scans/{PARTIAL[1].id}&right={keys['prod']}&at=")
    assert f'value="{keys["partial"]}/scans/{PARTIAL[1].id}" selected' in chosen.text
    assert f"{PROD[0].began + timedelta(minutes=5):%Y-%m-%d %H:%M}" in fleet.get(f"{path}&at=month").rows("prod ")[0]
    assert _BAD == fleet.get(f"{path}&at=nothing").status


def test_two_clusters_are_compared_as_of_a_date(fleet: Served) -> None:
    """In the path of a cluster, or in a field of the form."""
    left, right = _keys(fleet)
    day = f"{PROD[0].began:%Y-%m-%d}"
    pages = [
        fleet.get(f"/compare?left={left}/{day}&right={right}"),
        fleet.get(f"/compare?left={left}/at/{day}&right={right}/latest"),
        fleet.get(f"/compare?left={left}&left_at={day}&right={right}&right_at="),
        fleet.get(f"/compare?left={left}/scans/{PROD[0].id}&right={right}"),
    ]
    assert [["1", "0", "1", "0", "0", "0", "0"]] * 4 == [page.rows("prod ")[0].split(" | ")[4:] for page in pages]


def test_the_form_offers_every_cluster(fleet: Served) -> None:
    """Without clusters, the page has the form alone."""
    page = fleet.get("/compare")
    assert page.text.count(f'value="{_keys(fleet)[1]}"') == 2
    assert "<table" not in page.text


@pytest.mark.parametrize("query", ["left=nowhere.00000000/latest", "left={left}/2001-01-01&right={left}"])
def test_an_unknown_cluster_or_moment_is_refused(fleet: Served, query: str) -> None:
    """Nothing is compared with nothing."""
    assert _MISSING == fleet.get(f"/compare?{query.format(left=_keys(fleet)[0])}").status


def test_what_is_not_comparable_is_named_first(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Then the rules that differ, with the lines of their texts."""
    url = f"sqlite:///{tmp_path_factory.mktemp('rules') / 'assay.db'}"
    clock = Clock()
    narrow = Round(scope=Scope(namespaces=("shop",)))
    first = Scanned("prod", NOW - timedelta(days=2), (A,))
    second = Scanned("prod", NOW - timedelta(days=1), (A,), (LOOSE_REPLICAS, LABELS), made=narrow)
    with open_store(url, clock) as store:
        first.record(store, clock)
        second.record(store, clock)
    with served(url, lambda: NOW) as opened:
        path = opened.cluster
        assert "No two scans of prod are comparable" in opened.get(f"{path}/compare").text
        text = opened.get(f"{path}/compare?before={first.id}&after={second.id}").text
    assert "they differ in scope" in text
    assert text.index("Not comparable.") < text.index("Earlier scan")
    assert "<del>-- expression: object.spec.replicas &lt;= 5</del>" in text
    assert "Changed: policy <bdi>replicas</bdi>" in text


def test_scans_are_compared_in_the_order_of_history(tmp_path_factory: pytest.TempPathFactory) -> None:
    """A wrong date makes no scan the later one."""
    url = f"sqlite:///{tmp_path_factory.mktemp('order') / 'assay.db'}"
    clock = Clock()
    first, second = Scanned("prod", NOW - timedelta(hours=1), (A,)), Scanned("prod", NOW - timedelta(days=2), (A,))
    with open_store(url, clock) as store:
        first.record(store, clock)
        second.record(store, clock)
    with served(url, lambda: NOW) as opened:
        text = opened.get(f"{opened.cluster}/compare?before={second.id}&after={first.id}").text
    assert text.index(first.id, text.index("Earlier scan")) < text.index(second.id, text.index("Earlier scan"))


def test_names_of_clusters_and_objects_are_texts(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Hostile ones too, on every page that shows them."""
    url = f"sqlite:///{tmp_path_factory.mktemp('hostile') / 'assay.db'}"
    clock = Clock()
    evil = "<script>alert(1)</script>"
    with open_store(url, clock) as store:
        Scanned(evil, NOW - timedelta(days=1), (finding(evil),)).record(store, clock)
        Scanned(evil, NOW - timedelta(hours=1), (finding(evil), finding(f"{evil}2"))).record(store, clock)
    with served(url, lambda: NOW) as opened:
        counted(opened)
        path, key = opened.cluster, opened.cluster.rpartition("/")[2]
        query = urlencode({"name": f"{evil}*"})
        for page in (
            *("/", "/policies", f"/workloads?{query}", f"{path}/compare", f"{path}/runs", f"{path}/runs/1"),
            *(f"/compare?left={key}&right={key}", "/search?q=script", f"/policies/ValidatingAdmissionPolicy/{evil}"),
        ):
            answer = opened.get(page)
            assert "alert" in answer.text, page
            assert "<script" not in answer.text, page


def test_an_incomplete_scan_is_compared_and_what_it_did_not_check_is_marked(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """The gaps stand first; an open problem that was not checked has its row and leads to its history."""
    url = f"sqlite:///{tmp_path_factory.mktemp('incomplete') / 'assay.db'}"
    clock = Clock()
    with open_store(url, clock) as store:
        Scanned("prod", NOW - timedelta(days=2), (A, finding("job", kind="Pod"))).record(store, clock)
        Scanned("prod", NOW - timedelta(days=1), (A,), state=ScanState.INCOMPLETE, gaps=(GAP,)).record(store, clock)
    with served(url, clock=lambda: NOW) as opened:
        path = f"{opened.cluster}/compare"
        page = opened.get(path)
        assert (
            "<strong>INCOMPLETE.</strong> The later scan did not scan 1 item. 1 open problem was not checked."
            in page.text
        )
        assert f"<li><bdi>{GAP.where}: {GAP.why}</bdi></li>" in page.text
        assert "Problems</dt><dd>1 not checked" in page.text
        [row] = _problems(page)
        assert "not checked" == row.split(" | ")[0]
        assert "1 finding not checked" in row
        links = [link for link in page.links(f"{opened.cluster}/scans/") if "/problems/" in link]
        assert [_OK] == [opened.get(link).status for link in links]
        assert 1 == len(_problems(opened.get(f"{path}?cause=coverage")))


def test_a_preview_is_no_side_of_a_comparison_unless_it_is_named(tmp_path_factory: pytest.TempPathFactory) -> None:
    """A named one has its mark."""
    url = f"sqlite:///{tmp_path_factory.mktemp('preview') / 'assay.db'}"
    clock = Clock()
    assumed = replace(binding("labels"), name="assumed:labels", assumed=True)
    scans = [
        Scanned("prod", NOW - timedelta(hours=hours), (A,), bindings=(DENY, *more))
        for hours, more in ((9, ()), (6, ()), (3, (assumed,)))
    ]
    with open_store(url, clock) as store:
        for scan in scans:
            scan.record(store, clock)
    with served(url, clock=lambda: NOW) as opened:
        usual, named = (opened.get(f"{opened.cluster}/compare{query}") for query in ("", "?after=latest"))
        assert f"/scans/{scans[2].id}/" not in usual.text
        assert "<strong>Preview.</strong> The later scan assumed bindings" in named.text
        assert '<span class="tag">preview</span>' in named.text
