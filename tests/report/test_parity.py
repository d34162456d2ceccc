"""The result of a replay, as lines and as JSON."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from scanner.model.outcome import Gap, GapKind
from scanner.model.scans.scan import ClusterIdentity
from scanner.parity import Parity, VerdictDifference
from scanner.parity.replay import ReplayedDifference
from scanner.report.formats.parity import json_of, lines_of

DIFFERENT = ReplayedDifference(
    "CREATE", "apps/v1", "Deployment", "shop", "web", VerdictDifference("p", "b", "no", "(nothing)")
)


def parity(**fields: object) -> Parity:
    """A replay in which everything agrees, with changed fields."""
    same = Parity(ClusterIdentity("prod", "u-1", "v1.36.0"), "admin", objects=2, writes=4, agreed=1234)
    return replace(same, **fields)  # type: ignore[arg-type]


def test_agreement() -> None:
    """The text has two lines without differences."""
    assert [
        "Parity with prod (v1.36.0): 2 objects in 4 dry-run writes as admin; no object was changed",
        "SAME: 1,234 of 1,234 comparable verdicts agree",
    ] == list(lines_of(parity()))


def test_a_difference_has_both_verdicts() -> None:
    """The object, policy and binding come first, then the verdicts of server and Assay."""
    assert [
        "DIFFERENT: 1,234 of 1,235 comparable verdicts agree",
        "  CREATE apps/v1/Deployment shop/web: policy p through b",
        "    Assay:  no",
        "    server: (nothing)",
    ] == list(lines_of(parity(differences=[DIFFERENT])))[1:]


def test_many_differences_are_cut_for_people() -> None:
    """The lines have the first differences, the JSON document all of them."""
    many = parity(differences=[DIFFERENT] * 60)

    assert "  50 of 60 differences shown; -o json shows all" == list(lines_of(many))[-1]
    assert 60 == len(json_of(many)["differences"])  # type: ignore[arg-type]


def test_verdicts_that_are_not_comparable_have_reasons() -> None:
    """The most frequent reason comes first."""
    assert ["Not comparable: 5 verdicts", "  3  because b", "  2  because a"] == list(
        lines_of(parity(unseen=Counter({"because a": 2, "because b": 3})))
    )[2:]


def test_missing_parts_come_before_the_verdict() -> None:
    """The comparison is called incomplete even if all compared verdicts agree."""
    incomplete = parity(
        missing=Counter({"create on pods": 1}),
        gaps=[Gap(GapKind.LIST, "v1/Pod", "forbidden")],
        left_out=["another server serves x"],
    )

    assert [
        "INCOMPLETE: 1,234 of 1,234 comparable verdicts agree",
        "Excluded: another server serves x",
        "Missing permission: create on pods (1 write)",
        "Gap: v1/Pod: forbidden",
    ] == list(lines_of(incomplete))[1:]


def test_nothing_compared_is_not_agreement() -> None:
    """The headline states that nothing was compared."""
    assert "SAME: no verdict could be compared" == list(lines_of(parity(agreed=0)))[1]


def test_the_json_document() -> None:
    """The document has every fact of the lines, under stable names."""
    text = json_of(parity(differences=[DIFFERENT], unseen=Counter({"why": 2}), missing=Counter({"create on pods": 1})))

    assert {
        "schemaVersion": "1.0",
        "cluster": {"name": "prod", "uid": "u-1", "serverVersion": "v1.36.0"},
        "user": "admin",
        "complete": False,
        "objects": 2,
        "writes": 4,
        "comparable": 1235,
        "agreed": 1234,
        "differences": [
            {
                "operation": "CREATE",
                "object": {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "shop", "name": "web"},
                "policy": "p",
                "binding": "b",
                "assay": "no",
                "server": "(nothing)",
            }
        ],
        "notComparable": [{"reason": "why", "verdicts": 2}],
        "leftOut": [],
        "missingRights": [{"right": "create on pods", "writes": 1}],
        "gaps": [],
    } == text
