"""The report of a scan without rights: no claim about problems, the missing rights, and the command that names them."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import pytest

from scanner.model.missing_right import MissingRight
from scanner.model.outcome import Gap, GapKind
from scanner.model.scans.scan import ScanState
from scanner.report import FORMATS
from scanner.report.document.document import document_of
from scanner.report.document.sentences import nothing_line, verdict_line
from scanner.report.formats.table import render
from scanner.report.text.screen import Screen
from tests.report.in_memory import ScanInMemory

from .records import partial_record, scan

SCREEN = Screen(rights="rbac check --as jane")
LISTS = tuple(MissingRight("list", f"kind{number}.shop.example", "", "jane") for number in range(6))


def without_rights(*, state: ScanState = ScanState.INCOMPLETE) -> ScanInMemory:
    """A scan that could list nothing."""
    gaps = tuple(Gap(GapKind.LIST, f"shop.example/v1/Kind{number}", str(right)) for number, right in enumerate(LISTS))
    return ScanInMemory(
        scan=scan(state),
        previous=None,
        policies=(),
        coverage=(),
        health=(),
        gaps=gaps,
        tallies={},
        found=lambda: (()),
        ended=lambda: (()),
    )


def lacking_params() -> ScanInMemory:
    """The small scan, which lacks the params of a policy."""
    why = f"its params (configmaps) could not be listed: {MissingRight('list', 'configmaps', 'settings', 'jane')}"
    return replace(partial_record(), gaps=(Gap(GapKind.EVALUATION, "policy limits", why),))


def table(record: ScanInMemory, screen: Screen = SCREEN) -> str:
    """The summary on a terminal of 80 columns."""
    out = io.StringIO()
    render(document_of(record), out, environ={"COLUMNS": "80"}, screen=screen)
    return out.getvalue()


def test_a_scan_that_evaluated_nothing_claims_nothing_about_problems() -> None:
    """Whether a problem would be refused is not known."""
    assert ("nothing was evaluated", "6 gaps") == verdict_line(document_of(without_rights()))


def test_a_complete_scan_without_evaluations_has_no_problem() -> None:
    """An empty scope is no lack of rights. Other sources than policies may refuse: the cluster's quotas are not known."""
    record = replace(without_rights(state=ScanState.COMPLETE), gaps=())

    assert ("no problem would be refused by a judged policy",) == verdict_line(document_of(record))


def test_the_sentence_names_the_user_and_the_first_rights() -> None:
    """Formats with one line for the reason count the other rights."""
    assert (
        "jane lacks 6 rights that the scan needs: list kind0.shop.example, list kind1.shop.example, "
        "list kind2.shop.example, list kind3.shop.example and 2 more. See `assay rbac check`."
    ) == nothing_line(document_of(without_rights()))


def test_the_name_of_a_user_is_text(tmp_path: Path) -> None:
    """The first page shows a hostile name of a user as text."""
    why = str(LISTS[0]._replace(user="<b>jane\u202e"))
    record = replace(without_rights(), gaps=(Gap(GapKind.LIST, "shop.example/v1/Kind0", why),))
    FORMATS["html"].render(document_of(record), tmp_path)

    page = (tmp_path / "index.html").read_text("utf-8")
    assert ("&lt;b&gt;jane" in page, "<b>jane" in page, "\u202e" in page) == (True, False, False)


def test_the_terminal_lists_every_right_and_the_next_command() -> None:
    """Each right has a line, and the command that names them has the flags of the scan."""
    lines = table(without_rights()).splitlines()

    assert "jane lacks 6 rights that the scan needs:" in lines
    assert [f"  - {right.right}" for right in LISTS] == [line for line in lines if line.startswith("  - list ")]
    begin = lines.index("Next:")
    assert ["  # which rights are missing, and how to grant them", "  assay rbac check --as jane"] == lines[
        begin + 1 : begin + 3
    ]


def test_without_rights_no_command_recommends_other_flags() -> None:
    """The flags of the scan were right: only the user lacks rights."""
    assert "scan --help" not in table(without_rights())


def test_a_missing_kind_of_params_is_named_beside_the_problems() -> None:
    """The scan evaluated other policies, so the worst problem is explained, too."""
    shown = table(lacking_params())

    assert "jane lacks 1 right that the scan needs:\n  - list configmaps in namespace settings\n" in shown
    assert ["rbac", "explain", "report"] == [
        line.split()[1] for line in shown.partition("Next:")[2].splitlines() if line.startswith("  assay ")
    ]


@pytest.mark.parametrize("record", [without_rights(), lacking_params()])
def test_a_stored_report_recommends_no_check_of_rights(record: ScanInMemory) -> None:
    """It has no flags of a cluster: the command would check the current cluster."""
    assert "rbac check" not in table(record, Screen())
