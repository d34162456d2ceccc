"""Policy test suites: policies, objects and expected results, evaluated without a cluster.

There are two formats. `kyverno-test.yaml` is Kyverno's (`cli.kyverno.io/v1alpha1`, kind Test), evaluated as the Kyverno CLI does;
`assay-test.yaml` is shorter, and evaluated as admission does.
"""

from scanner.suite.checking import Checked, check
from scanner.suite.form import BrokenSuite, Expectation, Suite

__all__ = ["BrokenSuite", "Checked", "Expectation", "Suite", "check"]
