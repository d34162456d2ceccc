"""Check that subjects of commits have at most 72 characters: the hook `commit-msg`, and a step of the workflow.

python scripts/check_subjects.py .git/COMMIT_EDITMSG          # one message, as git gives it to the hook
git log --format=%s main..HEAD | python scripts/check_subjects.py -    # subjects, one on each line
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

LIMIT = 72


def too_long(subjects: Iterable[str]) -> list[str]:
    """Return the subjects that are longer than the limit, in order."""
    return [subject for subject in subjects if len(subject) > LIMIT]


def subject_of(message: str) -> str:
    """Return the first line of a message that is neither empty nor a comment; empty if there is none."""
    lines = (line.rstrip() for line in message.splitlines() if not line.startswith("#"))
    return next((line for line in lines if line), "")


def main(argument: str) -> None:
    """Print every subject that is too long, and end with exit code 1 if there is one."""
    subjects = sys.stdin.read().splitlines() if argument == "-" else [subject_of(Path(argument).read_text())]
    wrong = too_long(subjects)
    for subject in wrong:
        sys.stderr.write(f"subject of {len(subject)} characters, {LIMIT} are allowed: {subject}\n")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main(sys.argv[1])
