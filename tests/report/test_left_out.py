"""A scan that is complete within its scope names what the user left out, in one sentence for every format."""

from __future__ import annotations

import json
from dataclasses import replace
from io import BytesIO, StringIO
from pathlib import Path

import pytest

from scanner.model.scans.method import Method
from scanner.model.scans.scan import Coverage, CoverageState, Scope
from scanner.report import FORMATS
from scanner.report.document.coverage import left_out_of
from scanner.report.document.document import document_of
from scanner.report.document.sentences import verdict_of
from tests.report.in_memory import ScanInMemory

from .pages import main_of
from .records import partial_record, small_record

WHOLE = "Everything that a bound policy can match was scanned."
_LISTED = Coverage("apps/v1", "Deployment", CoverageState.LISTED, 14, 12)


def skipped(*kinds: str) -> tuple[Coverage, ...]:
    """The coverage of kinds that a bound policy can match and that the user left out."""
    return tuple(Coverage("example.dev/v1", kind, CoverageState.SKIPPED, note="left out") for kind in kinds)


def scanned(scope: Scope = Scope(), *kinds: str) -> ScanInMemory:  # noqa: B008 - frozen
    """A complete scan with this scope, without these kinds."""
    record = small_record()
    return replace(record, scan=replace(record.scan, scope=scope), coverage=(_LISTED, *skipped(*kinds)), previous=None)


@pytest.mark.parametrize(
    ("scope", "kinds", "left_out"),
    [
        (Scope(skip_kinds=("ingresses",)), ("Ingress",), "Ingresses"),
        (
            Scope(kinds=("Deployment",)),
            ("NetworkPolicy", "Gateway", "Endpoints"),
            "Endpoints, Gateways, NetworkPolicies",
        ),
        (Scope(namespaces=("shop", "pay")), (), "all namespaces but shop, pay"),
        (Scope(exclude_namespaces=("kube-system",)), (), "namespace kube-system"),
        (Scope(exclude_namespaces=("kube-*",)), (), "namespaces kube-*"),
        (Scope(policies=("limits",)), (), "all policies but limits"),
        (Scope(bindings=("strict",)), (), "all bindings but strict"),
        (Scope(selector="app=web"), (), "objects that app=web does not select"),
        (Scope(operation="create"), (), "UPDATE requests"),
        (Scope(operation="update"), (), "CREATE requests"),
    ],
)
def test_each_way_to_leave_out_is_named(scope: Scope, kinds: tuple[str, ...], left_out: str) -> None:
    """The sentence of a complete scan does not claim that everything was scanned."""
    sentence = verdict_of(document_of(scanned(scope, *kinds)))

    assert f"Complete within its scope; left out on request: {left_out}." == sentence


def test_the_policies_of_the_cluster_are_left_out() -> None:
    """With --no-cluster-policies, bound policies of the cluster are not evaluated."""
    assert ("the policies of the cluster",) == left_out_of(Scope(), (), Method(without_cluster_policies=True))


def test_a_kind_that_no_bound_policy_can_match_is_not_left_out() -> None:
    """The chart skips Secrets in every cluster: that matters only where a policy can match Secrets."""
    assert WHOLE == verdict_of(document_of(scanned(Scope(skip_kinds=("secrets",)))))


def test_many_kinds_are_counted() -> None:
    """A rule for all kinds leaves out hundreds."""
    kinds = [f"Kind{letter}" for letter in "ABCDEFG"]

    assert ("KindAs", "KindBs", "KindCs", "KindDs", "KindEs", "2 more kinds") == left_out_of(
        Scope(), skipped(*kinds), None
    )


def test_an_incomplete_scan_names_what_was_left_out_too() -> None:
    """The gaps come first."""
    assert "3 items could not be scanned; left out on request: Secrets, namespaces kube-*." == verdict_of(
        document_of(partial_record())
    )


def test_every_format_has_the_same_sentence(tmp_path: Path) -> None:
    """Terminal, HTML, JSON, Markdown and OSCAL; metrics have a sample for each part."""
    document = document_of(scanned(Scope(skip_kinds=("ingresses",)), "Ingress"))
    sentence = "Complete within its scope; left out on request: Ingresses."
    files = {name: BytesIO() for name in ("json", "oscal")}
    texts = {name: StringIO() for name in ("table", "markdown", "openmetrics")}
    for name, out in (files | texts).items():
        FORMATS[name].render(document, out)
    FORMATS["html"].render(document, tmp_path / "report")
    shown = {name: out.getvalue() for name, out in texts.items()} | {"oscal": files["oscal"].getvalue().decode()}
    verdict = json.loads(files["json"].getvalue())["verdict"]

    assert (sentence, ["Ingresses"]) == (verdict["sentence"], verdict["leftOut"])
    for page in ("index", "coverage", "method"):
        assert sentence in main_of(tmp_path / "report" / f"{page}.html")
    for name in ("table", "markdown", "oscal"):
        assert sentence in shown[name]
        assert WHOLE not in shown[name]
    assert 'assay_scan_left_out{cluster="harbour",what="Ingresses"} 1.0\n' in shown["openmetrics"]
