"""The opinion of another engine is stored with its scan."""

from __future__ import annotations

from dataclasses import replace

from scanner.model.scans.opinion import Disagreement, Limitation, Opinion
from scanner.store import SqlStore
from tests.store.made import Round

OPINION = Opinion(
    "cel-python 0.5.0",
    12.5,
    objects=8,
    evaluations=20,
    agreed=10,
    expressions=3,
    limits=(Limitation("optionals", "It has none.", 7, 2),),
    disagreements=(
        Disagreement(
            "p", "ValidatingAdmissionPolicy", "spec.validations[0].expression", "a\0\ud800", 3, "Pod x", "true", "false"
        ),
    ),
    left_out=1,
)


def test_an_opinion_reads_back_as_it_was(store: SqlStore) -> None:
    """Sums, limits, disagreements and hostile texts are the same."""
    scan = Round()
    store.begin(scan.start(1))
    store.finish("scan-1", replace(scan.end(1), opinion=OPINION))
    assert OPINION == store.read_scan("scan-1").opinion


def test_a_scan_without_a_comparison_has_no_opinion(store: SqlStore) -> None:
    """A scan of an older version has none either."""
    Round().record(store, 1)
    assert store.read_scan("scan-1").opinion is None
