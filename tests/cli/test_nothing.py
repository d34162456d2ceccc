"""A scan without policies or objects reports it with the remedy: silence is never success."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Assay
from tests.cli.manifests import bound, config_map, policy

Write = Callable[[str, str], Path]


def test_no_policies(assay: Assay, write: Write) -> None:
    """Objects without policies are not evaluated."""
    write("cluster/all.yaml", config_map("x"))

    ran = assay("scan", "--from", "cluster")

    assert "No policies were found. Add some with --policies PATH" in ran.stdout.decode()
    assert "not available" in ran.stdout.decode()


def test_no_bindings(assay: Assay, write: Write) -> None:
    """Policies without bindings are not in force."""
    write("cluster/all.yaml", f"{config_map('x')}---\n{policy('loose')}")

    ran = assay("scan", "--from", "cluster")

    assert "No policy is bound. Preview a policy with `assay preview --bind POLICY`." in ran.stdout.decode()


def test_no_objects(assay: Assay, write: Write) -> None:
    """Policies without objects have passed nothing."""
    write("cluster/all.yaml", bound("strict"))

    ran = assay("scan", "--from", "cluster")

    assert 3 == ran.code
    assert "No object of a kind that a bound policy can match was found." in ran.stdout.decode()
    assert "not available" in ran.stdout.decode()


def test_no_object_that_matches(assay: Assay, write: Write) -> None:
    """Objects were listed, and no policy matched them: the scan is complete, and the report states it."""
    selector = "matchResources: {namespaceSelector: {matchLabels: {a: b}}}"
    write("cluster/all.yaml", f"{config_map('x')}---\n{bound('strict').rstrip()}\n  {selector}\n")
    write("cluster/namespace.yaml", "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n")

    ran = assay("scan", "--from", "cluster")

    assert 0 == ran.code
    assert "No bound policy matched an object" in ran.stdout.decode()


@pytest.mark.parametrize("text", [config_map("x"), policy("loose"), bound("strict")], ids=["none", "unbound", "empty"])
def test_nothing_can_be_accepted(assay: Assay, write: Write, text: str) -> None:
    """--allow-empty makes such a scan complete; --min-coverage does not."""
    write("cluster/all.yaml", text)

    refused, partial, accepted = (
        assay("scan", "--from", "cluster", *flags) for flags in ([], ["--min-coverage", "0"], ["--allow-empty"])
    )

    assert (3, 3, 0) == (refused.code, partial.code, accepted.code)
    assert b"COMPLETE" in accepted.stdout
    assert b"INCOMPLETE" not in accepted.stdout


@pytest.mark.parametrize("flags", [["-l", "a=b"], ["--kind", "pods"], ["--policy", "strict"], ["--skip-kind", "pods"]])
def test_a_narrowed_scan_may_be_empty(assay: Assay, write: Write, flags: list[str]) -> None:
    """The user chose the part that has no objects."""
    write("cluster/all.yaml", bound("strict"))

    assert 0 == assay("scan", "--from", "cluster", *flags).code


def test_the_sentence_is_on_standard_error_beside_a_document(assay: Assay, write: Write) -> None:
    """A reader of logs sees why the exit code is 3."""
    write("cluster/all.yaml", policy("loose"))

    ran = assay("scan", "--from", "cluster", "-o", "json")

    assert (3, False, []) == (ran.code, ran.report["complete"], ran.report["gaps"])
    assert "No policy is bound. Preview a policy with `assay preview --bind POLICY`." in ran.stderr


def test_the_sentence_is_on_the_first_page(assay: Assay, write: Write, home: Path) -> None:
    """Also when the report is rendered again."""
    write("cluster/all.yaml", policy("loose"))
    assay("scan", "--from", "cluster", "-q")
    assay("report", "--html", "pages")

    page = (home / "pages/index.html").read_text()
    assert "Nothing was evaluated." in page
    assert "No policy is bound." in page


def test_an_empty_folder(assay: Assay, home: Path) -> None:
    """A folder without any manifest is no success."""
    (home / "cluster").mkdir()

    ran = assay("scan", "--from", "cluster")

    assert 3 == ran.code
    assert "\nNothing was evaluated." in ran.stdout.decode()
    assert "No policies were found" in ran.stdout.decode()


def test_policies_of_a_scan_without_policies(assay: Assay, write: Write) -> None:
    """The list of policies is empty, and names the sources of policies."""
    write("cluster/all.yaml", config_map("x"))
    assay("scan", "--from", "cluster", "-q")

    ran = assay("policies")

    assert (0, b"") == (ran.code, ran.stdout)
    assert ran.stderr.startswith("The scan found no policies. Add some with -f PATH")
