"""Population, sets of objects, findings and counts of a stored scan agree, for every check."""

from __future__ import annotations

import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scanner.scan.options import Options
from scanner.scan.run import run
from scanner.store import open_store
from tests.reconciled import counted, recomputed
from tests.scan.fakes import NOON, FakeCluster
from tests.scan.matching import MATCHED
from tests.scan.test_promises import CLUSTERS, with_trouble

LISTED = ["pods", "nodes", "namespaces", "configmaps", "secrets"]


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database without a scan."""
    path = tmp_path_factory.mktemp("prepared") / "assay.db"
    open_store(f"sqlite:///{path}").close()
    return path


@given(st.lists(MATCHED | CLUSTERS, min_size=1, max_size=3), st.data())
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_every_outcome_can_be_computed_from_the_stored_objects(
    prepared: Path, days: list[FakeCluster], data: st.DataObject
) -> None:
    """The cluster changes from scan to scan, and lists break off; each record has all outcomes, after the last scan too."""
    with TemporaryDirectory() as folder, open_store(f"sqlite:///{shutil.copy(prepared, folder)}") as store:
        for number, cluster in enumerate(days):
            listed = with_trouble(cluster, data, LISTED) if data.draw(st.booleans()) else cluster
            run(listed, store, Options(), scan_id=f"scan-{number}", clock=lambda: NOON)
        for number in range(len(days)):
            record = store.record(f"scan-{number}")
            assert counted(record) == recomputed(record)
            assert sum(line.objects for line in record.coverage) == len(list(record.population()))
