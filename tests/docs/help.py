"""The help texts in the README are those of the commands: `python -m tests.docs.help` writes them."""

from __future__ import annotations

import tempfile
from pathlib import Path

from tests.command import assay

README = Path(__file__).parents[2] / "README.md"
START, END = "<!-- help:start -->\n", "<!-- help:end -->"
COMMANDS = (
    "scan",
    "policies",
    "explain",
    "report",
    "scans",
    "verify-parity",
    "test",
    "rbac check",
    "rbac generate",
    "db upgrade",
)
WIDTH = {"COLUMNS": "100", "TERM": "dumb", "NO_COLOR": "1"}


def section() -> str:
    """Everything between the two markers, as the installed command says it."""
    return "\n" + "\n".join(_block(command) for command in ("", *COMMANDS)) + "\n"


def current() -> str:
    """Everything between the two markers, as the README has it."""
    return README.read_text().split(START)[1].split(END)[0]


def _block(command: str) -> str:
    title = f"assay {command}".strip()
    return f"<details><summary><code>{title}</code></summary>\n\n```text\n{_help(command)}\n```\n\n</details>"


def _help(command: str) -> str:
    with tempfile.TemporaryDirectory() as home:
        text = assay(*command.split(), "--help", home=Path(home), variables=WIDTH).stdout.decode()
    return "\n".join(line.rstrip() for line in text.strip("\n").splitlines())


if __name__ == "__main__":
    before, rest = README.read_text().split(START)
    README.write_text(f"{before}{START}{section()}{END}{rest.split(END)[1]}")
