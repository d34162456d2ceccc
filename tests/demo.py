"""The demo of the examples, in which tests record scans of a month."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parents[1]


def demo_in(home: Path) -> ModuleType:
    """The module of the demo, whose paths are relative, with what it needs in `home`; run its functions there."""
    (home / "examples").symlink_to(ROOT / "examples")
    spec = importlib.util.spec_from_file_location("demo", ROOT / "examples" / "demo.py")
    assert spec is not None
    assert spec.loader is not None
    demo = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(demo)
    (home / demo.OUTPUT).mkdir(parents=True)
    return demo
