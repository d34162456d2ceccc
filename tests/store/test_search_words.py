"""The rows that match the words of a search: equal on both databases, and as `search_entries` defines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection, Table, insert

from scanner.audit import population
from scanner.model.outcome import Change, Violated, WouldChange
from scanner.model.policy import Policy
from scanner.model.population import Controller, PopulationMember
from scanner.model.scans.scan import ClusterIdentity, Scan
from scanner.model.texts import clean
from scanner.store import SqlStore, open_store
from scanner.store.database.address import address_of
from scanner.store.database.engine import insert_rows, make_engine
from scanner.store.read.search_query import WordMatches, search_words
from scanner.store.rows.search_entries import SOURCES, split_words
from scanner.store.rows.search_index import index_inserted, index_new_rows, index_objects
from scanner.store.rows.tables import CLUSTERS, KEPT, KINDS, OBJECTS, VERDICTS, WORKLOADS
from tests.store.databases import rows
from tests.store.made import Round, clock, finding, page_of, policy
from tests.store.test_kept_labels import PODS

SETTINGS = settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
TEST = ClusterIdentity("test", "93aa", "v1.36.0")


def only(store: SqlStore, asked: str, cluster: int = 1) -> WordMatches:
    """The rows that match a single word."""
    [word] = store.search_words(cluster, asked)
    return word


def titled(name: str, title: str) -> Policy:
    """A policy with a title and a category."""
    made = policy(name)
    annotations = {"assay.dev/title": title, "assay.dev/category": "Availability"}
    return replace(made, manifest={**made.manifest, "metadata": {"name": name, "annotations": annotations}})


def record(store: SqlStore, number: int = 1, title: str = "Few copies", cluster: ClusterIdentity = TEST) -> Scan:
    """Store a scan of a Deployment, and of a Pod that another Deployment controls and a team owns."""
    each = Round((finding("web-frontend"),), cluster=cluster)
    pod = finding("api-7d9f-x2k4l", kind="Pod", outcome=Violated("api-7d9f-x2k4l uses the image nginx:1.25"))
    controller = Controller("apps/v1", "Deployment", "api", "")
    examined = PopulationMember(PODS, "shop", pod.name, pod.uid, controller, (("team", "payments"),))
    store.begin(replace(each.start(number), policies=(titled("replicas", title), policy("labels"))))
    store.write_page(f"scan-{number}", each.page())
    page = replace(page_of((pod,), "v1", "Pod"), examined=population.pack([examined]))
    store.write_page(f"scan-{number}", page)
    return store.finish(f"scan-{number}", replace(each.end(number), controllers={("apps", "Deployment"): True}))


def ids(url: str, table: str, condition: str) -> frozenset[int]:
    """The ids of rows."""
    return frozenset(row["id"] for row in rows(url, f"SELECT id FROM {table} WHERE {condition}"))


@pytest.mark.parametrize(
    ("asked", "field", "table", "condition"),
    [
        ("web-fr", "objects", "objects", "name = 'web-frontend'"),
        ("7D9F", "objects", "objects", "name = 'api-7d9f-x2k4l'"),
        ("shop/api", "objects", "objects", "name = 'api-7d9f-x2k4l'"),
        ("deploy", "kinds", "kinds", "kind = 'Deployment'"),
        ("api", "workloads", "workloads", "name = 'api'"),
        ("deployment/api", "workloads", "workloads", "name = 'api'"),
        ("paym", "kept", "kept", "labels LIKE '%payments%'"),
        ("nginx:1", "verdicts", "verdicts", "message LIKE '%nginx%'"),
        ("replicas-b", "checks", "checks", "binding = 'replicas-binding'"),
        ("spec.repl", "checks", "checks", "expression LIKE '%spec.replicas%'"),
        ("copies", "checks", "checks", "policy = 'replicas'"),
        ("avail", "checks", "checks", "policy = 'replicas'"),
    ],
)
def test_a_word_finds_the_rows_that_findings_refer_to(
    store: SqlStore, url: str, asked: str, field: str, table: str, condition: str
) -> None:
    """Names, kinds, workloads, owners, messages, expressions, bindings, and the titles and categories of policies."""
    record(store)
    wanted = ids(url, table, condition)

    assert wanted
    assert wanted == getattr(only(store, asked), field)


def test_a_word_has_no_rows_of_other_texts(store: SqlStore) -> None:
    """A word matches nothing else."""
    record(store)

    assert ("zebra", *[frozenset()] * 6) == tuple(only(store, "zebra"))


def test_every_word_has_an_answer(store: SqlStore) -> None:
    """Words are those between spaces, in their order; a word without a letter and without a digit matches nothing."""
    record(store)
    matches = store.search_words(1, "web  *** api")

    assert ["web", "***", "api"] == [match.word for match in matches]
    assert [True, False, True] == [bool(match.objects) for match in matches]
    assert () == store.search_words(1, " \n ")


def test_objects_are_those_of_the_cluster(store: SqlStore) -> None:
    """Shared texts are those of all clusters."""
    record(store)
    record(store, 2, cluster=ClusterIdentity("other", "77"))
    first, second = only(store, "web"), only(store, "web", 2)

    assert 1 == len(first.objects) == len(second.objects)
    assert not first.objects & second.objects
    assert frozenset() == only(store, "web", 3).objects


def test_titles_are_those_of_the_scan(store: SqlStore) -> None:
    """A title that the newest scan does not have finds the findings of the scan that had it."""
    record(store)
    record(store, 2, title="Enough replicas")
    [now] = store.search_words(1, "copies")
    [before] = store.search_words(1, "copies", "scan-1")

    assert (frozenset(), True) == (now.checks, bool(before.checks))


def test_drift_is_found_by_its_changes(store: SqlStore) -> None:
    """Paths and values of changes, as reports show them; a value may name the object."""
    changes = Change("replace", "/spec/replicas", "seven", "three"), Change("add", "/metadata/labels/app", "web")
    drift = WouldChange(changes, converges=True)
    Round((finding("web", outcome=drift),)).record(store, 1)

    assert [True, True, False] == [bool(only(store, asked).verdicts) for asked in ("seven", "spec", "converges")]


@contextmanager
def undone(url: str) -> Iterator[Connection]:
    """A transaction that is rolled back."""
    engine = make_engine(address_of(url))
    try:
        with engine.connect().execution_options(assay_writes=True) as connection, connection.begin() as transaction:
            yield connection
            transaction.rollback()
    finally:
        engine.dispose()


def add(connection: Connection, table: Table, added: Sequence[tuple[Any, ...]]) -> None:
    """Insert rows as a scan does."""
    insert_rows(connection, table, [column.name for column in table.columns], added)
    if table is OBJECTS:
        index_objects(connection, added)
    else:
        index_inserted(connection, table, added)


def verdict(number: int, message: str) -> tuple[Any, ...]:
    """A row of `verdicts`."""
    return number, b"%d" % number, "violated", message, "", 0, False, False, "", "", False, ""


words = st.lists(
    st.sampled_from(["a", "ab", "abc", "b", "bc", "ß", "É", "é", "部署", "1", "12"]), min_size=1, max_size=4
)
names = st.tuples(words, st.sampled_from("-._:")).map(lambda parts: parts[1].join(parts[0]))
texts = st.lists(st.one_of(names, st.text(max_size=12)), max_size=5).map(" ".join).map(clean)
kubernetes = st.from_regex(r"[a-c]{1,3}([-.][a-c0-1]{1,3}){0,4}", fullmatch=True)


@given(
    objects=st.lists(st.tuples(st.one_of(st.just(""), kubernetes, names), st.one_of(kubernetes, names)), max_size=6),
    messages=st.lists(texts, max_size=4),
    labels=st.lists(texts, max_size=3),
    asked=st.one_of(names, texts, kubernetes),
)
@example([("shop", "x" * 400), ("", "a-" * 40 + "b")], [], [], "x-x x a-a-a-a-a-a-a-a-a")
@example([("", "a-b.c"), ("a", "b-c")], ["a-b"], ["\x00a"], "a-b a_b.c b-c c-")
@SETTINGS
def test_both_databases_answer_as_it_is_defined(
    url: str, objects: list[tuple[str, str]], messages: list[str], labels: list[str], asked: str
) -> None:
    """For any texts and any search, the rows are those whose entries a word matches."""
    kept = [orjson.dumps([["team", clean(label)]]).decode() for label in labels]
    with undone(url) as connection:
        connection.execute(insert(CLUSTERS).values(id=900, identity="test", name="test"))
        connection.execute(insert(KINDS).values(id=900, digest=b"0", api_version="v1", kind="Pod"))
        add(connection, OBJECTS, [(number, 900, 900, *own, "") for number, own in enumerate(objects, 1)])
        add(connection, VERDICTS, [verdict(number, message) for number, message in enumerate(messages, 1)])
        add(connection, KEPT, [(number, b"%d" % number, own, "[]") for number, own in enumerate(kept, 1)])
        index_new_rows(connection)
        found = search_words(connection, 900, asked)

    for word, match in zip(split_words(asked), found, strict=True):
        documents = (
            (match.objects, [SOURCES[OBJECTS].entries(900, *own) for own in objects]),
            (match.verdicts, [SOURCES[VERDICTS].entries("violated", message, "") for message in messages]),
            (match.kept, [SOURCES[KEPT].entries(own, "[]") for own in kept]),
        )
        for numbers, of_rows in documents:
            assert {number for number, own in enumerate(of_rows, 1) if word.matches(own)} == numbers


SYNTAX = st.text(st.sampled_from("\"'*^:()-+&|!<>{}[]\\ ,;%_\0aANDORNEAR\u2028"), max_size=60)


@given(asked=st.one_of(SYNTAX, st.text(max_size=300)))
@example('" OR 1 --')
@example("NEAR(web, 2) AND NOT web")
@example("web:* & !shop | (api <-> x)")
@example("entries:web")
@example("'; DROP TABLE words; --")
@example("\ud800")
@SETTINGS
def test_syntax_of_a_database_is_text(searched: SqlStore, asked: str) -> None:
    """Any text has an answer: no character is syntax."""
    assert len(searched.search_words(1, asked)) <= len(asked.split())
    assert searched.search(asked)


@pytest.fixture
def searched(url: str) -> Iterator[SqlStore]:
    """A store with a scan."""
    with open_store(url, clock) as store:
        record(store)
        yield store


def test_a_workload_is_found_by_its_kind(store: SqlStore, url: str) -> None:
    """A word may name the kind of a workload."""
    record(store)

    assert ids(url, WORKLOADS.name, "kind = 'Deployment'") == only(store, "deploym").workloads
