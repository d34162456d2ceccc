"""The data of `findings.html` for its script: files of rows that the page loads when a reader filters or sorts.

Each file calls a function of the page with numbers and texts. The texts are one string, with a line for each row and tabs between
its parts: browsers read one long string much faster than many short ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Final, NamedTuple

import orjson

from scanner.model.policy import PolicyKey
from scanner.posture.severity import Severity
from scanner.report.chips import CHIPS, STATUSES
from scanner.report.site import Site
from scanner.report.templates import NAME, NO_NAME
from scanner.report.words import cut, utc, visible

FOLDER: Final = "data"
SIZE: Final = 4_000
"""The rows of a file."""
ACTIONS: Final = ("Deny", "Warn", "Audit", "")
_MINUTE: Final = 60


class RowFacts(NamedTuple):
    """The facts by which the script filters and sorts a row, in its order: numbers, but for namespace and owner; `opened` in minutes."""

    chip: int
    action: int
    severity: int
    status: int
    policy: int
    opened: int
    waived: int
    namespace: str
    owner: str


class RowData:
    """The data of rows, as lines; namespaces and owners get their numbers when all rows are known."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._policies = {key: number for number, key in enumerate(site.sections)}
        self._severities = {severity: number for number, severity in enumerate(Severity)}

    def facts(
        self,
        *,
        chip: str,
        action: str,
        status: str,
        policy: PolicyKey,
        namespace: str,
        owner: str,
        opened: datetime,
        waived: bool,
    ) -> RowFacts:
        """The facts of a row."""
        return RowFacts(
            CHIPS.index(chip),
            ACTIONS.index(action),
            self._severities[self._site.sections[policy].severity],
            STATUSES.index(status),
            self._policies[policy],
            minutes(opened),
            int(waived),
            _name(namespace),
            _name(owner),
        )


def row_text(facts: RowFacts, texts: Iterable[str]) -> str:
    """A row as one line; the texts have no tabs and no line ends."""
    numbers = ",".join(map(str, facts[:-2]))
    return "\t".join((numbers, facts.namespace, facts.owner, *texts))


def write_data(site: Site, into: Path, rows: Iterator[str], end: datetime) -> None:
    """Write all files, given the lines of `row_text` in the order of the list."""
    folder = into / FOLDER
    folder.mkdir()
    namespaces, owners = dict[str, int](), dict[str, int]()
    number = 0
    while portion := list(islice(rows, SIZE)):
        (folder / f"{number:04}.js").write_bytes(_file(number, portion, namespaces, owners))
        number += 1
    document = site.document
    index = {
        "policies": [
            (_name(document.title(key)), _name(section.title) or NO_NAME, site.policy_path(key))
            for key, section in site.sections.items()
        ],
        "namespaces": list(namespaces),
        "owners": list(owners),
        "severities": list(map(str, Severity)),
        "actions": ACTIONS,
        "statuses": STATUSES,
        "chips": CHIPS,
        "chunks": number,
        "size": SIZE,
        "end": minutes(end),
    }
    (folder / "index.js").write_bytes(b"assay.index(" + orjson.dumps(index) + b")\n")


def minutes(moment: datetime) -> int:
    """The minutes since 1970."""
    return int(utc(moment).timestamp()) // _MINUTE


def _name(text: str) -> str:
    return visible(cut(text, NAME))


def _file(number: int, rows: Iterable[str], namespaces: dict[str, int], owners: dict[str, int]) -> bytes:
    numbers, texts = [], []
    for row in rows:
        known, namespace, owner, text = row.split("\t", 3)
        place = namespaces.setdefault(namespace, len(namespaces)), owners.setdefault(owner, len(owners))
        numbers.append(f"{known},{place[0]},{place[1]}")
        texts.append(text)
    return b"assay.rows(%d,[%s],%s)\n" % (number, ",".join(numbers).encode(), orjson.dumps("\n".join(texts)))
