"""A waiver is about what was asked: its check is compared with that of the first scan that used the waiver."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta

import pytest
from alembic.config import Config
from alembic.script import ScriptDirectory

from scanner.model.outcome import Check, CheckKind
from scanner.model.policy import VALIDATING, NamedExpression, Policy, Validation
from scanner.model.scans.scan import ScanState
from scanner.model.waiver import Waiver, WaiverSet
from scanner.posture.problem_ids import check_id
from scanner.posture.settings import Settings
from scanner.posture.triage import Triage
from scanner.posture.waivers.waived_checks import question_of
from scanner.posture.waivers.waiving import waiver_changes
from scanner.store import SqlStore, open_store, upgrade
from scanner.store.rows.tables import find_migrations
from scanner.store.upkeep.integrity import check_database
from scanner.store.upkeep.retention import prune
from scanner.store.upkeep.retention_plan import RetentionRule
from tests.posture.waivers import waiver
from tests.store.databases import count, execute, without_lists
from tests.store.made import PROD, Round, clock, ended, finding, policy

FEW, OWNED = "object.spec.replicas <= 5", "has(object.metadata.labels.owner)"
REFORMATTED = "object.spec.replicas<=5 // at most five"
CHECK_ID = check_id(VALIDATING, "replicas", CheckKind.VALIDATION.value, FEW, 0)
BY_ID = waiver("w", check=CHECK_ID)
"""A waiver for the only check of the policy: it keeps its id when it is edited, or replaced."""


@dataclass(frozen=True)
class Story:
    """Stores one scan after another. An object violates the only check of the policy `replicas` in each of them."""

    store: SqlStore

    def scan(
        self,
        number: int,
        expression: str = FEW,
        *waivers: Waiver,
        own: Policy | None = None,
        check: Check | None = None,
        made: Round | None = None,
    ) -> None:
        """Store a scan, which reads these waivers, or none. `own` is the policy, `check` the check that fails."""
        made = made or Round()
        failing = check or Check(CheckKind.VALIDATION, 0, expression)
        if made.state is not ScanState.FAILED:
            made = replace(made, findings=(finding("a", check=failing),))
        own = own or asking(expression)
        start = replace(made.start(number), waivers=WaiverSet(waivers) if waivers else None)
        policies = tuple(own if each.name == own.name else each for each in start.policies)
        self.store.begin(replace(start, policies=policies))
        self.store.write_page(f"scan-{number}", made.page())
        self.store.finish(f"scan-{number}", made.end(number))

    def triage(self, number: int, *waivers: Waiver) -> Triage:
        """The triage of a scan with the waivers that scans had stored by its end, or with these."""
        given = WaiverSet(waivers) if waivers else self.store.find_waivers_at(f"scan-{number}", ended(number))
        return Triage(Settings(waivers=given), self.store.read_scan(f"scan-{number}"))

    def state(self, number: int, *waivers: Waiver) -> str:
        """The state of the only waiver of a report. The finding is waived, marked and counted alike."""
        triage = self.triage(number, *waivers)
        [use] = triage.waived.uses
        scan = self.store.read_scan(f"scan-{number}")
        marked = {bool(triage.waiver(stored)) for stored in scan.findings()}
        problems = self.store.count_problems(f"scan-{number}", waived={f"scan-{number}": triage.waived.rows})
        applies = use.state.value == "active"
        assert ({applies}, int(applies), 1 - applies) == (marked, triage.waived.findings, problems.violated)
        return use.state.value


def asking(expression: str, *, message: str = "", **variables: str) -> Policy:
    """The policy `replicas` with one check, and with these variables."""
    own = tuple(NamedExpression(name, text) for name, text in variables.items())
    return policy("replicas", validations=(Validation(expression, message),), variables=own)


@pytest.fixture
def story(store: SqlStore) -> Story:
    """A database without a scan."""
    return Story(store)


def test_a_waiver_is_of_an_unknown_check_when_the_only_check_is_replaced(story: Story) -> None:
    """The check keeps its id, and the problem counts again; the report of the earlier scan stays as it was."""
    story.scan(1, FEW, BY_ID)
    story.scan(2, OWNED, BY_ID)

    assert {CHECK_ID} <= set(story.store.read_scan("scan-2").check_ids.values())
    assert ["active", "unknownCheck"] == [story.state(number) for number in (1, 2)]
    [lapsed] = story.triage(2).waived.lapsed
    assert ("w", "unknownCheck", 1) == (lapsed.waiver.name, lapsed.state, lapsed.findings)


def test_a_problem_whose_check_was_replaced_is_no_longer_waived_in_a_difference(story: Story) -> None:
    """It is open in both scans."""
    story.scan(1, FEW, BY_ID)
    story.scan(2, OWNED, BY_ID)
    before, now = story.triage(1).waived, story.triage(2).waived
    changes = waiver_changes(story.store.read_scan("scan-1"), story.store.read_scan("scan-2"), before, now)

    assert (["a"], []) == ([each.workload_name for each in changes.no_longer.values()], [*changes.waived])


@pytest.mark.parametrize(
    "now",
    [
        pytest.param(asking(REFORMATTED), id="reformatted"),
        pytest.param(asking(FEW, message="another"), id="another message"),
        pytest.param(asking(FEW, unused="1"), id="another unused variable"),
    ],
)
def test_a_waiver_applies_while_the_check_asks_the_same(story: Story, now: Policy) -> None:
    """Without a digest, and with one."""
    own = replace(BY_ID, check_digest=question_of(asking(FEW), (CheckKind.VALIDATION, 0)))
    text = now.validations[0].expression
    story.scan(1, FEW, BY_ID)
    story.scan(2, text, BY_ID, own=now)
    story.scan(3, text, own, own=now)

    assert ["active"] * 3 == [story.state(number) for number in (1, 2, 3)]


def test_a_waiver_with_a_digest_is_of_an_unknown_check_at_once(story: Story) -> None:
    """Its author accepted another question than the first scan with the waiver asks."""
    story.scan(1, FEW)
    own = replace(BY_ID, check_digest=question_of(asking(FEW), (CheckKind.VALIDATION, 0)))
    story.scan(2, OWNED, own)

    assert ["active", "unknownCheck"] == [story.state(number, own) for number in (1, 2)]


def test_a_waiver_without_a_digest_is_about_the_check_of_the_first_scan_that_used_it(story: Story) -> None:
    """Neither an earlier scan nor a later one counts, and the waiver applies again when the question is back."""
    story.scan(1, FEW)
    for number, text in enumerate((OWNED, OWNED, FEW, "false", REFORMATTED, f" {OWNED}"), 2):
        story.scan(number, text, BY_ID)

    expected = ["active", "active", "unknownCheck", "unknownCheck", "unknownCheck", "active"]
    assert expected == [story.state(number) for number in range(2, 8)]


def test_a_scan_without_waivers_of_its_own_uses_the_stored_ones(story: Story) -> None:
    """The second scan is the first one that has the check, though it read no waivers."""
    own = waiver("w", check="variables.ok")
    story.scan(1, FEW, own)
    story.scan(2, "variables.ok", own=asking("variables.ok", ok=FEW))
    story.scan(3, "variables.ok", own, own=asking("variables.ok", ok=OWNED))

    assert ["unknownCheck", "active", "unknownCheck"] == [story.state(number) for number in (1, 2, 3)]


def test_an_edited_waiver_is_about_the_check_of_the_first_scan_that_used_the_edited_one(story: Story) -> None:
    """A person looked at it. A waiver that moves to another file is the same."""
    story.scan(1, FEW, BY_ID)
    story.scan(2, OWNED, replace(BY_ID, source="moved.yaml"))
    story.scan(3, OWNED, replace(BY_ID, ticket="SEC-2"))

    assert ["active", "unknownCheck", "active"] == [story.state(number) for number in (1, 2, 3)]


def test_a_report_with_other_waivers_is_about_the_checks_of_its_scan(story: Story) -> None:
    """No scan used them."""
    story.scan(1, OWNED)
    story.scan(2, FEW, waiver("other"))

    assert ["active", "active"] == [
        story.state(number, waiver("w", check=text)) for number, text in ((1, OWNED), (2, FEW))
    ]


def test_a_failed_scan_uses_no_waivers(story: Story) -> None:
    """No report was made with them."""
    story.scan(1, FEW)
    story.scan(2, OWNED, BY_ID, made=Round(state=ScanState.FAILED))
    story.scan(3, FEW, BY_ID)

    assert "active" == story.state(3)


def test_the_first_scan_of_another_cluster_does_not_count(story: Story) -> None:
    """Each cluster has a history of its own."""
    own = waiver("w", check="variables.ok")
    story.scan(1, "variables.ok", own, own=asking("variables.ok", ok=FEW))
    other = Round(cluster=replace(PROD, name="test", uid="7f"))
    story.scan(2, "variables.ok", own, own=asking("variables.ok", ok=OWNED), made=other)

    assert ["active", "active"] == [story.state(number) for number in (1, 2)]


def test_the_checks_of_waivers_for_other_clusters_are_not_stored(story: Story, url: str) -> None:
    """A fleet has one folder of waivers."""
    story.scan(1, FEW, replace(BY_ID, cluster="dev-*"), waiver("everywhere"))

    assert 0 == count(url, "waived_checks")


def test_the_variables_of_an_expression_are_part_of_the_question(story: Story) -> None:
    """A waiver by expression ends when the variable is another one."""
    own = waiver("w", check="variables.ok")
    for number, text in enumerate((FEW, REFORMATTED, OWNED), 1):
        story.scan(number, "variables.ok", own, own=asking("variables.ok", ok=text))

    assert ["active", "active", "unknownCheck"] == [story.state(number) for number in (1, 2, 3)]


@pytest.mark.parametrize("kind", [CheckKind.CONDITIONS, CheckKind.CONFIGURATION])
def test_checks_without_an_expression_are_compared_too(story: Story, kind: CheckKind) -> None:
    """Match conditions ask what they contain, and a configuration all that the policy contains."""
    own = waiver("w", check=check_id(VALIDATING, "replicas", kind.value, "", 0))
    for number, text in enumerate(("true", " true", "false"), 1):
        conditions = (NamedExpression(f"name-{number}", text),)
        story.scan(number, FEW, own, own=replace(asking(FEW), match_conditions=conditions), check=Check(kind))

    assert ["active", "active", "unknownCheck"] == [story.state(number) for number in (1, 2, 3)]


def test_a_prune_of_the_first_scan_loses_no_question(story: Story, url: str) -> None:
    """The database keeps the question when the policies of that scan are gone."""
    story.scan(1, FEW, BY_ID)
    story.scan(2, OWNED)
    story.scan(3, OWNED, BY_ID)
    prune(url, RetentionRule(days=0), ended(3) + timedelta(hours=1))

    assert story.store.find_pruned_scans([story.store.find_scan("scan-1")])
    assert "unknownCheck" == story.state(3)
    assert [] == check_database(url, all_words=True)


def test_the_forms_of_a_check_are_stored_once(story: Story, url: str) -> None:
    """Three forms of one check, of two waivers with one name."""
    edited = replace(BY_ID, reason="another")
    for number, text in enumerate((FEW, FEW, REFORMATTED, FEW, OWNED), 1):
        story.scan(number, text, BY_ID)
    story.scan(6, OWNED, edited)
    story.scan(7, OWNED, edited)

    assert 4 == count(url, "waived_checks")


def test_an_upgrade_compares_with_the_first_scan_that_the_database_keeps(own_url: str) -> None:
    """An older version stored no questions, but policies."""
    with open_store(own_url, clock) as store:
        story = Story(store)
        story.scan(1, FEW, BY_ID)
        story.scan(2, REFORMATTED)
        story.scan(3, OWNED, BY_ID)
    without_lists(own_url)
    execute(own_url, "DROP TABLE closing_sums")
    execute(own_url, "DROP TABLE waived_checks")
    execute(own_url, f"UPDATE alembic_version SET version_num = '{before_this_table()}'")

    assert upgrade(own_url, backup=False).migrated
    with open_store(own_url, clock) as store:
        assert ["active", "active", "unknownCheck"] == [Story(store).state(number) for number in (1, 2, 3)]


def before_this_table() -> str:
    """The version before the one that added the table."""
    config = Config()
    config.set_main_option("script_location", str(find_migrations()))
    return str(ScriptDirectory.from_config(config).get_revision("0031").down_revision)
