"""Reads the clusters of a fleet: a file with the list `clusters`, whose order gives each cluster its index."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from zoneinfo import ZoneInfo

from scanner.documents.files import read_only
from scanner.documents.nodes import Node
from scanner.errors import UsageError
from scanner.model.schedule import parse_schedule

_FIELDS: Final = ("name", "kubeconfig", "context", "schedule", "timeZone")
_NAME: Final = re.compile(r"[\w.:/@-]{1,253}", re.ASCII)
_ROOT: Final = ("clusters", "$schema")


@dataclass(frozen=True, slots=True)
class Member:
    """A cluster of a fleet. `kubeconfig` and `context` are empty where the defaults of the scan apply.

    `schedule` is empty if no run is expected, else five fields in the time zone `time_zone`; empty for UTC.
    """

    name: str
    kubeconfig: str = ""
    context: str = ""
    schedule: str = ""
    time_zone: str = ""


def read_fleet(path: Path) -> tuple[Member, ...]:
    """The clusters in the order of the file; paths of kubeconfigs are relative to its folder.

    Raises UsageError for a path that cannot be read, BadDocument for an error in the file.
    """
    root = read_only(path)
    fields = root.fields(_ROOT)
    if "clusters" not in fields:
        root.fail("the field clusters is missing")
    members = tuple(_read_members(fields["clusters"], path.expanduser().absolute().parent))
    if not members:
        fields["clusters"].fail("must have at least one cluster")
    return members


def get_member(members: tuple[Member, ...], index: int, path: Path) -> Member:
    """The cluster with an index, which counts from 0. Raises UsageError."""
    if index >= len(members):
        raise UsageError(
            f"--index {index}: {path} has {len(members)} cluster{'s' * (len(members) != 1)}, and the first has index 0. "
            "The completions of a Job must be the number of clusters"
        )
    return members[index]


def _read_members(node: Node, folder: Path) -> Iterator[Member]:
    places: dict[str, object] = {}
    for item in node.items():
        fields = item.fields(_FIELDS)
        if "name" not in fields:
            item.fail("the field name is missing")
        name = fields["name"].string()
        if not _NAME.fullmatch(name):
            fields["name"].fail("must be a name: at most 253 letters, digits and . _ - : / @")
        if name in places:
            fields["name"].fail(f"this is the name of the cluster at {places[name]} already")
        places[name] = item.place
        texts = {key: fields[key].string() for key in ("kubeconfig", "context", "schedule") if key in fields}
        if "kubeconfig" in texts:
            texts["kubeconfig"] = str(folder / Path(texts["kubeconfig"]).expanduser())
        if "timeZone" in fields and "schedule" not in fields:
            fields["timeZone"].fail("belongs to a schedule")
        yield Member(name, time_zone=_read_time_zone(fields), **texts)


def _read_time_zone(fields: dict[str, Node]) -> str:
    """The time zone of a schedule, which is checked, too."""
    zone = fields["timeZone"].string() if "timeZone" in fields else ""
    try:
        zone_info = ZoneInfo(zone or "Etc/UTC")
    except (KeyError, ValueError, OSError):
        fields["timeZone"].fail("must be a time zone: write a name such as Europe/Berlin")
    if "schedule" in fields:
        try:
            parse_schedule(fields["schedule"].string(), zone_info)
        except UsageError as error:
            fields["schedule"].fail(str(error))
    return zone
