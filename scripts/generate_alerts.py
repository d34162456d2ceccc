"""Write `deploy/prometheus/alerts.yaml`, a rules file of Prometheus, from the PrometheusRule beside it.

The chart has the same file, because Helm reads no files outside of a chart.

`make docs` and `python -m scripts.generate_alerts` run it.
"""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent
from typing import Final

FOLDER: Final = Path(__file__).parents[1] / "deploy" / "prometheus"
RULE: Final = FOLDER / "rules.yaml"
ALERTS: Final = FOLDER / "alerts.yaml"
OF_CHART: Final = FOLDER.parent / "chart" / "files" / "alerts.yaml"
_HEAD: Final = "# The alerts of rules.yaml as a rules file of Prometheus, written from it: make docs.\n"
_SPEC: Final = "\nspec:\n"


def alerts() -> str:
    """The text of the rules file: the specification of the PrometheusRule, with its comments."""
    return _HEAD + dedent(RULE.read_text().partition(_SPEC)[2])


if __name__ == "__main__":
    for path in (ALERTS, OF_CHART):
        path.write_text(alerts())
