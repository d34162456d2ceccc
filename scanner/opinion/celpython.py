"""The process that runs cel-python: it reads one question per line and writes one answer for each.

Source of truth: cel-python 0.5, its interpreted runner. Only this process imports cel-python: the import takes half a second, and
a crash or a leak in it cannot harm a scan. The process limits its own memory, and its parent kills it after a timeout.

Questions are JSON: `{"text": …, "number": n}` compiles an expression, `{"inputs": {…}, "variables": {…}}` sets the visible
values, `{"number": n}` evaluates. Answers are `["value", tagged]`, `["error", text]`, `["refused", text]`, `["crash", text]`,
`["ready"]`.
"""

from __future__ import annotations

import datetime as dt
import json
import logging
import resource
import signal
import sys
from contextlib import suppress
from typing import Any

_MEMORY = 1 << 30
"""Bytes of address space."""
_LAST_RESORT = 30
"""Seconds after which the process ends itself if its parent is gone."""
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_LONGEST = 300


class CelPythonProcess:
    """The engine, its compiled programs, and the values that they can read."""

    def __init__(self) -> None:
        """Import the engine."""
        from celpy import Environment, celtypes
        from celpy.adapter import json_to_cel
        from celpy.celparser import CELParseError
        from celpy.evaluation import CELEvalError

        logging.disable(logging.CRITICAL)
        self._refusal, self._error = CELParseError, CELEvalError
        self._types, self._convert = celtypes, json_to_cel
        self._engine = Environment()
        self._programs: dict[int, Any] = {}
        self._visible: dict[str, Any] = {}

    def answer(self, question: Any) -> list[object]:
        """Answer a question. An exception of the engine is an answer too."""
        try:
            return self._answer(question)
        except self._refusal as error:
            return ["refused", _get_message(error)]
        except self._error as error:
            return ["error", _get_message(error)]
        except MemoryError:
            return ["crash", "MemoryError"]
        except Exception as error:  # noqa: BLE001 - the exception is the answer
            return ["crash", f"{type(error).__name__}: {_get_message(error)}"]

    def _answer(self, question: Any) -> list[object]:
        if "text" in question:
            self._programs[question["number"]] = self._engine.program(self._engine.compile(question["text"]))
            return ["ready"]
        if "inputs" in question:
            variables = question["variables"]
            self._visible = {name: self._convert(document) for name, document in question["inputs"].items()}
            self._visible["variables"] = self._types.MapType(
                {self._types.StringType(name): self._read_value(value) for name, value in variables.items()}
            )
            return ["ready"]
        return ["value", self._tag_value(self._programs[question["number"]].evaluate(self._visible))]

    def _read_value(self, tagged: list[Any]) -> Any:
        """Convert a tagged value of Assay to a value of cel-python."""
        types = self._types
        kind, value = tagged
        match kind:
            case "null":
                return None
            case "bool":
                return types.BoolType(value)
            case "uint":
                return types.UintType(int(value))
            case "int":
                return types.IntType(int(value))
            case "double":
                return types.DoubleType(float(value))
            case "bytes":
                return types.BytesType(bytes.fromhex(value))
            case "list":
                return types.ListType([self._read_value(item) for item in value])
            case "map":
                return types.MapType({self._read_value(key): self._read_value(item) for key, item in value})
            case "timestamp":
                return types.TimestampType(_EPOCH + dt.timedelta(microseconds=int(value) // 1000))
            case "duration":
                return types.DurationType(dt.timedelta(microseconds=int(value) // 1000))
            case _:
                return types.StringType(value)

    def _tag_value(self, value: Any) -> list[object]:
        """Convert a value of cel-python to a tagged value of Assay."""
        types = self._types
        match value:
            case None:
                return ["null", None]
            case types.BoolType() | bool():
                return ["bool", bool(value)]
            case types.UintType():
                return ["uint", str(int(value))]
            case types.IntType():
                return ["int", str(int(value))]
            case types.DoubleType():
                return ["double", repr(float(value))]
            case types.StringType() | str():
                return ["string", str(value)]
            case types.BytesType():
                return ["bytes", bytes(value).hex()]
            case types.ListType():
                return ["list", [self._tag_value(item) for item in value]]
            case types.MapType():
                return ["map", [[self._tag_value(key), self._tag_value(item)] for key, item in value.items()]]
            case types.DurationType():
                return ["duration", str(value // dt.timedelta(microseconds=1) * 1000)]
            case types.TimestampType():
                return ["timestamp", str((value - _EPOCH) // dt.timedelta(microseconds=1) * 1000)]
            case _:
                return ["type", getattr(value, "__name__", type(value).__name__)]


def _get_message(error: Exception) -> str:
    """The message of an exception, on one line."""
    return " ".join(str(part) for part in error.args[:1]).replace("\n", " ")[:_LONGEST]


def main() -> None:
    """Answer questions until the input ends."""
    engine = CelPythonProcess()
    # A system without this limit keeps its own.
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    sys.stdout.write('["ready"]\n')
    sys.stdout.flush()
    for line in sys.stdin:
        signal.alarm(_LAST_RESORT)
        sys.stdout.write(json.dumps(engine.answer(json.loads(line))) + "\n")
        sys.stdout.flush()
        signal.alarm(0)


if __name__ == "__main__":
    main()
