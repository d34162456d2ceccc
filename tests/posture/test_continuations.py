"""Which finding continues another one."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from scanner.posture.history.causes import CircumstanceChanges, Circumstances, Coordinates
from scanner.posture.history.continuations import LocatedFinding, pair_continuations

POLICY = "ValidatingAdmissionPolicy", "replicas"


def finding(number: int, *, uid: int = 1, name: str = "web", binding: str = "strict") -> LocatedFinding:
    """A finding of an object, which `uid` identifies."""
    return LocatedFinding(
        number, uid, ("apps", "Deployment", "shop", name), Coordinates(*POLICY, binding, "", "", "shop")
    )


def scan(*bindings: str) -> Circumstances:
    """A scan with bindings of equal content."""
    return Circumstances({POLICY: "digest"}, {(*POLICY, name): "equal" for name in bindings}, (), "", "", ())


def pairs(
    gone: list[LocatedFinding], come: list[LocatedFinding], before: Circumstances, now: Circumstances
) -> list[tuple[int, int]]:
    """The numbers of the findings that are joined."""
    comparison: Callable[[LocatedFinding], CircumstanceChanges] = lambda _: CircumstanceChanges(before, now)  # noqa: E731 - one expression
    return [(earlier.number, later.number) for earlier, later in pair_continuations(gone, come, comparison)]


SAME = scan("strict"), scan("strict")
RENAMED = scan("strict"), scan("renamed")


@pytest.mark.parametrize(
    ("gone", "come", "scans", "expected"),
    [
        pytest.param([finding(1)], [finding(2)], SAME, [(1, 2)], id="the check of an object is re-worded"),
        pytest.param([finding(1)], [finding(2, uid=7)], SAME, [(1, 2)], id="the object is recreated"),
        pytest.param([finding(1)], [finding(2, binding="renamed")], RENAMED, [(1, 2)], id="the binding is renamed"),
        pytest.param([finding(1)], [finding(2, uid=7, name="web-2")], SAME, [], id="a pod is replaced by another"),
        pytest.param(
            [finding(1)], [finding(2, binding="renamed")], SAME, [], id="another binding, the first one is there"
        ),
        pytest.param([finding(1)], [finding(2, uid=7, binding="renamed")], RENAMED, [], id="two changes at once"),
        pytest.param(
            [finding(1), finding(2)], [finding(3)], SAME, [], id="two findings, and one that may continue both"
        ),
        pytest.param([finding(1)], [finding(2), finding(3)], SAME, [], id="two that may continue one"),
        pytest.param(
            [finding(1), finding(2, uid=5)], [finding(3), finding(4, uid=7)], SAME, [(1, 3), (2, 4)], id="in order"
        ),
        pytest.param([finding(1), finding(2, uid=5)], [finding(3)], SAME, [(1, 3)], id="the first step that applies"),
        pytest.param([], [finding(1)], SAME, [], id="nothing is gone"),
    ],
)
def test_a_finding_continues_another_if_only_one_thing_changed(
    gone: list[LocatedFinding],
    come: list[LocatedFinding],
    scans: tuple[Circumstances, Circumstances],
    expected: list[tuple[int, int]],
) -> None:
    """One to one, and never a guess: what is ambiguous stays separate."""
    assert expected == pairs(gone, come, *scans)
