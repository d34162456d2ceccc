"""What the server answers to a write with some results: one text for each action, which has all failures of a level.

Source of truth: `k8s.io/pod-security-admission` v0.30 to v0.38, `admission/admission.go`.

Rules: `docs/semantics/pod-security.md#answers`.
"""

from __future__ import annotations

from collections.abc import Iterable

from scanner.admission.dispatch import InvocationResult
from scanner.model.json import as_text, dig
from scanner.model.outcome import Violated
from scanner.model.policy import Action


def write_answers(results: Iterable[InvocationResult]) -> dict[Action, str]:
    """The texts after the name of the object, by the action; those of actions without a failure are left out.

    A refused pod has no warning; the text of `RefusePods` is that of the refusal of the pods.
    """
    texts: dict[Action, str] = {}
    for result in results:
        binding = result.invocation.binding
        (action,) = binding.actions
        failures = [
            each.outcome.message
            for each in result.check_results
            if isinstance(each.outcome, Violated) and not each.excepted_by
        ]
        if failures:
            verb = "violates" if action in ("Deny", "RefusePods") else "would violate"
            level, version = (as_text(dig(binding.manifest, "spec", name)) for name in ("level", "version"))
            texts[action] = f'{verb} PodSecurity "{level}:{version}": {", ".join(failures)}'
    if "Deny" in texts:
        texts.pop("Warn", None)
    return texts
