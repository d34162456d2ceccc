"""Compares what Pod Security is expected to answer to the creation of an object with the response of the server.

A denial or a warning has all failures of one level, so they are compared as one text.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from scanner.admission.dispatch import InvocationResult
from scanner.model.policy import Action
from scanner.parity.answers import CUT, Response
from scanner.parity.compare import OTHER_DENIAL, SILENCE, VerdictComparison, VerdictDifference
from scanner.parity.verdicts import AUDIT
from scanner.policies.pod_security.answers import write_answers

_REFUSED: Final = re.compile(r'violates PodSecurity "[^"]*": .*', re.DOTALL)
_WARNS: Final = "would violate PodSecurity "
_OF_PODS: Final = "the pods of a template are not created by a write of the template"


@dataclass(frozen=True, slots=True)
class ExpectedPodSecurity:
    """The text of the refusal, that of the warning, the number of check results behind them, and those that no client sees.

    `audited` results are those of the audit log, `of_pods` those about the pods of a template, `denied` those that a denial hides.
    """

    refusal: str = ""
    warning: str = ""
    seen: int = 0
    audited: int = 0
    of_pods: int = 0
    denied: int = 0
    policy: str = ""


def expect_pod_security(results: Iterable[InvocationResult]) -> ExpectedPodSecurity | None:
    """The expected answer to a write with these results; None without any."""
    every = tuple(results)
    if not every:
        return None
    texts = write_answers(every)
    numbers: Counter[Action] = Counter()
    for result in every:
        numbers[result.invocation.binding.actions[0]] += len(result.check_results)
    # A denial stands without warnings, so nothing shows what would be warned of.
    unseen = numbers["Warn"] if "Deny" in texts else 0
    return ExpectedPodSecurity(
        texts.get("Deny", ""),
        texts.get("Warn", ""),
        numbers["Deny"] + numbers["Warn"] - unseen,
        numbers["Audit"],
        numbers["RefusePods"],
        unseen,
        every[0].invocation.policy.name,
    )


def find_refusal(response: Response) -> str:
    """The refusal of Pod Security in a response; empty without one."""
    match = _REFUSED.search(response.message)
    return match[0] if match else ""


def is_warning(warning: str) -> bool:
    """Return whether a warning is one of Pod Security."""
    return warning.startswith(_WARNS)


def compare_pod_security(expected: ExpectedPodSecurity, response: Response) -> VerdictComparison:
    """Compare an expected answer with the response to a creation."""
    comparison = VerdictComparison()
    unseen = {AUDIT: expected.audited, _OF_PODS: expected.of_pods, OTHER_DENIAL: expected.denied}
    comparison.unseen.update({reason: number for reason, number in unseen.items() if number})
    refusal = find_refusal(response)
    warning = next(filter(is_warning, response.warnings), "")
    pairs = (expected.refusal, refusal), (expected.warning, warning)
    different = [(assay, server) for assay, server in pairs if server not in (assay, assay[:CUT])]
    if not different:
        comparison.agreed += expected.seen
    for assay, server in different:
        comparison.differences.append(VerdictDifference(expected.policy, "", assay or SILENCE, server or SILENCE))
    return comparison
