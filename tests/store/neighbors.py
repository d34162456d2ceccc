"""A database of twelve clusters, whose names, objects and texts have a word of their own, and what it answers about each."""

from __future__ import annotations

import io
import json
import zlib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import date
from typing import Any, Final

from sqlalchemy import create_engine, inspect, text

from scanner.audit import population
from scanner.model.outcome import Evidence, Finding, Gap, GapKind, Reason, Violated
from scanner.model.population import Controller, PopulationMember
from scanner.model.resource import Kind
from scanner.model.scans.cause import CauseKind
from scanner.model.scans.health import Health, HealthKind
from scanner.model.scans.place import Place, PlacedObject
from scanner.model.scans.scan import ClusterIdentity, PageResult, ScanState
from scanner.model.waiver import WaiverSet
from scanner.posture.history.scan_diff import DifferingProblem
from scanner.report.document.document import document_of
from scanner.report.formats.json import render
from scanner.store import SqlStore
from scanner.store.rows.search_index import NAME as INDEX
from scanner.store.upkeep.views import VIEWS
from tests.posture.waivers import waiver
from tests.store.databases import rows
from tests.store.made import Round, finding, identity_of

GONE: Final = "qzxvj"
"""The word of the cluster that is deleted: it begins as no other word does, because an index keeps one beginning of many once."""
WORDS: Final = (*(f"town{number:02}" for number in range(1, 6)), GONE, *(f"town{number:02}" for number in range(7, 13)))
OTHERS: Final = tuple(word for word in WORDS if word != GONE)
SCANS: Final = 2
"""The finished scans of each cluster."""
NEAREST: Final = (WORDS[0], WORDS[4], WORDS[6], WORDS[-1])
"""The clusters that are first and last in each table, and those beside the one that is deleted."""
FAILED: Final = (GONE, WORDS[0])
"""The clusters with a further scan, which fails, and a run that reaches no cluster."""
SHARED = finding("shared")


def cluster_of(word: str) -> ClusterIdentity:
    """The cluster with a word."""
    return ClusterIdentity(word, f"{word}-uid", "v1.36.0", server=f"https://{word}.example.com")


def fill(store: SqlStore) -> None:
    """Scan every cluster some times, one after the other."""
    for turn in range(SCANS + 1):
        for place, word in enumerate(WORDS if turn < SCANS else FAILED):
            _scan(store, word, 1 + turn * len(WORDS) + place, turn)
    for word in FAILED:
        run = store.begin_run(word, ("assay", "scan", "--cluster-name", word))
        store.end_run(run, exit_code=4, reason=f"https://{word}.example.com does not answer")


def _scan(store: SqlStore, word: str, number: int, turn: int) -> None:
    run = store.begin_run(word, ("assay", "scan", f"--context={word}"))
    scan_id = f"scan-{number}"
    store.begin_scan_of_run(run, scan_id)
    scanned = Round(
        _findings(word, turn),
        policies=("replicas", "labels", f"{word}-policy"),
        bound=("replicas", "labels", f"{word}-policy"),
        cluster=cluster_of(word),
        gaps=(Gap(GapKind.DOCUMENT, f"{word}.yaml", f"{word}: a tab"),) if turn == 1 else (),
        state=ScanState.FAILED if turn == SCANS else ScanState.COMPLETE,
    )
    waivers = WaiverSet((waiver(f"{word}-waiver", policy=f"{word}-policy"), waiver("common", policy="labels")))
    store.begin(replace(scanned.start(number), waivers=waivers))
    store.write_places(
        scan_id, [PlacedObject("apps", "Deployment", "shop", "shared", Place(f"{word}/a.yaml", turn + 1))]
    )
    for page in scanned.pages():
        store.write_page(scan_id, replace(page, examined=_examined(word, page)))
    health = Health(HealthKind.UNBOUND, f"{word}-policy", "", f"{word}: no binding")
    store.finish(scan_id, replace(scanned.end(number), health=(health,)))
    store.plan_notifications(scan_id, [f"{word}-route"])
    store.end_run(run, exit_code=4 if turn == SCANS else 0, scan_id=scan_id)


def _examined(word: str, page: PageResult) -> bytes:
    """The objects of a page, with workloads and labels."""
    kind = Kind("apps", "v1", page.kind, plural="deployments", namespaced=True)
    return population.pack(
        [
            PopulationMember(
                kind,
                *identity_of(each),
                Controller("apps/v1", "Machine", f"{word}-owner", f"{word}-owner-uid"),
                (("app", f"{word}-app"), ("team", "common")),
            )
            for each in page.findings
        ]
    )


def _findings(word: str, turn: int) -> tuple[Finding, ...]:
    """A finding that all clusters have, some that stay, and one that changes with each scan."""
    own = [
        finding(f"{word}-{name}", namespace=f"{word}-{name[0]}", policy=f"{word}-policy", **_texts(word, name))
        for name in ("web", "api", f"job-{turn}")
    ]
    return (SHARED, *own)


def _texts(word: str, name: str) -> dict[str, Any]:
    evidence = Evidence((Reason("object.spec.replicas", f"{word}-{name} has 9"),))
    return {"outcome": Violated(f"too many replicas for {word}"), "evidence": evidence}


def answers(
    store: SqlStore, url: str, words: Iterable[str] = WORDS, *, reports_of: Iterable[str] | None = None
) -> dict[str, Any]:
    """What the database answers about clusters: reports, differences, trends, searches, runs and views.

    `reports_of` are those of them of which all of that is compared; of the others the views have all findings.
    """
    given: dict[str, Any] = {}
    clusters = {each.name: each.id for each in store.clusters()}
    for word in words if reports_of is None else reports_of:
        numbers = [1 + turn * len(WORDS) + WORDS.index(word) for turn in range(SCANS)]
        given |= {f"report {number}": _report(store, number) for number in numbers}
        difference = store.compare_scans(f"scan-{numbers[-2]}", f"scan-{numbers[-1]}")
        given[f"problems {word}"] = [list(difference.list_problems(cause, None)) for cause in difference.causes]
        given[f"difference {word}"] = replace(difference, list_problems=_list_nothing)
        given[f"trend {word}"] = store.trend_of_days(clusters[word], date.min, lambda _: True)
        given[f"words {word}"] = store.search_words(clusters[word], f"{word} shared")
        given[f"runs {word}"] = store.list_runs(cluster=word)
    chosen = ", ".join(f"'{word}'" for word in words)
    for name in VIEWS:
        given[name] = sorted(map(repr, rows(url, f"SELECT * FROM {name} WHERE cluster IN ({chosen})")))
    return given


def _list_nothing(_cause: CauseKind, _most: int | None) -> Iterator[DifferingProblem]:
    return iter(())


def _report(store: SqlStore, number: int) -> Any:
    out = io.BytesIO()
    render(document_of(store.read_scan(f"scan-{number}")), out)
    return json.loads(out.getvalue())


def find_words(url: str, word: str) -> list[str]:
    """The places in all columns of all tables, those of the index and of the planner included, that have a word: compressed values, too."""
    engine = create_engine(url)
    with engine.connect() as connection:
        scanned = inspect(connection).get_table_names()
        # The rows of the index of SQLite are in its own tables, which are listed, too.
        tables = [name for name in scanned if name != INDEX or engine.dialect.name == "postgresql"]
        places = [place for table in tables for place in _search(connection, table, word)]
        if engine.dialect.name == "postgresql":
            wanted = "SELECT tablename, attname FROM pg_stats WHERE schemaname = current_schema() AND pg_stats::text LIKE :word"
            places += [f"statistics of {row}" for row in connection.execute(text(wanted), {"word": f"%{word}%"})]
    engine.dispose()
    return places


def _search(connection: Any, table: str, word: str) -> Iterator[str]:
    for row in connection.execute(text(f'SELECT * FROM "{table}"')).mappings():
        for column, value in row.items():
            if any(word.encode() in form for form in _forms(value)):
                yield f"{table}.{column}"


def _forms(value: object) -> Iterator[bytes]:
    if isinstance(value, (bytes, memoryview)):
        yield bytes(value)
        with suppress(zlib.error):
            yield zlib.decompress(bytes(value))
        return
    yield str(value).encode()
