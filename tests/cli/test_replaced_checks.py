"""A policy asks something else than people accepted: their waivers end, and every surface says so."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from scanner.model.json import Json, as_list, as_text, dig
from tests.cli.conftest import Assay
from tests.cli.manifests import bound, config_map
from tests.cli.test_waivers import GATED, NEXT_YEAR, Write, states, waived, waiver

LIMITS, IMAGES = "has(object.data)", "has(object.binaryData)"
WHY = "Read the check; if its findings are acceptable, replace the waiver in w.yaml by one of `assay waiver propose`"


def asks(write: Write, expression: str, *, message: str = "not like this") -> None:
    """A policy with this check, which a config map violates."""
    write("cluster/all.yaml", f"{bound('p', expression=expression, message=message)}---\n{config_map('a')}")


def fields(report: Json, name: str) -> list[Json]:
    """A field of each waiver of a report."""
    return [dig(line, name) for line in as_list(dig(report, "waivers", "waivers"))]


def accepted(assay: Assay, write: Write) -> None:
    """Scan with a waiver for the only check of the policy, by its id."""
    asks(write, LIMITS)
    [finding] = as_list(assay("scan", "--from", "cluster", "-q", "-o", "json").report["findings"])
    write("w.yaml", waiver("limits", "namespace: shop", f"check: {as_text(dig(finding, 'check', 'id'))}"))
    assert 0 == assay(*GATED, "--waivers", "w.yaml").code


def proposed(assay: Assay, *flags: str) -> str:
    """The proposed waivers, as a person fills them in."""
    text = assay("waiver", "propose", "--until", str(NEXT_YEAR), *flags).stdout.decode()
    lines = text.replace("<name>", "ann").replace("<name of another person>", "bob")
    return re.sub(r": <.*>", ": legacy", lines)


def test_a_gate_turns_red_when_the_only_check_is_replaced(assay: Assay, write: Write) -> None:
    """Its line names the waiver; the problem did not fail before, so it is new."""
    accepted(assay, write)
    asks(write, IMAGES)
    ran = assay(*GATED, "--fail-on", "new", "--waivers", "w.yaml")

    assert (1, {"limits": "unknownCheck"}, {"a": ""}) == (ran.code, states(ran.report), waived(ran.report))
    assert "1 finding is no longer waived: waiver limits is for a check that asks something else now\n" in ran.stderr
    assert "gates failed: violated (1 problem with violations); new (1 new problem since scan" in ran.stderr
    assert (1, [1]) == (dig(ran.report, "waivers", "lapsed"), fields(ran.report, "findings"))


def test_earlier_reports_keep_the_waiver(assay: Assay, write: Write) -> None:
    """As of their own date."""
    accepted(assay, write)
    asks(write, IMAGES)
    assay(*GATED, "--waivers", "w.yaml")

    then, now = (states(assay("report", scan, "-o", "json").report) for scan in ("last~1", "last"))
    assert ({"limits": "active"}, {"limits": "unknownCheck"}) == (then, now)


def test_a_reformatted_check_and_a_new_message_leave_the_waiver(assay: Assay, write: Write) -> None:
    """The policy asks the same."""
    accepted(assay, write)
    asks(write, "  has( object.data )", message="another")
    ran = assay(*GATED, "--waivers", "w.yaml")

    assert (0, {"limits": "active"}) == (ran.code, states(ran.report))


def test_people_read_which_waiver_is_of_an_unknown_check_and_what_to_do(assay: Assay, write: Write, home: Path) -> None:
    """In the summary of a terminal, in the check of waivers, in a page, in Markdown and in metrics."""
    accepted(assay, write)
    asks(write, IMAGES)
    forms = "--html", "out", "--export", "markdown=a.md", "--export", "openmetrics=a.txt"
    ran = assay("scan", "--from", "cluster", "--waivers", "w.yaml", *forms)
    checked = assay("waiver", "check")
    sentence = f"the check asks something else than in the first scan that used the waiver. {WHY}"
    page = (home / "out" / "waivers.html").read_text()

    assert f"waiver limits is unknown check: {sentence}" in " ".join(ran.stdout.decode().split())
    assert (1, True) == (checked.code, sentence in checked.stdout.decode())
    assert '<span class="word">unknown check</span>' in page
    assert "the check asks something else" in page
    assert "| limits | unknown check |" in (home / "a.md").read_text()
    assert 'state="unknownCheck"} 1' in (home / "a.txt").read_text()


def test_a_finding_is_explained_with_the_digests_that_differ(assay: Assay, write: Write) -> None:
    """The waiver nearly applies."""
    accepted(assay, write)
    asks(write, IMAGES)
    assay(*GATED, "--waivers", "w.yaml")
    [now] = as_list(assay("findings", "-o", "json").report["findings"])
    text = assay("waiver", "explain", as_text(dig(now, "id"))).stdout.decode()

    assert re.search("limits nearly applies, but fails on checkDigest: the waiver needs sha256:[0-9a-f]{64}, not", text)


def test_a_difference_names_the_problem_that_is_no_longer_waived(assay: Assay, write: Write) -> None:
    """It is open in both scans."""
    accepted(assay, write)
    asks(write, IMAGES)
    assay(*GATED, "--waivers", "w.yaml")
    ended = as_list(dig(assay("diff", "-o", "json").report, "waivers", "noLongerWaived"))

    assert ["limits"] == [dig(each, "waiver", "name") for each in ended]


def test_a_proposed_waiver_has_a_digest_and_ends_with_the_question(assay: Assay, write: Write) -> None:
    """It applies while the policy asks the same, and the next proposal is for the new question."""
    asks(write, LIMITS)
    assay("scan", "--from", "cluster")
    write("w.yaml", proposed(assay))
    first = assay(*GATED, "--waivers", "w.yaml")
    asks(write, f"{LIMITS} // reformatted")
    second = assay(*GATED, "--waivers", "w.yaml")
    asks(write, IMAGES)
    third = assay(*GATED, "--waivers", "w.yaml")
    write("w.yaml", proposed(assay))
    fourth = assay(*GATED, "--waivers", "w.yaml")

    runs = first, second, third, fourth
    assert [0, 0, 1, 0] == [ran.code for ran in runs]
    assert ["active", "active", "unknownCheck", "active"] == [
        state for ran in runs for state in states(ran.report).values()
    ]
    digests = [fields(ran.report, "checkDigest") for ran in runs]
    assert digests[0] == digests[1] == digests[2] != digests[3]


def test_an_expired_waiver_of_a_replaced_check_is_expired(assay: Assay, write: Write) -> None:
    """It would waive nothing on its days either, so no finding waits for its renewal."""
    accepted(assay, write)
    asks(write, IMAGES)
    assay(*GATED, "--waivers", "w.yaml")
    after = datetime.now(UTC).date() + timedelta(days=366)
    ran = assay("report", "--at", str(after), "-o", "json")

    assert ({"limits": "expired"}, 0) == (states(ran.report), dig(ran.report, "waivers", "lapsed"))


KYVERNO = """\
apiVersion: policies.kyverno.io/v1
kind: ValidatingPolicy
metadata: {{name: network}}
spec:
  validationActions: [Deny]
  matchConstraints:
    resourceRules:
      - {{apiGroups: [""], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [pods]}}
  variables:
    - {{name: own, expression: "object.spec.?{field}.orValue(false)"}}
  validations:
    - {{expression: "!variables.own && object.spec.containers.size() > 0", message: "not so"}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {{name: web, namespace: shop}}
spec:
  selector: {{matchLabels: {{app: web}}}}
  template:
    metadata: {{labels: {{app: web}}}}
    spec:
      hostNetwork: true
      hostPID: true
      containers: [{{name: web, image: web}}]
---
apiVersion: v1
kind: Pod
metadata: {{name: web, namespace: shop}}
spec:
  hostNetwork: true
  hostPID: true
  containers: [{{name: web, image: web}}]
"""


@pytest.mark.parametrize(("field", "code"), [("hostNetwork", 0), ("hostPID", 1)])
def test_checks_that_kyverno_rewrites_for_controllers_of_pods_are_compared(
    assay: Assay, write: Write, field: str, code: int
) -> None:
    """With the question that the policy asks as it is written."""
    write("cluster/all.yaml", KYVERNO.format(field="hostNetwork"))
    assay("scan", "--from", "cluster")
    write("w.yaml", proposed(assay))
    write("cluster/all.yaml", KYVERNO.format(field=field))
    ran = assay(*GATED, "--waivers", "w.yaml")

    assert (code, 2) == (ran.code, len(as_list(ran.report["findings"])))
    assert {"unknownCheck" if code else "active"} == set(states(ran.report).values())
