"""The probes of a container over HTTP, and what follows from them.

Source of truth: the kubelet's prober (pkg/kubelet/prober/worker.go): until the startup probe has passed, the others do not
begin; readiness begins as failed, liveness as passed; a result counts after as many equal answers as its threshold.
"""

from __future__ import annotations

import time
from typing import Final

import urllib3

from scanner.model.json import JsonObject, as_list, as_object, as_text, dig

DEFAULTS: Final = {"periodSeconds": 10, "timeoutSeconds": 1, "successThreshold": 1, "failureThreshold": 3}


class Probe:
    """One probe; `passed` is its result now."""

    def __init__(self, spec: JsonObject, container: JsonObject, address: str, *, passed: bool) -> None:
        self.passed = passed
        """The result now."""
        self._values = {key: int(str(spec.get(key, default))) for key, default in DEFAULTS.items()}
        action = as_object(spec["httpGet"])
        self._url = f"http://{address}:{_port(action['port'], container)}{as_text(action['path'])}"
        self._last: bool | None = None
        self._equal = 0
        self._next = 0.0

    def advance(self) -> None:
        """Ask the container if its time has come."""
        if time.monotonic() < self._next:
            return
        self._next = time.monotonic() + self._values["periodSeconds"]
        answer = self._answer()
        self._equal = self._equal + 1 if answer == self._last else 1
        self._last = answer
        if self._equal >= self._values["successThreshold" if answer else "failureThreshold"]:
            self.passed = answer

    def _answer(self) -> bool:
        timeout = self._values["timeoutSeconds"]
        try:
            answer = urllib3.request("GET", self._url, timeout=timeout, retries=False, redirect=False)
        except urllib3.exceptions.HTTPError:
            return False
        return 200 <= answer.status < 400


class Probes:
    """The probes of a container since its process was started; a probe that it does not have has passed."""

    def __init__(self, container: JsonObject, address: str) -> None:
        self._startup, self._readiness, self._liveness = (
            Probe(as_object(container[name]), container, address, passed=passed) if name in container else None
            for name, passed in (("startupProbe", False), ("readinessProbe", False), ("livenessProbe", True))
        )

    def advance(self) -> None:
        """Ask the container what its time has come for."""
        if self._startup and not self._startup.passed:
            self._startup.advance()
            return
        for probe in (self._readiness, self._liveness):
            if probe:
                probe.advance()

    @property
    def started(self) -> bool:
        """Whether the startup probe has passed."""
        return not self._startup or self._startup.passed

    @property
    def ready(self) -> bool:
        """Whether the container gets requests."""
        return self.started and (not self._readiness or self._readiness.passed)

    @property
    def alive(self) -> bool:
        """Whether the container may go on."""
        return not self._liveness or self._liveness.passed


def _port(port: object, container: JsonObject) -> int:
    """A port by its number, or by its name among the ports of the container."""
    if isinstance(port, int):
        return port
    [number] = (dig(each, "containerPort") for each in as_list(container.get("ports")) if dig(each, "name") == port)
    return int(str(number))
