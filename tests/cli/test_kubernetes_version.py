"""`--kubernetes-version`: the release whose rules apply to files."""

from __future__ import annotations

from pathlib import Path

import pytest

from scanner.model.json import as_list, dig
from tests.cli.conftest import Assay
from tests.cli.manifests import bound, config_map
from tests.cli.test_scan_from_files import Write


@pytest.fixture
def cluster(write: Write) -> Path:
    """A ConfigMap, and a policy with a function of 1.33."""
    write("cluster/map.yaml", config_map("one"))
    write("cluster/policy.yaml", bound("strict", expression="isSemver('1.2.3') && false"))
    return Path("cluster")


@pytest.mark.parametrize("version", ["1.34", "v1.36.2", "1.37", "1.99"])
def test_a_release_that_has_the_function_evaluates_it(assay: Assay, cluster: Path, version: str) -> None:
    """The policy is stored, evaluated and violated."""
    ran = assay("scan", "--from", cluster, "--kubernetes-version", version, "-o", "json")

    assert (0, ["violated"]) == (ran.code, [dig(finding, "outcome") for finding in as_list(ran.report["findings"])])
    assert f"v{version.removeprefix('v')}" == dig(ran.report, "provenance", "cluster", "serverVersion")


@pytest.mark.parametrize("version", ["1.32", "1.33"])
def test_a_release_that_would_not_store_the_policy_leaves_a_gap(assay: Assay, cluster: Path, version: str) -> None:
    """1.33 has the function, but accepts it in new policies only if 1.32 has it too."""
    ran = assay("scan", "--from", cluster, "--kubernetes-version", version, "-o", "json")

    [gap] = as_list(ran.report["gaps"])
    assert 3 == ran.code
    assert "undeclared reference to 'isSemver'" in str(dig(gap, "why"))


def test_the_newest_rules_apply_to_files_by_default(assay: Assay, cluster: Path) -> None:
    """No flag selects another release."""
    assert "1.37" == dig(assay("scan", "--from", cluster, "-o", "json").report, "provenance", "rules")


def test_an_invalid_version_is_a_usage_error(assay: Assay, cluster: Path) -> None:
    """The message has an example of a version."""
    ran = assay("scan", "--from", cluster, "--kubernetes-version", "latest")

    assert (2, "assay: --kubernetes-version latest: write a version such as 1.37\n") == (ran.code, ran.stderr)


def test_a_cluster_reports_its_own_version(assay: Assay) -> None:
    """With a cluster the flag is rejected, because it would make verdicts wrong."""
    ran = assay("scan", "--kubernetes-version", "1.33")

    why = "assay: --kubernetes-version needs --from: a live cluster reports its own version\n"
    assert (2, why) == (ran.code, ran.stderr)
