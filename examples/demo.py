"""Scan the example cluster in its two states, one after the other, and write the report: what `make demo` runs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
OUTPUT = ROOT / "build" / "demo"
ASSAY = os.path.relpath(Path(sys.executable).with_name("assay"), ROOT)
"""The path from the folder in which `make demo` runs: the summary recommends commands that begin with it."""
INCOMPLETE = 3
POLICIES = tuple(f"examples/{folder}" for folder in ("policies", "policies-mutating", "policies-kyverno"))
SAME_CLUSTER = ("--cluster-name", "shop")


def main() -> None:
    """Start from nothing, scan twice, keep the second report as HTML and as JSON."""
    shutil.rmtree(OUTPUT, ignore_errors=True)
    OUTPUT.mkdir(parents=True)
    database = "sqlite:///build/demo/assay.db"
    say("1. The example cluster on the first day: every object against every bound policy.")
    scan("before", "--db", database)
    say("2. The same cluster some days later: which findings are new, still open or resolved.")
    scan("after", "--db", database, "--html", "build/demo/report")
    with (OUTPUT / "report.json").open("wb") as report:
        subprocess.run([ASSAY, "report", "--db", database, "-o", "json"], check=True, cwd=ROOT, stdout=report)  # noqa: S603
    say("One example file is broken on purpose, so both scans are incomplete and end with exit code 3.")
    say(f"Open   {OUTPUT / 'report' / 'index.html'}\nJSON   {OUTPUT / 'report.json'}")


def scan(state: str, *flags: str) -> None:
    """Scan one state; the broken file makes the scan incomplete, and any other exit code ends the demo."""
    policies = (flag for folder in POLICIES for flag in ("-f", folder))
    command = ["scan", "-q", "--from", f"examples/cluster/{state}", *policies, *SAME_CLUSTER, *flags]
    say(f"$ {ASSAY} {' '.join(command)}")
    code = subprocess.run([ASSAY, *command], check=False, cwd=ROOT).returncode  # noqa: S603 - our own command
    if code != INCOMPLETE:
        sys.exit(f"the scan ended with exit code {code}; {INCOMPLETE} was expected")


def say(text: str) -> None:
    """Print a paragraph at once, so that it stands before what the command prints next."""
    sys.stdout.write(f"\n{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
