"""Print the section of CHANGELOG.md about a version: `python3 scripts/changelog_section.py 1.2.3`."""

from __future__ import annotations

import re
import sys
from pathlib import Path

CHANGELOG = Path(__file__).parents[1] / "CHANGELOG.md"


def section(version: str, changelog: str) -> str:
    """The text below the heading of a version. Exits with an error if there is none, or if it is empty."""
    found = re.search(rf"^## \[{re.escape(version)}\][^\n]*\n(.*?)(?=^## |\Z)", changelog, re.MULTILINE | re.DOTALL)
    if found is None or not found[1].strip():
        sys.exit(f"{CHANGELOG.name} has no section about {version}: see RELEASING.md")
    return found[1].strip()


if __name__ == "__main__":
    print(section(sys.argv[1], CHANGELOG.read_text()))
