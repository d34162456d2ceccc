"""`assay verify-parity` without a cluster: what it refuses, and how it ends."""

from __future__ import annotations

import pytest

from tests.cli.conftest import Assay


@pytest.mark.parametrize(
    "flags",
    [("--sample", "0"), ("--sample", "many"), ("--seed", "-1"), ("--operation", "delete"), ("-o", "html")],
)
def test_a_flag_that_means_nothing_is_refused(assay: Assay, flags: tuple[str, ...]) -> None:
    """Before any cluster is asked."""
    ran = assay("verify-parity", *flags)

    assert (2, b"") == (ran.code, ran.stdout)


def test_an_empty_value_does_not_widen_the_scope(assay: Assay) -> None:
    """An unset variable in a script must not write objects of every namespace."""
    ran = assay("verify-parity", "-n", "")

    assert (2, b"") == (ran.code, ran.stdout)
    assert ran.stderr.startswith("assay: -n has an empty value")


def test_no_cluster_to_write_to(assay: Assay) -> None:
    """One sentence and the exit code of what could not run."""
    ran = assay("verify-parity", "--kubeconfig", "nowhere")

    assert (4, b"") == (ran.code, ran.stdout)
    assert "there is no kubeconfig nowhere" in ran.stderr
