"""A month of scans of a cluster as real ones are: 42 policies, namespaces of several teams, controls, a waiver, and rules that change.

It is the cluster of the demo with copies of its namespaces. Copies have names of their own, also in what messages name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import chdir
from datetime import UTC, datetime, timedelta
from pathlib import Path

import orjson
import yaml

from scanner.model.json import Json, JsonObject, as_object
from scanner.store import open_store
from tests.command import assay_here
from tests.demo import demo_in

_NIGHTS = (30, 24, 20, 17, 16, 12, 9, 7, 6, 4, 3, 2, 1, 0)
_NAMED = ("containers", "initContainers", "ownerReferences")


def print_month(home: Path, *, copies: int = 0, more_policies: tuple[str, ...] = ()) -> tuple[Path, list[str]]:
    """Record a month in `home`, and return its report as one file, and the ids of its findings."""
    demo = demo_in(home)
    vars(demo)["POLICIES"] = (*demo.POLICIES, *more_policies)
    now = datetime.now(UTC)
    with chdir(home), open_store("assay.db", clock := demo.Clock(now)) as store:
        for night in _NIGHTS:
            clock.moment = now - timedelta(days=night)
            demo.write_state(night)
            _add_copies(home / demo.OUTPUT / "cluster", copies)
            demo.record_night(store, clock, f"{clock.moment:%Y%m%dT%H%M%SZ}-{night:06x}")
        demo.write_waiver(now)
    report = assay_here(
        *("report", "-o", "json", "--db", "assay.db", "--config", "examples/assay.yaml"),
        *("--waivers", "build/demo/waivers.yaml", "--single-file", "report.html"),
        home=home,
    ).report
    return home / "report.html", [str(as_object(each)["id"]) for each in _as_list(report["findings"])]


def _as_list(value: Json) -> Iterable[Json]:
    assert isinstance(value, list)
    return value


def _add_copies(cluster: Path, copies: int) -> None:
    for path in sorted(cluster.iterdir()):
        if path.name.startswith("broken-"):
            continue
        for number in range(2, copies + 2):
            made = [copy for document in _read(path) if (copy := _copy(document, number))]
            (cluster / f"{path.stem}-{number}.json").write_bytes(
                orjson.dumps({"apiVersion": "v1", "kind": "List", "items": made})
            )


def _read(path: Path) -> Iterator[JsonObject]:
    for document in yaml.safe_load_all(path.read_text("utf-8")):
        if document:
            yield from document.get("items", [document])


def _copy(document: JsonObject, number: int) -> JsonObject | None:
    """The object in a namespace of its own; None for a cluster-scoped one, of which there is one."""
    copied = as_object(_rename(orjson.loads(orjson.dumps(document)), number))
    metadata = copied["metadata"]
    assert isinstance(metadata, dict)
    if "namespace" in metadata:
        metadata["namespace"] = f"{metadata['namespace']}-{number}"
    elif document["kind"] != "Namespace":
        return None
    metadata["name"] = f"{metadata['name']}-{number}"
    return copied


def _rename(value: Json, number: int) -> Json:
    """Give what has a name or a uid of its own another one, and each owner a number."""
    match value:
        case dict():
            for key, item in value.items():
                if key in _NAMED and isinstance(item, list):
                    for each in item:
                        if isinstance(each, dict):
                            each["name"] = f"{each['name']}-{number}"
                if key == "uid" or (key == "example.com/owner" and item):
                    value[key] = f"{item}-{number}"
                _rename(item, number)
        case list():
            for item in value:
                _rename(item, number)
    return value
