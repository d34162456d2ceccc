"""The open problems of a policy that have the same action and the same outcome."""

from __future__ import annotations

from typing import NamedTuple


class ProblemGroup(NamedTuple):
    """`action` is the strictest one, or empty; `outcome` is violated, errored or wouldChange: the first that a finding has.

    `number` counts open problems; of them, admission would refuse `refused`, and `new` began with the scan.
    """

    language: str
    policy: str
    action: str
    outcome: str
    number: int
    refused: int
    new: int
