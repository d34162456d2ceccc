"""The exit codes of errors: 4 for a command that could not run, and in a Job 5 for an error that no other try can mend (ADR 79)."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from scanner.errors import AssayError

COULD_NOT_RUN: Final = 4
NEEDS_USER: Final = 5


def find_exit_code(error: AssayError) -> int:
    """The exit code of a command that an error has ended."""
    from scanner.config.environment import JOB

    return NEEDS_USER if error.needs_user and os.environ.get(JOB) == "1" else error.exit_code
