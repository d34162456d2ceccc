"""Replays Assay's verdicts as dry-run writes, and compares them with the API server's own.

One file for each step: `copies` makes the objects to write, `verdicts` the expected response, `answers` reads the response,
`compare` compares the two, and `replay` does this for a sample of a cluster's objects.
"""

from scanner.parity.answers import Response
from scanner.parity.compare import VerdictDifference
from scanner.parity.replay import DryRunWriter, Parity, verify

__all__ = ["DryRunWriter", "Parity", "Response", "VerdictDifference", "verify"]
