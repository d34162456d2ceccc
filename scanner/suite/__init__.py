"""Test suites of policy authors: policies, objects, and what should be said of each; judged without a cluster.

Two forms are read. `kyverno-test.yaml` is Kyverno's own (`cli.kyverno.io/v1alpha1`, kind Test) and is judged as its command line
judges; `assay-test.yaml` says the same in fewer words and is judged as admission would.
"""

from scanner.suite.checking import Checked, check
from scanner.suite.form import Expectation, Suite

__all__ = ["Checked", "Expectation", "Suite", "check"]
