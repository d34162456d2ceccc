"""The differences between the admission plugins of kube-apiserver that evaluate policies.

Source of truth: `validating.dispatcher` and `mutating.dispatcher` of kube-apiserver 1.36, and the validation of new policies.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Plugin:
    """The error handling of a plugin, and its declarations.

    `reason` is the reason in a denial because of a faulty configuration, `code` the HTTP status of every error. With
    `always_denies` an error that failurePolicy does not ignore denies with any action. With `declares_variables` a new
    policy without variables may still name `variables`.
    """

    reason: str
    code: int
    always_denies: bool
    declares_variables: bool


VALIDATING: Final = Plugin("Invalid", 422, always_denies=False, declares_variables=False)
MUTATING: Final = Plugin("Forbidden", 403, always_denies=True, declares_variables=True)
