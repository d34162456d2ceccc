"""Write `docs/images/report.png`, the picture of the README, from the report that `make demo` wrote."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
REPORT = ROOT / "build" / "demo" / "report" / "index.html"
PICTURE = ROOT / "docs" / "images" / "report.png"
_BROWSER = os.environ.get("ASSAY_TEST_CHROMIUM", "/usr/bin/chromium")
_SIZE = "1200,700"


def main() -> None:
    """Show the summary page in a browser without a window, and keep what the browser shows."""
    if not REPORT.exists():
        sys.exit(f"{REPORT} does not exist: run `make demo` first")
    with tempfile.TemporaryDirectory() as profile:
        command = [_BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
        target = [f"--user-data-dir={profile}", f"--window-size={_SIZE}", f"--screenshot={PICTURE}", REPORT.as_uri()]
        subprocess.run([*command, *target], check=True, capture_output=True)  # noqa: S603 - a local page in a browser


if __name__ == "__main__":
    main()
