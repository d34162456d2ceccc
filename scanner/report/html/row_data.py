"""The data of `findings.html` for its script: files of rows that the page loads when a reader filters or sorts.

Each file calls a function of the page with numbers and texts. The texts are one string, with a line for each row
and tabs between its parts: browsers read one long string much faster than many short ones. A file has each message once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Final, NamedTuple

import orjson

from scanner.model.policy import ACTIONS, PolicyKey
from scanner.posture.severity import Severity
from scanner.report.html.site import Site
from scanner.report.html.templates import NAME, NO_NAME
from scanner.report.lists.problem_facts import CHIPS, STATUSES
from scanner.report.text.safe_text import cut, visible
from scanner.report.text.times import utc

DATA_FOLDER: Final = "data"
SIZE: Final = 4_000
"""The rows of a file."""
CHOICES: Final = (*ACTIONS, "")
"""The strictest actions by their numbers in the data."""
_MINUTE: Final = 60
_BETWEEN: Final = "\x1f"


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

    def facts(
        self,
        *,
        chip: str,
        action: str,
        severity: Severity,
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
            CHOICES.index(action),
            severity.rank,
            STATUSES.index(status),
            self._policies[policy],
            minutes(opened),
            int(waived),
            _name_or_title(namespace),
            _name_or_title(owner),
        )


def row_text(facts: RowFacts, messages: Sequence[str], texts: Iterable[str]) -> str:
    """A row as one line; the texts have no control characters. `messages` are that of the row, and those of its objects that differ."""
    numbers = ",".join(map(str, facts[:-2]))
    return "\t".join((numbers, facts.namespace, facts.owner, _BETWEEN.join(messages), *texts))


def write_data(site: Site, into: Path, rows: Iterator[str], end: datetime) -> None:
    """Write all files, given the lines of `row_text` in the order of the list."""
    folder = into / DATA_FOLDER
    folder.mkdir()
    namespaces, owners = dict[str, int](), dict[str, int]()
    number = 0
    while portion := list(islice(rows, SIZE)):
        (folder / f"{number:04}.js").write_bytes(_file(number, portion, namespaces, owners))
        number += 1
    document = site.document
    index = {
        "policies": [
            (_name_or_title(document.title(key)), _name_or_title(section.title) or NO_NAME, site.policy_path(key))
            for key, section in site.sections.items()
        ],
        "namespaces": list(namespaces),
        "owners": list(owners),
        "severities": list(map(str, Severity)),
        "actions": CHOICES,
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


def _name_or_title(text: str) -> str:
    return visible(cut(text, NAME))


def _file(number: int, rows: Iterable[str], namespaces: dict[str, int], owners: dict[str, int]) -> bytes:
    """The script of a file of rows; new namespaces and owners get the next numbers."""
    numbers, texts, said = [], [], []
    messages = dict[str, int]()
    for row in rows:
        known, namespace, owner, own_messages, text = row.split("\t", 4)
        place = namespaces.setdefault(namespace, len(namespaces)), owners.setdefault(owner, len(owners))
        numbers.append(f"{known},{place[0]},{place[1]}")
        said.append(",".join(str(messages.setdefault(each, len(messages))) for each in own_messages.split(_BETWEEN)))
        texts.append(text)
    lines = (orjson.dumps("\n".join(each)) for each in (texts, said, messages))
    return b"assay.rows(%d,[%s],%s)\n" % (number, ",".join(numbers).encode(), b",".join(lines))
