"""Population, sets of objects, findings and counts of a stored scan agree, for every check."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scanner.model.scans.tally import OutcomeName
from scanner.scan.options import Options
from scanner.scan.run import run
from scanner.store import SqlStore, open_store
from tests.documents import binding, namespace, pod, policy
from tests.reconciled import counted, recomputed
from tests.scan.fakes import NOON, FakeCluster
from tests.scan.matching import MATCHED
from tests.scan.test_promises import CLUSTERS, with_trouble
from tests.store.databases import KINDS, database, emptied, path_of
from tests.thorough import examples

LISTED = ["pods", "nodes", "namespaces", "configmaps", "secrets"]
ALLOWED = "authorizer.group('').resource('pods').check('delete').allowed()"


@pytest.fixture(params=KINDS, scope="module")
def prepared(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a database without a scan."""
    with database(request.param, tmp_path_factory.mktemp("prepared")) as url:
        open_store(url).close()
        yield url


@contextmanager
def empty_store(prepared: str) -> Iterator[SqlStore]:
    """A store without a scan: a copy of a file, or the database of a server without its rows."""
    with TemporaryDirectory() as folder:
        is_file = prepared.startswith("sqlite:")
        url = f"sqlite:///{shutil.copy(path_of(prepared), Path(folder) / 'assay.db')}" if is_file else prepared
        with open_store(url) as store:
            yield store
        if not is_file:
            emptied(prepared)


@pytest.mark.long
@given(st.lists(MATCHED | CLUSTERS, min_size=1, max_size=3), st.data())
@settings(max_examples=examples(40), suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_every_outcome_can_be_computed_from_the_stored_objects(
    prepared: str, days: list[FakeCluster], data: st.DataObject
) -> None:
    """The cluster changes from scan to scan, and lists break off; each record has all outcomes, after the last scan too."""
    with empty_store(prepared) as store:
        for number, cluster in enumerate(days):
            listed = with_trouble(cluster, data, LISTED) if data.draw(st.booleans()) else cluster
            run(listed, store, Options(), scan_id=f"scan-{number}", clock=lambda: NOON)
        for number in range(len(days)):
            record = store.read_scan(f"scan-{number}")
            assert counted(record) == recomputed(record)
            assert sum(line.objects for line in record.coverage) == len(list(record.population()))


@pytest.mark.parametrize("workers", [1, 2])
def test_objects_that_workers_cannot_audit_are_reconciled(prepared: str, workers: int) -> None:
    """Files have no authorizer: the check that reads it has a set of objects that are not auditable, the other checks have outcomes."""
    pods = [pod(f"pod-{number}", ("default", "prod")[number % 2], x=number) for number in range(9)]
    policies = policy("p", ALLOWED, "object.spec.x < 6"), binding("b", "p")
    cluster = FakeCluster([namespace("default"), namespace("prod"), *pods, *policies], source="files")
    with empty_store(prepared) as store:
        run(cluster, store, Options(), scan_id="s1", clock=lambda: NOON, workers=workers)
        record = store.read_scan("s1")
        outcomes = counted(record)
        assert outcomes == recomputed(record)
    expected = {
        (0, "default", OutcomeName.NOT_AUDITABLE): 5,
        (0, "prod", OutcomeName.NOT_AUDITABLE): 4,
        (1, "default", OutcomeName.PASSED): 3,
        (1, "default", OutcomeName.VIOLATED): 2,
        (1, "prod", OutcomeName.PASSED): 3,
        (1, "prod", OutcomeName.VIOLATED): 1,
    }
    assert expected == {(kind.check.index, place, name): count for (kind, place, name), count in outcomes.items()}
