"""Compares what Pod Security is expected to answer to the creation of an object with the response of the server.

A denial or a warning has all failures of one level, so they are compared as one text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from scanner.admission.dispatch import InvocationResult
from scanner.model.json import as_text, dig
from scanner.model.outcome import Violated
from scanner.parity.answers import CUT, Response
from scanner.parity.compare import SILENCE, VerdictComparison, VerdictDifference
from scanner.parity.verdicts import AUDIT

_REFUSED: Final = re.compile(r'violates PodSecurity "[^"]*": .*', re.DOTALL)
_WARNS: Final = "would violate PodSecurity "
_OF_PODS: Final = "the pods of a template are not created by a write of the template"


@dataclass(frozen=True, slots=True)
class ExpectedPodSecurity:
    """The text of the refusal, that of the warning, the number of check results behind them, and those that no client sees."""

    refusal: str = ""
    warning: str = ""
    seen: int = 0
    audited: int = 0
    of_pods: int = 0
    policy: str = ""


def expect_pod_security(results: Iterable[InvocationResult]) -> ExpectedPodSecurity | None:
    """The expected answer to a write with these results; None without any."""
    texts: dict[str, str] = {}
    numbers = dict.fromkeys(("Deny", "Warn", "Audit", "RefusePods"), 0)
    policy = ""
    for result in results:
        binding = result.invocation.binding
        (action,) = binding.actions
        policy = result.invocation.policy.name
        numbers[action] += len(result.check_results)
        failures = [
            each.outcome.message
            for each in result.check_results
            if isinstance(each.outcome, Violated) and not each.excepted_by
        ]
        if failures:
            level, version = (as_text(dig(binding.manifest, "spec", name)) for name in ("level", "version"))
            texts[action] = f'violate PodSecurity "{level}:{version}": {", ".join(failures)}'
    if not policy:
        return None
    refusal = texts.get("Deny", "").replace("violate", "violates", 1)
    warning = "" if refusal else texts.get("Warn", "")
    return ExpectedPodSecurity(
        refusal,
        f"would {warning}" if warning else "",
        numbers["Deny"] + (0 if refusal else numbers["Warn"]),
        numbers["Audit"] + (numbers["Warn"] if refusal else 0),
        numbers["RefusePods"],
        policy,
    )


def find_refusal(response: Response) -> str:
    """The refusal of Pod Security in a response; empty without one."""
    match = _REFUSED.search(response.message)
    return match[0] if match else ""


def compare_pod_security(expected: ExpectedPodSecurity, response: Response) -> VerdictComparison:
    """Compare an expected answer with the response to a creation."""
    comparison = VerdictComparison()
    unseen = {AUDIT: expected.audited, _OF_PODS: expected.of_pods}
    comparison.unseen.update({reason: number for reason, number in unseen.items() if number})
    refusal = find_refusal(response)
    warning = next((each for each in response.warnings if each.startswith(_WARNS)), "")
    pairs = (expected.refusal, refusal), (expected.warning, warning)
    different = [(assay, server) for assay, server in pairs if server not in (assay, assay[:CUT])]
    if not different:
        comparison.agreed += expected.seen
    for assay, server in different:
        comparison.differences.append(VerdictDifference(expected.policy, "", assay or SILENCE, server or SILENCE))
    return comparison
