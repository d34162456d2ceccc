"""A scan resolves only findings that it would have found with the same operation and the same user."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from scanner.model.resource import UserInfo
from scanner.model.scans.scan import PageResult, ScanStart, Scope
from scanner.store import SqlStore
from tests.store.made import Round, finding

A = finding("a")


@dataclass(frozen=True)
class Asking(Round):
    """A scan with an operation and a user, on which its checks depend or not."""

    user: str = "auditor"
    depends: bool = False

    def start(self, number: int) -> ScanStart:
        """The start of the scan."""
        return replace(super().start(number), requester=UserInfo(self.user))

    def pages(self) -> list[PageResult]:
        """The results of its pages."""
        return [
            replace(page, tallies={key._replace(requester=self.depends): count for key, count in page.tallies.items()})
            for page in super().pages()
        ]


UPDATES = Scope(operation="update")


@pytest.mark.parametrize(
    ("first", "second", "resolved"),
    [
        pytest.param(Asking((A,)), Asking(), 1, id="the same question"),
        pytest.param(Asking((A,)), Asking(scope=UPDATES), 0, id="an UPDATE may pass where a CREATE does not"),
        pytest.param(Asking((A,), scope=UPDATES), Asking(scope=UPDATES), 1, id="two scans about UPDATE"),
        pytest.param(Asking((A,)), Asking(user="bob"), 1, id="another requester, of whom nothing depends"),
        pytest.param(Asking((A,), depends=True), Asking(user="bob"), 0, id="another requester may do more"),
        pytest.param(Asking((A,), depends=True), Asking(), 1, id="the same requester"),
    ],
)
def test_only_a_scan_with_an_equal_request_resolves(
    store: SqlStore, first: Asking, second: Asking, resolved: int
) -> None:
    """Another operation or user leaves the finding open and unchecked."""
    first.record(store, 1)
    scan = second.record(store, 2)

    assert (resolved, 1 - resolved) == (scan.resolved, store.read_scan("scan-2").unchecked)


def test_alternating_scans_resolve_their_own_findings(store: SqlStore) -> None:
    """A finding is resolved by the next scan with the request of the scan that saw it last."""
    Asking((A,)).record(store, 1)
    between = Asking(scope=UPDATES).record(store, 2)
    again = Asking().record(store, 3)

    assert (0, 1) == (between.resolved, again.resolved)


def test_a_scan_has_its_user(store: SqlStore) -> None:
    """The name and the groups are stored; other info of the user is not."""
    user = UserInfo("bob", "u-1", ("dev",), (("credential", ("secret",)),))
    store.begin(replace(Round().start(1), requester=user))
    scan = store.finish("scan-1", Round().end(1))

    assert UserInfo("bob", groups=("dev",)) == scan.requester


def test_outcomes_that_depend_on_the_requester_are_counted_apart(store: SqlStore) -> None:
    """The keys of the tallies mark them."""
    Asking((A,), depends=True).record(store, 1)

    assert [True] == [key.requester for key in store.read_scan("scan-1").tallies]
