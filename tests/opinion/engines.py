"""Programs that replace cel-python, and fail in some way."""

from __future__ import annotations

import sys

_HEAD = "import json, sys, time\nprint('[\"ready\"]', flush=True)\nfor line in sys.stdin:\n    question = json.loads(line)\n"
_ORDINARY = "    print('[\"ready\"]' if 'text' in question or 'inputs' in question else '[\"value\", [\"bool\", true]]', flush=True)\n"


def command(evil: str) -> tuple[str, ...]:
    """An engine that answers true, and runs `evil` first for an expression that contains `evil`."""
    return sys.executable, "-c", f"{_HEAD}    if 'evil' in question.get('text', ''): {evil}\n{_ORDINARY}"


HANGS = command("time.sleep(60)")
DIES = command("sys.exit(1)")
BABBLES = command("print('{\"x\": 1}', flush=True); continue")
NEVER_BEGINS = (sys.executable, "-c", "raise SystemExit(1)")
