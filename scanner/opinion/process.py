"""The other engine in a process that may crash, hang or grow, and is restarted then.

The first failure of an expression is its answer from then on: the expression is not sent again.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Mapping
from typing import Any, Self

from scanner.admission.compiled import Expression
from scanner.cel import EvaluationError, Lazy, Value
from scanner.opinion.engine import EngineAnswer, Inexpressible, tag_value

_PATIENCE = 2.0
"""Seconds for one answer; the first answer takes longer, because the process has to import the engine."""
_BEGINNING = 60.0
_MOST_SILENCES = 20
"""The number of restarts of the process after which it gets no further expression."""
_DOCUMENTS = ("object", "oldObject", "params", "request", "namespaceObject")
_MODULE = "scanner.opinion.celpython"


class Process:
    """A running cel-python. Use it as a context: the process ends with the context."""

    def __init__(self, command: tuple[str, ...] = (sys.executable, "-m", _MODULE), patience: float = _PATIENCE) -> None:
        """Start no process yet: a scan that samples no object needs none. `patience` is the limit of an answer in seconds."""
        self._command = command
        self._patience = patience
        self.running: subprocess.Popen[bytes] | None = None
        self._rest = b""
        self._numbers: dict[str, int] = {}
        self._compiled: set[int] = set()
        self._spoilt: dict[str, EngineAnswer] = {}
        self._silences = 0
        self._inputs: dict[str, object] = {}
        self._hidden: dict[str, str] = {}

    def __enter__(self) -> Self:
        """Start no process yet."""
        return self

    def __exit__(self, *_: object) -> None:
        """End the process."""
        self._end()

    def show(self, activation: Mapping[str, object], variables: frozenset[str]) -> None:
        """See Engine. Variables are sent as Assay's values."""
        values: dict[str, object] = {}
        self._hidden = {}
        for name in sorted(variables):
            try:
                values[name] = tag_value(_read_variable(activation, name))
            except Inexpressible as inexpressible:
                self._hidden[name] = str(inexpressible)
            except EvaluationError:
                continue
        documents = {name: activation[name] for name in _DOCUMENTS if name in activation}
        self._inputs = {"inputs": documents, "variables": values}
        if self.running is not None and self._exchange(self._inputs).kind != "value":
            self._stop_silent()

    def ask(self, expression: Expression) -> EngineAnswer:
        """See Engine."""
        text = expression.text
        hidden = [type_ for name, type_ in self._hidden.items() if ("variables", name) in _list_first_parts(expression)]
        if hidden:
            return EngineAnswer("unsayable", hidden[0])
        if text in self._spoilt:
            return self._spoilt[text]
        if self._silences >= _MOST_SILENCES:
            return EngineAnswer("silent", "it was given up")
        number = self._numbers.setdefault(text, len(self._numbers))
        answer = self._compile(text, number) or self._exchange({"number": number})
        if answer.kind in ("silent", "refused"):
            self._spoilt[text] = answer
        if answer.kind == "silent":
            self._stop_silent()
        return answer

    def _stop_silent(self) -> None:
        self._silences += 1
        self._end()

    def _compile(self, text: str, number: int) -> EngineAnswer | None:
        """Compile an expression unless it is compiled; return the failure, or None."""
        if self.running is None and not self._start():
            return EngineAnswer("silent", "cel-python cannot be started")
        if number in self._compiled:
            return None
        answer = self._exchange({"text": text, "number": number})
        if answer.kind != "value":
            return EngineAnswer("refused", answer.text) if answer.kind in ("error", "crash") else answer
        self._compiled.add(number)
        return None

    def _start(self) -> bool:
        self._compiled.clear()
        self._rest = b""
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        self.running = subprocess.Popen(  # noqa: S603 - our own module, or what a test passes instead
            self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
            start_new_session=True,
        )
        if self._read_answer(_BEGINNING).kind != "value" or self._exchange(self._inputs).kind != "value":
            self._end()
            return False
        return True

    def _exchange(self, question: Mapping[str, object]) -> EngineAnswer:
        running = self.running
        if running is None or running.stdin is None:
            return EngineAnswer("silent", "it is gone")
        try:
            running.stdin.write(json.dumps(question).encode() + b"\n")
            running.stdin.flush()
        except OSError:
            return EngineAnswer("silent", "it died")
        return self._read_answer(self._patience)

    def _read_answer(self, patience: float) -> EngineAnswer:
        line = self._read_line(time.monotonic() + patience)
        if line is None:
            return EngineAnswer("silent", f"no answer within {patience:g} s")
        if not line:
            return EngineAnswer("silent", "it died")
        return _parse_answer(json.loads(line))

    def _read_line(self, deadline: float) -> bytes | None:
        """One line; empty at the end of the output, None if no line arrives in time."""
        running = self.running
        if running is None or running.stdout is None:
            return b""
        descriptor = running.stdout.fileno()
        while b"\n" not in self._rest:
            ready, _, _ = select.select([descriptor], [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                return None
            piece = os.read(descriptor, 1 << 16)
            if not piece:
                return b""
            self._rest += piece
        line, _, self._rest = self._rest.partition(b"\n")
        return line

    def _end(self) -> None:
        running, self.running = self.running, None
        if running is None:
            return
        running.kill()
        for stream in (running.stdin, running.stdout):
            if stream is not None:
                _close(stream)
        running.wait()


def _read_variable(activation: Mapping[str, object], name: str) -> Value:
    """The value of a policy variable. Raises EvaluationError."""
    variables = activation.get("variables")
    value = variables.find(name) if isinstance(variables, Lazy) else None
    return None if value is None else value[0]


def _list_first_parts(expression: Expression) -> frozenset[tuple[str, ...]]:
    """The first parts of an expression's access paths: the name of a document, or a variable."""
    return frozenset() if expression.program is None else frozenset(path[:2] for path in expression.program.reads)


def _close(stream: Any) -> None:
    try:
        stream.close()
    except OSError:
        return


def _parse_answer(answer: Any) -> EngineAnswer:
    match answer:
        case ["ready"]:
            return EngineAnswer("value")
        case ["value", [str(kind), value]]:
            return EngineAnswer("value", value=(kind, value))
        case ["error" | "refused" | "crash" as kind, str(text)]:
            return EngineAnswer(kind, text)
        case _:
            return EngineAnswer("crash", "it wrote text that is not an answer")
