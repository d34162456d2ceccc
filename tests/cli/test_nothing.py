"""A scan without policies or objects reports it with the remedy: silence is never success."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

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

    assert "No policy is bound. Preview a policy with --assume-bound POLICY." in ran.stdout.decode()


def test_no_objects(assay: Assay, write: Write) -> None:
    """Policies without objects have passed nothing."""
    write("cluster/all.yaml", bound("strict"))

    ran = assay("scan", "--from", "cluster")

    assert "No bound policy matched an object" in ran.stdout.decode()
    assert "not available" in ran.stdout.decode()


def test_an_empty_folder(assay: Assay, home: Path) -> None:
    """A folder without manifests is neither an error nor a success."""
    (home / "cluster").mkdir()

    ran = assay("scan", "--from", "cluster")

    assert 0 == ran.code
    assert "No policies were found" in ran.stdout.decode()


def test_policies_of_a_scan_without_policies(assay: Assay, write: Write) -> None:
    """The list of policies is empty, and names the sources of policies."""
    write("cluster/all.yaml", config_map("x"))
    assay("scan", "--from", "cluster", "-q")

    ran = assay("policies")

    assert (0, b"") == (ran.code, ran.stdout)
    assert ran.stderr.startswith("The last scan found no policies. Add some with -f PATH")
