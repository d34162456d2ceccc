"""What `assay check` answers, read from its JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator

from tests.command import Ran

SCHEMA = json.loads((Path(__file__).parents[2] / "docs" / "check.schema.json").read_text())


def first(ran: Ran) -> Any:
    """The answer about the first manifest of a document that the schema describes."""
    document: Any = ran.report
    Draft202012Validator(SCHEMA).validate(document)
    return document["objects"][0]


def list_objects(ran: Ran) -> Any:
    """The answers about all manifests."""
    report: Any = ran.report
    return report["objects"]


def verdict(ran: Ran) -> tuple[int, str]:
    """The exit code, and the verdict about the first manifest."""
    return ran.code, first(ran)["verdict"]
