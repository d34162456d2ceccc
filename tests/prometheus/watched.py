"""A Prometheus that scrapes real metrics once an hour, and the alerts that promtool finds in them."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final, TypeAlias

import yaml

from scripts.generate_alerts import ALERTS
from tests.prometheus.programs import program

HOUR: Final = timedelta(hours=1)
Alert: TypeAlias = frozenset[tuple[str, str]]
_MISSING: Final = "_"
_COUNT: Final = "count by (alertname, cluster, instance, clock, token)"


def alert(name: str, **labels: str) -> Alert:
    """An alert that fires, with some of its labels."""
    return frozenset({"alertname": name, **labels}.items())


@dataclass
class Watched:
    """What Prometheus has scraped since `start`, an hour between two scrapes."""

    start: datetime
    scrapes: int = 0
    series: dict[str, list[str]] = field(default_factory=dict)

    def scrape(self, targets: Mapping[tuple[str, str], Callable[[], str | None]]) -> None:
        """Scrape the targets, by job and instance; the answer of one that is down is None. A push has an empty instance."""
        for (job, instance), answer in targets.items():
            text = answer()
            target = f'job="{job}", instance="{instance}"' if instance else f'job="{job}"'
            if instance:
                self._add(f"up{{{target}}}", str(int(text is not None)))
            for line in (text or "").splitlines():
                if not line.startswith("#"):
                    sample, _, value = line.rpartition(" ")
                    name, _, labels = sample.rstrip("}").partition("{")
                    self._add(f"{name}{{{', '.join(filter(None, (target, labels)))}}}", value)
        self.scrapes += 1
        for values in self.series.values():
            values.extend([_MISSING] * (self.scrapes - len(values)))

    def _add(self, series: str, value: str) -> None:
        values = self.series.setdefault(series, [])
        values.extend([_MISSING] * (self.scrapes - len(values)))
        values.append(value)

    def check(self, expected: Mapping[datetime, Iterable[Alert]], folder: Path, *, besides: str = "") -> str:
        """The output of promtool unless exactly these alerts fire at these moments, `besides` one by its name, else an empty text.

        Of the labels of an alert, `alertname`, `cluster`, `instance`, `clock` and `token` count.
        """
        tests = [
            {
                "expr": f'{_COUNT} (ALERTS{{alertstate="firing", alertname!="{besides}"}})',
                "eval_time": f"{round((moment - self.start) / HOUR)}h",
                "exp_samples": [{"labels": _write(dict(labels)), "value": 1} for labels in alerts],
            }
            for moment, alerts in expected.items()
        ]
        series = [{"series": name, "values": " ".join(values)} for name, values in self.series.items()]
        document = {
            "rule_files": [str(ALERTS)],
            "evaluation_interval": "1h",
            "tests": [
                {
                    "interval": "1h",
                    "start_timestamp": self.start.isoformat(),
                    "input_series": series,
                    "promql_expr_test": tests,
                }
            ],
        }
        path = folder / "watched.yaml"
        path.write_text(yaml.safe_dump(document))
        ran = subprocess.run(
            [program("promtool"), "test", "rules", str(path)], check=False, capture_output=True, text=True, timeout=120
        )
        return ran.stdout + ran.stderr if ran.returncode else ""


def _write(labels: Mapping[str, str]) -> str:
    return "{" + ", ".join(f'{name}="{value}"' for name, value in sorted(labels.items())) + "}"
