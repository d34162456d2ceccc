"""The data of `findings.html` for its script: files of rows that the page loads when a reader filters or sorts.

Each file calls a function of the page with numbers and texts. The texts are one string, with a line for each row and tabs between
its parts: browsers read one long string much faster than many short ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from itertools import islice
from typing import Final, NamedTuple

import orjson

from scanner.posture.severity import Severity
from scanner.report.chips import CHIPS, STATUSES
from scanner.report.site import Site
from scanner.report.templates import NAME
from scanner.report.words import cut, utc, visible

FOLDER: Final = "data"
SIZE: Final = 4_000
"""The rows of a file."""
ACTIONS: Final = ("Deny", "Warn", "Audit", "")
_MINUTE: Final = 60


class RowNumbers(NamedTuple):
    """The numbers of a row, in the order in which the script reads them; `opened` in minutes."""

    chip: int
    action: int
    severity: int
    status: int
    policy: int
    namespace: int
    owner: int
    opened: int
    waived: int


class SearchData:
    """The tables of names to which the numbers of rows refer, and the files of a report."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._policies = {key: number for number, key in enumerate(site.sections)}
        self._namespaces: dict[str, int] = {}
        self._owners: dict[str, int] = {}
        self._severities = {severity: number for number, severity in enumerate(Severity)}

    def numbers(
        self,
        *,
        chip: str,
        action: str,
        status: str,
        policy: tuple[str, str],
        namespace: str,
        owner: str,
        opened: datetime,
        waived: bool,
    ) -> RowNumbers:
        """The numbers of a row."""
        return RowNumbers(
            CHIPS.index(chip),
            ACTIONS.index(action),
            self._severities[self._site.sections[policy].severity],
            STATUSES.index(status),
            self._policies[policy],
            self._namespaces.setdefault(namespace, len(self._namespaces)),
            self._owners.setdefault(owner, len(self._owners)),
            minutes(opened),
            int(waived),
        )

    def write(self, rows: Iterator[str], end: datetime) -> None:
        """Write all files, given the lines of `row_text` in the order of the list."""
        folder = self._site.folder / FOLDER
        folder.mkdir()
        number = 0
        while portion := list(islice(rows, SIZE)):
            (folder / f"{number:04}.js").write_bytes(_file(number, portion))
            number += 1
        document = self._site.document
        index = {
            "policies": [
                (_name(document.title(key)), _name(section.title), self._site.policy_path(key))
                for key, section in self._site.sections.items()
            ],
            "namespaces": list(map(_name, self._namespaces)),
            "owners": list(map(_name, self._owners)),
            "severities": list(map(str, Severity)),
            "actions": ACTIONS,
            "statuses": STATUSES,
            "chips": CHIPS,
            "chunks": number,
            "size": SIZE,
            "end": minutes(end),
        }
        (folder / "index.js").write_bytes(b"assay.index(" + orjson.dumps(index) + b")\n")


def row_text(numbers: RowNumbers, texts: Iterable[str]) -> str:
    """A row as one line; the texts have no tabs and no line ends."""
    return f"{','.join(map(str, numbers))}\t{chr(9).join(texts)}"


def minutes(moment: datetime) -> int:
    """The minutes since 1970."""
    return int(utc(moment).timestamp()) // _MINUTE


def _name(text: str) -> str:
    return visible(cut(text, NAME))


def _file(number: int, rows: Iterable[str]) -> bytes:
    split = [row.partition("\t") for row in rows]
    numbers = ",".join(numbers for numbers, _, _ in split)
    texts = "\n".join(text for _, _, text in split)
    return b"assay.rows(%d,[%s],%s)\n" % (number, numbers.encode(), orjson.dumps(texts))
