"""The pages that users read: the README, and every page of the documentation but the generated one and the decisions."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
_GENERATED = "cli.md"
PAGES = [README, *(page for page in sorted((ROOT / "docs").glob("*.md")) if page.name != _GENERATED)]
