"""Records the results of Go's decoders for changed objects: `tests/mutate/go_answers.json`, out of `go_changes.json` beside it.

Run it as `python -m scripts.record_go_answers`, with Go at hand. Each change is decoded by the strict JSON decoder, as after a JSON
patch, and where the kind's schema lets it pass from unstructured, as after an apply configuration.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from scanner.cluster.schemas import builtin_schemas
from scanner.mutate import merge
from scanner.mutate.native import PatchFault
from scanner.mutate.operations import PatchOperation, apply

SOURCE = Path(__file__).parent / "gotypes"
FOLDER = Path(__file__).parent.parent / "tests" / "mutate"
_IDENTITY = ("/apiVersion", "/kind")


def changed(document: Any, path: str, value: Any) -> Any:
    """Return the object with a value at a path; the path may be new."""
    try:
        return apply([PatchOperation("replace", path, value)], document)
    except PatchFault:
        return apply([PatchOperation("add", path, value)], document)


def at(document: Any, path: str) -> list[Any]:
    """Return the value at a path in a list of one; an empty list for an absent value."""
    for step in path.split("/")[1:]:
        if isinstance(document, list):
            document = document[-1 if step == "-" else int(step)]
        elif step in document:
            document = document[step]
        else:
            return []
    return [document]


def questions(subjects: dict[str, Any], objects: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield each change in each form that a patch may have, with the changed object."""
    for kind, subject in subjects.items():
        group, _, version = subject["apiVersion"].rpartition("/")
        schema = builtin_schemas()[group, version, kind]
        for path, value in subject["changes"]:
            document = changed(objects[kind], path, value)
            for way in ("json", "merge"):
                if way == "json" or (path not in _IDENTITY and not merge.find_faults(schema, document)):
                    yield {"kind": kind, "way": way, "path": path, "value": value, "document": document}


def answers(given: list[dict[str, Any]]) -> list[Any]:
    """Return the answers of Go's decoders, in the order of the questions."""
    lines = "".join(f"{json.dumps(question, sort_keys=True)}\n" for question in given)
    command = ["go", "run", ".", "decode"]
    completed = subprocess.run(command, cwd=SOURCE, input=lines.encode(), check=True, capture_output=True)  # noqa: S603 - a fixed command
    return [json.loads(line) for line in completed.stdout.splitlines()]


def main() -> int:
    """Record the answers and print how many there are."""
    subjects = json.loads((FOLDER / "go_changes.json").read_text(encoding="utf-8"))
    versions = {kind: subject["apiVersion"] for kind, subject in subjects.items()}
    plain = [
        {
            "version": versions[kind],
            "kind": kind,
            "document": {"apiVersion": versions[kind], "kind": kind, **subject["object"]},
        }
        for kind, subject in subjects.items()
    ]
    objects = {question["kind"]: answer["object"] for question, answer in zip(plain, answers(plain), strict=True)}
    changes = list(questions(subjects, objects))
    replies = answers([{**question, "version": versions[question["kind"]]} for question in changes])
    rows = [
        {name: question[name] for name in ("kind", "way", "path", "value")}
        | ({"error": answer["error"]} if "error" in answer else {"written": at(answer["object"], question["path"])})
        for question, answer in zip(changes, replies, strict=True)
    ]
    parts = [json.dumps(kind) + ": " + json.dumps(document) for kind, document in objects.items()]
    lines = ",\n".join(map(json.dumps, rows))
    text = "\n".join(['{"objects": {', ",\n".join(parts), '}, "answers": [', lines, "]}", ""])
    (FOLDER / "go_answers.json").write_text(text, encoding="utf-8")
    print(f"{len(rows)} answers written to {FOLDER / 'go_answers.json'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
